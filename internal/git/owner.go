package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"hone/internal/transient"
	"hone/sandbox"
)

// ForeignError says that git refuses a repository because another user owns it,
// and that no safe.directory setting of the user allows it.
type ForeignError struct {
	Dir    string // the top of the work tree
	Advice string // git's own: the command that allows the repository
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("git detected dubious ownership in repository at %s: another user could have planted it", e.Dir)
}

// Root is [Top], but the error is a [*ForeignError] if git refuses the repository
// because another user owns it. Only if another user does, and a safe.directory
// setting may allow it, does Root start a process. dir is the tree of [Find].
func Root(dir string) (string, error) {
	return rootBy(dir, func() (*Git, error) { return Find(dir) })
}

func rootBy(dir string, find func() (*Git, error)) (string, error) {
	top, err := Top(dir)
	if err != nil || isOwn(top) {
		return top, err
	}
	g, err := find()
	if err != nil {
		return "", err
	}
	// Git repeats the check in each call, but what is read without git depends on this one.
	_, err = (&Repo{git: g, root: top}).run(context.Background(), call{args: []string{"rev-parse", "--git-dir"}})
	if failure, ok := errors.AsType[*Error](err); ok && strings.HasPrefix(failure.Hint, safeDirectory) {
		return "", &ForeignError{Dir: top, Advice: failure.Hint}
	}
	return top, nil // the next call of git reports any other error
}

// safeDirectory starts git's advice about a repository of another user.
const safeDirectory = "git config --global --add safe.directory "

func isOwn(top string) bool {
	dotGit := filepath.Join(top, ".git")
	if !ownedByUser(top) || !ownedByUser(dotGit) {
		return false
	}
	f, err := os.Open(dotGit)
	if err != nil {
		return false
	}
	defer f.Close()
	pointer, err := io.ReadAll(io.LimitReader(f, 1<<16))
	if err != nil {
		return true // a directory
	}
	dir := strings.TrimSpace(strings.TrimPrefix(string(pointer), "gitdir:"))
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(top, dir)
	}
	return ownedByUser(dir)
}

// A symbolic link counts itself. Where files belong to no numbers, hone leaves the question to git.
func ownedByUser(path string) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return false
	}
	uid, ok := sandbox.FileOwner(info)
	return !ok || uid == os.Geteuid()
}

// ErrUnsafe says that a git directory leads out of its work tree or contains
// something that git must not open, so that hone does not write to it.
var ErrUnsafe = errors.New("hone does not write to this git directory")

// fixedSettings are settings for calls that write, or that read commits. They
// make these calls independent of the repository's and the user's
// configuration, except for ignored files and line endings.
var fixedSettings = []string{
	"core.safecrlf=false", // otherwise a line ending can be fatal
	"core.ignoreStat=false",
	"core.splitIndex=false",
	"core.sparseCheckout=false",
	"core.preferSymlinkRefs=false",
	"core.commitGraph=false",
	"commit.gpgSign=false",
	"gpg.program=false",
	"gc.auto=0",
	"i18n.commitEncoding=UTF-8",
	"i18n.logOutputEncoding=UTF-8",
}

func (r *Repo) dotGit() string { return filepath.Join(r.root, ".git") }

// Replacements and grafts are ignored, so history is what the commits say.
func (r *Repo) runOwn(ctx context.Context, c call) ([]byte, error) {
	c.set = append(c.set, fixedSettings...)
	c.env = append(c.env, "GIT_NO_REPLACE_OBJECTS=1", "GIT_GRAFT_FILE="+os.DevNull)
	return r.run(ctx, c)
}

func (r *Repo) runLine(ctx context.Context, c call) (string, error) {
	out, err := r.runOwn(ctx, c)
	return strings.TrimSuffix(string(out), "\n"), err
}

// Walls create such files while commands run: an empty one, or a commondir that names its own directory.
func isPlaceholder(file string) bool {
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 1 {
		return false
	}
	text, err := os.ReadFile(file)
	return err == nil && (len(text) == 0 || string(text) == "." && filepath.Base(file) == "commondir")
}

// checkGitDir refuses a git directory that would make git read or write
// elsewhere: one that is not a directory, that shares another's, that borrows
// objects, or that contains a symbolic link. It also refuses a pipe, which
// would block git. It does not look at hooks, which are often links and never
// run.
func checkGitDir(dotGit string) error {
	info, err := os.Lstat(dotGit)
	if err != nil {
		return fmt.Errorf("inspect the git directory: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%w: %s is not a directory", ErrUnsafe, dotGit)
	}
	for name, why := range map[string]string{
		"commondir":                    "it is a linked work tree of another repository",
		"objects/info/alternates":      "it borrows objects from elsewhere; run git repack -a -d, then remove that file",
		"objects/info/http-alternates": "it borrows objects from elsewhere",
	} {
		file := filepath.Join(dotGit, filepath.FromSlash(name))
		_, err := os.Lstat(file)
		if transient.Is(err) {
			return fmt.Errorf("inspect the git directory: %w", err)
		}
		if err == nil && !isPlaceholder(file) {
			return fmt.Errorf("%w: %s exists: %s", ErrUnsafe, file, why)
		}
	}
	return filepath.WalkDir(dotGit, func(path string, d fs.DirEntry, err error) error {
		if path != dotGit && errors.Is(err, fs.ErrNotExist) {
			return nil // another git released its lock
		}
		if err != nil {
			return fmt.Errorf("inspect the git directory: %w", err)
		}
		if d.IsDir() && path == filepath.Join(dotGit, "hooks") {
			return filepath.SkipDir
		}
		if d.Type()&unsafeTypes != 0 {
			return fmt.Errorf("%w: %s is neither a file nor a directory", ErrUnsafe, path)
		}
		return nil
	})
}

// unsafeTypes are the types of files that lead elsewhere or block their
// readers.
const unsafeTypes = fs.ModeSymlink | fs.ModeNamedPipe | fs.ModeDevice | fs.ModeIrregular

// Unlink makes the index around a directory forget that the directory is a repository,
// unless HEAD knows it too. It does nothing if no repository is around it. It changes
// nothing else, and git runs nothing that the repositories name.
func Unlink(ctx context.Context, dir string) error {
	r, err := OpenAt(filepath.Dir(dir))
	if errors.Is(err, ErrNotRepository) {
		return nil
	}
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(r.root, dir)
	if err != nil {
		return err
	}
	path := filepath.ToSlash(rel)
	const link = "160000 "
	staged, err := r.run(ctx, call{args: []string{"ls-files", "-z", "--stage", "--", path}})
	if err != nil || !bytes.HasPrefix(staged, []byte(link)) {
		return err
	}
	if known, err := r.run(ctx, call{args: []string{"ls-tree", "-z", "HEAD", "--", path}}); err == nil && bytes.HasPrefix(known, []byte(link)) {
		return nil
	}
	_, err = r.run(ctx, call{args: []string{"update-index", "-z", "--force-remove", "--stdin"}, stdin: nulTerminated("", []string{path})})
	return err
}
