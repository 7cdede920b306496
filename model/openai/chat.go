package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"

	sdk "github.com/openai/openai-go/v3"

	"hone/internal/lazyregexp"
	"hone/model"
)

// chatModel implements [model.Model] over chat completions.
type chatModel struct {
	server
	// completion means that the limit of the output is max_completion_tokens. OpenAI's reasoning
	// models reject max_tokens, also on Azure and behind gateways; most other servers know only that.
	completion *atomic.Bool
}

// Generate sends a request again whose max_tokens was rejected, which costs nothing.
func (m chatModel) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	asked := m.completion.Load()
	reply, err := m.generate(ctx, req)
	if e := (*model.Error)(nil); asked || !errors.As(err, &e) || !e.Rejected() || !useCompletion.MatchString(e.Message) {
		return reply, err
	}
	m.completion.Store(true)
	return m.generate(ctx, req)
}

// useCompletion finds: Unsupported parameter: 'max_tokens' is not supported with this model. Use
// 'max_completion_tokens' instead. (learn.microsoft.com/azure/ai-foundry/openai/how-to/reasoning)
var useCompletion = lazyregexp.New(`(?i)\buse\W+max_completion_tokens`)

func (m chatModel) generate(ctx context.Context, req model.Request) (model.Reply, error) {
	answer := chatAnswer{onText: req.Stream, tools: toolNames(req.Tools)}
	return m.Config.Generate(ctx, req, "chat/completions", m.request(req), &answer)
}

