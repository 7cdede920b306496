package model

import (
	"bytes"
	"encoding/json"
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
