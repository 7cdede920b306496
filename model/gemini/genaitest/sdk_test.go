// Package genaitest tests package gemini against Google's own SDK. It is a
// separate module, so that hone does not get the SDK's many dependencies.
package genaitest

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"hone/model"
	"hone/model/gemini"
	"hone/model/modeltest"
)

// These tests verify both directions: the SDK must send what package gemini
// sends, and read from the test server what package gemini reads.

const key = "AIza-test-key"

func newModel(url string) *gemini.Model {
	return gemini.New(gemini.Config{Name: "gemini-3-pro-preview", Key: key, BaseURL: url})
}

func ask(text string) model.Request {
	return model.Request{Messages: []model.Message{{Role: model.User, Parts: []model.Part{{Text: text}}}}}
}

func sdk(t *testing.T, url string) *genai.Client {
	for _, name := range []string{"GOOGLE_API_KEY", "GEMINI_API_KEY"} {
		t.Setenv(name, "")
	}
	client, err := genai.NewClient(t.Context(), &genai.ClientConfig{
		APIKey: key, Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: url},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestTheSDKSendsTheSame(t *testing.T) {
	s := modeltest.NewServer(t, modeltest.Turn{Text: "ok"})
	schema := json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)
	ours := model.Request{
		System: "Be brief.",
		Messages: []model.Message{
			{Role: model.User, Parts: []model.Part{{Text: "Read <a> & b"}}},
			{Role: model.Assistant, Parts: []model.Part{
				{Text: "I read."},
				{Opaque: &model.Opaque{Wire: "gemini", Data: json.RawMessage(`"c2lnbmVk"`)}},
				{Call: &model.Call{ID: "x1", Name: "read", Args: `{"path":"a"}`}},
				{Call: &model.Call{ID: "x2", Name: "read", Args: `{"path":"b"}`}},
			}},
			{Role: model.User, Parts: []model.Part{
				{Result: &model.Result{ID: "x1", Name: "read", Text: "A"}},
				{Result: &model.Result{ID: "x2", Name: "read", Text: "none", Failed: true}},
			}},
		},
		Tools:     []model.Spec{{Name: "read", Description: "Reads a file.", Schema: schema}},
		MaxOutput: 500,
		Reasoning: model.High,
	}
	if _, err := newModel(s.URL).Generate(t.Context(), ours); err != nil {
		t.Fatal(err)
	}
	theirs := []*genai.Content{
		genai.NewContentFromText("Read <a> & b", genai.RoleUser),
		genai.NewContentFromParts([]*genai.Part{
			{Text: "I read."},
			{ThoughtSignature: []byte("signed"), FunctionCall: &genai.FunctionCall{ID: "x1", Name: "read", Args: map[string]any{"path": "a"}}},
			{FunctionCall: &genai.FunctionCall{ID: "x2", Name: "read", Args: map[string]any{"path": "b"}}},
		}, genai.RoleModel),
		genai.NewContentFromParts([]*genai.Part{
			{FunctionResponse: &genai.FunctionResponse{ID: "x1", Name: "read", Response: map[string]any{"output": "A"}}},
			{FunctionResponse: &genai.FunctionResponse{ID: "x2", Name: "read", Response: map[string]any{"error": "none"}}},
		}, genai.RoleUser),
	}
	config := &genai.GenerateContentConfig{
		SystemInstruction: &genai.Content{Parts: []*genai.Part{{Text: "Be brief."}}},
		Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{
			{Name: "read", Description: "Reads a file.", ParametersJsonSchema: schema},
		}}},
		MaxOutputTokens: 500,
		ThinkingConfig:  &genai.ThinkingConfig{ThinkingLevel: genai.ThinkingLevelHigh},
	}
	for _, err := range sdk(t, s.URL).Models.GenerateContentStream(t.Context(), "gemini-3-pro-preview", theirs, config) {
		if err != nil {
			t.Fatal(err)
		}
	}
	got := s.Received()
	if got[0].Path != got[1].Path || got[0].Query != got[1].Query {
		t.Errorf("we ask %s?%s, the SDK %s?%s", got[0].Path, got[0].Query, got[1].Path, got[1].Query)
	}
	for _, name := range []string{"X-Goog-Api-Key", "Content-Type"} {
		if diff := cmp.Diff(got[1].Header[name], got[0].Header[name]); diff != "" {
			t.Errorf("%s (-SDK +ours):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(decoded(t, got[1].Body), decoded(t, got[0].Body)); diff != "" {
		t.Errorf("body (-SDK +ours):\n%s", diff)
	}
}

func decoded(t *testing.T, body []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return v
}

func TestTheSDKReadsTheSame(t *testing.T) {
	turn := modeltest.Turn{
		Text:     "Größe: groß, and then a second piece.",
		Calls:    []model.Call{{ID: "a", Name: "read", Args: `{"path":"x"}`}, {ID: "b", Name: "grep", Args: `{"n":1}`}},
		Thinking: "signed",
		Usage:    &model.Usage{Input: 70, CacheRead: 30, Output: 50, Reasoning: 20},
	}
	s := modeltest.NewServer(t, turn)
	reply, err := newModel(s.URL).Generate(t.Context(), ask("hi"))
	if err != nil {
		t.Fatal(err)
	}
	var parts []model.Part
	var last *genai.GenerateContentResponse
	for chunk, err := range sdk(t, s.URL).Models.GenerateContentStream(t.Context(), "gemini-3", genai.Text("hi"), nil) {
		if err != nil {
			t.Fatal(err)
		}
		last = chunk
		for _, p := range chunk.Candidates[0].Content.Parts {
			parts = appendSDK(t, parts, p)
		}
	}
	if diff := cmp.Diff(parts, reply.Parts); diff != "" {
		t.Errorf("parts (-SDK +ours):\n%s", diff)
	}
	if got := string(last.Candidates[0].FinishReason); got != reply.Detail {
		t.Errorf("the SDK reads finish %q, we %q", got, reply.Detail)
	}
	if got, u := int64(last.UsageMetadata.TotalTokenCount), reply.Usage; got != u.Total() || *u != *turn.Usage {
		t.Errorf("the SDK reads %d tokens, we %+v", got, u)
	}
}

// appendSDK appends a part that the SDK read, in the form in which package
// gemini returns it.
func appendSDK(t *testing.T, parts []model.Part, p *genai.Part) []model.Part {
	if p.ThoughtSignature != nil {
		data, err := json.Marshal(p.ThoughtSignature)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, model.Part{Opaque: &model.Opaque{Wire: "gemini", Data: data}})
	}
	switch {
	case p.FunctionCall != nil:
		args, err := json.Marshal(p.FunctionCall.Args)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, model.Part{Call: &model.Call{ID: p.FunctionCall.ID, Name: p.FunctionCall.Name, Args: string(args)}})
	case p.Text != "" && len(parts) > 0 && parts[len(parts)-1].Text != "":
		parts[len(parts)-1].Text += p.Text
	case p.Text != "":
		parts = append(parts, model.Part{Text: p.Text})
	}
	return parts
}

