package script_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hone/model"
	"hone/model/script"
)

const text = `The demonstration's script.
=== reply ===
Hello

two blank lines follow


=== reply finish=length detail=MAX when="(?i)shorten \"it\"" delay=1ms input=100 output=5 reasoning=2 cache_read=7 cache_write=3 ===
Cut of
=== error kind=rate-limited status=429 after=1.5s hint="wait a little" ===
Slow down.
=== error kind=overloaded ===
=== reply ===
I read.
=== call read id=call_x ===
{"path": "main.go"}
=== call write ===
not JSON
=== call list ===
=== call nothing ===
=== error kind=auth status=401 last ===
No key.
=== reply ===
\=== reply ===
-- file.go --
\\=== call x ===
=== something else ===`

func parsed(t *testing.T, text string) *script.Script {
	t.Helper()
	s, err := script.Parse("demo", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func want() []script.Reply {
	return []script.Reply{
		{Attempts: []script.Attempt{{Text: "Hello\n\ntwo blank lines follow\n\n"}}},
		{When: `(?i)shorten "it"`, Attempts: []script.Attempt{{
			Text: "Cut of", Finish: model.Length, Detail: "MAX", Delay: time.Millisecond,
			Usage: &model.Usage{Input: 100, Output: 5, Reasoning: 2, CacheRead: 7, CacheWrite: 3},
		}}},
		{Attempts: []script.Attempt{
			{Error: &model.Error{Kind: model.RateLimited, Status: 429, RetryAfter: 1500 * time.Millisecond, Message: "Slow down.", Hint: "wait a little"}},
			{Error: &model.Error{Kind: model.Overloaded}},
			{Text: "I read.", Calls: []model.Call{
				{ID: "call_x", Name: "read", Args: `{"path": "main.go"}`},
				{Name: "write", Args: "not JSON"},
				{Name: "list", Args: "{}"},
				{Name: "nothing", Args: "{}"},
			}},
		}},
		{Attempts: []script.Attempt{{Error: &model.Error{Kind: model.Auth, Status: 401, Message: "No key."}}}},
		{Attempts: []script.Attempt{{Text: "=== reply ===\n-- file.go --\n\\=== call x ===\n=== something else ==="}}},
	}
}

func TestParse(t *testing.T) {
	if diff := cmp.Diff(want(), parsed(t, text).Replies); diff != "" {
		t.Errorf("replies (-want +got):\n%s", diff)
	}
}

func TestParseErrorsNameTheLine(t *testing.T) {
	for _, test := range []struct{ name, data, want string }{
		{"empty", "", `demo:1: no replies; begin one with the line "=== reply ==="`},
		{"no marker", "Hello\n", "demo:1: no replies"},
		{"call first", "comment\n=== call read ===\n", "demo:2: a call must follow a reply"},
		{"call after an error", "=== error kind=cut last ===\n=== call read ===\n", "demo:2: a call must follow a reply"},
		{"call without a name", "=== reply ===\n=== call ===\n", "demo:2: a call must begin with the tool's name"},
		{"unknown word", "=== reply ===\n\n=== reply finsh=stop ===\n", `demo:3: unknown attribute "finsh=stop"`},
		{"unknown finish", "=== reply finish=done ===\n", "write stop, calls, length, filtered or other"},
		{"unknown kind", "=== error kind=odd ===\n", "rate-limited"},
		{"no kind", "=== error ===\n", "demo:1: an error needs a kind"},
		{"bad time", "=== reply delay=soon ===\n", "demo:1: time: invalid duration"},
		{"negative time", "=== reply ===\n=== reply delay=-1s ===\n", "demo:2: a duration is negative"},
		{"bad number", "=== reply input=many ===\n", "demo:1: strconv.ParseInt"},
		{"open quote", "=== reply when=\"a ===\n", "demo:1: a quoted value is not closed"},
		{"empty name", "=== reply ===\n=== call \"\" ===\n", "demo:2: a call must begin with the tool's name"},
		{"bad when", "x\n=== reply when=( ===\n", "demo:2: when: error parsing regexp"},
		{"late when", "=== error kind=cut ===\n=== reply when=a ===\n", "demo:2: only the first attempt"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := script.Parse("demo", []byte(test.data))
			if err == nil {
				t.Fatalf("Parse = %+v, want an error with %q", s.Replies, test.want)
			}
			if !strings.HasPrefix(err.Error(), "script demo:") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %q, want one with %q", err, test.want)
			}
		})
	}
}

