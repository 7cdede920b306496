package forward

import (
	"bytes"
	"encoding/json"

	"hone/model"
)

// meter reads the usage from a response as it passes. It stores only the current
// event, or the entire response if that is not a stream.
type meter struct {
	read   func(data []byte) // reads a response, an element of one, or an event's data
	known  *usage
	events bool   // the response is an event stream
	line   []byte // the line so far, or without events the response so far
	data   []byte // the event's data so far
	broken bool   // an event was too long
}

// usage is what a response has reported so far.
type usage struct {
	used     model.Usage
	reported bool   // used is known so far
	ended    bool   // the response has a finish reason
	closed   bool   // no more events can follow
	fault    string // the error inside the response; empty if none
}

// maxEvent limits an event, or a response without events, in bytes.
const maxEvent = 64 << 20

func newMeter(k kind, events bool) *meter {
	u := &usage{}
	read := map[kind]func([]byte){generate: u.gemini, messages: u.anthropic, chat: u.chat, responses: u.responses}[k]
	return &meter{read: read, known: u, events: events}
}

// feed adds the next bytes.
func (m *meter) feed(p []byte) {
	if m.broken || len(m.line)+len(m.data)+len(p) > maxEvent {
		m.broken = true
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
		m.read(bytes.TrimSpace(m.data))
		m.data = m.data[:0]
	}
}

// end ends the response; the last event needs no blank line. A response without
// the content type of a stream may be a list of elements, or still a stream.
func (m *meter) end() {
	switch body := bytes.TrimSpace(m.line); {
	case m.broken:
	case m.events:
		m.addLine(bytes.TrimSuffix(m.line, []byte("\r")))
		m.addLine(nil)
	case len(body) > 0 && body[0] == '[':
		var list []json.RawMessage
		// A body that is not a list reports no usage.
		_ = json.Unmarshal(body, &list)
		for _, element := range list {
			m.read(element)
		}
	case json.Valid(body):
		m.read(body)
	default:
		m.events, m.line = true, nil
		m.feed(append(body, '\n', '\n'))
	}
}

// result returns the usage if the response is complete and reports it, which a
// stream may do before its end; otherwise nil.
func (m *meter) result(atEnd bool) *model.Usage {
	u := m.known
	if m.broken || !u.reported || !u.ended || !atEnd && !u.closed || !plausible(u.used) {
		return nil
	}
	used := u.used
	return &used
}

// plausible reports whether the numbers can be token counts, whose sums do not
// overflow.
func plausible(u model.Usage) bool {
	for _, n := range []int64{u.Input, u.Output, u.Reasoning, u.CacheRead, u.CacheWrite} {
		if n < 0 || n > maxTokens {
			return false
		}
	}
	return true
}

func (u *usage) setFault(message string) { u.fault = model.OneLine(message) }

