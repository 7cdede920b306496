package openai

import (
	"encoding/json"
	"slices"
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
	usage   json.RawMessage // the last one reported; nil if there is none
	content bool            // there is a text, a refusal or a call
	ended   bool            // there is a finish reason
	closed  bool            // no more events follow
	fault   string
}

func (m *meter) metered(in, out string) model.Metered {
	known := model.Metered{Reported: m.usage != nil, Fault: m.fault}
	if m.ended {
		known.Usage, known.Final = toUsage(m.usage, in, out, m.content), m.closed
	}
	return known
}

func (m *meter) setUsage(raw json.RawMessage) {
	if isSet(raw) {
		m.usage = raw
	}
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
		m.addChunk(c, data)
	}
	return m.metered("prompt_tokens", "completion_tokens")
}

func (m *meter) addChunk(c meteredChunk, data []byte) {
	if fault := model.EventFault(data); fault != nil {
		m.fault = fault.Message
	}
	for _, choice := range c.Choices {
		m.ended = m.ended || choice.Reason != ""
		m.content = m.content || choice.Delta.hasContent() || choice.Message.hasContent()
	}
	m.setUsage(c.Usage)
}

func (m meteredMessage) hasContent() bool {
	return slices.ContainsFunc([]json.RawMessage{m.Content, m.Refusal, m.Calls}, func(raw json.RawMessage) bool {
		return isSet(raw) && string(raw) != `""` && string(raw) != "[]"
	})
}

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

type meteredEvent struct {
	Type     string          `json:"type"`
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
	m.content = m.content || strings.HasSuffix(e.Type, ".delta")
	switch e.Type {
	case "response.completed", "response.incomplete", "response.failed":
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
	m.content = m.content || len(r.Output) > 0
	m.setUsage(r.Usage)
}
