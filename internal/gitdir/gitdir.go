// Package gitdir finds what git takes for a repository, by git's own rule and at any
// depth of a tree, and says what git would obey there (ruling G5).
//
// Git looks for .git, a directory or a file that names one, and takes every directory
// with HEAD, objects and refs for a repository without a work tree of its own. It runs
// what the settings and hooks there name, also for git status.
//
// [IsComplete] is the rule for files that are about to be written. A [Watch] finds the
// repositories of a tree before a model's commands run, and afterwards takes away what
// they have added, unless it is harmless. [RefsUnchanged] tells when git need not be asked
// what became of its branches. The package never runs git and changes nothing but through
// a Watch.
package gitdir

import (
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// IsComplete reports whether git may take a directory that has some of these names for
// a repository: HEAD beside objects and refs, or beside commondir, which says where
// those are. HEAD counts whatever it contains, because that can be written later.
func IsComplete(has func(name string) bool) bool {
	return has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

// Is reports whether git takes a directory for a repository now.
func Is(dir string) bool {
	if !isHead(filepath.Join(dir, "HEAD")) {
		return false
	}
	common := Common(dir)
	return exists(filepath.Join(common, "objects")) && exists(filepath.Join(common, "refs"))
}

// git accepts the name of a ref or of a commit, or a symlink to a ref.
func isHead(file string) bool {
	info, err := os.Lstat(file)
	if err != nil {
		return false
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, _ := os.Readlink(file)
		return strings.HasPrefix(target, "refs/")
	}
	text := Read(file)
	if ref, ok := strings.CutPrefix(text, "ref:"); ok {
		return strings.HasPrefix(strings.TrimLeft(ref, " \t\r\n\v\f"), "refs/")
	}
	const sha1 = 40
	_, err = hex.DecodeString(text[:min(len(text), sha1)])
	return err == nil && len(text) >= sha1
}

// Common returns the directory with the settings, hooks and objects of a git directory:
// that of the main repository for a linked worktree, and else itself.
func Common(dir string) string {
	if common := Path(Read(filepath.Join(dir, "commondir")), dir); common != "" {
		return common
	}
	return dir
}

// Link returns the directory that a .git file names; empty if it names none.
func Link(file string) string {
	name, ok := strings.CutPrefix(Read(file), "gitdir: ")
	if !ok {
		return ""
	}
	return Path(name, filepath.Dir(file))
}

// Path returns the absolute path of a name in a file of git's in a directory; empty if
// it is not a path.
func Path(name, dir string) string {
	name = strings.TrimRight(name, "\r\n")
	if name == "" || strings.ContainsAny(name, "\x00\r\n") {
		return ""
	}
	if name = filepath.FromSlash(name); !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	return filepath.Clean(name)
}

// Worktree returns the setting core.worktree of a git directory as an absolute path;
// empty if it is not set.
func Worktree(dir string) string {
	found := ""
	all, _ := Settings(Read(filepath.Join(dir, "config")))
	for _, s := range all {
		if s.Section == "core" && s.Sub == "" && s.Name == "worktree" {
			found = Path(s.Value, dir)
		}
	}
	return found
}

// maxRead is how many bytes of a file of git's are read.
const maxRead = 4 << 20

// Read returns the contents of one of git's files; empty if there is none. A command may
// have written it: it reads regular files only, and not more than git's files contain.
func Read(file string) string {
	text, _ := read(file)
	return text
}

func read(file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return "", err
	}
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxRead))
	return string(b), err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
