package leg

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"hone/workspace"
)

// gitError is a failure of git.
type gitError struct {
	what string
	said string
	err  error
}

func (e *gitError) Error() string {
	return fmt.Sprintf("git %s: %s", e.what, strings.Join(strings.Fields(e.said), " "))
}
func (e *gitError) Unwrap() error { return e.err }

// refused matches messages of git after which a retry would fail as well: the repository or
// the branch does not exist, or the worker may not read it.
var refused = regexp.MustCompile(`(?i)not found|does not exist|does not appear to be a git repository|authentication failed|permission denied|could not read (username|password)|access denied|dubious ownership|couldn't find remote ref|not our ref|unable to find remote helper`)

// unreachable matches messages of git about a failed network.
var unreachable = regexp.MustCompile(`(?i)could not resolve host|timed out|connection (refused|reset)|unable to access .*error: 5\d\d|temporary failure`)

// git runs git without hooks and prompts, and returns what it printed.
func (w *Worker) git(ctx context.Context, dir string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "git", append([]string{"-c", "core.hooksPath=" + os.DevNull, "-c", "gc.auto=0", "-c", "maintenance.auto=false"}, args...)...)
	c.Dir = dir
	c.Env = append(slices.Clone(w.environ()), "LC_ALL=C", "GIT_TERMINAL_PROMPT=0")
	if !slices.ContainsFunc(c.Env, func(v string) bool { return strings.HasPrefix(v, "GIT_SSH_COMMAND=") }) {
		c.Env = append(c.Env, "GIT_SSH_COMMAND=ssh -oBatchMode=yes")
	}
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	err := c.Run()
	switch {
	case err == nil:
		return strings.TrimSpace(out.String()), nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	}
	failed := &gitError{args[0], said.String(), err}
	if refused.MatchString(failed.said) && !unreachable.MatchString(failed.said) {
		return "", &fatalError{failed}
	}
	return "", failed
}

// checkOut clones a repository into a directory and checks out a commit: the given one,
// or that of a ref if it is empty. It returns the commit.
func (w *Worker) checkOut(ctx context.Context, repo, ref, commit, dir string) (string, error) {
	if repo == "" || strings.HasPrefix(repo, "-") || strings.HasPrefix(ref, "-") {
		return "", fatal("git cannot clone %q with ref %q", repo, ref)
	}
	sum := sha256.Sum256([]byte(repo))
	place, err := w.takePlace()
	if err != nil {
		return "", err
	}
	mirror := filepath.Join(place, "mirrors", hex.EncodeToString(sum[:16])+".git")
	defer w.lockMirror(mirror)()
	found, err := w.fetch(ctx, mirror, repo, ref, commit)
	if err != nil && strings.Contains(err.Error(), "File exists") { // a lock of a git that was killed
		if err = os.RemoveAll(mirror); err == nil {
			found, err = w.fetch(ctx, mirror, repo, ref, commit)
		}
	}
	if err != nil {
		return "", err
	}
	if _, err := w.git(ctx, "", "clone", "-q", "--no-checkout", "--", mirror, dir); err != nil {
		return "", err
	}
	_, err = w.git(ctx, dir, "checkout", "-q", "--detach", found)
	return found, err
}

func (w *Worker) lockMirror(dir string) (unlock func()) {
	w.lock.Lock()
	if w.mirrors == nil {
		w.mirrors = map[string]*sync.Mutex{}
	}
	if w.mirrors[dir] == nil {
		w.mirrors[dir] = &sync.Mutex{}
	}
	m := w.mirrors[dir]
	w.lock.Unlock()
	m.Lock()
	return m.Unlock
}

// fetch brings the worker's copy of a repository up to date, and returns the commit.
func (w *Worker) fetch(ctx context.Context, mirror, repo, ref, commit string) (string, error) {
	if _, err := os.Stat(filepath.Join(mirror, "HEAD")); err != nil {
		if _, err := w.git(ctx, "", "init", "-q", "--bare", mirror); err != nil {
			return "", err
		}
	}
	if commit != "" && w.hasCommit(ctx, mirror, commit) {
		return commit, nil
	}
	head, err := w.git(ctx, mirror, "ls-remote", "--symref", "--", repo, "HEAD")
	if err != nil {
		return "", err
	}
	if branch, ok := strings.CutPrefix(head, "ref: "); ok {
		branch, _, _ = strings.Cut(branch, "\t")
		if _, err := w.git(ctx, mirror, "symbolic-ref", "HEAD", branch); err != nil {
			return "", err
		}
	}
	if _, err := w.git(ctx, mirror, "fetch", "-q", "--prune", "--force", "--", repo, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"); err != nil {
		return "", err
	}
	if commit == "" {
		return w.resolve(ctx, mirror, repo, ref)
	}
	if w.hasCommit(ctx, mirror, commit) {
		return commit, nil
	}
	return commit, w.fetchCommit(ctx, mirror, repo, commit)
}

func (w *Worker) hasCommit(ctx context.Context, mirror, commit string) bool {
	_, err := w.git(ctx, mirror, "cat-file", "-e", commit+"^{commit}")
	return err == nil
}

// fetchCommit fetches a commit that no branch or tag has any more.
func (w *Worker) fetchCommit(ctx context.Context, mirror, repo, commit string) error {
	_, err := w.git(ctx, mirror, "fetch", "-q", "--", repo, commit)
	return err
}

var fullHash = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// resolve returns the commit of a ref: a branch, a tag or a commit; empty means that of
// the repository's default branch.
func (w *Worker) resolve(ctx context.Context, mirror, repo, ref string) (string, error) {
	names := []string{"refs/heads/" + ref, "refs/tags/" + ref, ref}
	if ref == "" {
		names = []string{"HEAD"}
	}
	for _, name := range names {
		commit, err := w.git(ctx, mirror, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
		if err == nil {
			return commit, nil
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
	}
	if fullHash.MatchString(ref) {
		return ref, w.fetchCommit(ctx, mirror, repo, ref)
	}
	if ref == "" {
		return "", fatal("%s has no commit", repo)
	}
	return "", fatal("%s has no branch, tag or commit %s", repo, ref)
}

// know reads the files of the commit, which need not be stored.
func (g *leg) know(ctx context.Context) error {
	g.files, g.has = map[string]string{}, map[string]bool{}
	list, err := g.git(ctx, g.repo, "ls-files", "-z")
	if err != nil {
		return err
	}
	tree, err := workspace.Open(g.repo, workspace.Options{})
	if err != nil {
		return err
	}
	defer tree.Close()
	for path := range strings.SplitSeq(list, "\x00") {
		content, _, err := tree.Read(path)
		if err == nil { // a link or a submodule has no contents of its own
			sum := sha256.Sum256(content)
			g.files[hex.EncodeToString(sum[:])] = path
		}
		if ctx.Err() != nil {
			return errors.Join(ctx.Err())
		}
	}
	return nil
}
