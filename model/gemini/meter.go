package gemini

import (
	"encoding/json"
	"slices"

	"hone/model"
)

// NewMeter returns the meter of one response, whatever the path of its request.
func NewMeter(string) model.Meter { return new(meter).read }

// meter is what a response has said so far.
type meter struct {
	usage   json.RawMessage // the last one reported; nil if there is none
	content bool            // there is a text or a call
	ended   bool            // there is a finish reason
	fault   string
}

func (m *meter) read(data []byte) model.Metered {
	var c chunk
	if json.Unmarshal(data, &c) == nil {
		m.add(c)
	}
	if fault := model.EventFault(data); fault != nil {
		m.fault = fault.Message
	}
	known := model.Metered{Reported: m.usage != nil, Fault: m.fault}
	if m.ended {
		known.Usage = tokens(m.usage, m.content)
	}
	return known
}

func (m *meter) add(c chunk) {
	m.ended = m.ended || c.Feedback != nil && c.Feedback.Reason != ""
	for _, candidate := range c.Candidates {
		m.ended = m.ended || candidate.Reason != ""
		m.content = m.content || slices.ContainsFunc(candidate.Content.Parts, isContent)
	}
	if len(c.Usage) > 0 && string(c.Usage) != "null" {
		m.usage = c.Usage
	}
}

// A part that cannot be read may be content.
func isContent(raw json.RawMessage) bool {
	var p part
	return json.Unmarshal(raw, &p) != nil || !p.Thought && (p.Call != nil || p.Text != nil && *p.Text != "")
}
