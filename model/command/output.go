package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"hone/internal/lazyregexp"
	"hone/model"
)

// Usage contains the paths of the token counts in an agent's JSON output. The
// output is one document or JSON lines; other lines are ignored. A list counts
// as several documents, its elements.
//
// A path is a list of names separated by dots, such as
// "stats.models.*.tokens.prompt". The name of a list's element is its index,
// and * selects all members or elements. After a name, or alone at the
// beginning, [name=value] ignores values without such a member:
// "item[type=agent_message].text", "[is_error=false].result". Only * selects a
// name that contains a dot, a bracket or a plus sign between spaces.
//
// All numbers at a path in one document are added, and " + " between paths adds
// their numbers. A document reports usage if it has numbers at both Input and
// Output. The usage is unknown if no document reports it, or if Each is set and
// the beginning of the output is lost. It is unknown too if a document reports
// a value that cannot be a count of tokens, such as "12", 1.5, -1 or null, and
// Each is set or no later document reports the total.
type Usage struct {
	Input      string // input tokens
	Output     string // output tokens, reasoning included
	CacheRead  string // input tokens from the provider's cache; may be empty
	CacheWrite string // input tokens written to the cache; may be empty
	Reasoning  string // hidden output tokens; may be empty
	// CachedInInput means that the number at Input includes those at CacheRead
	// and CacheWrite.
	CachedInInput bool
	// Each means that the usage is the sum of all documents that report it;
	// otherwise the last one reports the total.
	Each bool
}

type usagePaths struct {
	Usage
	input, output, cacheRead, cacheWrite, reasoning sum
}

// Without paths, no document reports usage.
func (u Usage) parse() (usagePaths, error) {
	c := usagePaths{Usage: u}
	for _, field := range []struct {
		name, text string
		into       *sum
	}{
		{"input", u.Input, &c.input}, {"output", u.Output, &c.output}, {"reasoning", u.Reasoning, &c.reasoning},
		{"cache-read", u.CacheRead, &c.cacheRead}, {"cache-write", u.CacheWrite, &c.cacheWrite},
	} {
		var err error
		if *field.into, err = parseSum(field.text); err != nil {
			return c, fmt.Errorf("usage.%s: %w", field.name, err)
		}
	}
	if u != (Usage{}) && (c.input == nil || c.output == nil) {
		return c, errors.New("usage needs both input and output")
	}
	return c, nil
}

// The usage is nil if a value in the document is not a count.
func (c usagePaths) usageOf(doc any) (*model.Usage, bool) {
	in, inIs := c.input.evaluate(doc)
	out, outIs := c.output.evaluate(doc)
	// A document with null for both counts does not report yet.
	if inIs == missing || outIs == missing || inIs == null && outIs == null {
		return nil, false
	}
	read, readIs := c.cacheRead.evaluate(doc)
	write, writeIs := c.cacheWrite.evaluate(doc)
	hidden, hiddenIs := c.reasoning.evaluate(doc)
	if max(inIs, outIs) > count || max(readIs, writeIs, hiddenIs) == wrong {
		return nil, true
	}
	u := model.Usage{Input: in, Output: out, CacheRead: read, CacheWrite: write, Reasoning: min(hidden, out)}
	if c.CachedInInput {
		u.Input = max(0, u.Input-u.CacheRead-u.CacheWrite)
	}
	return &u, true
}

type output struct {
	answer string
	found  bool // there is an answer; it may be empty
	usage  *model.Usage
}

// complete means that end is all of it.
func (a *Agent) parse(end []byte, complete bool) output {
	var out output
	if a.config.Answer == "" && complete {
		out.answer, out.found = strings.TrimSpace(a.readable(string(end))), true
	}
	if a.config.Answer == "" && a.usage.input == nil {
		return out
	}
	if !complete {
		_, end, _ = bytes.Cut(end, []byte("\n"))
	}
	lost := !complete
	for doc := range documents(end) {
		if a.config.Answer != "" {
			for _, v := range a.answer.values(doc) {
				if text, ok := v.(string); ok {
					out.answer, out.found = a.readable(text), true
				}
			}
		}
		u, reported := a.usage.usageOf(doc)
		if !reported {
			continue
		}
		lost = lost || u == nil
		if a.usage.Each && u != nil && out.usage != nil {
			*u = out.usage.Add(*u)
		}
		out.usage = u
	}
	if a.usage.Each && lost {
		out.usage = nil
	}
	return out
}

// Limits on the cost of parsing hostile output.
const (
	maxWasted = 4 * maxStdout // bytes read in failed attempts to decode a document
	maxValues = 1 << 20       // values in one document
)

