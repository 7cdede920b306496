package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3/responses"

	"hone/model"
)

// opaqueWire names the opaque parts that hold items of the Responses API.
const opaqueWire = "openai-responses"

// responsesModel implements [model.Model] over the Responses API.
type responsesModel struct{ server }

func (m responsesModel) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	answer := responseAnswer{onText: req.Stream, limit: req.MaxOutput}
	return m.Config.Generate(ctx, req, "responses", m.request(req), &answer)
}

// responseRequest is a request's body. The fields that change from call to
// call come last, so that a growing conversation keeps its prefix.
type responseRequest struct {
	Model        string          `json:"model"`
	Instructions string          `json:"instructions,omitempty"`
	Reasoning    *responseEffort `json:"reasoning,omitempty"`
	Tools        []responseTool  `json:"tools,omitempty"`
	Store        bool            `json:"store"`
	Include      []string        `json:"include,omitempty"`
	Input        []any           `json:"input"`
	MaxOutput    int64           `json:"max_output_tokens,omitempty"`
	CacheKey     string          `json:"prompt_cache_key,omitempty"`
	Stream       bool            `json:"stream"`
}

type responseEffort struct {
	Effort model.Reasoning `json:"effort"`
}

type responseTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

type messageItem struct {
	Type    string     `json:"type"`
	Role    model.Role `json:"role"`
	Phase   string     `json:"phase,omitempty"`
	Content []itemText `json:"content"`
}

