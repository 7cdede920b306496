package workshop

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hone/internal/gitdir"
	"hone/sandbox"
)

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
