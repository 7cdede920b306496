package workshop

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hone/sandbox"
)

// gitFiles returns the files of a workspace's repository that are read-only to
// commands (ruling G9). It reads git's files and does not run git.
//
// If the workspace is the top of its repository these are the settings, the hooks
// and the other files that decide what git runs and where it looks, including
// those of submodules and linked worktrees. Commands cannot create missing ones.
// If the workspace lies below the repository's top, or is a linked worktree or a
// submodule whose repository lies elsewhere, the whole repository is shown and
// read-only: git log, diff and status work, and git commit fails with a read-only
// file system. Because a command may have written a .git file, it only counts if
// the repository that it names also names it; otherwise nothing is shown, and git
// finds no repository. A repository whose top is the user's home is not shown
// either, nor what objects/info/alternates names.
func (o *outfit) gitFiles() ([]string, error) {
	for dir := o.root; ; dir = filepath.Dir(dir) {
		at := filepath.Join(dir, ".git")
		info, err := os.Lstat(at)
		switch {
		case err == nil && dir == o.root:
			return o.ownGit(at, info)
		case err == nil && (o.home == "" || !sandbox.Within(dir, o.home)):
			return o.outerGit(at, info), nil
		case filepath.Dir(dir) == dir:
			return nil, nil
		}
	}
}

// ownGit returns the read-only files of a repository whose top is the workspace.
func (o *outfit) ownGit(at string, info fs.FileInfo) ([]string, error) {
	if !info.Mode().IsRegular() {
		return o.gitDir(at)
	}
	dir := gitLink(at)
	if dir == "" || !o.inside(dir) {
		return append([]string{at}, o.linkedGit(at, dir)...), nil
	}
	files, err := o.gitDir(dir)
	return append([]string{at}, files...), err
}

// outerGit returns what is shown of a repository whose top is above the
// workspace.
func (o *outfit) outerGit(at string, info fs.FileInfo) []string {
	switch {
	case info.IsDir():
		return []string{at}
	case info.Mode().IsRegular():
		return append([]string{at}, o.linkedGit(at, gitLink(at))...)
	}
	return nil
}

// linkedGit returns what is shown of the repository that a .git file names.
func (o *outfit) linkedGit(at, dir string) []string {
	if dir == "" {
		return nil
	}
	if sameFile(gitPath(filepath.Join(dir, "gitdir"), dir), at) {
		common := gitPath(filepath.Join(dir, "commondir"), dir)
		if common != "" && sameFile(filepath.Join(common, "worktrees", filepath.Base(dir)), dir) {
			return o.repository(common)
		}
	}
	if sameFile(coreWorktree(dir), filepath.Dir(at)) {
		return o.repository(dir)
	}
	return nil
}

// repository returns a git directory to show, or its parts if the workspace is in
// it.
func (o *outfit) repository(dir string) []string {
	if !o.tooWide(dir) {
		return []string{dir}
	}
	var parts []string
	for _, name := range []string{
		"HEAD", "config", "config.worktree", "objects", "refs", "packed-refs", "info", "logs", "worktrees", "modules", "shallow",
	} {
		if path := filepath.Join(dir, name); exists(filepath.Join(dir, "HEAD")) && exists(path) {
			parts = append(parts, path)
		}
	}
	return parts
}

// guardedNames returns the files of a git directory that decide what git runs and
// where it looks.
func guardedNames() []string {
	return []string{
		"config", "config.worktree", "hooks", "info", "commondir", "gitdir",
		filepath.Join("objects", "info", "alternates"), filepath.Join("objects", "info", "http-alternates"),
	}
}

// placeholders returns the placeholders for protected paths that the user's programs
// read. They must find what they find if the paths do not exist: git stops at an
// empty commondir, and an empty bork.json is not JSON. Other protected paths have
// none, because it is not known what an empty file there would mean.
func placeholders(protected, git []string, indirect map[string]sandbox.Placeholder) map[string]sandbox.Placeholder {
	all := map[string]sandbox.Placeholder{}
	for _, path := range protected {
		named, ok := indirect[path]
		switch name := filepath.Base(path); {
		case name == "bork.json":
			all[path] = sandbox.Placeholder{Text: "{}"}
		case name == "hone.toml":
			all[path] = sandbox.Placeholder{}
		case ok:
			all[path] = named
		case !slices.Contains(git, path):
		case name == "commondir":
			all[path] = sandbox.Placeholder{Text: "."}
		default:
			all[path] = sandbox.Placeholder{Dir: name == "hooks" || name == "info"}
		}
	}
	return all
}

