package gemini

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"hone/model"
)

// chunk is a GenerateContentResponse, one event of a stream.
type chunk struct {
	Candidates []candidate `json:"candidates"`
	Feedback   *struct {
		Reason  string `json:"blockReason"`
		Message string `json:"blockReasonMessage"`
	} `json:"promptFeedback"`
	Usage json.RawMessage `json:"usageMetadata"`
	ID    string          `json:"responseId"`
	Model string          `json:"modelVersion"`
}

type candidate struct {
	Index   int `json:"index"`
	Content struct {
		Parts []json.RawMessage `json:"parts"`
	} `json:"content"`
	Reason  string `json:"finishReason"`
	Message string `json:"finishMessage"`
}

// size is how many bytes its texts and calls have. A part that cannot be read may be one.
func (c chunk) size() (n int64) {
	for _, candidate := range c.Candidates {
		for _, raw := range candidate.Content.Parts {
			var p part
			switch {
			case json.Unmarshal(raw, &p) != nil:
				n++
			case p.Thought:
			case p.Call != nil:
				n += int64(1 + len(p.Call.Name) + len(p.Call.Args))
			case p.Text != nil:
				n += int64(len(*p.Text))
			}
		}
	}
	return n
}

type reader struct {
	onText  func(string)
	parts   []model.Part
	open    bool // the last part is text that may grow
	text    bytes.Buffer
	reason  string
	detail  string
	blocked bool            // the prompt was blocked
	usage   json.RawMessage // that counts; nil if there is none
	settled bool            // the reason and the usage have arrived
}

// Add implements [model.Reader].
func (r *reader) Add(data []byte) (settled bool, err error) {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return r.settled, fmt.Errorf("decode an event: %w", err)
	}
	if c.Candidates == nil && c.Feedback == nil && !bytes.HasPrefix(c.Usage, []byte("{")) && c.ID == "" && c.Model == "" {
		return r.settled, errors.New("an event is not a GenerateContentResponse")
	}
	r.usage = model.LaterUsage(r.usage, c.Usage, c.size())
	if c.Feedback != nil && c.Feedback.Reason != "" {
		r.blocked = true
		r.detail = detail(c.Feedback.Reason, c.Feedback.Message)
	}
	for _, candidate := range c.Candidates {
		if candidate.Index == 0 {
			err = r.addCandidate(candidate)
			break
		}
	}
	r.settled = r.settled || r.reason != "" && len(c.Usage) > 0 && err == nil
	return r.settled, err
}

func (r *reader) addCandidate(c candidate) error {
	for _, raw := range c.Content.Parts {
		if err := r.addPart(raw); err != nil {
			return err
		}
	}
	if later := model.LaterReason(r.reason, c.Reason); later != r.reason {
		r.reason, r.detail = later, detail(c.Reason, c.Message)
	}
	return nil
}

// Text is appended to the text before it unless one of them is signed, because a signature is valid for its own part only.
func (r *reader) addPart(raw json.RawMessage) error {
	var p part
	if err := json.Unmarshal(raw, &p); err != nil {
		return fmt.Errorf("decode a part: %w", err)
	}
	signed := len(p.Signature) > 0 && !bytes.Equal(p.Signature, []byte("null"))
	if signed && !isString(p.Signature) {
		return errors.New("a thought signature is not a string")
	}
	switch {
	case !signed && (p.Thought || p.Text != nil && *p.Text == ""), isEmpty(raw):
		return nil
	case p.Thought, p.Call == nil && (p.Text == nil || *p.Text == ""):
		return r.addOpaque(raw)
	case signed:
		if err := r.addOpaque(p.Signature); err != nil {
			return err
		}
	}
	if p.Call != nil {
		r.addCall(*p.Call)
		return nil
	}
	r.addVisible(*p.Text, signed)
	return nil
}

func isEmpty(raw json.RawMessage) bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal(raw, &fields) == nil && len(fields) == 0
}

// A signature is a JSON string and belongs to the next part; an entire part is a JSON object.
func (r *reader) addOpaque(raw json.RawMessage) error {
	// The journal encodes it the same way, so that the bytes never change.
	data, err := json.Marshal(raw)
	if err != nil {
		return err
	}
	r.add(model.Part{Opaque: &model.Opaque{Wire: Wire, Data: data}})
	return nil
}

func (r *reader) addCall(c functionCall) {
	args := string(c.Args)
	if isString(c.Args) {
		// These are not an object; a call holds them as the model wrote them.
		_ = json.Unmarshal(c.Args, &args)
	}
	r.add(model.Part{Call: &model.Call{ID: c.ID, Name: c.Name, Args: cmp.Or(args, "{}")}})
}

func (r *reader) addVisible(text string, signed bool) {
	if signed || !r.open {
		r.add(model.Part{})
	}
	r.text.WriteString(text)
	r.open = true
	if signed {
		r.closeText()
	}
	if r.onText != nil {
		r.onText(text)
	}
}

func (r *reader) closeText() {
	if r.open {
		r.parts[len(r.parts)-1].Text = r.text.String()
		r.text.Reset()
		r.open = false
	}
}

func (r *reader) add(p model.Part) {
	r.closeText()
	r.parts = append(r.parts, p)
}

// Usage implements [model.Reader].
func (r *reader) Usage() *model.Usage { return tokens(r.usage, 0) }

// Reply implements [model.Reader].
func (r *reader) Reply(done bool) (model.Reply, error) {
	r.closeText()
	reply := model.Reply{Parts: r.parts, Detail: r.detail}
	if r.reason == "" && !r.blocked && !(done && reply.HasContent()) {
		return reply, &model.Error{Kind: model.Cut, Message: "the stream ended without a finish reason"}
	}
	reply.Finish = model.FinishOf(r.reason, reply)
	reply.Usage = tokens(r.usage, reply.Size())
	if r.blocked {
		reply.Finish = model.Filtered
	}
	return reply, nil
}

func detail(reason, message string) string {
	if message == "" {
		return reason
	}
	return reason + ": " + strings.TrimSpace(message)
}

// It is nil if there is no usage. size is that of the reply, which the API counts apart from the thoughts: it omits counts of 0.
func tokens(raw json.RawMessage, size int64) *model.Usage {
	c := model.ReadCounts(raw)
	prompt := c.Required("promptTokenCount") // cached tokens included
	cached := min(c.Optional("cachedContentTokenCount"), prompt)
	visible, thoughts := c.Optional("candidatesTokenCount"), c.Optional("thoughtsTokenCount")
	if size > 0 && visible == 0 {
		return nil
	}
	return c.Usage(model.Usage{
		Input:     prompt - cached + c.Optional("toolUsePromptTokenCount"),
		CacheRead: cached,
		Output:    visible + thoughts,
		Reasoning: thoughts,
	}, size)
}
