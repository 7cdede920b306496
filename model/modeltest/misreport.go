package modeltest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"hone/model"
)

// Misreport changes one value of the usage that a turn reports.
type Misreport struct {
	// Count is what the value counts: "input", "output", "cached" or
	// "reasoning". Empty means the entire object.
	Count string
	// JSON replaces the value; empty removes it.
	JSON string
}

// Misreports returns turns, by name, whose usage cannot be read: a value has
// the wrong type, is missing or is impossible. Such a usage counts as none.
func Misreports() map[string]Turn {
	counts := []string{`"12"`, `"x"`, `true`, `[12]`, `{}`, `1.5`, `-1`, `-0.5`, `1e400`, `1e13`, `2000000000000`,
		`9223372036854775808`, `18446744073709551617`, `123456789012345678901234567890`}
	objects := []string{`"12"`, `12`, `true`, `[]`, `[{}]`, `{}`}
	turns := map[string]Turn{}
	add := func(count string, values ...string) {
		for _, value := range values {
			turns[strings.TrimSpace(count+" usage "+value)] = Turn{
				Text: "Paris", Usage: &model.Usage{Input: 1200, Output: 340, Reasoning: 120, CacheRead: 800},
				Misreport: &Misreport{count, value},
			}
		}
	}
	add("", objects...)
	for _, count := range []string{"input", "output"} {
		add(count, append(slices.Clone(counts), `null`, ``)...)
	}
	for _, count := range []string{"cached", "reasoning"} {
		add(count, counts...)
	}
	return turns
}

// ReportedUsage returns a wire's usage object with the turn's Misreport in it;
// usage itself if there is none. The keys of paths are the values of
// [Misreport.Count], except the empty one. Each path is the place of that count
// in usage: names separated by dots.
func (t Turn) ReportedUsage(usage map[string]any, paths map[string]string) any {
	if t.Usage.Cost != nil {
		usage["cost"] = *t.Usage.Cost
	}
	m := t.Misreport
	if m == nil {
		return usage
	}
	if m.Count == "" {
		return json.RawMessage(m.JSON)
	}
	return replaced(usage, strings.Split(paths[m.Count], "."), m.JSON)
}

// replaced returns a copy of o with another value at a path.
func replaced(o object, path []string, value string) object {
	o = maps.Clone(o)
	switch inner, ok := o[path[0]].(object); {
	case len(path) > 1 && ok:
		o[path[0]] = replaced(inner, path[1:], value)
	case value == "":
		delete(o, path[0])
	default:
		o[path[0]] = json.RawMessage(value)
	}
	return o
}
