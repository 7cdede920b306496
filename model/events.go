package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"

	"hone/internal/lazyregexp"
)

// Framer finds the events in a response as its bytes arrive, on every wire. It reads what
// servers, gateways and proxies send (ruling G23), not only what the standard of
// server-sent events allows: lines may end in LF, CRLF or CR, there may be a byte order
// mark, comments, fields without data or value, data that is no JSON (a sign of life), and events
// without a blank line between them. A response that is not a stream is one event, or one
// for each element of a list and for each line of JSON.
//
// It stores the current event, or the response if that is not a stream. What it
// ignores costs no memory.
type Framer struct {
	// Event is called with each event's name, which is empty if it has none, and with
	// its data, which is valid during the call.
	Event func(name string, data []byte)

	plain  bool // the rest is text outside of events
	fields bool // there was a field with a value: words alone are fields without one
	body   []byte
	line   []byte // so far
	skip   bool   // the line is a comment
	cr     bool   // the last byte ended a line; a line feed belongs to it
	name   string
	data   []byte // of the current event
	run    int    // stored bytes of the current line
}

// Write adds the next bytes.
func (f *Framer) Write(p []byte) {
	for len(p) > 0 {
		if f.plain {
			f.addPlain(p)
			return
		}
		if f.cr {
			f.cr = false
			p = bytes.TrimPrefix(p, []byte("\n"))
			continue
		}
		line, rest, end := cutLine(p)
		f.addToLine(line)
		if f.plain {
			p = p[len(line):]
			continue
		}
		if end == 0 {
			return
		}
		f.cr, p = end == '\r', rest
		f.endLine()
	}
}

// end is 0 if no line ends.
func cutLine(p []byte) (line, rest []byte, end byte) {
	i := bytes.IndexByte(p, '\n')
	if i < 0 {
		i = len(p)
	}
	if j := bytes.IndexByte(p[:i], '\r'); j >= 0 {
		i = j
	}
	if i == len(p) {
		return p, nil, 0
	}
	return p[:i], p[i+1:], p[i]
}

var byteOrderMark = []byte("\ufeff")

func (f *Framer) addToLine(p []byte) {
	if f.skip || len(p) == 0 {
		return
	}
	f.line = append(f.line, p...)
	f.line = bytes.TrimPrefix(f.line, byteOrderMark)
	f.run = len(f.line)
	if f.run == 0 {
		return
	}
	switch f.line[0] {
	case ':':
		f.skip, f.line, f.run = true, f.line[:0], 0
	case '{', '[', '<':
		f.startPlain("")
	}
}

func (f *Framer) startPlain(end string) {
	f.plain, f.body = true, append(append(f.body, f.line...), end...)
	f.line = nil
}

func (f *Framer) addPlain(p []byte) {
	f.body = append(f.body, p...)
	if i := bytes.LastIndexByte(p, '\n'); i >= 0 {
		f.run, p = 0, p[i+1:]
	}
	f.run += len(p)
}

func (f *Framer) endLine() {
	if f.skip {
		f.skip = false
		return
	}
	name, value, isField := bytes.Cut(f.line, []byte(":"))
	switch {
	case len(f.line) == 0:
		f.endEvent()
		f.name = ""
	case isField && isFieldName(name) && !f.fields:
		f.fields, f.body = true, nil
		f.endLine()
		return
	case string(name) == "data":
		value = bytes.TrimPrefix(value, []byte(" "))
		if len(f.data) > 0 && beginsJSON(value) && json.Valid(f.data) {
			f.endEvent() // there was no blank line
		}
		if len(f.data) > 0 {
			f.data = append(f.data, '\n')
		}
		f.data = append(f.data, value...)
	case string(name) == "event":
		f.name = string(bytes.TrimSpace(value))
	case !isFieldName(name):
		f.startPlain("\n")
	case !isField && !f.fields:
		f.body = append(append(f.body, f.line...), '\n') // the text of a plain response, or a sign of life
	}
	f.line, f.run = f.line[:0], 0
}

