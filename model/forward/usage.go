package forward

import (
	"bytes"
	"encoding/json"

	"hone/model"
)

// meter finds the events in a response as it passes. It stores only the current
// event, or the entire response if that is not a stream.
type meter struct {
	read   model.Meter
	known  model.Metered
	events bool   // the response is an event stream
	line   []byte // the line so far, or without events the response so far
	data   []byte // the event's data so far
	off    bool   // nothing is generated, or an event was too long
}

// maxEvent limits an event, or a response without events, in bytes.
const maxEvent = 64 << 20

// feed adds the next bytes.
func (m *meter) feed(p []byte) {
	if m.off || len(m.line)+len(m.data)+len(p) > maxEvent {
		m.off = true
		return
	}
	if !m.events {
		m.line = append(m.line, p...)
		return
	}
	for {
		line, rest, ok := bytes.Cut(p, []byte("\n"))
		m.line = append(m.line, line...)
		if !ok {
			return
		}
		m.addLine(bytes.TrimSuffix(m.line, []byte("\r")))
		m.line, p = m.line[:0], rest
	}
}

// addLine adds a line of an event stream.
func (m *meter) addLine(line []byte) {
	if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		m.data = append(append(m.data, bytes.TrimPrefix(value, []byte(" "))...), '\n')
		return
	}
	if len(line) == 0 && len(m.data) > 0 {
		m.known = m.read(bytes.TrimSpace(m.data))
		m.data = m.data[:0]
	}
}

// end ends the response; the last event needs no blank line. A response without
// the content type of a stream may be a list of elements, or still a stream.
func (m *meter) end() {
	switch body := bytes.TrimSpace(m.line); {
	case m.off:
	case m.events:
		m.addLine(bytes.TrimSuffix(m.line, []byte("\r")))
		m.addLine(nil)
	case len(body) > 0 && body[0] == '[':
		var list []json.RawMessage
		// A body that is not a list reports no usage.
		_ = json.Unmarshal(body, &list)
		for _, element := range list {
			m.known = m.read(element)
		}
	case json.Valid(body):
		m.known = m.read(body)
	default:
		m.events, m.line = true, nil
		m.feed(append(body, '\n', '\n'))
	}
}

// result returns the usage if the response is complete and reports it, which a
// stream may do before its end; otherwise nil.
func (m *meter) result(atEnd bool) *model.Usage {
	if m.off || !atEnd && !m.known.Final {
		return nil
	}
	return m.known.Usage
}

// missingUsage describes why result returns nil for a complete response.
func (m *meter) missingUsage() string {
	if m.known.Reported {
		return "the response reports an implausible usage"
	}
	return "the response ended without reporting its usage"
}
