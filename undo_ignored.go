package hone

import (
	"path"
	"slices"
	"strings"

	"hone/workspace"
)

// A file that appears in a run's manifests was made by the run, or it was there
// all the time and a changed .gitignore made it appear. Undo leaves what it
// cannot tell from the second: such a file may be all that there is of
// somebody's work.

// anything is the glob of what can be nothing else but ignored once.
const anything = "**"

// reruled takes in a change of a .gitignore: which paths it may have made appear.
func (h *pathHistory) reruled(d workspace.Delta) {
	before, known := h.rulesOf(d.Before)
	after, kept := h.rulesOf(d.After)
	if !known || !kept {
		h.freed = append(h.freed, anything)
		return
	}
	h.freed = append(h.freed, freed(path.Dir(d.Path), before, after)...)
}

// rulesOf are the rules of a .gitignore; ok is false where they are not on
// record. Where there is no file there are none.
func (h *pathHistory) rulesOf(e workspace.Entry) (rules []string, ok bool) {
	switch {
	case e.Kind == "":
		return nil, true
	case e.Kind != workspace.Regular || !h.home.Has(e.Digest):
		return nil, false
	}
	b, err := h.home.Get(e.Digest)
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimRight(line, " \t\r\n"); line != "" && line[0] != '#' {
			rules = append(rules, line)
		}
	}
	return rules, err == nil
}

// freed are globs that mean every path which rules in a folder ignored before
// and need not ignore any more. Exceptions depend on the rules around them: with
// one of those it is anything.
func freed(dir string, before, after []string) []string {
	if slices.ContainsFunc(slices.Concat(before, after), func(rule string) bool { return rule[0] == '!' }) {
		if slices.Equal(before, after) {
			return nil
		}
		return []string{anything}
	}
	var globs []string
	for _, rule := range before {
		if slices.Contains(after, rule) {
			continue
		}
		name := strings.TrimSuffix(rule, "/")
		if name == "" || strings.ContainsAny(name, `[]{}\`) {
			return []string{anything}
		}
		if !strings.Contains(name, "/") {
			name = "**/" + name
		}
		glob := path.Join(dir, name)
		globs = append(globs, glob, glob+"/**")
	}
	return globs
}

// barred turns what is left into a conflict where it stands in the way of what
// is put back.
func (v *Reversal) barred() {
	v.Left = slices.DeleteFunc(v.Left, func(p string) bool {
		below := func(other string) bool { return strings.HasPrefix(other, p+"/") }
		if !slices.ContainsFunc(v.Back, below) {
			return false
		}
		v.Conflicts = append(v.Conflicts, Conflict{p, "it stands where a folder was, and may have been there before", false})
		return true
	})
	slices.SortFunc(v.Conflicts, func(a, b Conflict) int { return strings.Compare(a.Path, b.Path) })
}
