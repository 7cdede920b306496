package eval

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"hone/harness/runs"
	"hone/journal"
	"hone/loop"
	"hone/workspace/clone"
)

// maxAge is how long the copies of an evaluation are kept after its last use.
const maxAge = 30 * 24 * time.Hour

// Open returns the directory in the user's cache for the copies of the evaluation with a
// record, and locks it until unlock is called. It removes those of other evaluations that
// were last used long ago.
func Open(record string) (cache string, unlock func(), err error) {
	base, err := os.UserCacheDir()
	if err == nil {
		base, err = filepath.Abs(filepath.Join(base, "hone", "eval"))
	}
	if err == nil {
		err = os.MkdirAll(base, 0o700)
	}
	if err == nil {
		base, err = filepath.EvalSymlinks(base)
	}
	if err != nil {
		return "", nil, fmt.Errorf("there is no cache directory for copies: %w; set XDG_CACHE_HOME to a writable directory", err)
	}
	sum := sha256.Sum256([]byte(record))
	cache = filepath.Join(base, fmt.Sprintf("%x", sum[:8]))
	// Beside the copies: a run in a directory locks out runs below it.
	at := filepath.Join(cache, "lock")
	for _, dir := range []string{at, filepath.Join(cache, "bases"), filepath.Join(cache, "tries")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", nil, err
		}
	}
	home, err := journal.OpenHome(at)
	if err != nil {
		return "", nil, err
	}
	lock, err := home.Lock()
	if err != nil {
		home.Close()
		if errors.As(err, new(*journal.LockedError)) {
			err = loop.Usage("another hone eval works on "+record, "wait for it, or name another file with --output")
		}
		return "", nil, err
	}
	now := time.Now()
	_ = os.Chtimes(cache, now, now)
	sweep(base, now.Add(-maxAge))
	return cache, func() { lock.Unlock(); home.Close() }, nil
}

// sweep removes the directories of evaluations that were last used before a time. What
// cannot be removed stays for the next time.
func sweep(base string, before time.Time) {
	entries, _ := os.ReadDir(base)
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.ModTime().Before(before) {
			tries, _ := filepath.Glob(filepath.Join(base, entry.Name(), "tries", "*", "*"))
			for _, dir := range tries {
				runs.RemoveHome(dir)
			}
			_ = clone.Remove(filepath.Join(base, entry.Name()))
		}
	}
}

// tree returns the directory in which a try works.
func (e *Evaluation) tree(t *Try) string {
	return filepath.Join(e.Cache, t.dir(), filepath.Base(t.Base.Origin))
}

// copy makes the tree of a try, in place of what is there.
func (e *Evaluation) copy(ctx context.Context, t *Try) error {
	e.remove(t)
	from, err := t.Base.Make(ctx, e.Cache)
	if err != nil {
		return err
	}
	fresh := filepath.Join(e.Cache, t.dir()+".new")
	to := filepath.Join(fresh, filepath.Base(from))
	if err := errors.Join(clone.Remove(fresh), os.MkdirAll(to, 0o755)); err != nil {
		return err
	}
	if err := copyTree(ctx, from, to); err != nil {
		return errors.Join(err, clone.Remove(fresh))
	}
	return os.Rename(fresh, filepath.Dir(e.tree(t)))
}

// remove removes the tree of a try. What cannot be removed stays until it is swept.
func (e *Evaluation) remove(t *Try) {
	runs.RemoveHome(e.tree(t))
	_ = clone.Remove(filepath.Dir(e.tree(t)))
}

// RemoveBases removes the trees that were copied for the tries. Others are made again when
// they are needed.
func (e *Evaluation) RemoveBases() { _ = clone.Remove(filepath.Join(e.Cache, "bases")) }