type callItem struct {
	Type      string `json:"type"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type resultItem struct {
	Type   string `json:"type"`
	CallID string `json:"call_id"`
	Output string `json:"output"`
}

func (m responsesModel) request(req model.Request) responseRequest {
	r := responseRequest{
		Model: m.Name, Instructions: req.System, MaxOutput: req.MaxOutput, CacheKey: cacheKey(m.Config, req), Stream: true,
		Input: []any{},
	}
	if hasReasoning(m.Name) {
		r.Include = []string{"reasoning.encrypted_content"}
	}
	if req.Reasoning != "" {
		r.Reasoning = &responseEffort{req.Reasoning}
	}
	for _, s := range req.Tools {
		r.Tools = append(r.Tools, responseTool{
			Type: "function", Name: s.Name, Description: s.Description, Parameters: schema(s),
		})
	}
	for _, message := range req.Messages {
		r.Input = append(r.Input, items(message)...)
	}
	return r
}

// The model families that do not reason reject a request for encrypted reasoning.
func hasReasoning(name string) bool {
	for _, family := range []string{"gpt-3.5", "gpt-4", "chatgpt-4o"} {
		if strings.HasPrefix(name, family) {
			return false
		}
	}
	return true
}

type itemText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// Adjacent texts form one item. An opaque part with a mark belongs to the text item after it.
func items(m model.Message) []any {
	var list []any
	var text *messageItem
	phase := ""
	for _, p := range m.Parts {
		switch {
		case p.Opaque != nil:
			if p.Opaque.Wire != opaqueWire {
				continue
			}
			var m mark
			if json.Unmarshal(p.Opaque.Data, &m) == nil && m.Type == "message" {
				phase, text = m.Phase, nil
				continue
			}
			list, text = append(list, p.Opaque.Data), nil
		case p.Call != nil:
			args := cmp.Or(p.Call.Args, "{}")
			list, text = append(list, callItem{"function_call", p.Call.ID, p.Call.Name, args}), nil
		case p.Result != nil:
			list, text = append(list, resultItem{"function_call_output", p.Result.ID, p.Result.Text}), nil
		case p.Text != "":
			if text == nil {
				text = &messageItem{Type: "message", Role: m.Role, Phase: phase}
				list, phase = append(list, text), ""
			}
			text.Content = append(text.Content, itemText{textType(m.Role), p.Text})
		}
	}
	return list
}

func textType(r model.Role) string {
	if r == model.Assistant {
		return "output_text"
	}
	return "input_text"
}

// mark holds what is stored of a message item besides its text: newer models
// expect its phase (commentary or final answer) back.
type mark struct {
	Type  string `json:"type"`
	Phase string `json:"phase"`
}

// responseAnswer collects the events of a stream, or a response that is not a stream.
type responseAnswer struct {
	onText func(string)
	limit  int64 // of the output; 0 means none
	items  []*streamedItem
	end    *responses.Response
}

// streamedItem is an item of the output as its events tell it.
type streamedItem struct {
	responses.ResponseOutputItemUnion
	index int64
	text  []byte // of its deltas
	args  []byte
	done  bool // all of it has arrived
}

// Add implements [model.Reader].
func (a *responseAnswer) Add(data []byte) (settled bool, err error) {
	var event responses.ResponseStreamEventUnion
	if err := json.Unmarshal(data, &event); err != nil {
		return a.end != nil, err
	}
	switch event.Type {
	case "response.output_text.delta":
		i := a.item(event, "message")
		i.text = append(i.text, event.Delta...)
		a.stream(event.Delta)
	case "response.function_call_arguments.delta":
		i := a.item(event, "function_call")
		i.args = append(i.args, event.Delta...)
	case "response.function_call_arguments.done":
		a.item(event, "function_call").args = []byte(event.Arguments)
	case "response.output_item.added":
		a.item(event, event.Item.Type).ResponseOutputItemUnion = event.Item
	case "response.output_item.done":
		i := a.item(event, event.Item.Type)
		i.ResponseOutputItemUnion, i.done = event.Item, true
	case "response.completed", "response.incomplete", "response.failed", "response.done":
		a.end = &event.Response
		status := strings.TrimPrefix(strings.Replace(event.Type, "done", "completed", 1), "response.")
		a.end.Status = cmp.Or(a.end.Status, responses.ResponseStatus(status))
	case "":
		var r responses.Response
		if json.Unmarshal(data, &r) == nil && r.Status != "" {
			a.end = &r
			a.stream(r.OutputText())
		}
	}
	if a.end != nil {
		return true, io.EOF
	}
	return false, nil
}

// item returns the item of an event. Some servers give the same item another ID in each event,
// others give no index.
func (a *responseAnswer) item(e responses.ResponseStreamEventUnion, kind string) *streamedItem {
	id := cmp.Or(e.ItemID, e.Item.ID)
	for _, i := range slices.Backward(a.items) {
		if id != "" && i.ID == id || i.index == e.OutputIndex && !i.done && i.Type == kind {
			return i
		}
	}
	i := &streamedItem{index: e.OutputIndex}
	i.Type, i.ID = kind, id
	a.items = append(a.items, i)
	return i
}

func (a *responseAnswer) stream(text string) {
	if a.onText != nil && text != "" {
		a.onText(text)
	}
}

// Usage implements [model.Reader]. Only the last event reports it.
func (a *responseAnswer) Usage() *model.Usage { return nil }

// Reply implements [model.Reader].
func (a *responseAnswer) Reply(done bool) (model.Reply, error) {
	if a.end == nil && done && len(a.items) > 0 {
		a.end = &responses.Response{Status: responses.ResponseStatusCompleted}
	}
	if a.end == nil {
		return model.Reply{}, &model.Error{Kind: model.Cut, Message: "the stream ended before its last event"}
	}
	if a.end.Status == responses.ResponseStatusFailed {
		err := model.StatusError(0, nil, a.end.Error.Message, string(a.end.Error.Code))
		err.Usage, err.Streamed = responseUsage(a.end, 0), true
		return model.Reply{}, err
	}
	r := model.Reply{}
	refusal := ""
	for _, item := range a.output() {
		parts, refused := item.parts()
		r.Parts, refusal = append(r.Parts, parts...), refusal+refused
	}
	r.Usage = responseUsage(a.end, r.Size()+int64(len(refusal)))
	r.Detail = model.LaterReason(a.end.IncompleteDetails.Reason, string(a.end.Status))
	r.Finish = model.FinishOf(r.Detail, r)
	// Ollama (0.17) calls a reply completed that it cut off at the limit.
	if a.limit > 0 && r.Usage != nil && r.Usage.Output >= a.limit {
		r.Finish = model.Length
	}
	if refusal != "" {
		r.Finish, r.Detail = model.Filtered, "refusal: "+model.OneLine(refusal)
	}
	return r, nil
}

// output returns the items of the last event, or, if some of those that were streamed are
// missing there, the streamed ones, and what only the last event has.
func (a *responseAnswer) output() []*streamedItem {
	var last, more []*streamedItem
	for _, item := range a.end.Output {
		i := &streamedItem{ResponseOutputItemUnion: item, done: true}
		last = append(last, i)
		if !i.isIn(a.items) {
			more = append(more, i)
		}
	}
	for _, i := range a.items {
		if !i.isIn(last) {
			return append(slices.Clone(a.items), more...)
		}
	}
	return last
}

// isIn reports whether a list has the item. A call is known by its ID or by what it says; of other items there
// is one form in each list, so that a text with another ID does not count twice.
func (i *streamedItem) isIn(list []*streamedItem) bool {
	return slices.ContainsFunc(list, func(j *streamedItem) bool {
		switch {
		case i.Type != j.Type:
			return false
		case i.Type != "function_call":
			return true
		}
		return i.arguments() == j.arguments() && i.Name == j.Name || i.CallID == j.CallID && j.arguments() != ""
	})
}

func (i *streamedItem) parts() (parts []model.Part, refusal string) {
	switch i.Type {
	case "message":
		parts, refusal = messageParts(i.ResponseOutputItemUnion)
		if len(parts) == 0 && refusal == "" && len(i.text) > 0 {
			parts = []model.Part{{Text: string(i.text)}}
		}
	case "function_call":
		parts = []model.Part{{Call: &model.Call{ID: i.CallID, Name: i.Name, Args: i.arguments()}}}
	default:
		if i.done {
			parts = []model.Part{opaquePart(json.RawMessage(i.RawJSON()))}
		}
	}
	return parts, refusal
}

// Some servers send an object instead of its text, or the arguments only in events of their own.
func (i *streamedItem) arguments() string {
	var item struct {
		Arguments json.RawMessage `json:"arguments"`
	}
	_ = json.Unmarshal([]byte(i.RawJSON()), &item)
	if bytes.HasPrefix(item.Arguments, []byte("{")) {
		return string(item.Arguments)
	}
	return cmp.Or(i.Arguments.OfString, string(i.args))
}

func opaquePart(data json.RawMessage) model.Part {
	return model.Part{Opaque: &model.Opaque{Wire: opaqueWire, Data: data}}
}

// A mark comes first if the item has a phase.
func messageParts(item responses.ResponseOutputItemUnion) (parts []model.Part, refusal string) {
	for _, content := range item.Content {
		if content.Text != "" {
			parts = append(parts, model.Part{Text: content.Text})
		}
		refusal += content.Refusal
	}
	if item.Phase == "" || len(parts) == 0 {
		return parts, refusal
	}
	data, err := model.EncodeJSON(mark{"message", string(item.Phase)})
	if err != nil {
		return parts, refusal
	}
	return append([]model.Part{opaquePart(data)}, parts...), refusal
}

func responseUsage(r *responses.Response, size int64) *model.Usage {
	return toUsage(json.RawMessage(r.JSON.Usage.Raw()), "input_tokens", "output_tokens", size)
}
