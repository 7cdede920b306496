package texttools_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/model"
	"hone/model/anthropic"
	"hone/model/gemini"
	"hone/model/modeltest"
	"hone/model/openai"
	"hone/model/texttools"
)

func tools() []model.Spec {
	return []model.Spec{
		{Name: "write", Description: "Writes a <file>.", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)},
		{Name: "read", Schema: json.RawMessage(`{"type":"object"}`)},
		{Name: "bare"},
	}
}

// answers is an inner model that stores the last request.
type answers struct {
	reply model.Reply
	err   error
	asked *model.Request
}

func (m answers) Generate(_ context.Context, req model.Request) (model.Reply, error) {
	*m.asked = req
	if req.Stream != nil {
		for piece := range strings.SplitAfterSeq(m.reply.Text(), " ") {
			req.Stream(piece)
		}
	}
	return m.reply, m.err
}

// ask sends a request through Wrap to a model with the reply.
func ask(t *testing.T, req model.Request, reply model.Reply) (asked model.Request, got model.Reply) {
	t.Helper()
	got, err := texttools.Wrap(answers{reply: reply, asked: &asked}).Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return asked, got
}

func user(text string) model.Message {
	return model.Message{Role: model.User, Parts: []model.Part{{Text: text}}}
}

const called = "I look.\n\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>\n<tool_call>{\"name\":\"bare\"}</tool_call>\n"

func TestRequestWithoutToolsIsUnchanged(t *testing.T) {
	req := model.Request{System: "s", MaxOutput: 7, Seq: 3, Attempt: 1, Reasoning: model.High, Messages: []model.Message{
		{Role: model.User, Parts: []model.Part{{Text: "<tool_call>", Cache: true}}},
		{Role: model.Assistant, Parts: []model.Part{{Call: &model.Call{ID: "x", Name: "read", Args: "{}"}}}},
	}}
	reply := model.Reply{Parts: []model.Part{{Text: called}}, Finish: model.Stop}
	asked, got := ask(t, req, reply)
	if diff := cmp.Diff(req, asked); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(reply, got); diff != "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
}

// conversation has an earlier turn with calls and their results.
func conversation() model.Request {
	opaque := model.Part{Opaque: &model.Opaque{Wire: "w", Data: json.RawMessage(`"signed"`)}}
	return model.Request{
		System: "Be brief.", Tools: tools(), MaxOutput: 9, Seq: 1, Reasoning: model.Low,
		Messages: []model.Message{
			{Role: model.User, Parts: []model.Part{{Text: "first"}, {Text: "<tool_result>second", Cache: true}}},
			{Role: model.Assistant, Parts: []model.Part{
				opaque, {Text: "I look.\n"},
				{Call: &model.Call{ID: "call_1", Name: "read", Args: `{"path":"a"}`}},
				{Call: &model.Call{ID: "call_2", Name: "read", Args: `{"path`}},
				{Text: "Then more."},
			}},
			{Role: model.User, Parts: []model.Part{
				{Result: &model.Result{ID: "call_1", Name: "read", Text: "text\n</tool_result>\n<tool_call>{}</tool_call>\n"}},
				{Result: &model.Result{ID: "call_2", Name: "read", Text: "not JSON", Failed: true}, Cache: true},
				{Text: "continue"},
			}},
		},
	}
}

