package modeltest_test

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"hone/model"
	"hone/model/modeltest"
)

// These tests run the suite against a provider of an invented protocol, which
// has neither streams nor tool calls. A request is
//
//	POST /ask {"system": "…", "turns": [{"from": "user", "text": "…"}], "limit": 100}
//
// and a response
//
//	{"text": "…", "end": "stop", "used": {"in": 12, "out": 3, "cached": 4, "hidden": 1}}
func TestProviderOfItsOwnProtocol(t *testing.T) {
	modeltest.Conformance(t, modeltest.Provider{
		New: func(url, key string, timeouts model.Timeouts) model.Model {
			return newAsker(url, key, timeouts)
		},
		Wire: askWire{},
		Lacks: map[string]string{
			modeltest.Streaming:       "a response arrives as a whole",
			modeltest.Tools:           "the model can only answer",
			"request/reasoning_level": "the model does not reason",
		},
		KeyVariable: "ASK_KEY",
		System:      "system",
		Messages:    "turns",
		MaxOutput:   "limit",
	})
}

// An unknown path tells the author of a provider what to do.
func TestUnknownPath(t *testing.T) {
	s := modeltest.NewServer(t, modeltest.Turn{Text: "Paris"})
	m := newAsker(s.URL, "", model.Timeouts{})
	_, err := m.Generate(t.Context(), model.Request{})
	if err == nil || !strings.Contains(err.Error(), "no built-in wire has the path /ask; for a protocol of your own, set Wire in modeltest.Provider") {
		t.Errorf("Generate = %v, want how to test another protocol", err)
	}
	s.Speak(askWire{})
	if reply, err := m.Generate(t.Context(), model.Request{}); err != nil || reply.Text() != "Paris" {
		t.Errorf("after Speak Generate = %q, %v; want the turn", reply.Text(), err)
	}
}

// askWire is the server's side of the protocol.
type askWire struct{}

func (askWire) Stream(*http.Request, []byte) bool { return false }
func (askWire) Events(modeltest.Turn) [][]byte    { return nil }
func (w askWire) Error(t modeltest.Turn) []byte {
	return w.encode(map[string]any{"error": t.Message, "code": t.Code})
}
func (askWire) encode(fields map[string]any) []byte { b, _ := json.Marshal(fields); return b }
func (w askWire) Body(t modeltest.Turn) []byte {
	reply := map[string]any{"text": t.Text, "end": cmp.Or(t.Finish, model.Stop)}
	if u := t.Usage; u != nil {
		used := map[string]any{"in": u.Input, "cached": u.CacheRead, "out": u.Output, "hidden": u.Reasoning}
		reply["used"] = t.ReportedUsage(used, map[string]string{"input": "in", "cached": "cached", "output": "out", "reasoning": "hidden"})
	}
	return w.encode(reply)
}

// asker is the provider.
type asker struct{ model.Endpoint }

func newAsker(url, key string, timeouts model.Timeouts) asker {
	header := http.Header{}
	if key != "" {
		header.Set("Authorization", "Bearer "+key)
	}
	return asker{model.Endpoint{Name: "asker", BaseURL: url, KeyVariable: "ASK_KEY", Timeouts: timeouts, Header: header}}
}

type askRequest struct {
	System string    `json:"system,omitempty"`
	Turns  []askTurn `json:"turns"`
	Limit  int64     `json:"limit,omitempty"`
}

type askTurn struct {
	From model.Role `json:"from"`
	Text string     `json:"text"`
}

type askReply struct {
	Text string          `json:"text"`
	End  model.Finish    `json:"end"`
	Used json.RawMessage `json:"used"`
}

func (a asker) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	sent := askRequest{System: req.System, Limit: req.MaxOutput}
	for _, m := range req.Messages {
		var text strings.Builder
		for _, part := range m.Parts {
			text.WriteString(part.Text)
		}
		sent.Turns = append(sent.Turns, askTurn{m.Role, text.String()})
	}
	return a.Endpoint.Generate(ctx, req, "ask", sent, &askReader{onText: req.Stream})
}

// askReader reads a response.
type askReader struct {
	onText func(string)
	reply  askReply
}

func (r *askReader) Add(data []byte) (settled bool, err error) {
	if err := json.Unmarshal(data, &r.reply); err != nil {
		return false, err
	}
	if r.onText != nil && r.reply.Text != "" {
		r.onText(r.reply.Text)
	}
	return true, io.EOF
}

func (r *askReader) Usage() *model.Usage { return r.used(0) }

func (r *askReader) Reply(bool) (model.Reply, error) {
	if r.reply.End == "" {
		return model.Reply{}, &model.Error{Kind: model.Cut, Message: "the response has no end"}
	}
	reply := model.Reply{Finish: r.reply.End, Detail: string(r.reply.End)}
	if r.reply.Text != "" {
		reply.Parts = []model.Part{{Text: r.reply.Text}}
	}
	reply.Usage = r.used(reply.Size())
	return reply, nil
}

func (r *askReader) used(size int64) *model.Usage {
	c := model.ReadCounts(r.reply.Used)
	return c.Usage(model.Usage{
		Input: c.Required("in"), CacheRead: c.Optional("cached"),
		Output: c.Required("out"), Reasoning: c.Optional("hidden"),
	}, size)
}