func ask(seq, attempt int, question string) model.Request {
	return model.Request{Seq: seq, Attempt: attempt, Messages: []model.Message{
		{Role: model.User, Parts: []model.Part{{Text: "an earlier one: shorten \"it\""}}},
		{Role: model.Assistant, Parts: []model.Part{{Text: "ok"}}},
		{Role: model.User, Parts: []model.Part{{Text: question}}},
	}}
}

func TestGenerateChoosesByTheRequest(t *testing.T) {
	s := parsed(t, text)
	for _, test := range []struct {
		seq, attempt int
		question     string
		want         string
		kind         model.Kind
	}{
		{seq: 0, want: "Hello\n\ntwo blank lines follow\n\n"},
		{seq: 0, attempt: 7, want: "Hello\n\ntwo blank lines follow\n\n"},
		{seq: 0, question: `Shorten "it", please`, want: "Cut of"},
		{seq: 1, question: `Shorten "it", please`, want: "Cut of"},
		{seq: 99, question: `Shorten "it", please`, want: "Cut of"},
		{seq: 1, question: "Something else", kind: model.Invalid},
		{seq: 2, kind: model.RateLimited},
		{seq: 2, attempt: 1, kind: model.Overloaded},
		{seq: 2, attempt: 2, want: "I read."},
		{seq: 2, attempt: 3, want: "I read."},
		{seq: 3, kind: model.Auth},
		{seq: 3, attempt: 9, kind: model.Auth},
		{seq: 5, kind: model.Invalid},
		{seq: -1, kind: model.Invalid},
	} {
		reply, err := s.Generate(t.Context(), ask(test.seq, test.attempt, test.question))
		var e *model.Error
		if errors.As(err, &e) != (test.kind != "") || e != nil && e.Kind != test.kind || reply.Text() != test.want {
			t.Errorf("reply %d, attempt %d, %q: %q, %v; want %q or kind %q",
				test.seq, test.attempt, test.question, reply.Text(), err, test.want, test.kind)
		}
	}
}

func TestGeneratePrefersTheMatchAtItsIndex(t *testing.T) {
	s := parsed(t, "=== reply when=review ===\nfirst\n=== reply ===\nwork\n=== reply when=review ===\nsecond\n")
	for seq, want := range []string{"first", "first", "second", "first"} {
		reply, err := s.Generate(t.Context(), ask(seq, 0, "review this"))
		if err != nil || reply.Text() != want {
			t.Errorf("reply %d = %q, %v; want %q", seq, reply.Text(), err, want)
		}
	}
}

func TestWhenMatchesResults(t *testing.T) {
	s := parsed(t, "=== reply when=NEEDLE ===\nfound\n")
	req := model.Request{Messages: []model.Message{{Role: model.User, Parts: []model.Part{
		{Result: &model.Result{ID: "a", Text: "has the NEEDLE in it"}}, {Text: "continue"},
	}}}}
	if reply, err := s.Generate(t.Context(), req); err != nil || reply.Text() != "found" {
		t.Errorf("Generate = %q, %v; want the reply for the result", reply.Text(), err)
	}
}

func TestErrorsOfGenerate(t *testing.T) {
	_, err := parsed(t, text).Generate(t.Context(), ask(5, 0, ""))
	if err == nil || !strings.Contains(err.Error(), "script demo ends after reply 5, but the run requested reply 6") {
		t.Errorf("error = %v, want one with the number of replies", err)
	}
	_, err = new(script.Script).Generate(t.Context(), model.Request{})
	if e := (*model.Error)(nil); !errors.As(err, &e) || e.Temporary() {
		t.Errorf("the zero Script's error = %v, want one that is not temporary", err)
	}
}

