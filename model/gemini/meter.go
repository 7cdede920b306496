package gemini

import (
	"encoding/json"

	"hone/model"
)

// NewMeter returns the meter of one response, whatever the path of its request.
func NewMeter(string) model.Meter { return new(meter).read }

// meter is what a response has said so far.
type meter struct {
	usage json.RawMessage // that counts; nil if there is none
	size  int64           // of the texts and the calls
	ended bool            // there is a finish reason
	fault string
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
		known.Usage = tokens(m.usage, m.size)
	}
	return known
}

func (m *meter) add(c chunk) {
	m.ended = m.ended || c.Feedback != nil && c.Feedback.Reason != ""
	for _, candidate := range c.Candidates {
		m.ended = m.ended || candidate.Reason != ""
	}
	size := c.size()
	m.size += size
	m.usage = model.LaterUsage(m.usage, c.Usage, size)
}
