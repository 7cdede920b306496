package workshop

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hone/internal/gitdir"
	"hone/sandbox"
)

// gitFiles returns the files of git's that are read-only to commands (rulings G5 and G9).
// It reads git's files and does not run git.
//
// Of every repository in the workspace these are the settings, the hooks and the other
// files that decide what git runs and where it looks. Commands cannot create missing ones.
// If the workspace lies below its repository's top, or is a linked worktree or a
// submodule whose repository lies elsewhere, the whole repository is shown and
// read-only: git log, diff and status work, and git commit fails with a read-only
// file system. Because a command may have written a .git file, it only counts if
// the repository that it names also names it; otherwise nothing is shown, and git
// finds no repository. A repository whose top is the user's home is not shown
// either, nor what objects/info/alternates names.
func (w *Workshop) gitFiles() []string {
	files := w.ownGit()
	for dir := w.Root; ; dir = filepath.Dir(dir) {
		at := filepath.Join(dir, ".git")
		info, err := os.Lstat(at)
		switch {
		case err == nil && dir == w.Root:
			if dir := gitdir.Link(at); info.Mode().IsRegular() && (dir == "" || !w.inside(dir)) {
				files = append(files, w.linkedGit(at, dir)...)
			}
			return files
		case err == nil && (w.userHome == "" || !sandbox.Within(dir, w.userHome)):
			if info.Mode().IsRegular() || info.IsDir() {
				files = append(files, at)
			}
			if info.Mode().IsRegular() {
				files = append(files, w.linkedGit(at, gitdir.Link(at))...)
			}
			return files
		case filepath.Dir(dir) == dir:
			return files
		}
	}
}

