package anthropic

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"hone/model"
)

// event is one event of a streamed message, of any type.
type event struct {
	Type    string `json:"type"`
	Message struct {
		Usage *usage `json:"usage"`
	} `json:"message"`
	Index int             `json:"index"`
	Start json.RawMessage `json:"content_block"`
	Delta delta           `json:"delta"`
	Usage *usage          `json:"usage"`
	Error *struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
}

// delta is what comes of a block, or of the message at its end.
type delta struct {
	Type      string `json:"type"`
	Text      string `json:"text"`
	Input     string `json:"partial_json"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`

	Stop     string       `json:"stop_reason"`
	Sequence string       `json:"stop_sequence"`
	Details  *stopDetails `json:"stop_details"`
}

type stopDetails struct {
	Category    string `json:"category"`
	Explanation string `json:"explanation"`
}

// usage is what an event says of it; a later event's fields count.
type usage struct {
	Input      *int64 `json:"input_tokens"` // the cache's not included
	Output     *int64 `json:"output_tokens"`
	CacheWrite *int64 `json:"cache_creation_input_tokens"`
	CacheRead  *int64 `json:"cache_read_input_tokens"`
	Details    struct {
		Thinking *int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// content is a block of a message as it grows.
type content struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`

	raw     json.RawMessage // as it began
	grown   bytes.Buffer    // its text, thinking or input
	stopped bool
}

// reader folds a stream's events into a reply.
type reader struct {
	show   func(string)
	blocks []*content
	stop   string
	detail string
	usage  usage
	done   bool
}

// event takes the data of one event. Types that it does not know are passed
// over, as the API asks of its clients.
func (r *reader) event(data []byte) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	// The decoder would put replacement characters for what is not UTF-8.
	if !utf8.Valid(data) {
		return errors.New("an event is not UTF-8")
	}
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("an event: %w", err)
	}
	switch e.Type {
	case "":
		return errors.New("an event without a type")
	case "error":
		return e.fault()
	case "message_start":
		r.usage.take(e.Message.Usage)
	case "content_block_start":
		return r.begin(e)
	case "content_block_delta":
		return r.grow(e)
	case "content_block_stop":
		b, err := r.block(e.Index)
		if err == nil {
			b.stopped = true
		}
		return err
	case "message_delta":
		r.usage.take(e.Usage)
		r.stop, r.detail = e.Delta.Stop, e.Delta.detail()
	case "message_stop":
		r.done = true
	}
	return nil
}

func (e event) fault() error {
	if e.Error == nil {
		return errors.New("an error event without an error")
	}
	return model.StatusError(0, nil, e.Error.Message, e.Error.Type)
}

func (r *reader) begin(e event) error {
	if e.Index != len(r.blocks) {
		return fmt.Errorf("block %d begins where block %d should", e.Index, len(r.blocks))
	}
	b := &content{}
	if err := json.Unmarshal(e.Start, b); err != nil {
		return fmt.Errorf("the begin of a block: %w", err)
	}
	// As the journal would write it, so that it stays byte for byte the same.
	raw, err := json.Marshal(e.Start)
	if err != nil {
		return err
	}
	b.raw = raw
	r.blocks = append(r.blocks, b)
	switch b.Type {
	case "text":
		r.visible(b, b.Text)
	case "thinking":
		b.grown.WriteString(b.Thinking)
	}
	return nil
}

func (r *reader) grow(e event) error {
	b, err := r.block(e.Index)
	if err != nil {
		return err
	}
	switch d := e.Delta; b.Type + " " + d.Type {
	case "text text_delta":
		r.visible(b, d.Text)
	case "text citations_delta":
	case "tool_use input_json_delta":
		b.grown.WriteString(d.Input)
	case "thinking thinking_delta":
		b.grown.WriteString(d.Thinking)
	case "thinking signature_delta":
		b.Signature += d.Signature
	default:
		return fmt.Errorf("a %q for a block of type %q", d.Type, b.Type)
	}
	return nil
}

// block is the block of that index while it grows.
func (r *reader) block(index int) (*content, error) {
	if index < 0 || index >= len(r.blocks) || r.blocks[index].stopped {
		return nil, fmt.Errorf("no block %d is open", index)
	}
	return r.blocks[index], nil
}

func (r *reader) visible(b *content, text string) {
	b.grown.WriteString(text)
	if r.show != nil && text != "" {
		r.show(text)
	}
}

// complete reports a stream that ended without the word that it is whole.
func (r *reader) complete() error {
	if !r.done || r.stop == "" {
		return &model.Error{Kind: model.Cut, Message: "the stream ended before the message did"}
	}
	for i, b := range r.blocks {
		if !b.stopped {
			return fmt.Errorf("block %d never ended", i)
		}
	}
	return nil
}

func (r *reader) reply() model.Reply {
	reply := model.Reply{Detail: r.detail, Usage: r.usage.normal()}
	for _, b := range r.blocks {
		if p, ok := b.part(); ok {
			reply.Parts = append(reply.Parts, p)
		}
	}
	reply.Finish = finish(r.stop, len(reply.Calls()) > 0)
	return reply
}

// part is false for a block without content, and for thinking without a
// signature, which was cut by the output limit and cannot go back.
func (b *content) part() (model.Part, bool) {
	grown := b.grown.String()
	switch b.Type {
	case "text":
		return model.Part{Text: grown}, grown != ""
	case "tool_use":
		args := cmp.Or(grown, string(b.Input), "{}")
		return model.Part{Call: &model.Call{ID: b.ID, Name: b.Name, Args: args}}, true
	case "thinking":
		return b.thought(grown), b.Signature != ""
	}
	return opaque(b.raw), true
}

func (b *content) thought(text string) model.Part {
	// Strings can always be encoded.
	data, _ := json.Marshal(struct {
		Type      string `json:"type"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
	}{b.Type, text, b.Signature})
	return opaque(data)
}

func opaque(data json.RawMessage) model.Part {
	return model.Part{Opaque: &model.Opaque{Wire: Wire, Data: data}}
}

func finish(reason string, calls bool) model.Finish {
	switch reason {
	case "end_turn", "stop_sequence", "tool_use":
		if calls {
			return model.Calls
		}
		return model.Stop
	case "max_tokens", "model_context_window_exceeded":
		return model.Length
	case "refusal":
		return model.Filtered
	}
	return model.Other
}

// detail is the provider's word for the end and what it says of it.
func (d delta) detail() string {
	words := []string{d.Stop, d.Sequence}
	if d.Details != nil {
		words = append(words, d.Details.Category, d.Details.Explanation)
	}
	var said []string
	for _, w := range words {
		if w != "" {
			said = append(said, w)
		}
	}
	return strings.Join(said, ": ")
}

func (u *usage) take(v *usage) {
	if v == nil {
		return
	}
	u.Input = cmp.Or(v.Input, u.Input)
	u.Output = cmp.Or(v.Output, u.Output)
	u.CacheWrite = cmp.Or(v.CacheWrite, u.CacheWrite)
	u.CacheRead = cmp.Or(v.CacheRead, u.CacheRead)
	u.Details.Thinking = cmp.Or(v.Details.Thinking, u.Details.Thinking)
}

// normal is nil where nothing was said.
func (u *usage) normal() *model.Usage {
	if *u == (usage{}) {
		return nil
	}
	return &model.Usage{
		Input:      count(u.Input),
		Output:     count(u.Output),
		Reasoning:  min(count(u.Details.Thinking), count(u.Output)),
		CacheRead:  count(u.CacheRead),
		CacheWrite: count(u.CacheWrite),
	}
}

func count(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
