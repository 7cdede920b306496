package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

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

// usagePaths is a parsed Usage.
type usagePaths struct {
	input, output, cacheRead, cacheWrite, reasoning sum
	cachedInInput, each                             bool
}

// parse parses the paths; without paths, no document reports usage.
func (u Usage) parse() (usagePaths, error) {
	c := usagePaths{cachedInInput: u.CachedInInput, each: u.Each}
	for _, field := range []struct {
		name, text string
		into       *sum
	}{
		{"input", u.Input, &c.input}, {"output", u.Output, &c.output}, {"reasoning", u.Reasoning, &c.reasoning},
		{"cache-read", u.CacheRead, &c.cacheRead}, {"cache-write", u.CacheWrite, &c.cacheWrite},
	} {
		s, err := parseSum(field.text)
		if err != nil {
			return c, fmt.Errorf("usage.%s: %w", field.name, err)
		}
		*field.into = s
	}
	if u != (Usage{}) && (c.input == nil || c.output == nil) {
		return c, errors.New("usage needs both input and output")
	}
	return c, nil
}

// usageOf returns the usage that a document reports, which is nil if a value in
// it is not a count, and whether the document reports one.
func (c usagePaths) usageOf(doc any) (*model.Usage, bool) {
	in, out := c.input.evaluate(doc), c.output.evaluate(doc)
	// A document with null for both counts does not report yet.
	if !in.reported() || !out.reported() || in == (total{null: true}) && out == in {
		return nil, false
	}
	read, write, hidden := c.cacheRead.evaluate(doc), c.cacheWrite.evaluate(doc), c.reasoning.evaluate(doc)
	if in.null || out.null || in.wrong || out.wrong || read.wrong || write.wrong || hidden.wrong {
		return nil, true
	}
	u := model.Usage{Input: in.n, Output: out.n, CacheRead: read.n, CacheWrite: write.n, Reasoning: min(hidden.n, out.n)}
	if c.cachedInInput {
		u.Input = max(0, u.Input-u.CacheRead-u.CacheWrite)
	}
	return &u, true
}

// output is the parsed output of an agent.
type output struct {
	answer string
	found  bool // there is an answer; it may be empty
	usage  *model.Usage
}

// parse parses the end of standard output; complete means that it is all of it.
func (a *Agent) parse(end []byte, complete bool) output {
	var out output
	if a.config.Answer == "" && complete {
		out.answer, out.found = strings.TrimSpace(a.readable(string(end))), true
	}
	if a.config.Answer == "" && a.usage.input == nil {
		return out
	}
	if !complete {
		end = afterLine(end)
	}
	lost := !complete
	for doc := range documents(end) {
		lost = !a.add(&out, doc) || lost
	}
	if a.usage.each && lost {
		out.usage = nil
	}
	return out
}

// add adds the answer and the usage in one document, and returns false if the
// usage is not readable.
func (a *Agent) add(out *output, doc any) bool {
	if a.config.Answer != "" {
		if text, ok := a.answer.lastString(doc); ok {
			out.answer, out.found = a.readable(text), true
		}
	}
	u, ok := a.usage.usageOf(doc)
	if !ok {
		return true
	}
	if a.usage.each && u != nil && out.usage != nil {
		*u = out.usage.Add(*u)
	}
	out.usage = u
	return u != nil
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
	return func(yield func(any) bool) {
		out := bytes.TrimPrefix(out, []byte("\xef\xbb\xbf"))
		for wasted := 0; len(out) > 0; {
			if !opensJSON(out) {
				out = afterLine(out)
				continue
			}
			text := out
			if wasted > maxWasted {
				text = out[:len(out)-len(afterLine(out))]
			}
			raw, n, ok := decodeFirst(text)
			if !ok {
				wasted += n
				out = afterLine(out)
				continue
			}
			for _, doc := range elements(raw) {
				if !yield(doc) {
					return
				}
			}
			if out = bytes.TrimLeft(out[n:], " \t\r\n"); !opensJSON(out) {
				out = afterLine(out)
			}
		}
	}
}

func opensJSON(text []byte) bool { return len(text) > 0 && (text[0] == '{' || text[0] == '[') }

// afterLine returns the text after the first line feed.
func afterLine(text []byte) []byte {
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		return text[i+1:]
	}
	return nil
}

// decodeFirst returns the JSON value at the beginning of a text, and the number
// of bytes that it read.
func decodeFirst(text []byte) (raw json.RawMessage, n int, ok bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&raw); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, int(syntax.Offset), false
		}
		return nil, len(text), false
	}
	return raw, int(d.InputOffset()), true
}

// elements returns a list's elements, or a list with only the document. It
// ignores a document with too many values, because they need many times the
// memory of their text.
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