// geminiChunk is a response of Gemini, or an element of a streamed one.
type geminiChunk struct {
	Candidates []struct {
		Reason string `json:"finishReason"`
	} `json:"candidates"`
	Feedback struct {
		Block string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage *struct {
		Prompt     int64 `json:"promptTokenCount"`
		Cached     int64 `json:"cachedContentTokenCount"`
		ToolPrompt int64 `json:"toolUsePromptTokenCount"`
		Candidates int64 `json:"candidatesTokenCount"`
		Thoughts   int64 `json:"thoughtsTokenCount"`
	} `json:"usageMetadata"`
	Error *struct {
		Message string `json:"message"`
	} `json:"error"`
}

func (u *usage) gemini(data []byte) {
	var c geminiChunk
	if json.Unmarshal(data, &c) != nil {
		return
	}
	if c.Error != nil {
		u.setFault(c.Error.Message)
	}
	u.ended = u.ended || c.Feedback.Block != ""
	for _, candidate := range c.Candidates {
		u.ended = u.ended || candidate.Reason != ""
	}
	if n := c.Usage; n != nil {
		cached := min(n.Cached, n.Prompt)
		u.reported = true
		u.used = model.Usage{Input: n.Prompt - cached + n.ToolPrompt, CacheRead: cached,
			Output: n.Candidates + n.Thoughts, Reasoning: n.Thoughts}
	}
}

// anthropicUsage is an event's usage; a later event's fields replace earlier
// ones.
type anthropicUsage struct {
	Input      *int64 `json:"input_tokens"`
	Output     *int64 `json:"output_tokens"`
	CacheWrite *int64 `json:"cache_creation_input_tokens"`
	CacheRead  *int64 `json:"cache_read_input_tokens"`
	Details    struct {
		Thinking *int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

func (u *usage) anthropic(data []byte) {
	var e struct {
		Type    string `json:"type"`
		Message struct {
			Usage *anthropicUsage `json:"usage"`
		} `json:"message"`
		Usage *anthropicUsage `json:"usage"`
		Stop  string          `json:"stop_reason"`
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(data, &e) != nil {
		return
	}
	switch e.Type {
	case "message_start":
		u.add(e.Message.Usage)
		// Its output tokens are only those so far.
		u.reported = false
	case "message_delta":
		u.add(e.Usage)
	case "message_stop":
		u.ended, u.closed = true, true
	case "message":
		u.add(e.Usage)
		u.ended = e.Stop != ""
	case "error":
		u.setFault(e.Error.Message)
	}
}

func (u *usage) add(a *anthropicUsage) {
	if a == nil {
		return
	}
	u.reported = a.Output != nil
	for _, f := range []struct {
		to   *int64
		from *int64
	}{
		{&u.used.Input, a.Input}, {&u.used.Output, a.Output}, {&u.used.CacheRead, a.CacheRead},
		{&u.used.CacheWrite, a.CacheWrite}, {&u.used.Reasoning, a.Details.Thinking},
	} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	u.used.Reasoning = min(u.used.Reasoning, u.used.Output)
}

func (u *usage) chat(data []byte) {
	if string(data) == "[DONE]" {
		u.closed = true
		return
	}
	var c struct {
		Choices []struct {
			Reason string `json:"finish_reason"`
		} `json:"choices"`
		Usage *struct {
			Prompt     int64 `json:"prompt_tokens"`
			Completion int64 `json:"completion_tokens"`
			PromptSide struct {
				Cached int64 `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
			Details struct {
				Reasoning int64 `json:"reasoning_tokens"`
			} `json:"completion_tokens_details"`
		} `json:"usage"`
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(data, &c) != nil {
		return
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		message, _ := model.ErrorBody(data)
		u.setFault(message)
	}
	for _, choice := range c.Choices {
		u.ended = u.ended || choice.Reason != ""
	}
	if n := c.Usage; n != nil {
		u.setOpenAI(n.Prompt, n.PromptSide.Cached, n.Completion, n.Details.Reasoning)
	}
}

// setOpenAI sets OpenAI's numbers, where cached tokens are part of the input.
func (u *usage) setOpenAI(in, cached, out, reasoning int64) {
	u.reported = true
	u.used = model.Usage{Input: max(0, in-cached), CacheRead: cached, Output: out, Reasoning: reasoning}
}

// response is a response of the Responses API.
type response struct {
	Status string `json:"status"`
	Usage  *struct {
		Input     int64 `json:"input_tokens"`
		Output    int64 `json:"output_tokens"`
		InputSide struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"input_tokens_details"`
		Details struct {
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	} `json:"usage"`
	Error *struct {
		Message string `json:"message"`
	} `json:"error"`
}

func (u *usage) responses(data []byte) {
	var e struct {
		Type     string   `json:"type"`
		Message  string   `json:"message"`
		Response response `json:"response"`
		response
	}
	if json.Unmarshal(data, &e) != nil {
		return
	}
	r := e.response
	switch e.Type {
	case "response.completed", "response.incomplete", "response.failed":
		r = e.Response
	case "error":
		u.setFault(e.Message)
		return
	case "":
	default:
		return
	}
	if r.Error != nil {
		u.setFault(r.Error.Message)
	}
	switch r.Status {
	case "completed", "incomplete", "failed":
		u.ended, u.closed = true, true
	}
	if n := r.Usage; n != nil {
		u.setOpenAI(n.Input, n.InputSide.Cached, n.Output, n.Details.Reasoning)
	}
}