// documents yields the JSON objects that start at the beginning of a line or
// after another document, and the elements of lists that do. A document may
// contain line feeds. If decoding fails, it continues with the next line.
func documents(out []byte) iter.Seq[any] {
	opens := func(text []byte) bool { return len(text) > 0 && (text[0] == '{' || text[0] == '[') }
	return func(yield func(any) bool) {
		wasted := 0
		for out := bytes.TrimPrefix(out, []byte("\xef\xbb\xbf")); len(out) > 0; {
			if opens(out) {
				text := out
				if wasted > maxWasted {
					text, _, _ = bytes.Cut(out, []byte("\n"))
				}
				var raw json.RawMessage
				from := bytes.NewReader(text)
				d := json.NewDecoder(from)
				if d.Decode(&raw) != nil {
					wasted += len(text) - from.Len()
				} else {
					for _, doc := range elements(raw) {
						if !yield(doc) {
							return
						}
					}
					if out = bytes.TrimLeft(out[d.InputOffset():], " \t\r\n"); opens(out) {
						continue
					}
				}
			}
			_, out, _ = bytes.Cut(out, []byte("\n"))
		}
	}
}

// A document that is no list is the only element. One with too many values is ignored, because they need many times the memory
// of their text.
func elements(raw json.RawMessage) []any {
	if bytes.Count(raw, []byte(","))+bytes.Count(raw, []byte("["))+bytes.Count(raw, []byte("{")) > maxValues {
		return nil
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil
	}
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}

// path selects values in a JSON document; see [Usage] for the form.
type path []step

type step struct {
	name  string // of a member, or an element's index; "*" selects all, "" the value itself
	key   string // if not empty, a member that the selected value must have
	value string // the required value of that member
}

var stepForm = lazyregexp.New(`^([^.\[]*)(?:\[([^=\]]+)=([^\]]*)\])?(\.|$)`)

// An empty text has no steps.
func parsePath(text string) (path, error) {
	var p path
	for rest := text; text != ""; {
		m := stepForm.FindStringSubmatch(rest)
		if m == nil || m[1] == "" && (m[2] == "" || len(p) > 0) {
			return nil, fmt.Errorf("path %q has no name, or no [name=value], at %q", text, rest)
		}
		p = append(p, step{m[1], m[2], m[3]})
		if m[4] == "" {
			break
		}
		rest = rest[len(m[0]):]
	}
	return p, nil
}

// Elements are in order, members sorted by name.
func (p path) values(v any) []any {
	if len(p) == 0 {
		return []any{v}
	}
	var all []any
	for _, child := range p[0].children(v) {
		if p[0].matches(child) {
			all = append(all, p[1:].values(child)...)
		}
	}
	return all
}

func (s step) children(v any) []any {
	if s.name == "" {
		return []any{v}
	}
	switch v := v.(type) {
	case map[string]any:
		if child, ok := v[s.name]; ok && s.name != "*" {
			return []any{child}
		}
		var all []any
		if s.name == "*" {
			for _, name := range slices.Sorted(maps.Keys(v)) {
				all = append(all, v[name])
			}
		}
		return all
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

func (s step) matches(v any) bool {
	if s.key == "" {
		return true
	}
	object, _ := v.(map[string]any)
	switch member, ok := object[s.key]; member := member.(type) {
	case string, json.Number, bool:
		return fmt.Sprint(member) == s.value
	case nil:
		return ok && s.value == "null"
	}
	return false
}

// sum adds the numbers at several paths.
type sum []path

// An empty text has no paths.
func parseSum(text string) (sum, error) {
	var s sum
	for term := range strings.SplitSeq(text, " + ") {
		p, err := parsePath(strings.TrimSpace(term))
		if err != nil {
			return nil, err
		}
		if p == nil && text != "" {
			return nil, errors.New("a plus sign must be between two paths")
		}
		s = append(s, p)
	}
	if text == "" {
		return nil, nil
	}
	return s, nil
}

// found tells what a sum selects in a document: the last of these that it does.
type found int

const (
	missing found = iota
	count
	null  // at a named place
	wrong // something else that is not a count
)

// The sum is at most model.MaxTokens. What a path's last name selects must be a number; if the path ends in *, other values are
// ignored.
func (s sum) evaluate(doc any) (total int64, is found) {
	for _, p := range s {
		named := p[len(p)-1].name != "*"
		for _, v := range p.values(doc) {
			number, ok := v.(json.Number)
			n, isCount := model.ParseCount(number.String())
			switch {
			case ok && isCount && total+n <= model.MaxTokens:
				total, is = total+n, max(is, count)
			case ok, named && v != nil:
				is = wrong
			case named:
				is = max(is, null)
			}
		}
	}
	return total, is
}
