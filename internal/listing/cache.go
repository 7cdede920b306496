package listing

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"hone/internal/git"
	"hone/workspace"
	"hone/workspace/treepath"
)

// cache keeps the last listing of a large repository, with its fingerprint. While that
// does not change, git need not be asked again, which takes as long as asking the system
// about all files. git's untracked cache does the same, but in the user's index. The zero
// cache is empty; a nil one stores nothing.
type cache struct {
	mu          sync.Mutex
	useless     bool // the repository has no fingerprint
	fingerprint *fingerprint
	listing     workspace.Listing // if fingerprint is not nil
}

func (m *cache) list(ctx context.Context, repo *git.Repo, root string, ask func() (workspace.Listing, error)) (workspace.Listing, error) {
	if m == nil {
		return ask()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.useless || !isLarge(root) {
		return ask()
	}
	before := fingerprintOf(ctx, repo, root, m.fingerprint)
	if before != nil && m.fingerprint != nil && before.equal(m.fingerprint) {
		m.fingerprint = before
		return m.listing, nil
	}
	m.useless = before == nil && m.fingerprint == nil // if it had one, it may lack one only for a moment
	m.fingerprint = nil
	listing, err := ask()
	if err != nil || before == nil || !before.isReliable() {
		return listing, err
	}
	if after := fingerprintOf(ctx, repo, root, before); after != nil && after.unchanged(before) {
		m.fingerprint, m.listing = after, listing
	}
	return listing, nil
}

const (
	// largeIndex is the minimum size of git's index, in bytes, for a listing to be
	// stored: about 5 000 files. git lists fewer as fast as it reads its settings.
	largeIndex = 512 << 10
	// perDir is the minimum size of the index for each directory, in bytes: that of
	// about five files. With fewer, asking about the directories takes as long as git does.
	perDir = 512
	// maxIgnoreFile is the size of the largest ignore file, in bytes.
	maxIgnoreFile = 1 << 20
)

func isLarge(root string) bool {
	info, err := os.Stat(indexOf(root))
	return err == nil && info.Size() >= largeIndex
}

func indexOf(root string) string { return filepath.Join(root, ".git", "index") }

// fingerprint is the state of everything that a listing depends on.
type fingerprint struct {
	taken    time.Time
	settings []git.Setting
	index    stamp
	excludes [2]ignoreFile // .git/info/exclude and the user's
	dirs     map[string]dirFingerprint
}

type dirFingerprint struct {
	stamp  stamp
	names  [sha256.Size]byte // digest of the names in it, and of their types
	below  []string          // names of directories
	has    bool              // it has an ignore file
	ignore ignoreFile
}

// ignoreFile is the state of an ignore file; zero if there is none.
type ignoreFile struct {
	stamp    stamp
	contents string // writes to a mapped file do not show in the stamp
}

// It is nil if something that the listing depends on cannot be known. It reads only directories that changed since prev, which
// may be nil.
func fingerprintOf(ctx context.Context, repo *git.Repo, root string, prev *fingerprint) *fingerprint {
	g := &fingerprint{taken: time.Now(), dirs: map[string]dirFingerprint{}}
	if prev == nil {
		prev = &fingerprint{}
	}
	var asked sync.WaitGroup
	var failed error
	asked.Go(func() { g.settings, failed = repo.Settings(ctx) })
	w := walk{fingerprint: g, prev: prev, root: root}
	ok := w.dotGit() && w.dir("")
	asked.Wait()
	if !ok || failed != nil || !g.readExcludes(root) {
		return nil
	}
	return g
}

// equal reports whether two fingerprints mean the same listing.
func (g *fingerprint) equal(o *fingerprint) bool {
	return g.index == o.index && g.excludes == o.excludes && slices.Equal(g.settings, o.settings) &&
		maps.EqualFunc(g.dirs, o.dirs, func(a, b dirFingerprint) bool {
			return a.names == b.names && a.ignore == b.ignore
		})
}

// unchanged reports whether nothing has changed since another fingerprint was taken, not
// even for a moment.
func (g *fingerprint) unchanged(o *fingerprint) bool {
	return g.equal(o) && maps.EqualFunc(g.dirs, o.dirs, func(a, b dirFingerprint) bool { return a.stamp == b.stamp })
}

// isReliable reports whether every change since the fingerprint was taken shows in a
// stamp. Otherwise a directory may have had other names when git read it.
func (g *fingerprint) isReliable() bool {
	for _, d := range g.dirs {
		if !d.stamp.isReliable(g.taken) || !d.ignore.stamp.isReliable(g.taken) {
			return false
		}
	}
	return g.index.isReliable(g.taken) && g.excludes[0].stamp.isReliable(g.taken) && g.excludes[1].stamp.isReliable(g.taken)
}

func (g *fingerprint) readExcludes(root string) (ok bool) {
	users, ok := userIgnoreFile(g.settings)
	for i, name := range []string{filepath.Join(root, ".git", "info", "exclude"), users} {
		if ok && name != "" {
			g.excludes[i], ok = readIgnore(name)
		}
	}
	return ok
}

// name is empty if there is none. ok is false if it, or the listing, depends on settings that are not understood.
func userIgnoreFile(settings []git.Setting) (name string, ok bool) {
	home := os.Getenv("HOME")
	if dir := os.Getenv("XDG_CONFIG_HOME"); dir != "" {
		name = filepath.Join(dir, "git", "ignore")
	} else if home != "" {
		name = filepath.Join(home, ".config", "git", "ignore")
	}
	for _, s := range settings {
		switch s.Name {
		case "core.sparsecheckout":
			return "", false
		case "core.excludesfile":
			name = s.Value
			if below, ok := strings.CutPrefix(name, "~/"); ok && home != "" {
				name = filepath.Join(home, below)
			}
		}
	}
	return name, name == "" || filepath.IsAbs(name)
}

type walk struct {
	*fingerprint
	prev    *fingerprint
	root    string
	device  uint64
	maxDirs int64
}

// The git directory must be in the tree and complete; that of a linked work tree is not.
func (w *walk) dotGit() (ok bool) {
	at := filepath.Join(w.root, ".git")
	top, ok := stampOf(w.root)
	if !ok || !showsChanges(w.root) {
		return false
	}
	w.device = top.device
	dir, ok := stampOf(at)
	if !ok || !dir.isDir || dir.device != w.device {
		return false
	}
	if _, err := os.Lstat(filepath.Join(at, "commondir")); err == nil {
		return false
	}
	w.index, ok = stampOf(indexOf(w.root))
	w.maxDirs = w.index.size / perDir
	return ok && !w.index.isDir && w.index.device == w.device
}

// Ignored directories are entered too, because only git knows which they are.
func (w *walk) dir(dir string) (ok bool) {
	at := filepath.Join(w.root, dir)
	now, ok := stampOf(at)
	if !ok || !now.isDir || now.device != w.device || int64(len(w.dirs)) >= w.maxDirs {
		return false
	}
	d, known := w.prev.dirs[dir]
	if !known || d.stamp != now || !now.isReliable(w.prev.taken) {
		if d, ok = dirFingerprintOf(at, dir == ""); !ok {
			return false
		}
		d.stamp = now
	}
	if d.has {
		if d.ignore, ok = readIgnore(filepath.Join(at, ".gitignore")); !ok {
			return false
		}
	}
	w.dirs[dir] = d
	for _, name := range d.below {
		if !w.dir(treepath.Join(dir, name)) {
			return false
		}
	}
	return true
}

// ok is false if a name belongs to a repository of its own. What no tree lists is left out: hone's own directory changes all
// the time.
func dirFingerprintOf(at string, top bool) (d dirFingerprint, ok bool) {
	entries, err := os.ReadDir(at)
	if err != nil {
		return d, false
	}
	var names []byte
	for _, e := range entries {
		name := e.Name()
		if top && (name == ".git" || treepath.IsHoneName(name, true)) {
			continue
		}
		switch {
		case strings.EqualFold(name, ".git"):
			return d, false
		case e.IsDir():
			d.below = append(d.below, name)
		case strings.EqualFold(name, ".gitignore"):
			if d.has = name == ".gitignore" && e.Type().IsRegular(); !d.has {
				return d, false
			}
		}
		names = strconv.AppendUint(names, uint64(e.Type()), 10)
		names = append(append(append(names, ' '), name...), 0)
	}
	d.names = sha256.Sum256(names)
	return d, true
}

// ok is true also if there is none.
func readIgnore(name string) (f ignoreFile, ok bool) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f, true
	case err != nil || !info.Mode().IsRegular() || info.Size() > maxIgnoreFile:
		return f, false
	}
	f.stamp = stampOfInfo(info)
	contents, err := readPrefix(name, info.Size())
	f.contents = string(contents)
	return f, err == nil
}
