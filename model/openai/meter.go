package openai

import (
	"encoding/json"
	"strings"

	"hone/model"
)

// NewMeter returns the meter of one response to a request with this path, which
// tells the wire.
func NewMeter(path string) model.Meter {
	if strings.HasSuffix(path, "/responses") {
		return new(meter).readResponse
	}
	return new(meter).readChat
}

// meter is what a response has said so far.
type meter struct {
	usage  json.RawMessage // that counts; nil if there is none
	size   int64           // of the texts, the refusal and the calls
	ended  bool            // there is a finish reason
	closed bool            // no more events follow
	fault  string
}

func (m *meter) metered(in, out string) model.Metered {
	known := model.Metered{Reported: m.usage != nil, Fault: m.fault}
	if m.ended {
		known.Usage, known.Final = toUsage(m.usage, in, out, m.size), m.closed
	}
	return known
}

// meteredChunk is a chunk of a chat completion, or all of it. It and
// [meteredEvent] have only what a meter reads, so that a new form of anything
// else does not hide the usage.
type meteredChunk struct {
	Choices []struct {
		Reason  string         `json:"finish_reason"`
		Delta   meteredMessage `json:"delta"`
		Message meteredMessage `json:"message"`
	} `json:"choices"`
	Usage json.RawMessage `json:"usage"`
}

type meteredMessage struct {
	Content json.RawMessage `json:"content"`
	Refusal json.RawMessage `json:"refusal"`
	Calls   json.RawMessage `json:"tool_calls"`
}

func (m *meter) readChat(data []byte) model.Metered {
	var c meteredChunk
	switch {
	case string(data) == "[DONE]":
		m.closed = true
	case json.Unmarshal(data, &c) == nil:
		if fault := model.EventFault(data); fault != nil {
			m.fault = fault.Message
		}
		size := int64(0)
		for _, choice := range c.Choices {
			m.ended = m.ended || choice.Reason != ""
			size += choice.Delta.size() + choice.Message.size()
		}
		m.size += size
		m.usage = model.LaterUsage(m.usage, c.Usage, size)
	}
	return m.metered("prompt_tokens", "completion_tokens")
}

func (m meteredMessage) size() (n int64) {
	for _, raw := range []json.RawMessage{m.Content, m.Refusal} {
		if len(raw) > 0 && string(raw) != "null" && string(raw) != `""` {
			n += int64(len(raw))
		}
	}
	var calls []struct {
		Function struct {
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	}
	if len(m.Calls) > 0 && json.Unmarshal(m.Calls, &calls) != nil {
		n++
	}
	for _, c := range calls {
		n += int64(1 + len(c.Function.Arguments))
	}
	return n
}

type meteredEvent struct {
	Type     string          `json:"type"`
	Delta    json.RawMessage `json:"delta"`
	Response meteredResponse `json:"response"`
}

type meteredResponse struct {
	Status string            `json:"status"`
	Usage  json.RawMessage   `json:"usage"`
	Output []json.RawMessage `json:"output"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

func (m *meter) readResponse(data []byte) model.Metered {
	var e meteredEvent
	if json.Unmarshal(data, &e) == nil {
		m.addEvent(e, data)
	}
	return m.metered("input_tokens", "output_tokens")
}

func (m *meter) addEvent(e meteredEvent, data []byte) {
	if strings.HasSuffix(e.Type, ".delta") {
		m.size += int64(1 + len(e.Delta))
	}
	switch e.Type {
	case "response.completed", "response.incomplete", "response.failed", "response.done":
	case "error":
		m.fault = model.EventFault(data).Message
		return
	case "": // not an event but the response itself
		if json.Unmarshal(data, &e.Response) != nil {
			return
		}
	default:
		return
	}
	r := e.Response
	if r.Error != nil {
		m.fault = model.OneLine(r.Error.Message)
	}
	switch r.Status {
	case "completed", "incomplete", "failed":
		m.ended, m.closed = true, true
	}
	if m.size == 0 { // no deltas
		for _, item := range r.Output {
			m.size += int64(len(item))
		}
	}
	m.usage = model.LaterUsage(m.usage, r.Usage, 0)
}
