package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/openai/openai-go/v3"

	"hone/model"
)

// chatModel implements [model.Model] over chat completions.
type chatModel struct{ Config }

func (m chatModel) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	return m.attempt(ctx, m.request(req), func(x *model.Exchange, body []byte) (model.Reply, error) {
		x.Received = req.Received
		return m.read(x, req, body)
	})
}

func (m chatModel) read(x *model.Exchange, req model.Request, body []byte) (model.Reply, error) {
	service := sdk.NewChatCompletionService(m.options(x, body)...)
	stream := service.NewStreaming(x.Context(), sdk.ChatCompletionNewParams{})
	defer stream.Close()
	answer := chatAnswer{calls: callList{before: countCalls(req)}}
	for stream.Next() {
		answer.add(stream.Current(), req.Stream)
	}
	if err := stream.Err(); err != nil {
		return model.Reply{}, err
	}
	if answer.reason == "" && !answer.addPlain(x.Raw(), req.Stream) {
		return model.Reply{}, &model.Error{
			Kind: model.Cut, Message: "the stream ended without a finish reason", Usage: chatUsage(answer.usage, false),
		}
	}
	return answer.reply(), nil
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
}

type chatCall struct {
	ID       string           `json:"id"`
	Type     string           `json:"type"`
	Function chatCallFunction `json:"function"`
}

type chatCallFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func (m chatModel) request(req model.Request) chatRequest {
	r := chatRequest{
		Model: m.Name, Effort: req.Reasoning, CacheKey: m.cacheKey(req), Stream: true,
		StreamOptions: streamOptions{IncludeUsage: true},
	}
	// OpenAI's reasoning models reject max_tokens; most other servers support
	// only that.
	if m.isOpenAI() {
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

// userMessages puts results first: they must directly follow their calls.
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

// joined returns two texts as one. The second starts on a line of its own.
func joined(a, b string) string {
	if a != "" && !strings.HasSuffix(a, "\n") {
		a += "\n\n"
	}
	return a + b
}

// assistantMessage returns one message, or none if it would be empty.
func assistantMessage(parts []model.Part) []chatMessage {
	message := chatMessage{Role: "assistant"}
	if text := toReply(parts).Text(); text != "" {
		message.Content = &text
	}
	for _, c := range toReply(parts).Calls() {
		f := chatCallFunction{c.Name, validArgs(c.Args)}
		message.Calls = append(message.Calls, chatCall{ID: c.ID, Type: "function", Function: f})
	}
	if message.Content == nil && message.Calls == nil {
		return nil
	}
	return []chatMessage{message}
}

// validArgs returns args, or an empty object if args is not JSON: many servers
// decode the arguments of earlier calls for the model's template.
func validArgs(args string) string {
	if json.Valid([]byte(args)) {
		return args
	}
	return "{}"
}

func countCalls(req model.Request) int {
	n := 0
	for _, m := range req.Messages {
		n += len(toReply(m.Parts).Calls())
	}
	return n
}

// chatAnswer collects the chunks of a stream.
type chatAnswer struct {
	text    []byte
	refusal string
	calls   callList
	reason  string
	usage   json.RawMessage // the last one reported; nil if there is none
}

func (a *chatAnswer) add(chunk sdk.ChatCompletionChunk, stream func(string)) {
	if chunk.JSON.Usage.Valid() {
		a.usage = json.RawMessage(chunk.JSON.Usage.Raw())
	}
	for _, choice := range chunk.Choices {
		a.addText(choice.Delta.Content, stream)
		a.refusal += choice.Delta.Refusal
		for _, d := range choice.Delta.ToolCalls {
			a.calls.add(d.Index, d.ID, d.Function.Name, d.Function.Arguments)
		}
		a.reason = cmp.Or(choice.FinishReason, a.reason)
	}
}

func (a *chatAnswer) addText(text string, stream func(string)) {
	a.text = append(a.text, text...)
	if stream != nil && text != "" {
		stream(text)
	}
}

// addPlain reads the response of a server that does not stream. It reports
// whether raw is a complete one.
func (a *chatAnswer) addPlain(raw json.RawMessage, stream func(string)) bool {
	var completion sdk.ChatCompletion
	if json.Unmarshal(raw, &completion) != nil || len(completion.Choices) == 0 {
		return false
	}
	choice := completion.Choices[0]
	if completion.JSON.Usage.Valid() {
		a.usage = json.RawMessage(completion.JSON.Usage.Raw())
	}
	a.addText(choice.Message.Content, stream)
	a.refusal, a.reason = choice.Message.Refusal, choice.FinishReason
	for i, c := range choice.Message.ToolCalls {
		a.calls.add(int64(i), c.ID, c.Function.Name, c.Function.Arguments)
	}
	return a.reason != ""
}

func (a *chatAnswer) reply() model.Reply {
	r := model.Reply{Detail: a.reason}
	if len(a.text) > 0 {
		r.Parts = append(r.Parts, model.Part{Text: string(a.text)})
	}
	for _, c := range a.calls.calls() {
		r.Parts = append(r.Parts, model.Part{Call: &c})
	}
	r.Usage = chatUsage(a.usage, a.refusal != "" || r.HasContent())
	r.Finish = chatFinish(a.reason, len(a.calls.list) > 0)
	if a.refusal != "" {
		r.Finish, r.Detail = model.Filtered, "refusal: "+model.OneLine(a.refusal)
	}
	return r
}

func chatFinish(reason string, calls bool) model.Finish {
	switch reason {
	case "stop", "tool_calls", "function_call":
		if calls {
			return model.Calls
		}
		if reason == "stop" {
			return model.Stop
		}
	case "length":
		return model.Length
	case "content_filter":
		return model.Filtered
	}
	return model.Other
}

func chatUsage(raw json.RawMessage, content bool) *model.Usage {
	return toUsage(raw, "prompt_tokens", "completion_tokens", content)
}

// callList assembles calls that arrive in pieces.
type callList struct {
	before int // number of calls in earlier replies
	list   []pendingCall
}

type pendingCall struct {
	index    int64
	id, name string
	args     []byte
}

// add appends a piece to its call. Some servers give all calls the same index:
// there a new ID begins a new call, and so does a second name if there are no
// IDs either.
func (l *callList) add(index int64, id, name, args string) {
	var c *pendingCall
	for i := range l.list {
		if l.list[i].index == index {
			c = &l.list[i]
		}
	}
	if c == nil || id != "" && id != c.id || id == "" && c.id == "" && name != "" && json.Valid(c.args) {
		l.list = append(l.list, pendingCall{index: index, id: id})
		c = &l.list[len(l.list)-1]
	}
	c.name = cmp.Or(c.name, name)
	c.args = append(c.args, args...)
}

// calls returns the complete calls, each with an ID.
func (l *callList) calls() []model.Call {
	var calls []model.Call
	for i, c := range l.list {
		id := cmp.Or(c.id, callID(l.before+i+1))
		calls = append(calls, model.Call{ID: id, Name: c.name, Args: string(c.args)})
	}
	return calls
}

// callID returns the ID of a call to which its server gave none. The number
// counts the calls of the whole conversation, so that IDs are unique.
func callID(number int) string { return fmt.Sprintf("call_%d", number) }
