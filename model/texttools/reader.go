package texttools

import (
	"encoding/json"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
	"hone/internal/reply"
	"hone/model"
)

// What is ignored around a call, between calls, and before a closing tag.
const (
	space      = " \t\r\n"
	separators = space + ",;"
	remains    = separators + "}]`"
)

// reader reads calls. All strings that its methods take and return as the rest are
// ends of its text.
type reader struct {
	text   string
	tools  []model.Spec
	lasts  map[string]int // last position of each closing tag
	spans  []found
	fenced []found // in fenced blocks
}

type found struct {
	from     int          // where it begins in the text
	parts    []model.Part // the calls, perhaps after visible text
	rest     string       // what follows
	envelope bool         // the calls are members of an object with text; what follows it is text
}

// end is where what follows begins in the text.
func (f found) end(text string) int { return len(text) - len(f.rest) }

func oneCall(name, args string) found {
	return found{parts: []model.Part{{Call: &model.Call{Name: name, Args: args}}}}
}

func newReader(text string, tools []model.Spec) *reader {
	r := &reader{text: text, tools: tools, lasts: map[string]int{}}
	for _, d := range dialects {
		r.lasts[d.close] = strings.LastIndex(text, d.close)
	}
	return r
}

// It is negative if there is none.
func (r *reader) lastClosing(s, closing string) int { return r.lasts[closing] - (len(r.text) - len(s)) }

func (r *reader) offers(name string) bool {
	return slices.ContainsFunc(r.tools, func(t model.Spec) bool { return t.Name == name })
}

// s must have nothing but calls, all of them in JSON or in tags, or begin with an envelope.
func (r *reader) onlyCalls(s string) (all found, ok bool) {
	s = strings.TrimLeft(s, space)
	if opensJSON(s) {
		all, ok = r.values(dialect{}, "", s)
		if !all.envelope {
			all.rest = strings.TrimLeft(all.rest, separators)
			ok = ok && all.rest == ""
		}
		return all, ok
	}
	for ; s != ""; s = strings.TrimLeft(all.rest, separators) {
		f, ok := r.tagged(s, false)
		if !ok {
			return found{}, false
		}
		all = found{parts: append(all.parts, f.parts...), rest: f.rest}
	}
	return all, true
}

var insideFence = lazyregexp.New("^```[a-z]*\\s*\n\\s*")

// If there are words before the tag in its line, it must be closed.
func (r *reader) tagged(s string, words bool) (found, bool) {
	d, name, inside, ok := dialectOf(s)
	closed := d.close == "" || r.lastClosing(s, d.close) >= 0
	if !ok || !closed && (words || d.strict) {
		return found{}, false
	}
	inside = strings.TrimLeft(inside, space)
	if d.close != "" {
		inside = inside[len(insideFence.FindString(inside)):]
	}
	switch {
	case opensJSON(inside) && (name == "" || inside[0] == '{'):
		return r.values(d, name, inside)
	case d.arguments != nil && strings.HasPrefix(inside, d.arguments.open):
		return r.arguments(d, name, inside)
	case !closed || d.close == "" || name == "" && (words || opensCall(inside)):
		return found{}, false
	}
	return r.brokenCall(d, name, inside, inside)
}

// After a name there is one object, with the arguments. If a value without a tag cannot be parsed, nothing is certain about
// those before it.
func (r *reader) values(d dialect, name, s string) (all found, ok bool) {
	begin := s
	for opensJSON(s) && !all.envelope && (name == "" || all.parts == nil) {
		length := max(0, reply.ValueEnd(s))
		value, valid := reply.Repair(s[:length])
		f, ok := oneCall(name, string(value)), valid
		if valid && name == "" {
			f, ok = r.calls(value, d.open == "")
		}
		if !ok && d.open == "" {
			f, ok = r.brokenCall(d, name, begin, begin)
			return f, ok && !valid
		}
		if !ok {
			f, ok = r.brokenCall(d, name, s, s[length:])
			f.parts = append(all.parts, f.parts...)
			return f, ok
		}
		all = found{parts: append(all.parts, f.parts...), rest: afterClosing(s[length:], d.close), envelope: f.envelope}
		s = strings.TrimLeft(s[length:], separators)
	}
	return all, all.parts != nil
}

// There may be superfluous brackets before the tag. It returns s if there is no tag.
func afterClosing(s, closing string) string {
	junk := strings.TrimLeft(s, remains)
	rest := strings.TrimPrefix(junk, closing)
	rest = rest[len(wrapperEnd.FindString(rest)):]
	if closing == "" || len(rest) == len(junk) {
		return s
	}
	return rest
}

// The opening tag of an argument inside of a value makes the call unreadable.
func (r *reader) arguments(d dialect, name, s string) (found, bool) {
	end := d.arguments.end.FindStringSubmatchIndex(s)
	if end == nil {
		return r.brokenCall(d, name, s, s)
	}
	var members []string
	for pair := range strings.SplitSeq(s[len(d.arguments.open):end[2]], d.arguments.open) {
		m := d.arguments.pair.FindStringSubmatch(pair)
		if m == nil {
			return r.brokenCall(d, name, s, s)
		}
		members = append(members, encode(m[1])+":"+r.argument(name, m[1], m[2]))
	}
	f := oneCall(name, "{"+strings.Join(members, ",")+"}")
	f.rest = afterClosing(s[end[2]:], d.close)
	return f, true
}

// The text stays as it is if it is valid JSON and the schema's type is not a string.
func (r *reader) argument(tool, key, text string) string {
	var schema struct {
		Properties map[string]struct{ Type any }
	}
	for _, t := range r.tools {
		if t.Name != tool || json.Unmarshal(t.Schema, &schema) != nil {
			continue
		}
		if p, known := schema.Properties[key]; known && p.Type != "string" && json.Valid([]byte(text)) {
			return strings.Trim(text, space)
		}
	}
	return encode(text)
}

// known is what follows the text according to its brackets. If no closing tag is there, the call extends to the last closing
// tag or to the end of the text. A tag with a name and nothing else is a call without arguments.
func (r *reader) brokenCall(d dialect, name, s, known string) (found, bool) {
	end := r.lastClosing(s, d.close)
	if at := strings.TrimLeft(known, remains); d.close != "" && strings.HasPrefix(at, d.close) {
		end = len(s) - len(at)
	} else if end < 0 {
		end = len(s)
	}
	raw := strings.Trim(s[:end], space)
	if name == "" {
		name = r.guess(raw)
	} else if raw == "" {
		raw = "{}"
	}
	f := oneCall(name, raw)
	f.rest = afterClosing(s[end:], d.close)
	return f, raw != "" && (d.open != "" || r.beginsCall(raw))
}