func isFieldName(name []byte) bool {
	for _, c := range name {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}

func beginsJSON(data []byte) bool { return len(data) > 0 && (data[0] == '{' || data[0] == '[') }

// endEvent passes the event on unless it is a sign of life. The text of an error counts.
func (f *Framer) endEvent() {
	data := bytes.TrimSpace(f.data)
	f.data = f.data[:0]
	switch {
	case len(data) == 0, string(data) == "{}", string(data) == "[]":
	case beginsJSON(data), f.name == "error":
		f.Event(f.name, data)
	}
}

// End says that the response has ended, and passes on what is left. It reports whether
// the response ended inside an event.
func (f *Framer) End() (inside bool) {
	if !f.plain && len(f.line) > 0 {
		f.endLine()
		f.body = bytes.TrimSuffix(f.body, []byte("\n"))
	}
	f.plain = f.plain || len(f.body) > 0
	body := bytes.TrimSpace(f.body)
	if !f.plain || len(body) == 0 {
		inside = beginsJSON(bytes.TrimSpace(f.data)) && !json.Valid(f.data) && !bytes.HasPrefix(f.data, []byte("[DONE]"))
		f.endEvent()
		return inside
	}
	list, ok := jsonList(body)
	if !ok {
		list = []json.RawMessage{body}
	}
	for _, element := range list {
		f.Event("", element)
	}
	return false
}

// jsonList returns the elements of a JSON array, or the lines of a text whose lines are JSON.
func jsonList(body []byte) (list []json.RawMessage, ok bool) {
	if body[0] == '[' && json.Unmarshal(body, &list) == nil {
		return list, true
	}
	if json.Valid(body) {
		return nil, false
	}
	for line := range bytes.FieldsFuncSeq(body, func(r rune) bool { return r == '\n' }) {
		if !json.Valid(line) {
			return nil, false
		}
		list = append(list, line)
	}
	return list, true
}

// ends is the words that say that a reply is not complete, in lower case; one that begins
// with "_" is the beginning of a word of the provider's term. Gateways pass on the terms of
// other wires, so that all are read on each. Any other reason, and none, is that of a
// complete reply (ruling G23).
var ends = []struct {
	finish Finish
	words  string // separated by bars
	source string
}{
	{Length, "length|token|limit|_max|_trunc|_cut|context_window|exceed|exhaust",
		"OpenAI, Anthropic, Gemini (MAX_TOKENS), Mistral (model_length), Zhipu (model_context_window_exceeded): can1357/oh-my-pi#683; truncated and the like: gateways"},
	{Filtered, "filter|safety|refus|recitation|blocklist|prohibited|spii|sensitive|guardrail|moderation|blocked",
		"Azure (content_filter), Gemini, Anthropic (refusal), Zhipu (sensitive), Bedrock (guardrail_intervened)"},
	{Other, "error|insufficient|abort|cancel|interrupt|_time|timeout|deadline|_lost|preempt|disconnect|malformed|unexpected_tool|too_many_tool|pause_turn|language|no_image|fail|incomplete|partial",
		"OpenRouter (error): damianvtran/local-operator#223; Zhipu (network_error); DeepSeek (insufficient_system_resource); vLLM (abort); Gemini; Anthropic (pause_turn)"},
}

// endOf returns why a reply is not complete, in lower case; empty if the reason does not say so.
func endOf(reason string) Finish {
	switch reason {
	case "eos_token", "stop_token": // TGI
		return ""
	}
	reason = "_" + notLetters.Replace(reason)
	for _, e := range ends {
		for word := range strings.SplitSeq(e.words, "|") {
			if strings.Contains(reason, word) {
				return e.finish
			}
		}
	}
	return ""
}

var notLetters = strings.NewReplacer(" ", "_", "-", "_", ".", "_", ":", "_", "/", "_")

// LaterReason returns which of two reasons counts that a response gives one after the other;
// both may be empty. One that says that the reply is not complete stays, because gateways end
// every stream with a reason of their own.
func LaterReason(before, reason string) string {
	if reason == "" || endOf(strings.ToLower(before)) != "" {
		return before
	}
	return reason
}

// FinishOf returns why a model stopped, from the provider's term, which may be that of
// another wire or empty, and from the reply's parts. An unusual term counts as the end of
// a reply only if that has a text, or calls whose arguments are complete.
func FinishOf(reason string, r Reply) Finish {
	reason = strings.ToLower(reason)
	if end := endOf(reason); end != "" {
		return end
	}
	calls := r.Calls()
	switch reason {
	case "stop", "end_turn", "stop_sequence", "tool_use", "tool_calls", "function_call", "completed":
	default:
		for _, c := range calls {
			if c.Args != "" && !json.Valid([]byte(c.Args)) {
				return Other
			}
		}
		if !r.HasContent() {
			return Other
		}
	}
	if len(calls) > 0 {
		return Calls
	}
	return Stop
}

// A character beyond the first 65536 is two escapes in JSON, its halves, and gateways cut
// texts between them: one event ends with \ud83d, the next one begins with \ude00. The
// decoder would silently replace each by U+FFFD. An [Exchange] replaces a half that stands
// alone by a mark, a character of a plane for private use; [Reply.Complete] joins the marks.
const firstMark = 0x100000

// escapes finds the escapes of a JSON text. Two halves in order are one.
var escapes = lazyregexp.New(`(?is)\\(?:u(?:d[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|[0-9a-f]{4})|.)`)

// markHalves returns a JSON text with a mark for each half that stands alone.
func markHalves(data []byte) []byte {
	if !bytes.Contains(data, []byte(`\ud`)) && !bytes.Contains(data, []byte(`\uD`)) {
		return data
	}
	return []byte(escapes.ReplaceAllStringFunc(string(data), func(escape string) string {
		n, err := strconv.ParseUint(escape[2:], 16, 16)
		if escape[1] != 'u' || err != nil || !utf16.IsSurrogate(rune(n)) {
			return escape
		}
		return string(firstMark + rune(n))
	}))
}

var marks = lazyregexp.New(`[\x{10D800}-\x{10DBFF}][\x{10DC00}-\x{10DFFF}]|[\x{10D800}-\x{10DFFF}]`)

// joinHalves joins the marks that stand together. One that stands alone becomes the escape
// that it was, and ok is false.
func joinHalves(s string) (joined string, ok bool) {
	if !strings.Contains(s, "\xf4\x8d") { // a mark's first bytes
		return s, true
	}
	ok = true
	joined = marks.ReplaceAllStringFunc(s, func(found string) string {
		r := []rune(found)
		if len(r) == 2 {
			return string(utf16.DecodeRune(r[0]-firstMark, r[1]-firstMark))
		}
		ok = false
		return fmt.Sprintf(`\u%04x`, r[0]-firstMark)
	})
	return joined, ok
}
