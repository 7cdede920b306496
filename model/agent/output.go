package agent

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"hone/model"
)

// Usage contains the paths of the token counts in an agent's JSON output. A path is one of GJSON
// (github.com/tidwall/gjson) into the list of the output's documents: JSON objects that start at
// the beginning of a line, and the elements of such lists. An example is
// "#.stats.models.@values.#.tokens.prompt". All other lines are ignored.
//
// All numbers that a path selects are added. The usage is unknown if Input or Output selects none,
// if a path selects anything but counts and null, or if the beginning of the output is lost.
type Usage struct {
	Input      string // input tokens
	Output     string // output tokens, reasoning included
	CacheRead  string // input tokens from the provider's cache; may be empty
	CacheWrite string // input tokens written to the cache; may be empty
	Reasoning  string // hidden output tokens; may be empty
	// CachedInInput means that the number at Input includes those at CacheRead
	// and CacheWrite.
	CachedInInput bool
}

type output struct {
	answer string
	found  bool // there is an answer; it may be empty
	usage  *model.Usage
}

// complete means that end is all of it.
func (a *Agent) parse(end []byte, complete bool) (out output) {
	if a.config.Answer == "" && complete {
		out.answer, out.found = strings.TrimSpace(a.readable(string(end))), true
	}
	if a.config.Answer == "" && a.config.Usage == (Usage{}) {
		return out
	}
	if !complete {
		_, end, _ = bytes.Cut(end, []byte("\n"))
	}
	all := documents(end)
	if a.config.Answer != "" {
		for _, v := range leaves(all, a.config.Answer) {
			if v.Type == gjson.String {
				out.answer, out.found = a.readable(v.String()), true
			}
		}
	}
	u := a.config.Usage
	in, hasIn, inOK := count(all, u.Input)
	written, hasOut, outOK := count(all, u.Output)
	read, _, readOK := count(all, u.CacheRead)
	write, _, writeOK := count(all, u.CacheWrite)
	hidden, _, hiddenOK := count(all, u.Reasoning)
	if !complete || !hasIn || !hasOut || !inOK || !outOK || !readOK || !writeOK || !hiddenOK {
		return out
	}
	if u.CachedInInput {
		in = max(0, in-read-write)
	}
	out.usage = &model.Usage{Input: in, Output: written, CacheRead: read, CacheWrite: write, Reasoning: min(hidden, written)}
	return out
}

// The sum is at most model.MaxTokens; ok is false if something is not a count.
func count(all, path string) (sum int64, found, ok bool) {
	if path == "" {
		return 0, false, true
	}
	for _, v := range leaves(all, path) {
		if v.Type == gjson.Null {
			continue
		}
		n, isCount := model.ParseCount(v.Raw)
		if sum, found = sum+n, true; v.Type != gjson.Number || !isCount || sum > model.MaxTokens {
			return 0, true, false
		}
	}
	return sum, found, true
}

// The values are those that the path selects, and those in lists of lists among them.
func leaves(all, path string) []gjson.Result {
	v := gjson.Get(all, path)
	if v.IsArray() {
		v = gjson.Get(v.Raw, `@flatten:{"deep":true}`)
	}
	return v.Array()
}

// A document may have several lines. If it cannot be decoded, its first line is ignored.
func documents(out []byte) string {
	var all []string
	for wasted := 0; len(out) > 0; _, out, _ = bytes.Cut(out, []byte("\n")) {
		if out[0] != '{' && out[0] != '[' {
			continue
		}
		text := out
		if wasted > 4*maxStdout { // only hostile output is
			text, _, _ = bytes.Cut(out, []byte("\n"))
		}
		var raw json.RawMessage
		from := bytes.NewReader(text)
		d := json.NewDecoder(from)
		if d.Decode(&raw) != nil {
			wasted += len(text) - from.Len()
			continue
		}
		out = out[d.InputOffset():]
		doc := string(raw)
		if raw[0] == '[' {
			doc = strings.TrimSpace(doc[1 : len(doc)-1])
		}
		if doc != "" {
			all = append(all, doc)
		}
	}
	return "[" + strings.Join(all, ",") + "]"
}

// It is what makes the provider access the network, run code, or read anything that is not in the request; empty if nothing
// does.
func (w *wire) beyond(o object) string {
	for name, v := range o {
		what := ""
		switch c := canon(name); c {
		case "CACHEDCONTENT", "GENERATECONTENTREQUEST", "MCPSERVERS", "CONTAINER", "PREVIOUSRESPONSEID", "CONVERSATION", "PROMPT",
			"BACKGROUND", "WEBSEARCHOPTIONS", "MODELS", "PLUGINS":
			if list, ok := v.([]any); v != nil && v != false && v != "" && !(ok && len(list) == 0) {
				what = name
			}
		case "TOOLS":
			what = w.toolsBeyond(v)
		default:
			what = w.contentBeyond(v, c)
		}
		if what != "" {
			return what
		}
	}
	return ""
}

// contentBeyond returns the name of an address in v that the provider would fetch, or
// of something that it has stored. v is the value of a member with this name in canonical form.
func (w *wire) contentBeyond(v any, name string) string {
	switch v := v.(type) {
	case []any:
		for _, element := range v {
			if what := w.contentBeyond(element, name); what != "" {
				return what
			}
		}
	case object:
		for key, inner := range v {
			if key := canon(key); !slices.Contains(w.skip, key) {
				if what := w.contentBeyond(inner, key); what != "" {
					return what
				}
			}
		}
	case string:
		if (name == "FILEID" || strings.HasSuffix(name, "URL") || strings.HasSuffix(name, "URI")) && v != "" && !strings.HasPrefix(v, "data:") {
			return name
		}
	}
	return ""
}

func (w *wire) toolsBeyond(v any) string {
	list, ok := v.([]any)
	if v != nil && !ok {
		return "tools that are not a list"
	}
	for _, tool := range list {
		o, ok := tool.(object)
		if !ok {
			return "a tool that is not an object"
		}
		if what := w.toolBeyond(o); what != "" {
			return what
		}
	}
	return ""
}

// An agent runs the allowed tools itself.
func (w *wire) toolBeyond(tool object) string {
	var r reader
	_, declared := r.member(tool, "type")
	t, ok := declared.(string)
	// Anthropic's end in a date.
	dated := []string{"bash_", "text_editor_", "computer_", "memory_", "tool_search_tool_"}
	switch {
	case w.name == Gemini: // which names a tool by its member
		for name, v := range tool {
			if canon(name) != canon("functionDeclarations") && v != nil {
				return name
			}
		}
		return ""
	case r.err != nil || declared != nil && !ok:
		return "a tool of an unknown type"
	case slices.Contains([]string{"", "function", "custom", "local_shell", "apply_patch", "computer", "computer_use_preview", "tool_search"}, t),
		slices.ContainsFunc(dated, func(p string) bool { return strings.HasPrefix(t, p) }):
		return ""
	case t == "namespace":
		_, inner := r.member(tool, "tools")
		if what := w.toolsBeyond(inner); what != "" || r.err == nil {
			return what
		}
	case t == "shell":
		_, environment := r.object(tool, "environment")
		if _, where := r.member(environment, "type"); where == "local" && r.err == nil {
			return ""
		}
	}
	return t
}
