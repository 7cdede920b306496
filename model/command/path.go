package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"hone/model"
)

// path selects values in a JSON document; see [Usage] for the form.
type path []step

// step selects children of a value.
type step struct {
	name  string // of a member, or an element's index; "*" selects all, "" the value itself
	key   string // if not empty, a member that the selected value must have
	value string // the required value of that member
}

// parsePath parses a path; an empty text has no steps.
func parsePath(text string) (path, error) {
	if text == "" {
		return nil, nil
	}
	var p path
	for rest := text; ; {
		var s step
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			end = len(rest)
		}
		s.name, rest = rest[:end], rest[end:]
		if inner, ok := strings.CutPrefix(rest, "["); ok {
			condition, after, closed := strings.Cut(inner, "]")
			key, value, equals := strings.Cut(condition, "=")
			if !closed || !equals || key == "" {
				return nil, fmt.Errorf("path %q: a bracket must contain name=value", text)
			}
			s.key, s.value, rest = key, value, after
		}
		if s.name == "" && (s.key == "" || len(p) > 0) {
			return nil, fmt.Errorf("path %q: a name is empty", text)
		}
		p = append(p, s)
		if rest == "" {
			return p, nil
		}
		if rest[0] != '.' {
			return nil, fmt.Errorf("path %q: a dot must follow the bracket", text)
		}
		rest = rest[1:]
	}
}

// forEach calls found with every value at the path: elements in order, members
// sorted by name.
func (p path) forEach(v any, found func(any)) {
	if len(p) == 0 {
		found(v)
		return
	}
	for _, child := range p[0].children(v) {
		if p[0].matches(child) {
			p[1:].forEach(child, found)
		}
	}
}

func (s step) children(v any) []any {
	if s.name == "" {
		return []any{v}
	}
	switch v := v.(type) {
	case map[string]any:
		if s.name == "*" {
			var all []any
			for _, name := range slices.Sorted(maps.Keys(v)) {
				all = append(all, v[name])
			}
			return all
		}
		if child, ok := v[s.name]; ok {
			return []any{child}
		}
	case []any:
		if s.name == "*" {
			return v
		}
		if i, err := strconv.Atoi(s.name); err == nil && i >= 0 && i < len(v) {
			return v[i : i+1]
		}
	}
	return nil
}

// matches reports whether a value has the member that the step requires.
func (s step) matches(v any) bool {
	if s.key == "" {
		return true
	}
	object, _ := v.(map[string]any)
	member, ok := object[s.key]
	if !ok {
		return false
	}
	switch member := member.(type) {
	case string:
		return member == s.value
	case json.Number:
		return member.String() == s.value
	case bool:
		return strconv.FormatBool(member) == s.value
	case nil:
		return s.value == "null"
	}
	return false
}

// lastString returns the last string at the path.
func (p path) lastString(doc any) (text string, found bool) {
	p.forEach(doc, func(v any) {
		if s, ok := v.(string); ok {
			text, found = s, true
		}
	})
	return text, found
}

// sum adds the numbers at several paths.
type sum []path

// parseSum parses paths separated by plus signs; an empty text has none.
func parseSum(text string) (sum, error) {
	if text == "" {
		return nil, nil
	}
	var s sum
	for term := range strings.SplitSeq(text, " + ") {
		p, err := parsePath(strings.TrimSpace(term))
		if err != nil {
			return nil, err
		}
		if p == nil {
			return nil, errors.New("a plus sign must be between two paths")
		}
		s = append(s, p)
	}
	return s, nil
}

// total is the sum of the numbers that a sum selects in a document.
type total struct {
	n     int64 // at most model.MaxTokens
	found bool  // there is a number
	null  bool  // there is a null at a named place
	wrong bool  // there is something else that is not a count
}

// reported reports whether the document contains anything to add.
func (t total) reported() bool { return t.found || t.null || t.wrong }

// evaluate adds the numbers in a document. What a path's last name selects must
// be a number; if the path ends in *, it ignores other values.
func (s sum) evaluate(doc any) total {
	var t total
	for _, p := range s {
		named := p[len(p)-1].name != "*"
		p.forEach(doc, func(v any) { t.add(v, named) })
	}
	return t
}

func (t *total) add(v any, named bool) {
	number, ok := v.(json.Number)
	switch {
	case ok:
		n, isCount := model.ParseCount(number.String())
		isCount = isCount && t.n+n <= model.MaxTokens
		if !isCount {
			t.wrong = true
			return
		}
		t.n, t.found = t.n+n, true
	case named && v == nil:
		t.null = true
	case named:
		t.wrong = true
	}
}