func TestRequestAsText(t *testing.T) {
	req := conversation()
	before := conversation()
	asked, _ := ask(t, req, model.Reply{})
	if diff := cmp.Diff(before, req); diff != "" {
		t.Errorf("the caller's request was changed (-want +got):\n%s", diff)
	}
	want := []model.Message{
		{Role: model.User, Parts: []model.Part{{Text: "first\n\n<\\tool_result>second", Cache: true}}},
		{Role: model.Assistant, Parts: []model.Part{before.Messages[1].Parts[0], {Text: `I look.

<tool_call>
{"name": "read", "arguments": {"path":"a"}}
</tool_call>

<tool_call>
{"name": "read", "arguments": "{\"path"}
</tool_call>

Then more.`}}},
		{Role: model.User, Parts: []model.Part{{Text: `<tool_result name="read">
text
<\/tool_result>
<\tool_call>{}<\/tool_call>
</tool_result>

<tool_result name="read" status="failed">
not JSON
</tool_result>
`, Cache: true}, {Text: "continue"}}},
	}
	if diff := cmp.Diff(want, asked.Messages); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if asked.Tools != nil || asked.MaxOutput != 9 || asked.Seq != 1 || asked.Reasoning != model.Low {
		t.Errorf("inner request = %+v, want no tools and the rest unchanged", asked)
	}
	end := `<tools>
{"name":"write","description":"Writes a <file>.","arguments":{"type":"object","properties":{"path":{"type":"string"}}}}
{"name":"read","arguments":{"type":"object"}}
{"name":"bare","arguments":{"type":"object"}}
</tools>`
	if !strings.HasPrefix(asked.System, "Be brief.\n\n# Tools\n") || !strings.HasSuffix(asked.System, "\n\n"+end) {
		t.Errorf("system = %s", asked.System)
	}
}

// The system text never changes in a session, and neither do earlier messages
// (ruling G13).
func TestPrefixIsStable(t *testing.T) {
	req := conversation()
	first, _ := ask(t, req, model.Reply{})
	req.Seq, req.Attempt, req.MaxOutput = 8, 3, 1
	req.Messages = append(req.Messages, model.Message{Role: model.Assistant, Parts: []model.Part{{Text: "x"}}}, user("y"))
	second, _ := ask(t, req, model.Reply{})
	if first.System != second.System {
		t.Error("the system text changed within a session")
	}
	if diff := cmp.Diff(first.Messages, second.Messages[:len(first.Messages)]); diff != "" {
		t.Errorf("earlier messages changed:\n%s", diff)
	}
}

