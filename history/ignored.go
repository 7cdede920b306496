package history

import (
	"path"
	"slices"
	"strings"

	"hone/journal"
	"hone/workspace"
)

// A file that appears in a run's manifests may be older than the run: a changed
// .gitignore may have revealed it. Then it may be the only copy of the user's
// work, so a reversal leaves every file that it cannot tell from such a one.

// anyPath is the glob of a rule change that may have revealed any path.
const anyPath = "**"

// Revealed returns globs of the paths that the changed .gitignore files among some
// differences may have revealed.
func Revealed(home *journal.Home, deltas []workspace.Delta) []string {
	var globs []string
	for _, d := range deltas {
		if path.Base(d.Path) != ".gitignore" {
			continue
		}
		before, known := rulesOf(home, d.Before)
		after, kept := rulesOf(home, d.After)
		if !known || !kept {
			return []string{anyPath}
		}
		globs = append(globs, revealedPaths(path.Dir(d.Path), before, after)...)
	}
	return globs
}

// ok is false if the contents were not stored.
func rulesOf(home *journal.Home, e workspace.Entry) (rules []string, ok bool) {
	switch {
	case e.Kind == "":
		return nil, true
	case e.Kind != workspace.Regular || !home.Has(e.Digest):
		return nil, false
	}
	b, err := home.Get(e.Digest)
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimRight(line, " \t\r\n"); line != "" && line[0] != '#' {
			rules = append(rules, line)
		}
	}
	return rules, err == nil
}

// revealedPaths returns globs of all paths that the rules in a directory
// ignored before and may not ignore now. The effect of an exception depends on
// the rules around it, so with an exception the glob is anyPath.
func revealedPaths(dir string, before, after []string) []string {
	if slices.ContainsFunc(slices.Concat(before, after), func(rule string) bool { return rule[0] == '!' }) {
		if slices.Equal(before, after) {
			return nil
		}
		return []string{anyPath}
	}
	var globs []string
	for _, rule := range before {
		if slices.Contains(after, rule) {
			continue
		}
		name := strings.TrimSuffix(rule, "/")
		if name == "" || strings.ContainsAny(name, `[]{}\`) {
			return []string{anyPath}
		}
		if !strings.Contains(name, "/") {
			name = "**/" + name
		}
		glob := path.Join(dir, name)
		globs = append(globs, glob, glob+"/**")
	}
	return globs
}
