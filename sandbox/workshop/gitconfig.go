package workshop

import (
	"path/filepath"
	"slices"
	"strings"

	"hone/sandbox"
)

// gitSetting is one setting of git's.
type gitSetting struct {
	section string // in lower case, without the subsection
	name    string // in lower case
	value   string
}

// parseGitConfig returns the settings of one of git's files. It skips what it
// cannot read.
func parseGitConfig(text string) []gitSetting {
	var all []gitSetting
	section := ""
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\\\n", "")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section, line = cutSection(line)
		}
		name, value, _ := strings.Cut(line, "=")
		if name = strings.ToLower(strings.TrimSpace(name)); name != "" && !strings.ContainsAny(name, "#;") {
			all = append(all, gitSetting{section, name, gitValue(value)})
		}
	}
	return all
}

// cutSection returns the section that a line starts with, and the rest of the line.
func cutSection(line string) (section, rest string) {
	quoted := false
	for i := 1; i < len(line); i++ {
		switch {
		case line[i] == '\\' && quoted:
			i++
		case line[i] == '"':
			quoted = !quoted
		case line[i] == ']' && !quoted:
			section, rest = line[1:i], strings.TrimSpace(line[i+1:])
			section, _, _ = strings.Cut(section, " ")
			section, _, _ = strings.Cut(section, ".")
			return strings.ToLower(section), rest
		}
	}
	return "", ""
}

// gitValue returns a value without quotes, escapes and comments.
func gitValue(text string) string {
	var value strings.Builder
	quoted, length := false, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
			length = value.Len()
			continue
		case (c == '#' || c == ';') && !quoted:
			return value.String()[:length]
		case c == '\\' && i+1 < len(text):
			i++
			value.WriteByte(text[i])
		case (c == ' ' || c == '\t' || c == '\n') && !quoted:
			if value.Len() > 0 {
				value.WriteByte(c)
			}
			continue
		default:
			value.WriteByte(c)
		}
		length = value.Len()
	}
	return value.String()[:length]
}

// gitSearch finds the files in a workspace that git's settings name: settings that
// they include, whatever the condition, hooks and attributes. These decide what
// git runs, like the settings themselves.
type gitSearch struct {
	outfit *outfit
	seen   map[string]bool // the files of settings
	found  map[string]sandbox.Placeholder
}

// maxGitConfigs limits how many files of settings are read.
const maxGitConfigs = 1000

// gitIndirect returns the paths in the workspace that the settings of git
// directories name, and of the user and the system, with what takes their place if
// they do not exist.
func (o *outfit) gitIndirect(repositories []gitRepository) map[string]sandbox.Placeholder {
	s := gitSearch{o, map[string]bool{}, map[string]sandbox.Placeholder{}}
	shared := []string{"/etc/gitconfig", o.get("GIT_CONFIG_SYSTEM"), o.get("GIT_CONFIG_GLOBAL"), o.homePath(".gitconfig"), o.homePath(".config/git/config")}
	if dir := o.get("XDG_CONFIG_HOME"); dir != "" {
		shared = append(shared, filepath.Join(dir, "git", "config"))
	}
	for _, r := range repositories {
		clear(s.seen) // relative paths of shared settings mean other files
		for _, file := range append(shared, filepath.Join(r.dir, "config"), filepath.Join(r.dir, "config.worktree")) {
			s.read(file, r.top)
		}
	}
	return s.found
}

// read searches one file of settings for a repository whose files are at top.
func (s gitSearch) read(file, top string) {
	if !filepath.IsAbs(file) || s.seen[file] || len(s.seen) > maxGitConfigs {
		return
	}
	s.seen[file] = true
	for _, set := range parseGitConfig(string(readSettings(file))) {
		switch {
		case (set.section == "include" || set.section == "includeif") && set.name == "path":
			path := s.add(set.value, filepath.Dir(file), false)
			s.read(path, top)
		case set.section == "core" && set.name == "attributesfile":
			s.add(set.value, top, false)
		case set.section == "core" && set.name == "hookspath":
			path := s.add(set.value, top, true)
			if filepath.Base(path) == "_" { // husky's hooks run those in the directory above
				s.add(filepath.Dir(path), top, true)
			}
		}
	}
}

// add adds a path if it is in the workspace, and returns it without ~. The
// workspace and its .git are not added, because commands must write them.
func (s gitSearch) add(value, dir string, isDir bool) string {
	o := s.outfit
	if rest, ok := strings.CutPrefix(value, "~/"); ok {
		value = o.homePath(rest)
	}
	path := gitName(value, dir)
	if path == "" {
		return ""
	}
	for _, p := range []string{path, o.realPath(path)} {
		if rest, err := filepath.Rel(o.real, p); err == nil && filepath.IsLocal(rest) {
			p = filepath.Join(o.root, rest)
		}
		if p != o.root && p != filepath.Join(o.root, ".git") && sandbox.Within(o.root, p) {
			s.found[p] = sandbox.Placeholder{Dir: isDir}
		}
	}
	return path
}

// gitRepository is a directory of git's with settings, and the top of its files.
type gitRepository struct{ dir, top string }

// gitRepositories returns the repository of the workspace, and those of its
// submodules and worktrees if it is in the workspace.
func (o *outfit) gitRepositories() ([]gitRepository, error) {
	for top := o.root; ; top = filepath.Dir(top) {
		at := filepath.Join(top, ".git")
		dir := at
		if link := gitLink(at); link != "" {
			dir = link
		}
		switch {
		case !isDir(dir) && filepath.Dir(top) == top:
			return nil, nil
		case !isDir(dir):
			continue
		}
		all := []gitRepository{{dir, top}}
		if common := gitPath(filepath.Join(dir, "commondir"), dir); common != "" {
			all = append(all, gitRepository{common, top})
		}
		if !o.inside(dir) {
			return all, nil
		}
		inner, err := gitDirs(dir)
		for _, dir := range inner {
			if tree := coreWorktree(dir); tree != "" {
				all = append(all, gitRepository{dir, tree})
			}
		}
		return all, err
	}
}

// GitIndirections returns the paths in a workspace, relative to it and with
// slashes, that git's settings name: files of settings, hooks and attributes. They
// decide what git runs, so a model must not change them. Root is absolute, and
// environ is hone's own environment.
func GitIndirections(root string, environ []string) ([]string, error) {
	o := newOutfit(Workshop{Root: filepath.Clean(root), Home: filepath.Clean(root), Environ: environ})
	repositories, err := o.gitRepositories()
	var names []string
	for path := range o.gitIndirect(repositories) {
		rel, bad := filepath.Rel(o.root, path)
		if bad != nil {
			return nil, bad
		}
		names = append(names, filepath.ToSlash(rel))
	}
	slices.Sort(names)
	return names, err
}
