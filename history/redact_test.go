package history_test

import (
	"encoding/json"
	"strings"
	"testing"

	"hone/check"
	"hone/history"
	"hone/journal"
	"hone/workspace"
)

// A redacted journal keeps numbers, names and digests, and no text, wherever it is.
func TestRedact(t *testing.T) {
	home, err := journal.OpenHome(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	home.Owner = &journal.Owner{Key: []byte("key"), Accepted: func(string) string { return "" }}
	j, err := home.Create("20260102-030405-abcdef")
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	const secret = "the secret text"
	found := []check.Finding{{Source: secret, File: "a.go", Text: secret}}
	digest := workspace.Digest([]byte("x"))
	step := &journal.Identity{Round: 1, Name: "fixer"}
	for _, e := range []journal.Entry{
		{Type: history.TypeStart, Payload: history.Start{Version: "v1", Loop: "fix", Dir: "/" + secret, Model: "openai/m", Limits: history.Limits{Rounds: 7},
			Git:      history.Git{Branch: secret, IDs: map[string]string{"refs/heads/" + secret: digest}},
			Settings: json.RawMessage(`{"check": "` + secret + `", "model": {"name": "openai/m", "base_url": "` + secret + `"}, "turns": 30}`)}},
		{Type: history.TypeNotice, Payload: history.Notice{Text: secret}},
		{Type: history.TypeTool, Phase: journal.Begin, Step: step, Payload: history.ToolCall{Role: "fixer", Tool: "bash", Args: secret, Refused: secret}},
		{Type: history.TypeTool, Phase: journal.Record, Step: step, Payload: map[string]any{"text": secret, "of": map[string]any{"deep": []any{secret, []string{secret}}}}},
		{Type: history.TypeApply, Phase: journal.Record, Step: step, Payload: history.Applied{Verdicts: []workspace.Verdict{{Path: "b.go", Ruling: workspace.Deny, Reason: secret, After: workspace.Image{Digest: digest, Size: 1}}}}},
		{Type: history.TypeRound, Payload: history.State{Round: 1, Decision: history.AnotherRound, Why: secret, Findings: found, Next: history.Next{Verb: "resume", First: secret}}},
		{Type: "another", Payload: map[string]any{"x": secret}},
		{Type: history.TypeEnd, Payload: history.End{Kind: "rounds", Why: secret, Tokens: 12}},
	} {
		if _, err := j.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	events, err := history.Redact(j.Events(), []byte("a key"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(journal.Lines(events))
	if len(events) != len(j.Events()) || strings.Contains(text, "secret") || strings.Contains(text, `"mac"`) {
		t.Errorf("%d events:\n%s", len(events), text)
	}
	for _, kept := range []string{`"redacted":true`, `"hone":"v1"`, `"loop":"fix"`, `"name":"openai/m"`, `"rounds":7`, `"turns":30`, `"file":"a.go"`, `"path":"b.go"`,
		`"verdict":"deny"`, digest, `"tool":"bash"`, `"decision":"continue"`, `"verb":"resume"`, `"result":"rounds"`, `"tokens":12`, `"text":"[15 bytes, `} {
		if !strings.Contains(text, kept) {
			t.Errorf("%s is missing:\n%s", kept, text)
		}
	}
	past := history.Read(events)
	if err := past.Facts().Fault; err != nil {
		t.Error(err)
	}
	if end, ok := past.Facts().End, past.Facts().Ended; !ok || end.Kind != "rounds" || !history.Decode(events[0]).Payload.(history.Start).Redacted {
		t.Errorf("end %+v", end)
	}
	marks := strings.Count(text, past.Events()[1].Payload.(history.Notice).Text)
	if marks < 8 {
		t.Errorf("equal texts have other marks: %d", marks)
	}
	other, err := history.Redact(j.Events(), []byte("another key"))
	if err != nil || strings.Contains(string(journal.Lines(other)), past.Events()[1].Payload.(history.Notice).Text) {
		t.Errorf("with another key the marks are the same: %v", err)
	}
	if none, err := history.Redact(nil, nil); err != nil || none != nil {
		t.Errorf("no events: %v, %v", none, err)
	}
}