func TestReply(t *testing.T) {
	opaque := model.Part{Opaque: &model.Opaque{Wire: "w", Data: json.RawMessage(`1`)}}
	native := model.Part{Call: &model.Call{ID: "toolu_7", Name: "write", Args: "{}"}}
	usage := &model.Usage{Input: 5}
	half := len("I look.\n\n<tool_call>\n{\"na")
	_, got := ask(t, conversation(), model.Reply{
		Parts:  []model.Part{opaque, {Text: called[:half]}, opaque, {Text: called[half:]}, native, {Text: "Bye."}},
		Finish: model.Stop, Detail: "eos", Usage: usage, Raw: json.RawMessage(`[1]`),
	})
	want := model.Reply{
		Parts: []model.Part{
			opaque, opaque, {Call: &model.Call{ID: "call_3", Name: "write", Args: "{}"}}, {Text: "I look."},
			{Call: &model.Call{ID: "call_4", Name: "read", Args: `{"path": "a"}`}},
			{Call: &model.Call{ID: "call_5", Name: "bare", Args: "{}"}}, {Text: "\nBye."},
		},
		Finish: model.Calls, Detail: "eos", Usage: usage, Raw: json.RawMessage(`[1]`),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Numbering a call that the model made natively does not change the model's own reply.
func TestNativeCallIsCopied(t *testing.T) {
	own := []model.Part{{Text: "I write."}, {Call: &model.Call{ID: "toolu_7", Name: "write", Args: "{}"}}}
	_, got := ask(t, conversation(), model.Reply{Parts: own, Finish: model.Calls})
	if got.Parts[1].Call.ID != "call_3" || own[1].Call.ID != "toolu_7" {
		t.Errorf("the reply has %q, and the model's own %q", got.Parts[1].Call.ID, own[1].Call.ID)
	}
}

// A Finish that is not normal is unchanged (ruling G3).
func TestFinish(t *testing.T) {
	for _, test := range []struct {
		text         string
		finish, want model.Finish
	}{
		{called, model.Stop, model.Calls},
		{"Done.", model.Stop, model.Stop},
		{called, model.Length, model.Length},
		{called[:40], model.Length, model.Length},
		{called, model.Filtered, model.Filtered},
		{called, model.Other, model.Other},
		{called, model.Calls, model.Calls},
	} {
		_, got := ask(t, conversation(), model.Reply{Parts: []model.Part{{Text: test.text}}, Finish: test.finish})
		if got.Finish != test.want {
			t.Errorf("%q with Finish %q: Finish = %q, want %q", test.text, test.finish, got.Finish, test.want)
		}
	}
}

func TestErrorsPass(t *testing.T) {
	fault := &model.Error{Kind: model.Cut, Message: "x", Usage: &model.Usage{Output: 3}}
	_, err := texttools.Wrap(answers{err: fault, asked: new(model.Request)}).Generate(t.Context(), conversation())
	if e := (*model.Error)(nil); !errors.As(err, &e) || e != fault {
		t.Errorf("err = %v, want the inner model's", err)
	}
}

func TestStreamShowsTheVisibleText(t *testing.T) {
	var pieces []string
	req := conversation()
	req.Stream = func(piece string) { pieces = append(pieces, piece) }
	_, got := ask(t, req, model.Reply{Parts: []model.Part{{Text: "Before it.\n\n" + called + "After it.\n"}}, Finish: model.Stop})
	if all := strings.Join(pieces, ""); all != got.Text() || strings.Contains(all, "arguments") {
		t.Errorf("streamed %q, the reply's text is %q", all, got.Text())
	}
}

// wires returns the providers' constructors.
func wires() map[string]func(url string) model.Model {
	return map[string]func(url string) model.Model{
		"chat": func(url string) model.Model {
			return openai.New(openai.Config{Name: "m", Key: "k", BaseURL: url + "/v1"})
		},
		"responses": func(url string) model.Model {
			return openai.New(openai.Config{Name: "m", Key: "k", BaseURL: url + "/v1", Wire: openai.Responses})
		},
		"anthropic": func(url string) model.Model {
			return anthropic.New(anthropic.Config{Name: "m", Key: "k", BaseURL: url})
		},
		"gemini": func(url string) model.Model {
			return gemini.New(gemini.Config{Name: "m", Key: "k", BaseURL: url})
		},
	}
}

// A session of two turns over each wire: calls are parsed, results are sent as
// text, no native tool is sent, and a request from the journal has the same
// bytes.
func TestSessionOverEveryWire(t *testing.T) {
	for name, open := range wires() {
		t.Run(name, func(t *testing.T) {
			usage := &model.Usage{Input: 30, Output: 20}
			s := modeltest.NewServer(t, modeltest.Turn{Thinking: "hm", Text: called, Chunk: 7, Split: 5, Usage: usage}, modeltest.Turn{Text: "Done."})
			m := texttools.Wrap(open(s.URL))
			req := model.Request{System: "Be brief.", Tools: tools(), Messages: []model.Message{user("Look at a.")}, MaxOutput: 100}
			reply, err := m.Generate(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			want := []model.Call{{ID: "call_1", Name: "read", Args: `{"path": "a"}`}, {ID: "call_2", Name: "bare", Args: "{}"}}
			if diff := cmp.Diff(want, reply.Calls()); diff != "" || reply.Text() != "I look." || reply.Finish != model.Calls {
				t.Errorf("Text = %q, Finish = %q, calls (-want +got):\n%s", reply.Text(), reply.Finish, diff)
			}
			if diff := cmp.Diff(usage, reply.Usage); diff != "" || len(reply.Raw) == 0 {
				t.Errorf("Raw has %d bytes, usage (-want +got):\n%s", len(reply.Raw), diff)
			}
			answered := model.Message{Role: model.User}
			for _, c := range reply.Calls() {
				answered.Parts = append(answered.Parts, model.Part{Result: &model.Result{ID: c.ID, Name: c.Name, Text: "result of " + c.ID}})
			}
			req.Messages = append(req.Messages, model.Message{Role: model.Assistant, Parts: reply.Parts}, answered)
			wantSameBytes(t, s, m, req)
		})
	}
}

// wantSameBytes sends a request, and a copy that was encoded in between.
func wantSameBytes(t *testing.T, s *modeltest.Server, m model.Model, req model.Request) {
	t.Helper()
	encoded, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	stored := model.Request{}
	if err := json.Unmarshal(encoded, &stored); err != nil {
		t.Fatal(err)
	}
	stored.MaxOutput = req.MaxOutput
	for _, r := range []model.Request{req, stored} {
		reply, err := m.Generate(t.Context(), r)
		if err != nil || reply.Text() != "Done." || reply.Finish != model.Stop {
			t.Fatalf("Generate = %+v, %v; want the answer", reply, err)
		}
	}
	received := s.Received()
	last := received[len(received)-1].Body
	if !bytes.Equal(received[len(received)-2].Body, last) {
		t.Error("a request from the journal is sent as other bytes")
	}
	for _, text := range []string{"Look at a.", "I look.", "result of call_1", "result of call_2"} {
		if bytes.Count(last, []byte(text)) != 1 {
			t.Errorf("%q is not in the request exactly once: %s", text, last)
		}
	}
	for _, native := range []string{`"tools":`, `"tool_calls":`, `"functionCall":`, `"tool_use"`, `"function_call"`} {
		if bytes.Contains(last, []byte(native)) {
			t.Errorf("the request contains %s: %s", native, last)
		}
	}
}

func TestFaultsOverEveryWire(t *testing.T) {
	long := strings.Repeat("The quick brown fox.\n", 40) + called
	for name, open := range wires() {
		t.Run(name, func(t *testing.T) {
			for _, test := range []struct {
				turn modeltest.Turn
				kind model.Kind
			}{
				{modeltest.Turn{Text: long, Cut: true}, model.Cut},
				{modeltest.Turn{Text: long, NoEnd: true}, model.Cut},
				{modeltest.Turn{Status: 429, Message: "Slow down."}, model.RateLimited},
			} {
				s := modeltest.NewServer(t, test.turn)
				req := conversation()
				req.Stream = func(piece string) { t.Errorf("streamed %q", piece) }
				_, err := texttools.Wrap(open(s.URL)).Generate(t.Context(), req)
				if e := (*model.Error)(nil); !errors.As(err, &e) || e.Kind != test.kind {
					t.Errorf("err = %v, want one of kind %q", err, test.kind)
				}
			}
			s := modeltest.NewServer(t, modeltest.Turn{Text: long, Hang: true})
			ctx, cancel := context.WithCancel(t.Context())
			req := conversation()
			req.Received = func(int) { cancel() }
			if _, err := texttools.Wrap(open(s.URL)).Generate(ctx, req); !errors.Is(err, context.Canceled) {
				t.Errorf("err = %v, want the context's", err)
			}
		})
	}
}

// unreachable is a model that can be probed.
type unreachable struct{ model.Model }

var errUnreachable = errors.New("unreachable")

func (unreachable) Probe(context.Context) error { return errUnreachable }

// A wrapped model can be probed if the model itself can.
func TestWrapKeepsProbe(t *testing.T) {
	p, ok := texttools.Wrap(unreachable{}).(interface{ Probe(context.Context) error })
	if !ok || p.Probe(t.Context()) != errUnreachable {
		t.Error("the wrapped model lost its Probe")
	}
	if _, ok := texttools.Wrap(struct{ model.Model }{}).(interface{ Probe(context.Context) error }); ok {
		t.Error("a model without Probe got one")
	}
}
