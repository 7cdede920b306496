package config

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// leaf is one setting of a TOML file: a value that is no table, or a table
// with nothing in it.
type leaf struct {
	path  []string
	line  int
	lines []int // the line in which each part of the path first stands
	value any
}

// name is the last part of the path.
func (l leaf) name() string { return l.path[len(l.path)-1] }

// upTo is the place that the first n parts of the path name.
func (l leaf) upTo(n int) leaf {
	return leaf{path: l.path[:n], line: l.lines[n-1], lines: l.lines[:n]}
}

// id is the same for both spellings of a setting. What a person names, a model
// or an agent, has but one.
func (l leaf) id() string {
	parts := make([]string, len(l.path))
	for i, part := range l.path {
		parts[i] = dashed(part)
		if i == 1 && (l.path[0] == "prices" || l.path[0] == "commands") {
			parts[i] = part
		}
	}
	return joined(parts)
}

// dashed is a key in one of its two spellings: hook_read is hook-read.
func dashed(key string) string { return strings.ReplaceAll(key, "_", "-") }

// find is the setter whose key, its parts joined by dots, has this path in
// either spelling.
func find(keys map[string]setter, path []string) (key string, set setter, ok bool) {
	same := func(a, b string) bool { return dashed(a) == dashed(b) }
	for key, set := range keys {
		if slices.EqualFunc(strings.Split(key, "."), path, same) {
			return key, set, true
		}
	}
	return "", nil, false
}

// wrong is an error at the leaf.
func (l leaf) wrong(problem, hint string) error {
	return &Error{File: HonePath, Line: l.line, Key: keyText(l.path), Problem: problem, Hint: hint}
}

// empty reports whether the leaf is a table with nothing in it.
func (l leaf) empty() bool {
	table, ok := l.value.(map[string]any)
	return ok && len(table) == 0
}

// keyText is a key as TOML writes it.
func keyText(path []string) string {
	parts := make([]string, len(path))
	for i, p := range path {
		if bare.MatchString(p) {
			parts[i] = p
		} else {
			parts[i] = strconv.Quote(p)
		}
	}
	return strings.Join(parts, ".")
}

var bare = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// leaves are those of a tree, in the order of their lines in the text that it
// was read from.
func leaves(text []byte, tree map[string]any) []leaf {
	lines := keyLines(text)
	var all []leaf
	var walk func(path []string, value any)
	walk = func(path []string, value any) {
		table, ok := value.(map[string]any)
		if !ok || len(table) == 0 {
			l := leaf{path: path, line: lines[joined(path)], value: value}
			for n := range path {
				l.lines = append(l.lines, lines[joined(path[:n+1])])
			}
			all = append(all, l)
			return
		}
		for _, key := range slices.Sorted(maps.Keys(table)) {
			walk(append(slices.Clone(path), key), table[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		walk([]string{key}, tree[key])
	}
	slices.SortStableFunc(all, func(a, b leaf) int { return cmp.Compare(a.line, b.line) })
	return all
}

// joined is a path as a key of a map. No key of TOML has a raw NUL, and one
// that has it by an escape only spoils a line number.
func joined(path []string) string { return strings.Join(path, "\x00") }

// keyLines is the line in which each key, and each part of one, first stands.
// A tree does not keep them.
func keyLines(text []byte) map[string]int {
	r := lineReader{lines: map[string]int{}}
	r.parser.Reset(text)
	var section []string
	for r.parser.NextExpression() {
		switch e := r.parser.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			section = r.note(nil, e)
		case unstable.KeyValue:
			r.member(section, e)
		}
	}
	return r.lines
}

type lineReader struct {
	parser unstable.Parser
	lines  map[string]int
}

// note takes down where a key stands and returns its whole path.
func (r *lineReader) note(section []string, node *unstable.Node) []string {
	path := slices.Clone(section)
	for key := node.Key(); key.Next(); {
		path = append(path, string(key.Node().Data))
		if _, known := r.lines[joined(path)]; !known {
			r.lines[joined(path)] = r.parser.Shape(key.Node().Raw).Start.Line
		}
	}
	return path
}

// member takes down a key with a value, and what is in the value where that is
// an inline table.
func (r *lineReader) member(section []string, node *unstable.Node) {
	path := r.note(section, node)
	if node.Value().Kind != unstable.InlineTable {
		return
	}
	for members := node.Value().Children(); members.Next(); {
		if members.Node().Kind == unstable.KeyValue {
			r.member(path, members.Node())
		}
	}
}
