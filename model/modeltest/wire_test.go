package modeltest_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
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
			return asker{url + "/ask", key, timeouts}
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
	m := asker{s.URL + "/ask", "", model.Timeouts{}}
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
type asker struct {
	url, key string
	timeouts model.Timeouts
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
	x := model.NewExchange(ctx, a.timeouts)
	defer x.Close()
	var reply askReply
	if err := a.ask(x, req, &reply); err != nil {
		err = x.Fault(err)
		if e := (*model.Error)(nil); errors.As(err, &e) && e.Kind == model.Auth {
			e.Hint = "set ASK_KEY"
		}
		return model.Reply{}, err
	}
	r := model.Reply{Finish: reply.End, Detail: string(reply.End), Raw: x.Raw()}
	if reply.Text != "" {
		r.Parts = []model.Part{{Text: reply.Text}}
		if req.Stream != nil {
			req.Stream(reply.Text)
		}
	}
	counts := model.ReadCounts(reply.Used)
	r.Usage = counts.Usage(model.Usage{
		Input: counts.Required("in"), CacheRead: counts.Optional("cached"),
		Output: counts.Required("out"), Reasoning: counts.Optional("hidden"),
	}, r.Size())
	return r, nil
}

func (a asker) ask(x *model.Exchange, req model.Request, reply *askReply) error {
	sent := askRequest{System: req.System, Limit: req.MaxOutput}
	for _, m := range req.Messages {
		var text strings.Builder
		for _, part := range m.Parts {
			text.WriteString(part.Text)
		}
		sent.Turns = append(sent.Turns, askTurn{m.Role, text.String()})
	}
	body, err := json.Marshal(sent)
	if err != nil {
		return err
	}
	post, err := http.NewRequestWithContext(x.Context(), http.MethodPost, a.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	post.Header.Set("Authorization", "Bearer "+a.key)
	res, err := x.Client().Do(post)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if body, err = io.ReadAll(res.Body); err != nil {
		return err
	}
	if res.StatusCode >= 300 {
		return errors.New(res.Status)
	}
	return json.Unmarshal(body, reply)
}
