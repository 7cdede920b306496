package gitdir

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Guarded are the names in a git directory that decide what git runs and where it looks.
func Guarded() []string {
	return []string{
		"config", "config.worktree", "hooks", "info", "commondir", "gitdir",
		filepath.Join("objects", "info", "alternates"), filepath.Join("objects", "info", "http-alternates"),
	}
}

// notPlain returns why a git directory, or a .git file or symlink, in root could make git
// run a program; empty if it is as git clone, git init, git worktree and git submodule
// leave it. The settings and hooks of a known git directory are the user's.
func notPlain(path, root string, known func(dir string) bool) string {
	dir := path
	if info, err := os.Lstat(path); err != nil {
		return err.Error()
	} else if !info.IsDir() {
		if dir = Link(path); info.Mode()&fs.ModeSymlink != 0 {
			dir, err = filepath.EvalSymlinks(path)
		}
		if err != nil || dir == "" || !within(root, dir) {
			return "it names a directory outside"
		}
	}
	common := Common(dir)
	if !within(root, common) {
		return "its settings are outside"
	}
	if why := settingNotPlain(filepath.Join(dir, "config.worktree"), dir); why != "" && !known(dir) {
		return why
	}
	if known(common) {
		return ""
	}
	if why := settingNotPlain(filepath.Join(common, "config"), dir); why != "" {
		return why
	}
	hooks, err := os.ReadDir(filepath.Join(common, "hooks"))
	if err != nil && !os.IsNotExist(err) {
		return "its hooks cannot be read"
	}
	for _, h := range hooks {
		if filepath.Ext(h.Name()) != ".sample" {
			return "it has the hook " + h.Name()
		}
	}
	return ""
}

// settingNotPlain returns what a file of settings of a git directory contains beside
// what git clone writes.
func settingNotPlain(file, dir string) string {
	info, err := os.Lstat(file)
	if os.IsNotExist(err) {
		return ""
	}
	if err != nil || !info.Mode().IsRegular() || info.Size() >= maxRead {
		return filepath.Base(file) + " is not a file of settings"
	}
	all, ok := Settings(Read(file))
	for _, s := range all {
		if !isPlain(s, dir) {
			return fmt.Sprintf("it sets %s.%s", s.Section, s.Name)
		}
	}
	if !ok {
		return filepath.Base(file) + " cannot be read"
	}
	return ""
}

// isPlain reports whether a setting is one that git clone or git init writes, or that
// only says who the user is or what advice git gives.
func isPlain(s Setting, dir string) bool {
	if s.Section == "advice" || s.Section == "extensions" {
		return true
	}
	switch s.Section + "." + s.Name {
	case "core.repositoryformatversion", "core.filemode", "core.bare", "core.logallrefupdates", "core.ignorecase", "core.precomposeunicode", "core.symlinks",
		"core.sparsecheckout", "core.sparsecheckoutcone", "remote.url", "remote.fetch", "remote.tagopt", "remote.mirror", "remote.promisor", "remote.partialclonefilter",
		"branch.remote", "branch.merge", "branch.rebase", "submodule.url", "submodule.active", "user.name", "user.email":
		return true
	case "core.worktree": // a submodule's, whose files name it
		tree := Path(s.Value, dir)
		return tree != "" && Same(Link(filepath.Join(tree, ".git")), dir)
	}
	return false
}

// Same reports whether two paths lead to the same file.
func Same(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// within reports whether a path, without its symlinks, is a directory or in it.
func within(dir, path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(dir, real)
	return err == nil && filepath.IsLocal(rel) && !strings.HasPrefix(rel, "..")
}
