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

// gitFiles are what of a workspace's repository is read-only to commands
// (ruling G9), as far as git's own files tell; no git is run.
//
// In a repository whose top is the workspace these are the settings, the hooks
// and the other files that say what git runs and where it looks, also those of
// its submodules and linked worktrees; what is not there cannot be made. Where
// the workspace is a linked worktree or a submodule whose repository lies
// elsewhere, or lies below the repository's top, the repository is shown and
// nothing of it can be written: git log, diff and status work, git commit says
// that the file system is read-only. A .git file is believed only where the
// repository that it names names it as well, since a command may have written
// it; what is not believed is not shown, and git says that there is no
// repository. Not shown either is one whose top is the person's home, and what
// objects/info/alternates names.
func (o *outfit) gitFiles() ([]string, error) {
	for dir := o.root; ; dir = filepath.Dir(dir) {
		at := filepath.Join(dir, ".git")
		info, err := os.Lstat(at)
		switch {
		case err == nil && dir == o.root:
			return o.ownGit(at, info)
		case err == nil && (o.home == "" || !sandbox.Holds(dir, o.home)):
			return o.outerGit(at, info), nil
		case filepath.Dir(dir) == dir:
			return nil, nil
		}
	}
}

// ownGit is what is read-only of a repository whose top is the workspace.
func (o *outfit) ownGit(at string, info fs.FileInfo) ([]string, error) {
	if !info.Mode().IsRegular() {
		return o.gitFolder(at)
	}
	dir := gitLink(at)
	if dir == "" || !o.inside(dir) {
		return append([]string{at}, o.linkedGit(at, dir)...), nil
	}
	files, err := o.gitFolder(dir)
	return append([]string{at}, files...), err
}

// outerGit is what is shown of a repository whose top lies above the workspace.
func (o *outfit) outerGit(at string, info fs.FileInfo) []string {
	switch {
	case info.IsDir():
		return []string{at}
	case info.Mode().IsRegular():
		return append([]string{at}, o.linkedGit(at, gitLink(at))...)
	}
	return nil
}

// linkedGit is what is shown of the repository that a .git file leads to.
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

// repository is a git folder to be shown, or its parts where the workspace lies
// in it.
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

// guardedNames are the files of a git folder that say what git runs, and where
// it looks.
func guardedNames() []string {
	return []string{
		"config", "config.worktree", "hooks", "info", "commondir", "gitdir",
		filepath.Join("objects", "info", "alternates"), filepath.Join("objects", "info", "http-alternates"),
	}
}

// mostGitFolders bounds the submodules and worktrees that are looked for.
const mostGitFolders = 10_000

// gitFolder is what is read-only of a git folder in the workspace, and of those
// of submodules and worktrees in it.
func (o *outfit) gitFolder(dir string) ([]string, error) {
	var files []string
	folders := []string{dir}
	for seen := 0; len(folders) > 0; seen++ {
		if seen > mostGitFolders {
			return nil, fmt.Errorf("%s holds more than %d folders of submodules and worktrees", dir, mostGitFolders)
		}
		next := folders[0]
		folders = folders[1:]
		if next != dir && !exists(filepath.Join(next, "HEAD")) {
			folders = append(folders, foldersIn(next)...)
			continue
		}
		for _, name := range guardedNames() {
			files = append(files, filepath.Join(next, name))
		}
		if tree := coreWorktree(next); next != dir && tree != "" && tree != o.root && sandbox.Holds(o.root, tree) {
			files = append(files, filepath.Join(tree, ".git"))
		}
		folders = append(folders, foldersIn(filepath.Join(next, "modules"))...)
		folders = append(folders, foldersIn(filepath.Join(next, "worktrees"))...)
	}
	return files, nil
}

// foldersIn are the folders in a folder; symlinks are not followed.
func foldersIn(dir string) []string {
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

// gitLink is the folder that a .git file names; empty where it names none.
func gitLink(file string) string {
	name, ok := strings.CutPrefix(string(smallFile(file)), "gitdir: ")
	if !ok {
		return ""
	}
	return gitName(name, filepath.Dir(file))
}

// gitPath is the path that a file of git's holds, seen from a folder; empty
// where it holds none.
func gitPath(file, dir string) string { return gitName(string(smallFile(file)), dir) }

func gitName(name, dir string) string {
	name = strings.TrimRight(name, "\r\n")
	if name == "" || strings.ContainsAny(name, "\x00\r\n") {
		return ""
	}
	return filepath.Clean(absolute(dir, filepath.FromSlash(name)))
}

// coreWorktree is where the settings of a git folder say that its files are;
// empty where they do not.
func coreWorktree(dir string) string {
	section, found := "", ""
	for line := range strings.Lines(string(smallFile(filepath.Join(dir, "config")))) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = strings.ToLower(line)
		}
		key, value, ok := strings.Cut(line, "=")
		if ok && section == "[core]" && strings.EqualFold(strings.TrimSpace(key), "worktree") {
			found = gitName(strings.Trim(strings.TrimSpace(value), `"`), dir)
		}
	}
	return found
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// held are protected paths as a policy can hold them. What lies below a file is
// held by that file. A symlink that leads out of the workspace is refused: what
// it leads to would be shown, and a model may have made it.
func (o *outfit) held(paths, allowed []string) ([]string, error) {
	var held []string
	for _, path := range paths {
		for dir := filepath.Dir(path); dir != o.root && sandbox.Holds(o.root, dir); dir = filepath.Dir(dir) {
			if info, err := os.Stat(dir); err == nil && !info.IsDir() {
				path = dir
			}
		}
		if _, err := os.Stat(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("look at what is read-only: %w", err)
		}
		if real := realPath(path); sandbox.Holds(o.root, path) && !sandbox.Holds(o.real, real) && !slices.Contains(allowed, real) {
			return nil, &LeadsOutError{Path: path, Target: real}
		}
		if !slices.Contains(held, path) {
			held = append(held, path)
		}
	}
	return held, nil
}

// LeadsOutError says that a protected path of a workspace is, or passes
// through, a symlink that leads out of it.
type LeadsOutError struct{ Path, Target string }

// Error names the path and what it leads to.
func (e *LeadsOutError) Error() string {
	return fmt.Sprintf("%q is read-only to commands, but a symlink leads from there to %q, which they may not read", e.Path, e.Target)
}

// Hint is what to do about it.
func (e *LeadsOutError) Hint() string {
	return fmt.Sprintf("put a file in the symlink's place, or let commands read %q", e.Target)
}
