package forward

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"hone/model"
)

// meter reads the usage from a response as it passes. It stores only the current
// event, or the entire response if that is not a stream.
type meter struct {
	read   func(data []byte) // reads a response, an element of one, or an event's data
	tokens func(model.Counts, bool) *model.Usage
	known  *usage
	events bool   // the response is an event stream
	line   []byte // the line so far, or without events the response so far
	data   []byte // the event's data so far
	broken bool   // an event was too long
}

// usage is what a response has reported so far.
type usage struct {
	counts   model.Counts
	reported bool   // the counts are known so far
	content  bool   // the response has a text or a call
	ended    bool   // the response has a finish reason
	closed   bool   // no more events can follow
	fault    string // the error inside the response; empty if none
}

// maxEvent limits an event, or a response without events, in bytes.
const maxEvent = 64 << 20

func newMeter(k kind, events bool) *meter {
	u := &usage{}
	read := map[kind]func([]byte){generate: u.gemini, messages: u.anthropic, chat: u.chat, responses: u.responses}[k]
	tokens := map[kind]func(model.Counts, bool) *model.Usage{
		generate: geminiTokens, messages: anthropicTokens, chat: chatTokens, responses: responsesTokens}[k]
	return &meter{read: read, tokens: tokens, known: u, events: events}
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
	if m.broken || !u.reported || !u.ended || !atEnd && !u.closed {
		return nil
	}
	return m.tokens(u.counts, u.content)
}

// lack describes why result returns nil for a complete response.
func (m *meter) lack() string {
	if m.known.reported {
		return "the response reports an implausible usage"
	}
	return "the response ended without reporting its usage"
}

// set replaces the counts by those in an event; nil and null report nothing.
func (u *usage) set(raw json.RawMessage) {
	if hasValue(raw) {
		u.reported, u.counts = true, model.ReadCounts(raw)
	}
}

// hasValue reports whether raw is present and not null.
func hasValue(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// hasContent reports whether one of the values is neither null nor empty.
func hasContent(values ...json.RawMessage) bool {
	return slices.ContainsFunc(values, func(raw json.RawMessage) bool {
		return hasValue(raw) && string(raw) != `""` && string(raw) != "[]"
	})
}

func (u *usage) setFault(message string) { u.fault = model.OneLine(message) }

// geminiChunk is a response of Gemini, or an element of a streamed one.
type geminiChunk struct {
	Candidates []struct {
		Reason  string          `json:"finishReason"`
		Content json.RawMessage `json:"content"`
	} `json:"candidates"`
	Feedback struct {
		Block string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage json.RawMessage `json:"usageMetadata"`
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
		u.content = u.content || hasGeminiContent(candidate.Content)
	}
	u.set(c.Usage)
}

// hasGeminiContent reports whether a candidate's content has a part that is not
// a thought.
func hasGeminiContent(raw json.RawMessage) bool {
	var content struct {
		Parts []struct {
			Text    json.RawMessage `json:"text"`
			Call    json.RawMessage `json:"functionCall"`
			Thought json.RawMessage `json:"thought"`
		} `json:"parts"`
	}
	// Content of another form is none.
	_ = json.Unmarshal(raw, &content)
	for _, part := range content.Parts {
		if string(part.Thought) != "true" && hasContent(part.Text, part.Call) {
			return true
		}
	}
	return false
}

// geminiTokens returns the usage in c; nil if it is not readable. The API omits
// counts of 0, and counts thoughts apart from content.
func geminiTokens(c model.Counts, content bool) *model.Usage {
	prompt := c.Required("promptTokenCount")
	cached := min(c.Optional("cachedContentTokenCount"), prompt)
	visible, thoughts := c.Optional("candidatesTokenCount"), c.Optional("thoughtsTokenCount")
	if content && visible == 0 {
		return nil
	}
	return c.Usage(model.Usage{Input: prompt - cached + c.Optional("toolUsePromptTokenCount"), CacheRead: cached,
		Output: visible + thoughts, Reasoning: thoughts}, content)
}

func (u *usage) anthropic(data []byte) {
	var e struct {
		Type    string `json:"type"`
		Message struct {
			Usage json.RawMessage `json:"usage"`
		} `json:"message"`
		Usage   json.RawMessage `json:"usage"`
		Content json.RawMessage `json:"content"`
		Stop    string          `json:"stop_reason"`
		Error   struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(data, &e) != nil {
		return
	}
	switch e.Type {
	case "message_start":
		// Its output tokens are only those so far.
		u.counts.Merge(e.Message.Usage)
		u.counts.Remove("output_tokens")
	case "content_block_delta":
		u.content = true
	case "message_delta":
		u.add(e.Usage)
	case "message_stop":
		u.ended, u.closed = true, true
	case "message":
		u.add(e.Usage)
		u.ended, u.content = e.Stop != "", hasContent(e.Content)
	case "error":
		u.setFault(e.Error.Message)
	}
}

// add adds the counts of an event, which replace earlier ones.
func (u *usage) add(raw json.RawMessage) {
	u.reported = u.reported || hasValue(raw)
	u.counts.Merge(raw)
}

// anthropicTokens returns the usage in c; nil if it is not readable.
func anthropicTokens(c model.Counts, content bool) *model.Usage {
	output := c.Required("output_tokens")
	return c.Usage(model.Usage{Input: c.Required("input_tokens"), Output: output,
		CacheRead: c.Optional("cache_read_input_tokens"), CacheWrite: c.Optional("cache_creation_input_tokens"),
		Reasoning: min(c.Optional("output_tokens_details", "thinking_tokens"), output)}, content)
}

// chatMessage is a message of a choice, or a piece of one.
type chatMessage struct {
	Content json.RawMessage `json:"content"`
	Refusal json.RawMessage `json:"refusal"`
	Calls   json.RawMessage `json:"tool_calls"`
}

func (m chatMessage) hasContent() bool { return hasContent(m.Content, m.Refusal, m.Calls) }

func (u *usage) chat(data []byte) {
	if string(data) == "[DONE]" {
		u.closed = true
		return
	}
	var c struct {
		Choices []struct {
			Reason  string      `json:"finish_reason"`
			Delta   chatMessage `json:"delta"`
			Message chatMessage `json:"message"`
		} `json:"choices"`
		Usage json.RawMessage `json:"usage"`
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
		u.content = u.content || choice.Delta.hasContent() || choice.Message.hasContent()
	}
	u.set(c.Usage)
}

func chatTokens(c model.Counts, content bool) *model.Usage {
	return openAITokens(c, "prompt_tokens", "completion_tokens", content)
}

func responsesTokens(c model.Counts, content bool) *model.Usage {
	return openAITokens(c, "input_tokens", "output_tokens", content)
}

// openAITokens returns the usage in c, where in and out are the names of the two
// totals; nil if it is not readable. Cached tokens are part of the input.
func openAITokens(c model.Counts, in, out string, content bool) *model.Usage {
	cached := c.Optional(in+"_details", "cached_tokens")
	return c.Usage(model.Usage{Input: max(0, c.Required(in)-cached), CacheRead: cached,
		Output: c.Required(out), Reasoning: c.Optional(out+"_details", "reasoning_tokens")}, content)
}

// response is a response of the Responses API.
type response struct {
	Status string          `json:"status"`
	Usage  json.RawMessage `json:"usage"`
	Output json.RawMessage `json:"output"`
	Error  *struct {
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
	u.content = u.content || strings.HasSuffix(e.Type, ".delta")
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
	u.content = u.content || hasContent(r.Output)
	u.set(r.Usage)
}
