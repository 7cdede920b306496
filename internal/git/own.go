package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrUnsound says that a git directory leads out of its work tree, or holds
// what git must not open, so that hone writes nothing through it.
var ErrUnsound = errors.New("hone does not write to this git directory")

// steady are settings for the calls that write, or that read what a commit
// says: what they do depends neither on the repository's configuration nor on
// the person's. What is ignored, and line endings, are theirs.
var steady = []string{
	"core.safecrlf=false", // else a line ending can be fatal
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

// dotGit is the git directory of a repository that hone writes to.
func (r *Repo) dotGit() string { return filepath.Join(r.root, ".git") }

// own calls git on a repository that hone writes to. History is what its
// commits say, without replacements and grafts.
func (r *Repo) own(ctx context.Context, c call) ([]byte, error) {
	c.set = append(c.set, steady...)
	c.env = append(c.env, "GIT_NO_REPLACE_OBJECTS=1", "GIT_GRAFT_FILE="+os.DevNull)
	return r.run(ctx, c)
}

// line is own for an answer of one line.
func (r *Repo) line(ctx context.Context, c call) (string, error) {
	out, err := r.own(ctx, c)
	return strings.TrimSuffix(string(out), "\n"), err
}

// sound refuses a git directory that would have git read or write elsewhere: one
// that is no directory, that shares another's, that borrows objects, or that
// holds a symbolic link. A pipe in it would hold git up for ever. Hooks are
// left out, as they often are links, and are never run.
func sound(dotGit string) error {
	info, err := os.Lstat(dotGit)
	if err != nil {
		return fmt.Errorf("look into the git directory: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%w: %s is not a directory", ErrUnsound, dotGit)
	}
	for name, why := range map[string]string{
		"commondir":                    "it belongs to another repository's work tree",
		"objects/info/alternates":      "it borrows objects from elsewhere; git repack -a -d makes them its own, then remove that file",
		"objects/info/http-alternates": "it borrows objects from elsewhere",
	} {
		file := filepath.Join(dotGit, filepath.FromSlash(name))
		if _, err := os.Lstat(file); err == nil {
			return fmt.Errorf("%w: there is %s: %s", ErrUnsound, file, why)
		}
	}
	return filepath.WalkDir(dotGit, func(path string, d fs.DirEntry, err error) error {
		if path != dotGit && errors.Is(err, fs.ErrNotExist) {
			return nil // a git that someone else runs took its lock back
		}
		if err != nil {
			return fmt.Errorf("look into the git directory: %w", err)
		}
		return soundEntry(dotGit, path, d)
	})
}

// leads are the types of files that lead elsewhere, or that block who opens them.
const leads = fs.ModeSymlink | fs.ModeNamedPipe | fs.ModeDevice | fs.ModeIrregular

func soundEntry(dotGit, path string, d fs.DirEntry) error {
	if d.IsDir() && path == filepath.Join(dotGit, "hooks") {
		return filepath.SkipDir
	}
	if d.Type()&leads != 0 {
		return fmt.Errorf("%w: %s is neither a file nor a directory", ErrUnsound, path)
	}
	return nil
}
