package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"hone/internal/transient"
)

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
		return checkGitDirEntry(dotGit, path, d)
	})
}

// unsafeTypes are the types of files that lead elsewhere or block their
// readers.
const unsafeTypes = fs.ModeSymlink | fs.ModeNamedPipe | fs.ModeDevice | fs.ModeIrregular

func checkGitDirEntry(dotGit, path string, d fs.DirEntry) error {
	if d.IsDir() && path == filepath.Join(dotGit, "hooks") {
		return filepath.SkipDir
	}
	if d.Type()&unsafeTypes != 0 {
		return fmt.Errorf("%w: %s is neither a file nor a directory", ErrUnsafe, path)
	}
	return nil
}