// The error for a script that is too short says what a when does.
func TestTooFewRepliesBecauseOfAWhen(t *testing.T) {
	s := parsed(t, "=== reply ===\nwork\n=== reply when=NEEDLE ===\n=== call read ===\n")
	_, err := s.Generate(t.Context(), ask(4, 0, "Answer now."))
	if err == nil || !strings.HasSuffix(err.Error(), "requested reply 5; a reply with when answers every request that matches, and each takes a turn") {
		t.Errorf("error = %v, want one that explains when", err)
	}
}

func TestReply(t *testing.T) {
	var pieces []string
	req := ask(2, 2, "")
	req.Stream = func(s string) { pieces = append(pieces, s) }
	reply, err := parsed(t, text).Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	calls := []model.Call{
		{ID: "call_x", Name: "read", Args: `{"path": "main.go"}`},
		{ID: "call_3_2", Name: "write", Args: "not JSON"},
		{ID: "call_3_3", Name: "list", Args: "{}"},
		{ID: "call_3_4", Name: "nothing", Args: "{}"},
	}
	if diff := cmp.Diff(calls, reply.Calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if reply.Finish != model.Calls || !strings.Contains(string(reply.Raw), "I read.") {
		t.Errorf("Finish = %q, Raw = %s", reply.Finish, reply.Raw)
	}
	if strings.Join(pieces, "") != "I read." {
		t.Errorf("streamed %q", pieces)
	}
}

func TestUsage(t *testing.T) {
	s := parsed(t, "=== reply ===\n12345678\n=== reply input=0 ===\n")
	small, err := s.Generate(t.Context(), ask(0, 0, ""))
	if err != nil {
		t.Fatal(err)
	}
	large, err := s.Generate(t.Context(), ask(0, 0, strings.Repeat("x", 4000)))
	if err != nil {
		t.Fatal(err)
	}
	if small.Usage.Output != 2 || large.Usage.Input-small.Usage.Input < 999 {
		t.Errorf("usage = %+v, then %+v; want 2 output tokens and 1000 more input tokens", small.Usage, large.Usage)
	}
	if none, err := s.Generate(t.Context(), ask(1, 0, "")); err != nil || *none.Usage != (model.Usage{}) {
		t.Errorf("usage = %+v, %v; want zeros", none.Usage, err)
	}
}

// A caller that changes an error or a usage must not change the script.
func TestGenerateReturnsCopies(t *testing.T) {
	s := parsed(t, "=== error kind=cut last ===\nx\n=== reply input=5 ===\n")
	_, err := s.Generate(t.Context(), ask(0, 0, ""))
	var e *model.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	e.Message = "changed"
	reply, err := s.Generate(t.Context(), ask(1, 0, ""))
	if err != nil {
		t.Fatal(err)
	}
	reply.Usage.Input = 99
	if s.Replies[0].Attempts[0].Error.Message != "x" || s.Replies[1].Attempts[0].Usage.Input != 5 {
		t.Error("changing a result changed the script")
	}
}

func TestDelayEndsWithTheContext(t *testing.T) {
	s := parsed(t, "=== reply delay=1h ===\n")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	for range 2 {
		if _, err := s.Generate(ctx, ask(0, 0, "")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Generate = %v, want the context's error", err)
		}
	}
}

func TestNew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "demo.script")
	if _, err := script.New(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("New = %v, want os.ErrNotExist", err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := script.New(path)
	if err != nil {
		t.Fatal(err)
	}
	if reply, err := m.Generate(t.Context(), ask(0, 0, "")); err != nil || !strings.HasPrefix(reply.Text(), "Hello") {
		t.Errorf("Generate = %q, %v", reply.Text(), err)
	}
}

// Parse never panics, and each of its errors names the file.
func FuzzParse(f *testing.F) {
	f.Add(text)
	f.Add("=== reply ===\r\na\r\n=== call a\\b id=\"=\" ===\r\n\r\n")
	f.Add("=== reply\n")
	f.Fuzz(func(t *testing.T, data string) {
		if _, err := script.Parse("replies.script", []byte(data)); err != nil && !strings.Contains(err.Error(), "replies.script") {
			t.Error(err)
		}
	})
}
