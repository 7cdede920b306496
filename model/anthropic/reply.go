package anthropic

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"hone/model"
)

// event is one event of a streamed message, of any type.
type event struct {
	Type    string `json:"type"`
	Message struct {
		Usage json.RawMessage `json:"usage"`
	} `json:"message"`
	Index int             `json:"index"`
	Start json.RawMessage `json:"content_block"`
	Delta delta           `json:"delta"`
	Usage json.RawMessage `json:"usage"`

	// Of a message that is not a stream.
	Content  []json.RawMessage `json:"content"`
	Stop     string            `json:"stop_reason"`
	Sequence string            `json:"stop_sequence"`
}

// delta is a piece of a block, or the fields of the message's end.
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

type content struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`

	raw      json.RawMessage // the block's first event
	received bytes.Buffer    // text, thinking or input
	index    int
	partial  bool // of an unknown type, with deltas that cannot be read
}

type reader struct {
	onText func(string)
	blocks []*content
	stop   string
	detail string
	usage  model.Counts // of all events
	done   bool         // the last event has arrived

	settled bool // the reason and the usage have arrived
}

// Add implements [model.Reader]. Unknown types are ignored, as the API requires of clients.
func (r *reader) Add(data []byte) (settled bool, err error) {
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return r.settled, fmt.Errorf("decode an event: %w", err)
	}
	switch e.Type {
	case "":
		err = errors.New("an event without a type")
	case "message_start":
		r.usage.Merge(e.Message.Usage)
	case "content_block_start":
		err = r.startBlock(e)
	case "content_block_delta":
		err = r.addDelta(e)
	case "message_delta":
		if r.stop == "" { // the output before this event is only that so far
			r.usage.Remove("output_tokens")
		}
		r.usage.Merge(e.Usage)
		r.settled = r.settled || e.Delta.Stop != "" && len(e.Usage) > 0
		if later := model.LaterReason(r.stop, e.Delta.Stop); later != r.stop {
			r.stop, r.detail = later, e.Delta.detail()
		}
	case "message_stop":
		r.done, err = true, io.EOF
	case "message":
		err = r.addMessage(e)
	}
	return r.settled, err
}

// Some servers do not stream.
func (r *reader) addMessage(e event) error {
	for i, block := range e.Content {
		if err := r.startBlock(event{Index: i, Start: block}); err != nil {
			return err
		}
		if b := r.blocks[i]; b.Type == "tool_use" {
			b.received.Write(b.Input)
		}
	}
	r.usage.Merge(e.Usage)
	r.stop, r.detail = e.Stop, delta{Stop: e.Stop, Sequence: e.Sequence}.detail()
	return nil
}

func (r *reader) startBlock(e event) error {
	b := &content{index: e.Index}
	if err := json.Unmarshal(e.Start, b); err != nil {
		return fmt.Errorf("decode the start of a block: %w", err)
	}
	// The journal encodes it the same way, so that the bytes never change.
	raw, err := json.Marshal(e.Start)
	if err != nil {
		return err
	}
	b.raw = raw
	r.blocks = append(r.blocks, b)
	switch b.Type {
	case "text":
		r.addText(b, b.Text)
	case "thinking":
		b.received.WriteString(b.Thinking)
	}
	return nil
}

func (r *reader) addDelta(e event) error {
	var b *content
	for _, begun := range r.blocks {
		if begun.index == e.Index {
			b = begun
		}
	}
	if b == nil {
		return fmt.Errorf("a delta for block %d, which has not begun", e.Index)
	}
	switch d := e.Delta; b.Type + " " + d.Type {
	case "text text_delta":
		r.addText(b, d.Text)
	case "tool_use input_json_delta":
		b.received.WriteString(d.Input)
	case "thinking thinking_delta":
		b.received.WriteString(d.Thinking)
	case "thinking signature_delta":
		b.Signature += d.Signature
	default:
		if hasType(b.Type) && hasDelta(d.Type) {
			return fmt.Errorf("a %q delta for a block of type %q", d.Type, b.Type)
		}
		b.partial = !hasType(b.Type)
	}
	return nil
}

// The API's clients ignore types that they do not know.
func hasType(block string) bool { return block == "text" || block == "tool_use" || block == "thinking" }

func hasDelta(delta string) bool {
	switch delta {
	case "text_delta", "input_json_delta", "thinking_delta", "signature_delta":
		return true
	}
	return false
}

func (r *reader) addText(b *content, text string) {
	b.received.WriteString(text)
	if r.onText != nil && text != "" {
		r.onText(text)
	}
}

// Usage implements [model.Reader].
func (r *reader) Usage() *model.Usage { return tokens(r.usage, 0) }

// Reply implements [model.Reader]. The last event makes a response complete, too.
func (r *reader) Reply(done bool) (model.Reply, error) {
	reply := model.Reply{Detail: r.detail}
	for _, b := range r.blocks {
		if p, ok := b.part(); ok {
			reply.Parts = append(reply.Parts, p)
		}
	}
	if r.stop == "" && !((done || r.done) && reply.HasContent()) {
		return reply, &model.Error{Kind: model.Cut, Message: "the stream ended before the message was complete"}
	}
	reply.Usage = tokens(r.usage, reply.Size())
	reply.Finish = model.FinishOf(r.stop, reply)
	return reply, nil
}

// part returns false for an empty block, for thinking without a signature, which
// the output limit cut and which the API would reject, and for a block that could not
// be read.
func (b *content) part() (model.Part, bool) {
	text := b.received.String()
	switch b.Type {
	case "text":
		return model.Part{Text: text}, text != ""
	case "tool_use":
		args := cmp.Or(text, string(b.Input), "{}")
		return model.Part{Call: &model.Call{ID: b.ID, Name: b.Name, Args: args}}, true
	case "thinking":
		return b.thinkingPart(text), b.Signature != ""
	}
	return opaque(b.raw), !b.partial
}

func (b *content) thinkingPart(text string) model.Part {
	// Marshal cannot fail for strings.
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

func (d delta) detail() string {
	words := []string{d.Stop, d.Sequence}
	if d.Details != nil {
		words = append(words, d.Details.Category, d.Details.Explanation)
	}
	words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
	return strings.Join(words, ": ")
}

// size is that of the reply.
func tokens(c model.Counts, size int64) *model.Usage {
	return c.Usage(model.Usage{
		Input:      c.Required("input_tokens"), // cached tokens not included
		Output:     c.Required("output_tokens"),
		Reasoning:  c.Optional("output_tokens_details", "thinking_tokens"),
		CacheRead:  c.Optional("cache_read_input_tokens"),
		CacheWrite: c.Optional("cache_creation_input_tokens"),
	}, size)
}