func TestTheSDKReadsErrorsTheSame(t *testing.T) {
	for _, turn := range []modeltest.Turn{
		{Status: 429, Message: "Slow down.", RetryAfter: "13"},
		{Status: 400, Message: "No such key.", Code: "API_KEY_INVALID"},
	} {
		s := modeltest.NewServer(t, turn)
		_, err := newModel(s.URL).Generate(t.Context(), ask("hi"))
		var ours *model.Error
		if !errors.As(err, &ours) {
			t.Fatalf("got %v, want a *model.Error", err)
		}
		_, err = sdk(t, s.URL).Models.GenerateContent(t.Context(), "gemini-3", genai.Text("hi"), nil)
		var theirs genai.APIError
		if !errors.As(err, &theirs) || theirs.Code != ours.Status || theirs.Message != ours.Message || len(theirs.Details) != 1 {
			t.Errorf("the SDK reads %v, we %v", err, ours)
		}
	}
}

// The test server's plain response contains the same parts as its stream.
func TestTheServersPlainResponse(t *testing.T) {
	turn := modeltest.Turn{Text: "Größe", Thinking: "signed", Usage: &model.Usage{Input: 7, Output: 5}}
	called := modeltest.Turn{Text: "Größe", Thinking: "signed", Calls: []model.Call{{ID: "a", Name: "read", Args: `{"path":"x"}`}}}
	for _, turn := range []modeltest.Turn{turn, called} {
		s := modeltest.NewServer(t, turn)
		plain, err := sdk(t, s.URL).Models.GenerateContent(t.Context(), "gemini-3", genai.Text("hi"), nil)
		if err != nil {
			t.Fatal(err)
		}
		var streamed []*genai.Part
		for chunk, err := range sdk(t, s.URL).Models.GenerateContentStream(t.Context(), "gemini-3", genai.Text("hi"), nil) {
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range chunk.Candidates[0].Content.Parts {
				if p.Text != "" || p.FunctionCall != nil || p.ThoughtSignature != nil {
					streamed = append(streamed, p)
				}
			}
		}
		if diff := cmp.Diff(streamed, plain.Candidates[0].Content.Parts); diff != "" {
			t.Errorf("parts (-streamed +plain):\n%s", diff)
		}
	}
}
