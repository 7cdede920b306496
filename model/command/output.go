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

// Usage tells where an agent's counts of tokens stand in its JSON output: one
// document, JSON lines, or either among lines that are something else, which
// are passed over. A document that is a list stands for its elements.
//
// A path is names with dots between them, such as "stats.models.*.tokens.prompt";
// an index is the name of a list's element, and * means all members or elements.
// After a name, or alone at the beginning, [name=value] passes over whatever
// has no such member: "item[type=agent_message].text", "[is_error=false].result".
// Names that hold a dot, a bracket or a space around a plus sign can only be
// reached by *.
//
// The numbers that a path finds in one document are added; paths with " + "
// between them are added too. A document tells the usage if both Input and
// Output are found in it. Where nothing was found, or Each is set and output
// was lost, the usage is not known.
type Usage struct {
	Input      string // tokens read
	Output     string // tokens written, those of the reasoning included
	CacheRead  string // of those read, the ones from the provider's cache; may be empty
	CacheWrite string // of those read, the ones written to it; may be empty
	Reasoning  string // of those written, the ones that were not shown; may be empty
	// CachedInInput is true where what stands at Input has those of CacheRead
	// and CacheWrite in it.
	CachedInInput bool
	// Each is true where every document that tells it tells a part, and false
	// where the last one tells all of it.
	Each bool
}

// counts is Usage, read.
type counts struct {
	input, output, cacheRead, cacheWrite, reasoning sum
	cachedInInput, each                             bool
}

// parse reads the paths; without any there is nothing to be counted.
func (u Usage) parse() (counts, error) {
	c := counts{cachedInInput: u.CachedInInput, each: u.Each}
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

// in is what a document tells of the usage, each token once.
func (c counts) in(doc any) (model.Usage, bool) {
	input, ok := c.input.in(doc)
	output, also := c.output.in(doc)
	if !ok || !also {
		return model.Usage{}, false
	}
	u := model.Usage{Input: input, Output: output}
	u.CacheRead, _ = c.cacheRead.in(doc)
	u.CacheWrite, _ = c.cacheWrite.in(doc)
	u.Reasoning, _ = c.reasoning.in(doc)
	u.Reasoning = min(u.Reasoning, u.Output)
	if c.cachedInInput {
		u.Input = max(0, u.Input-u.CacheRead-u.CacheWrite)
	}
	return u, true
}

// told is what an agent's output says.
type told struct {
	answer string
	found  bool // there is an answer, which may be empty
	usage  *model.Usage
}

// read reads the end of standard output; whole says that it is all of it.
func (a *Agent) read(end []byte, whole bool) told {
	var t told
	if a.config.Answer == "" && whole {
		t.answer, t.found = strings.TrimSpace(a.readable(string(end))), true
	}
	if a.config.Answer == "" && a.counts.input == nil {
		return t
	}
	if !whole {
		end = afterLine(end)
	}
	for doc := range documents(end) {
		a.take(&t, doc)
	}
	if a.counts.each && !whole {
		t.usage = nil
	}
	return t
}

// take adds what one document says.
func (a *Agent) take(t *told, doc any) {
	if a.config.Answer != "" {
		if text, ok := a.answer.lastString(doc); ok {
			t.answer, t.found = a.readable(text), true
		}
	}
	u, ok := a.counts.in(doc)
	if !ok {
		return
	}
	if a.counts.each && t.usage != nil {
		u = t.usage.Add(u)
	}
	t.usage = &u
}

// What reading may cost, whatever an agent prints: the bytes looked at in vain,
// and the values of one document.
const (
	mostInVain = 4 * mostOutput
	mostValues = 1 << 20
)

// documents are the JSON objects that begin at the beginning of a line, or
// after another one, and the elements of lists that do. They may have line
// feeds in them. What cannot be read costs its line.
func documents(out []byte) iter.Seq[any] {
	return func(yield func(any) bool) {
		out := bytes.TrimPrefix(out, []byte("\xef\xbb\xbf"))
		for inVain := 0; len(out) > 0; {
			if !opens(out) {
				out = afterLine(out)
				continue
			}
			text := out
			if inVain > mostInVain {
				text = out[:len(out)-len(afterLine(out))]
			}
			raw, n, ok := decode(text)
			if !ok {
				inVain += n
				out = afterLine(out)
				continue
			}
			for _, doc := range values(raw) {
				if !yield(doc) {
					return
				}
			}
			if out = bytes.TrimLeft(out[n:], " \t\r\n"); !opens(out) {
				out = afterLine(out)
			}
		}
	}
}

func opens(text []byte) bool { return len(text) > 0 && (text[0] == '{' || text[0] == '[') }

// afterLine is what stands after the first line feed.
func afterLine(text []byte) []byte {
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		return text[i+1:]
	}
	return nil
}

// decode takes one JSON value off the beginning of a text, and says how many
// bytes were looked at.
func decode(text []byte) (raw json.RawMessage, n int, ok bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&raw); err != nil {
		var fault *json.SyntaxError
		if errors.As(err, &fault) {
			return nil, int(fault.Offset), false
		}
		return nil, len(text), false
	}
	return raw, int(d.InputOffset()), true
}

// values is a document, or the elements of one that is a list. One of more
// values than any agent prints is nothing: to hold them takes many times the
// memory of their text.
func values(raw json.RawMessage) []any {
	if bytes.Count(raw, []byte(","))+bytes.Count(raw, []byte("["))+bytes.Count(raw, []byte("{")) > mostValues {
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
