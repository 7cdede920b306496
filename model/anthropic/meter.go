package anthropic

import (
	"encoding/json"

	"hone/model"
)

// NewMeter returns the meter of one response, whatever the path of its request.
func NewMeter(string) model.Meter { return new(meter).read }

// meter is what a response has said so far.
type meter struct {
	usage model.Counts // of all events
	size  int64        // of the text, the thoughts and the calls
	ended bool         // there is a finish reason
	known model.Metered
}

// metered is an event, or a message that is not a stream. It has only what a
// meter reads, so that a new form of anything else does not hide the usage.
type metered struct {
	Type    string `json:"type"`
	Message struct {
		Usage json.RawMessage `json:"usage"`
	} `json:"message"`
	Delta struct {
		Text     json.RawMessage `json:"text"`
		Thinking json.RawMessage `json:"thinking"`
		Input    json.RawMessage `json:"partial_json"`
	} `json:"delta"`
	Usage   json.RawMessage   `json:"usage"`
	Content []json.RawMessage `json:"content"`
	Stop    string            `json:"stop_reason"`
}

func (m *meter) read(data []byte) model.Metered {
	var e metered
	if json.Unmarshal(data, &e) == nil {
		m.add(e)
	}
	if fault := model.EventFault(data); fault != nil {
		m.known.Fault = fault.Message
	}
	m.known.Usage = nil
	if m.known.Reported && m.ended {
		m.known.Usage = tokens(m.usage, m.size)
	}
	return m.known
}

func (m *meter) add(e metered) {
	switch e.Type {
	case "message_start":
		// Its output tokens are only those so far.
		m.usage.Merge(e.Message.Usage)
		m.usage.Remove("output_tokens")
	case "content_block_delta":
		m.size += int64(1 + len(e.Delta.Text) + len(e.Delta.Thinking) + len(e.Delta.Input))
	case "message_delta":
		m.addUsage(e.Usage)
	case "message_stop":
		m.ended, m.known.Final = true, true
	case "message":
		m.addUsage(e.Usage)
		m.ended = e.Stop != ""
		for _, block := range e.Content {
			m.size += int64(len(block))
		}
	}
}

func (m *meter) addUsage(raw json.RawMessage) {
	m.known.Reported = m.known.Reported || len(raw) > 0 && string(raw) != "null"
	m.usage.Merge(raw)
}
