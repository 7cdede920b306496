package screen_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"hone"
	"hone/cmd/hone/screen"
	"hone/workspace"
)

// asked asks a user who types the lines.
func asked(t *testing.T, o screen.Options, q hone.Question, lines string) (hone.Answer, string, error) {
	t.Helper()
	var out bytes.Buffer
	s := screen.New(&out, o)
	defer s.Close()
	a, err := screen.NewPrompter(s, screen.Lines(strings.NewReader(lines))).Ask(t.Context(), q)
	return a, out.String(), err
}

func change() hone.Question {
	return hone.Question{Path: "specs/s.md", Reason: "changes to it need approval", Old: []byte("old\n"), New: []byte("new\n"),
		Before: workspace.Image{Digest: "d"}, After: workspace.Image{Digest: "e"}}
}

func TestPersonAnswers(t *testing.T) {
	for _, test := range []struct {
		lines string
		want  hone.Answer
		open  bool
	}{
		{"y\n", hone.Answer{Approved: true, By: "person"}, false},
		{" YES \n", hone.Answer{Approved: true, By: "person"}, false},
		{"n\n", hone.Answer{By: "person"}, false},
		{"No\n", hone.Answer{By: "person"}, false},
		{"a\n", hone.Answer{Approved: true, Rest: true, By: "person"}, false},
		{"all\n", hone.Answer{Approved: true, Rest: true, By: "person"}, false},
		{"\nperhaps\nyy\nn\n", hone.Answer{By: "person"}, false},
		{"y", hone.Answer{Approved: true, By: "person"}, false},
		{"q\n", hone.Answer{By: "person"}, true},
		{"quit\ny\n", hone.Answer{By: "person"}, true},
		{"", hone.Answer{}, true},
		{"what\n", hone.Answer{}, true},
	} {
		got, _, err := asked(t, screen.Options{}, change(), test.lines)
		if got != test.want || errors.Is(err, hone.ErrPending) != test.open || err != nil && !test.open {
			t.Errorf("%q: %+v, %v; want %+v, open %v", test.lines, got, err, test.want, test.open)
		}
	}
}

func TestPersonIsTold(t *testing.T) {
	_, out, _ := asked(t, screen.Options{Colour: true}, change(), "what\ny\n")
	for _, want := range []string{"\x1b[31m-old\x1b[0m", "\x1b[32m+new\x1b[0m",
		"Change specs/s.md? Approval is needed because changes to it need approval. [y/n/a/q] ", "y: make this change"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if n := strings.Count(out, "[y/n/a/q]"); n != 2 {
		t.Errorf("it was asked %d times, want 2:\n%s", n, out)
	}
	_, out, _ = asked(t, screen.Options{}, change(), "y\n")
	if strings.Contains(out, "\x1b") || !strings.Contains(out, "\n-old\n+new\n") {
		t.Errorf("without colour:\n%q", out)
	}
}

func TestPersonIsToldWhatHappensToTheFile(t *testing.T) {
	create, remove := change(), change()
	create.Before, create.Old, create.More = workspace.Image{}, nil, 3
	remove.Delete, remove.New, remove.After = true, nil, workspace.Image{}
	if _, out, _ := asked(t, screen.Options{}, create, "y\n"); !strings.Contains(out, "Create specs/s.md?") || !strings.Contains(out, "(3 more questions) [y/n/a/q]") {
		t.Errorf("creating:\n%s", out)
	}
	if _, out, _ := asked(t, screen.Options{}, remove, "y\n"); !strings.Contains(out, "Delete specs/s.md?") || !strings.Contains(out, "+++ /dev/null") {
		t.Errorf("deleting:\n%s", out)
	}
}

// TestPersonSeesNoControls: neither a path nor contents can draw on the terminal
// or forge a line.
func TestPersonSeesNoControls(t *testing.T) {
	q := change()
	q.Path = "a\x1b[2J\nCreate b? [y/n/a/q] y"
	q.New = []byte("\x1b]0;title\x07 \x9b \u202e\n")
	_, out, _ := asked(t, screen.Options{}, q, "n\n")
	if strings.ContainsAny(out, "\x1b\x07\u202e") || strings.Contains(out, "\nCreate b?") {
		t.Errorf("%q", out)
	}
}

func TestPersonIsNotAskedAnyMore(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	s := screen.New(io.Discard, screen.Options{})
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := screen.NewPrompter(s, screen.Lines(r)).Ask(ctx, change()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
}