// maxGitDirs limits the search for submodules and worktrees.
const maxGitDirs = 10_000

// gitDir returns the read-only files of a git directory in the workspace, and of
// its submodules and worktrees.
func (o *outfit) gitDir(dir string) ([]string, error) {
	dirs, err := gitDirs(dir)
	var files []string
	for _, one := range dirs {
		for _, name := range guardedNames() {
			files = append(files, filepath.Join(one, name))
		}
		if tree := coreWorktree(one); one != dir && tree != "" && tree != o.root && sandbox.Within(o.root, tree) {
			files = append(files, filepath.Join(tree, ".git"))
		}
	}
	return files, err
}

// gitDirs returns a git directory, and those of its submodules and worktrees.
func gitDirs(dir string) ([]string, error) {
	var found []string
	dirs := []string{dir}
	for seen := 0; len(dirs) > 0; seen++ {
		if seen > maxGitDirs {
			return nil, fmt.Errorf("%s contains more than %d directories of submodules and worktrees", dir, maxGitDirs)
		}
		next := dirs[0]
		dirs = dirs[1:]
		if next != dir && !exists(filepath.Join(next, "HEAD")) {
			dirs = append(dirs, subdirectories(next)...)
			continue
		}
		found = append(found, next)
		dirs = append(dirs, subdirectories(filepath.Join(next, "modules"))...)
		dirs = append(dirs, subdirectories(filepath.Join(next, "worktrees"))...)
	}
	return found, nil
}

// subdirectories returns the directories in a directory. It follows no symlink.
func subdirectories(dir string) []string {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var found []string
	for _, e := range entries {
		if e.IsDir() {
			found = append(found, filepath.Join(dir, e.Name()))
		}
	}
	return found
}

// gitLink returns the directory that a .git file names; empty if there is none.
func gitLink(file string) string {
	name, ok := strings.CutPrefix(string(readSettings(file)), "gitdir: ")
	if !ok {
		return ""
	}
	return gitName(name, filepath.Dir(file))
}

// gitPath returns the path in a file of git's, relative to a directory; empty if
// there is none.
func gitPath(file, dir string) string { return gitName(string(readSettings(file)), dir) }

// gitName returns the absolute path of a name in a file of git's; empty if it is
// not a path.
func gitName(name, dir string) string {
	name = strings.TrimRight(name, "\r\n")
	if name == "" || strings.ContainsAny(name, "\x00\r\n") {
		return ""
	}
	return filepath.Clean(absolute(dir, filepath.FromSlash(name)))
}

// coreWorktree returns the setting core.worktree of a git directory; empty if it
// is not set.
func coreWorktree(dir string) string {
	found := ""
	for _, set := range parseGitConfig(string(readSettings(filepath.Join(dir, "config")))) {
		if set.section == "core" && set.name == "worktree" {
			found = gitName(set.value, dir)
		}
	}
	return found
}

// sameFile reports whether two paths lead to the same file.
func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// checkProtected returns protected paths in the form that a policy needs. A path
// below a file becomes that file. It refuses a symlink that leads out of the
// workspace, except to an allowed path: the target would be shown, and a model may
// have made the symlink.
func (o *outfit) checkProtected(paths, allowed []string) ([]string, error) {
	var protected []string
	for _, path := range paths {
		for dir := filepath.Dir(path); dir != o.root && sandbox.Within(o.root, dir); dir = filepath.Dir(dir) {
			if info, err := os.Stat(dir); err == nil && !info.IsDir() {
				path = dir
			}
		}
		if _, err := os.Stat(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("check the protected paths: %w", err)
		}
		if real := o.realPath(path); sandbox.Within(o.root, path) && !sandbox.Within(o.real, real) && !slices.Contains(allowed, real) {
			return nil, &EscapeError{Path: path, Target: real}
		}
		if !slices.Contains(protected, path) {
			protected = append(protected, path)
		}
	}
	return protected, nil
}

// EscapeError means that a protected path of a workspace is, or passes through,
// a symlink that leads out of the workspace.
type EscapeError struct{ Path, Target string }

// Error names the path and its target.
func (e *EscapeError) Error() string {
	return fmt.Sprintf("%q is protected, but a symlink leads from there to %q, which commands may not read", e.Path, e.Target)
}

// Hint returns what the user can do.
func (e *EscapeError) Hint() string {
	return fmt.Sprintf("replace the symlink with a file, or let commands read %q", e.Target)
}