// chatRequest is a request's body. The fields that change from call to call
// come last, so that a growing conversation keeps its prefix.
type chatRequest struct {
	Model         string          `json:"model"`
	Effort        model.Reasoning `json:"reasoning_effort,omitempty"`
	Tools         []chatTool      `json:"tools,omitempty"`
	Messages      []chatMessage   `json:"messages"`
	MaxCompletion int64           `json:"max_completion_tokens,omitempty"`
	MaxTokens     int64           `json:"max_tokens,omitempty"`
	CacheKey      string          `json:"prompt_cache_key,omitempty"`
	Stream        bool            `json:"stream"`
	StreamOptions streamOptions   `json:"stream_options"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type chatTool struct {
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

// chatMessage is a message. Its content is null if there are only calls. It is never a
// list of texts: this wire has no cache marks, and some compatible servers reject lists.
type chatMessage struct {
	Role    string     `json:"role"`
	Content *string    `json:"content"`
	Calls   []chatCall `json:"tool_calls,omitempty"`
	CallID  string     `json:"tool_call_id,omitempty"`
	chatReasoning
}

// chatReasoning is what servers want back of a message with calls, as they sent it: DeepSeek
// and Kimi the content, OpenRouter the details. It is the data of an opaque part before all others.
type chatReasoning struct {
	Content string            `json:"reasoning_content,omitempty"`
	Details []json.RawMessage `json:"reasoning_details,omitempty"`
}

// chatWire names the opaque parts of this wire.
const chatWire = "openai-chat"

type chatCall struct {
	ID       string           `json:"id"`
	Type     string           `json:"type"`
	Function chatCallFunction `json:"function"`
	chatExtra
}

// chatExtra is what servers want back of a call (Google's thought signatures). It is the data of
// an opaque part before the call.
type chatExtra struct {
	Content json.RawMessage `json:"extra_content,omitempty"`
}

type chatCallFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func (m chatModel) request(req model.Request) chatRequest {
	r := chatRequest{
		Model: m.Name, Effort: req.Reasoning, CacheKey: cacheKey(m.Config, req), Stream: true,
		StreamOptions: streamOptions{IncludeUsage: true},
	}
	if m.completion.Load() {
		r.MaxCompletion = req.MaxOutput
	} else {
		r.MaxTokens = req.MaxOutput
	}
	for _, s := range req.Tools {
		f := chatFunction{s.Name, s.Description, schema(s)}
		r.Tools = append(r.Tools, chatTool{Type: "function", Function: f})
	}
	if req.System != "" {
		r.Messages = append(r.Messages, chatMessage{Role: "system", Content: &req.System})
	}
	for _, message := range req.Messages {
		if message.Role == model.Assistant {
			r.Messages = append(r.Messages, assistantMessage(message.Parts)...)
		} else {
			r.Messages = append(r.Messages, userMessages(message.Parts)...)
		}
	}
	return r
}

// Results come first: they must directly follow their calls.
func userMessages(parts []model.Part) []chatMessage {
	var messages []chatMessage
	text := ""
	for _, p := range parts {
		switch {
		case p.Result != nil:
			messages = append(messages, chatMessage{Role: "tool", Content: &p.Result.Text, CallID: p.Result.ID})
		case p.Text != "":
			text = joined(text, p.Text)
		}
	}
	if text == "" {
		return messages
	}
	return append(messages, chatMessage{Role: "user", Content: &text})
}

// The second text starts on a line of its own.
func joined(a, b string) string {
	if a != "" && !strings.HasSuffix(a, "\n") {
		a += "\n\n"
	}
	return a + b
}

// There is no message if it would be empty.
func assistantMessage(parts []model.Part) []chatMessage {
	message := chatMessage{Role: "assistant"}
	if text := (model.Reply{Parts: parts}).Text(); text != "" {
		message.Content = &text
	}
	var extra chatExtra
	for _, p := range parts {
		switch {
		case p.Opaque != nil && p.Opaque.Wire == chatWire:
			_ = json.Unmarshal(p.Opaque.Data, &message.chatReasoning)
			_ = json.Unmarshal(p.Opaque.Data, &extra)
		case p.Call != nil:
			message.Calls = append(message.Calls, sentCall(*p.Call, extra))
			extra = chatExtra{}
		}
	}
	if message.Content == nil && message.Calls == nil {
		return nil
	}
	return []chatMessage{message}
}

func sentCall(c model.Call, extra chatExtra) chatCall {
	if !json.Valid([]byte(c.Args)) {
		c.Args = "{}" // many servers decode the arguments of earlier calls for the model's template
	}
	return chatCall{ID: c.ID, Type: "function", Function: chatCallFunction{c.Name, c.Args}, chatExtra: extra}
}

// chatAnswer collects the chunks of a stream, or a response that is not a stream.
type chatAnswer struct {
	onText    func(string)
	text      []byte
	refusal   string
	reasoning []byte
	details   []json.RawMessage
	tools     map[string]bool
	calls     []pendingCall
	reason    string
	usage     json.RawMessage // that counts; nil if there is none
	settled   bool            // the reason and the usage have arrived
}

// Add implements [model.Reader].
func (a *chatAnswer) Add(data []byte) (settled bool, err error) {
	var chunk sdk.ChatCompletionChunk
	if err := json.Unmarshal(data, &chunk); err != nil {
		return a.settled, err
	}
	size := 0
	for _, choice := range chunk.Choices {
		size += len(choice.Delta.Content) + len(choice.Delta.ToolCalls)
		if choice.Index > 0 {
			continue // a proxy asked for more answers than one
		}
		a.addText(choice.Delta.Content)
		a.refusal += choice.Delta.Refusal
		a.addReasoning(choice.Delta.RawJSON())
		for _, d := range choice.Delta.ToolCalls {
			a.addCall(d.Index, d.ID, d.Function.Name, d.Function.Arguments, d.RawJSON())
		}
		a.reason = model.LaterReason(a.reason, choice.FinishReason)
	}
	a.usage = model.LaterUsage(a.usage, json.RawMessage(chunk.JSON.Usage.Raw()), int64(size))
	if len(chunk.Choices) == 0 || !chunk.Choices[0].JSON.Delta.Valid() {
		err = a.addPlain(data)
	}
	a.settled = a.settled || a.reason != "" && chunk.JSON.Usage.Valid()
	return a.settled, err
}

// Some servers do not stream.
func (a *chatAnswer) addPlain(data []byte) error {
	var completion sdk.ChatCompletion
	if err := json.Unmarshal(data, &completion); err != nil || len(completion.Choices) == 0 {
		return err
	}
	message := completion.Choices[0].Message
	a.addText(message.Content)
	a.refusal += message.Refusal
	a.addReasoning(message.RawJSON())
	for i, c := range message.ToolCalls {
		a.addCall(int64(i), c.ID, c.Function.Name, c.Function.Arguments, c.RawJSON())
	}
	return nil
}

// Most messages have none of these fields.
func (a *chatAnswer) addReasoning(message string) {
	if !strings.Contains(message, "reasoning_") {
		return
	}
	var r struct {
		Content json.RawMessage   `json:"reasoning_content"`
		Details []json.RawMessage `json:"reasoning_details"`
	}
	_ = json.Unmarshal([]byte(message), &r)
	var text string
	if json.Unmarshal(r.Content, &text) == nil {
		a.reasoning = append(a.reasoning, text...)
	}
	for _, d := range r.Details {
		if n := len(a.details); n > 0 {
			if joined := joinDetails(a.details[n-1], d); joined != nil {
				a.details[n-1] = joined
				continue
			}
		}
		a.details = append(a.details, d)
	}
}

// joinDetails returns two pieces of the same text as one; nil if they are not. A piece has a few
// letters of text and a hundred bytes around it.
func joinDetails(a, b json.RawMessage) json.RawMessage {
	var first, second map[string]any
	if json.Unmarshal(a, &first) != nil || json.Unmarshal(b, &second) != nil ||
		first["type"] != second["type"] || first["index"] != second["index"] {
		return nil
	}
	before, isText := first["text"].(string)
	after, ok := second["text"].(string)
	if !isText || !ok {
		return nil
	}
	for name, value := range second {
		if value != nil {
			first[name] = value
		}
	}
	first["text"] = before + after
	joined, _ := model.EncodeJSON(first)
	return joined
}

// The journal encodes data the same way, so that the bytes never change.
func chatOpaque(data any) model.Part {
	raw, _ := json.Marshal(data) // cannot fail for strings and JSON
	return model.Part{Opaque: &model.Opaque{Wire: chatWire, Data: raw}}
}

func (a *chatAnswer) addText(text string) {
	a.text = append(a.text, text...)
	if a.onText != nil && text != "" {
		a.onText(text)
	}
}

// Usage implements [model.Reader].
func (a *chatAnswer) Usage() *model.Usage { return chatUsage(a.usage, 0) }

// Reply implements [model.Reader].
func (a *chatAnswer) Reply(done bool) (model.Reply, error) {
	r := model.Reply{Detail: a.reason}
	// DeepSeek's older models reject it in a message without calls.
	if len(a.calls) > 0 && len(a.reasoning)+len(a.details) > 0 {
		r.Parts = append(r.Parts, chatOpaque(chatReasoning{string(a.reasoning), a.details}))
	}
	if len(a.text) > 0 {
		r.Parts = append(r.Parts, model.Part{Text: string(a.text)})
	}
	for _, c := range a.calls {
		if c.extra.Content != nil {
			r.Parts = append(r.Parts, chatOpaque(c.extra))
		}
		r.Parts = append(r.Parts, model.Part{Call: &model.Call{ID: c.id, Name: c.name, Args: string(c.args)}})
	}
	if a.reason == "" && !(done && r.HasContent()) {
		return r, &model.Error{Kind: model.Cut, Message: "the stream ended without a finish reason"}
	}
	r.Usage = chatUsage(a.usage, r.Size()+int64(len(a.refusal)))
	r.Finish = model.FinishOf(a.reason, r)
	if a.refusal != "" {
		r.Finish, r.Detail = model.Filtered, "refusal: "+model.OneLine(a.refusal)
	}
	return r, nil
}

func chatUsage(raw json.RawMessage, size int64) *model.Usage {
	return toUsage(raw, "prompt_tokens", "completion_tokens", size)
}

// pendingCall is a call that arrives in pieces.
type pendingCall struct {
	index    int64
	id, name string
	args     []byte
	extra    chatExtra
}

// A piece belongs to the last call with its index. Some servers give all calls the same index, or no IDs, or another ID to each
// piece.
func (a *chatAnswer) addCall(index int64, id, name, args, raw string) {
	var c *pendingCall
	for i := range a.calls {
		if a.calls[i].index == index || name == "" && id != "" && a.calls[i].id == id {
			c = &a.calls[i]
		}
	}
	if c == nil && name == "" && len(a.calls) > 0 {
		c = &a.calls[len(a.calls)-1]
	}
	if c == nil || a.begins(c, id, name) {
		a.calls = append(a.calls, pendingCall{index: index})
		c = &a.calls[len(a.calls)-1]
	}
	c.id = cmp.Or(c.id, id)
	switch {
	case name == c.name: // repeated
	case strings.HasPrefix(name, c.name): // all of it so far
		c.name = name
	case len(c.args) == 0 || !a.tools[c.name]:
		c.name += name
	}
	c.args = append(c.args, args...)
	if strings.Contains(raw, "extra_content") {
		_ = json.Unmarshal([]byte(raw), &c.extra)
	}
}

// A piece begins another call only if it has a name, and not if that continues or repeats the name of c, whose arguments are
// still missing.
func (a *chatAnswer) begins(c *pendingCall, id, name string) bool {
	switch {
	case name == "", id != "" && id == c.id:
		return false
	case len(c.args) > 0:
		return json.Valid(c.args)
	}
	return name != c.name && a.tools[c.name] && !a.tools[c.name+name]
}

func toolNames(tools []model.Spec) map[string]bool {
	names := map[string]bool{}
	for _, t := range tools {
		names[t.Name] = true
	}
	return names
}