func (w *Workshop) ownGit() (files []string) {
	repositories := slices.Clone(w.Repositories)
	if exists(filepath.Join(w.Root, ".git")) {
		repositories = append(repositories, filepath.Join(w.Root, ".git"), w.topGit())
	}
	for _, at := range repositories {
		info, err := os.Lstat(at)
		if err == nil && info.Mode().IsRegular() {
			files = append(files, at)
			continue
		}
		for _, name := range gitdir.Guarded() {
			files = append(files, filepath.Join(at, name))
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

func (w *Workshop) topGit() string {
	at := filepath.Join(w.Root, ".git")
	if dir := gitdir.Link(at); dir != "" && w.inside(dir) {
		return dir
	}
	return at
}

func (w *Workshop) linkedGit(at, dir string) []string {
	if dir == "" {
		return nil
	}
	if gitdir.Same(gitdir.Path(gitdir.Read(filepath.Join(dir, "gitdir")), dir), at) {
		if common := gitdir.Common(dir); common != dir && gitdir.Same(filepath.Join(common, "worktrees", filepath.Base(dir)), dir) {
			return w.repository(common)
		}
	}
	if gitdir.Same(gitdir.Worktree(dir), filepath.Dir(at)) {
		return w.repository(dir)
	}
	return nil
}

// It is in parts if the workspace is in it.
func (w *Workshop) repository(dir string) []string {
	if !w.tooWide(dir) {
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

// placeholders returns the placeholders for protected paths that the user's programs
// read. They must find what they find if the paths do not exist: git stops at an
// empty commondir, and an empty bork.json is not JSON. Other protected paths have
// none, because it is not known what an empty file there would mean, and neither have those
// of nested repositories, which may be many.
func (w *Workshop) placeholders(protected, git []string, indirect map[string]sandbox.Placeholder) map[string]sandbox.Placeholder {
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
		case !slices.Contains(git, path), !sandbox.Within(w.topGit(), path), gitdir.Continues(name):
		case name == "commondir":
			all[path] = sandbox.Placeholder{Text: "."}
		default:
			all[path] = sandbox.Placeholder{Dir: name == "hooks" || name == "info"}
		}
	}
	return all
}

// A path below a file becomes that file. A symlink that leads out of the workspace is refused, except to an allowed path: the
// target would be shown, and a model may have made the symlink.
func (w *Workshop) checkProtected(paths, allowed []string) ([]string, error) {
	var protected []string
	for _, path := range paths {
		for dir := filepath.Dir(path); dir != w.Root && sandbox.Within(w.Root, dir); dir = filepath.Dir(dir) {
			if info, err := os.Stat(dir); err == nil && !info.IsDir() {
				path = dir
			}
		}
		if _, err := os.Stat(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("check the protected paths: %w", err)
		}
		if real := w.realPath(path); sandbox.Within(w.Root, path) && !sandbox.Within(w.real, real) && !slices.Contains(allowed, real) {
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

// PathError means that walls cannot do with a path what the policy says.
type PathError struct{ Why, Remedy string }

// Error says why.
func (e *PathError) Error() string { return e.Why }

// Hint returns what the user can do.
func (e *PathError) Hint() string { return e.Remedy }

// checkHidden refuses to hide what has paths that every command is shown.
func (w *Workshop) checkHidden() error {
	for _, hidden := range w.Hide {
		for _, path := range append([]string{w.Root}, w.read...) {
			outer, inner := w.realPath(hidden), w.realPath(path)
			if sandbox.Within(outer, inner) && (outer != inner || path == w.Root) {
				return &PathError{fmt.Sprintf("%q cannot be hidden: commands need %q in it", hidden, path),
					"name only what is to be hidden in it"}
			}
		}
	}
	return nil
}

func (w *Workshop) checkPrograms() error {
	for _, dir := range w.pathDirs() {
		for _, path := range w.Write {
			if w.inside(dir) || w.inside(path) {
				continue
			}
			at, opened := w.realPath(dir), w.realPath(path)
			if sandbox.Within(at, opened) || sandbox.Within(opened, at) || sandbox.Within(path, dir) {
				return &PathError{fmt.Sprintf("commands may not write %q: you and hone run programs of %q, which is on your PATH, without walls", path, dir),
					fmt.Sprintf("open only other directories in %q, or take %q off your PATH", path, dir)}
			}
		}
	}
	return nil
}

// gitSearch finds the files in a workspace that git's settings name: settings that
// they include, whatever the condition, hooks and attributes. These decide what
// git runs, like the settings themselves.
type gitSearch struct {
	shop  *Workshop
	seen  map[string]bool // the files of settings
	found map[string]sandbox.Placeholder
}

// maxGitConfigs limits how many files of settings are read.
const maxGitConfigs = 1000

// gitIndirect returns the paths in the workspace that the settings of git
// directories name, and of the user and the system, with what takes their place if
// they do not exist.
func (w *Workshop) gitIndirect(repositories []gitRepository) map[string]sandbox.Placeholder {
	s := gitSearch{w, map[string]bool{}, map[string]sandbox.Placeholder{}}
	shared := []string{"/etc/gitconfig", w.get("GIT_CONFIG_SYSTEM"), w.get("GIT_CONFIG_GLOBAL"), w.homePath(".gitconfig"), w.homePath(".config/git/config")}
	if dir := w.get("XDG_CONFIG_HOME"); dir != "" {
		shared = append(shared, filepath.Join(dir, "git", "config"))
	}
	for _, r := range repositories {
		clear(s.seen) // relative paths of shared settings mean other files
		for _, file := range append(shared, filepath.Join(r.dir, "config"), filepath.Join(r.dir, "config.worktree")) {
			s.read(file, r.top)
		}
		s.addHookLinks(filepath.Join(r.dir, "hooks"), r.top)
	}
	return s.found
}

func (s gitSearch) addHookLinks(hooks, top string) {
	if info, err := os.Lstat(hooks); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		s.add(s.shop.realPath(hooks), top, true)
	}
	entries, _ := os.ReadDir(hooks)
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink != 0 {
			s.add(s.shop.realPath(filepath.Join(hooks, e.Name())), top, false)
		}
	}
}

// The files of the repository are at top.
func (s gitSearch) read(file, top string) {
	if !filepath.IsAbs(file) || s.seen[file] || len(s.seen) > maxGitConfigs {
		return
	}
	s.seen[file] = true
	settings, _ := gitdir.Settings(gitdir.Read(file))
	for _, set := range settings {
		switch {
		case (set.Section == "include" || set.Section == "includeif") && set.Name == "path":
			path := s.add(set.Value, filepath.Dir(file), false)
			s.read(path, top)
		case set.Section == "core" && set.Name == "attributesfile":
			s.add(set.Value, top, false)
		case set.Section == "core" && set.Name == "hookspath":
			path := s.add(set.Value, top, true)
			if filepath.Base(path) == "_" { // husky's hooks run those in the directory above
				s.add(filepath.Dir(path), top, true)
			}
		}
	}
}

// The path is returned without ~. The workspace and its .git are not added, because commands must write them.
func (s gitSearch) add(value, dir string, isDir bool) string {
	w := s.shop
	if rest, ok := strings.CutPrefix(value, "~/"); ok {
		value = w.homePath(rest)
	}
	path := gitdir.Path(value, dir)
	if path == "" {
		return ""
	}
	for _, p := range []string{path, w.realPath(path)} {
		if rest, err := filepath.Rel(w.real, p); err == nil && filepath.IsLocal(rest) {
			p = filepath.Join(w.Root, rest)
		}
		if p != w.Root && p != filepath.Join(w.Root, ".git") && sandbox.Within(w.Root, p) {
			s.found[p] = sandbox.Placeholder{Dir: isDir}
		}
	}
	return path
}

// gitRepository is a directory of git's with settings, and the top of its files.
type gitRepository struct{ dir, top string }

func (w *Workshop) gitRepositories() (all []gitRepository) {
	for top := w.Root; ; top = filepath.Dir(top) {
		dir := filepath.Join(top, ".git")
		if link := gitdir.Link(dir); link != "" {
			dir = link
		}
		if isDir(dir) {
			all = append(all, gitRepository{dir, top})
			if common := gitdir.Common(dir); common != dir {
				all = append(all, gitRepository{common, top})
			}
			break
		}
		if filepath.Dir(top) == top {
			break
		}
	}
	for _, dir := range w.Repositories {
		tree := gitdir.Worktree(dir)
		if tree == "" && filepath.Base(dir) == ".git" {
			tree = filepath.Dir(dir)
		}
		if tree != "" && isDir(dir) {
			all = append(all, gitRepository{dir, tree})
		}
	}
	return all
}

// GitIndirections returns the paths in a workspace, relative to it and with slashes, that
// the settings of git name: files of settings, hooks and attributes. They decide what git
// runs, so a model must not change them. Root is absolute, repositories are those in it,
// and environ is hone's own environment.
func GitIndirections(root string, repositories, environ []string) ([]string, error) {
	w := Workshop{Root: filepath.Clean(root), Home: filepath.Clean(root), Repositories: repositories, Environ: environ}.prepared()
	var names []string
	for path := range w.gitIndirect(w.gitRepositories()) {
		rel, err := filepath.Rel(w.Root, path)
		if err != nil {
			return nil, err
		}
		names = append(names, filepath.ToSlash(rel))
	}
	slices.Sort(names)
	return names, nil
}
