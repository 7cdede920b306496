package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// path is where something stands in a JSON document; see [Usage] for the form.
type path []step

// step goes one level down, and looks whether it may.
type step struct {
	name  string // of a member, or the index of an element; "*" is all of them; empty stays
	key   string // if not empty, a member that what was reached must have
	value string // with this value
}

// parsePath reads a path; an empty one has no steps.
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
				return nil, fmt.Errorf("the path %q has a bracket that is not [name=value]", text)
			}
			s.key, s.value, rest = key, value, after
		}
		if s.name == "" && (s.key == "" || len(p) > 0) {
			return nil, fmt.Errorf("the path %q has an empty name", text)
		}
		p = append(p, s)
		if rest == "" {
			return p, nil
		}
		if rest[0] != '.' {
			return nil, fmt.Errorf("the path %q has no dot after its bracket", text)
		}
		rest = rest[1:]
	}
}

// each calls found with all that stands at the path, in the document's order of
// elements and the alphabet's of members.
func (p path) each(v any, found func(any)) {
	if len(p) == 0 {
		found(v)
		return
	}
	for _, child := range p[0].children(v) {
		if p[0].allows(child) {
			p[1:].each(child, found)
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

// allows reports whether a value has the member that the step asks for.
func (s step) allows(v any) bool {
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

// lastString is the last string that stands at the path.
func (p path) lastString(doc any) (text string, found bool) {
	p.each(doc, func(v any) {
		if s, ok := v.(string); ok {
			text, found = s, true
		}
	})
	return text, found
}

// sum is several paths whose numbers are added.
type sum []path

// parseSum reads paths with plus signs between them; an empty text has none.
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
			return nil, errors.New("a path is missing beside a plus sign")
		}
		s = append(s, p)
	}
	return s, nil
}

// mostTokens bounds what an agent can claim, so that sums stay numbers.
const mostTokens = 1 << 40

// in adds the numbers of a document; found is false where there is none.
func (s sum) in(doc any) (n int64, found bool) {
	for _, p := range s {
		p.each(doc, func(v any) {
			if tokens, ok := count(v); ok {
				n, found = min(n+tokens, mostTokens), true
			}
		})
	}
	return n, found
}

// count is a value as a count of tokens.
func count(v any) (int64, bool) {
	number, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := number.Float64()
	if err != nil || f < 0 {
		return 0, false
	}
	return int64(min(f, mostTokens)), true
}
