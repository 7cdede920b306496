package screen_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/cmd/hone/screen"
	"hone/history"
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
		{"y\n", hone.Answer{Approved: true, By: "user"}, false},
		{" YES \n", hone.Answer{Approved: true, By: "user"}, false},
		{"n\n", hone.Answer{By: "user"}, false},
		{"No\n", hone.Answer{By: "user"}, false},
		{"a\n", hone.Answer{Approved: true, Rest: true, By: "user"}, false},
		{"all\n", hone.Answer{Approved: true, Rest: true, By: "user"}, false},
		{"\nperhaps\nyy\nn\n", hone.Answer{By: "user"}, false},
		{"y", hone.Answer{Approved: true, By: "user"}, false},
		{"q\n", hone.Answer{By: "user"}, true},
		{"quit\ny\n", hone.Answer{By: "user"}, true},
		{"", hone.Answer{}, true},
		{"what\n", hone.Answer{}, true},
	} {
		got, _, err := asked(t, screen.Options{}, change(), test.lines)
		if !cmp.Equal(got, test.want) || errors.Is(err, hone.ErrPending) != test.open || err != nil && !test.open {
			t.Errorf("%q: %+v, %v; want %+v, open %v", test.lines, got, err, test.want, test.open)
		}
	}
}

// A user who puts hone into the background while a question waits cannot be asked; one
// who fetches it back is asked the next question.
func TestUserLeavesAndComesBack(t *testing.T) {
	in, keyboard := io.Pipe()
	s := screen.New(io.Discard, screen.Options{})
	defer s.Close()
	p := screen.NewPrompter(s, screen.Lines(in))
	looks := 0
	p.Present = func() bool { looks++; return looks != 3 }
	if got, err := p.Ask(t.Context(), change()); err != nil || !cmp.Equal(got, hone.Answer{By: history.NoUser}) || looks != 3 {
		t.Errorf("after %d looks: %+v, %v", looks, got, err)
	}
	go func() { _, _ = io.WriteString(keyboard, "y\n") }()
	if got, err := p.Ask(t.Context(), change()); err != nil || !got.Approved {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestPersonIsTold(t *testing.T) {
	_, out, _ := asked(t, screen.Options{Colour: true}, change(), "what\ny\n")
	for _, want := range []string{"\x1b[31m-old\x1b[0m", "\x1b[32m+new\x1b[0m",
		"\n\x1b[1m[1/1] Change specs/s.md\x1b[0m  +1 −1   (changes to it need approval)\n", "Change specs/s.md? [y/n/a/q/?] ", "y  make this change"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if n := strings.Count(out, "[y/n/a/q/?]"); n != 2 {
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
	if _, out, _ := asked(t, screen.Options{}, create, "y\n"); !strings.Contains(out, "Create specs/s.md?") || !strings.Contains(out, "\n[1/4] Create specs/s.md  +1   (changes") {
		t.Errorf("creating:\n%s", out)
	}
	if _, out, _ := asked(t, screen.Options{}, remove, "y\n"); !strings.Contains(out, "Delete specs/s.md?") || !strings.Contains(out, "+++ /dev/null") {
		t.Errorf("deleting:\n%s", out)
	}
}

// TestQuestionsAreCounted: the header counts the questions about a change.
func TestQuestionsAreCounted(t *testing.T) {
	var out bytes.Buffer
	s := screen.New(&out, screen.Options{})
	defer s.Close()
	p := screen.NewPrompter(s, screen.Lines(strings.NewReader("y\ny\ny\ny\n")))
	for _, more := range []int{1, 0, 0, 2} {
		q := change()
		q.More = more
		if _, err := p.Ask(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	got := regexp.MustCompile(`\[./.\]`).FindAllString(out.String(), -1)
	if diff := cmp.Diff([]string{"[1/2]", "[2/2]", "[1/1]", "[1/3]"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEditedQuestionsKeepTheirNumber: what follows an edit is the same question again,
// and calls the user only once. A resumed run may start with one that was edited.
func TestEditedQuestionsKeepTheirNumber(t *testing.T) {
	var out bytes.Buffer
	s := screen.New(&out, screen.Options{Size: size(80, 24)})
	defer s.Close()
	p := screen.NewPrompter(s, screen.Lines(strings.NewReader("e\ne\ny\ny\ny\n")))
	waits, opened := 0, ""
	p.Edit = func(path string, content []byte) ([]byte, error) {
		opened += string(content)
		return append(content, "edited\n"...), nil
	}
	p.Waits = func(hone.Question) { waits++ }
	for _, one := range []struct {
		path            string
		more            int
		edited, refused bool
	}{{"a", 1, false, false}, {"a", 1, false, true}, {"a", 1, true, false}, {"b", 0, true, false}, {"b", 0, false, false}} {
		q := change()
		q.Path, q.More, q.Edited = one.path, one.more, one.edited
		if one.refused {
			q.Problem, q.Refused = "it is too large", []byte("mine\n")
		}
		a, err := p.Ask(t.Context(), q)
		if err != nil || a.Contents != nil && (!strings.HasSuffix(string(a.Contents), "\nedited\n") || a.Approved) {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	got := regexp.MustCompile(`\[./.\] Change .  `).FindAllString(out.String(), -1)
	if diff := cmp.Diff([]string{"[1/2] Change a  ", "[1/2] Change a  ", "[1/2] Change a  ", "[2/2] Change b  ", "[1/1] Change b  "}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if bells := strings.Count(out.String(), "\a\x1b[22;0t"); opened != "new\nmine\n" || waits != 3 || bells != 3 {
		t.Errorf("the editor opened %q; %d notifications, %d bells", opened, waits, bells)
	}
	for _, want := range []string{"(edited by you; changes to it need approval)", "! your contents cannot be used: it is too large\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not shown:\n%s", want, out.String())
		}
	}
}

// TestLongDiff: of a long diff only the start is shown, and the pager shows all.
func TestLongDiff(t *testing.T) {
	q := change()
	q.New = []byte(strings.Repeat("new\n", 200))
	var out bytes.Buffer
	s := screen.New(&out, screen.Options{})
	defer s.Close()
	p := screen.NewPrompter(s, screen.Lines(strings.NewReader("?\np\ny\n")))
	paged := ""
	p.Page = func(text string) error {
		paged = text
		return errors.New("no pager")
	}
	if _, err := p.Ask(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n+new"); n != 11 || !strings.Contains(out.String(), "\n  … 189 more lines (p shows all)\nChange specs/s.md? [y/n/a/p/q/?] ") {
		t.Errorf("%d added lines are shown:\n%s", n, out.String())
	}
	if n := strings.Count(paged, "\n+new"); n != 200 {
		t.Errorf("%d added lines are paged", n)
	}
	for _, want := range []string{"y  make this change", "p  show the whole diff", "the pager failed: no pager\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not shown:\n%s", want, out.String())
		}
	}
}

// TestQuestionCallsTheUser: on a terminal a question rings the bell, and has a title
// until it is answered.
func TestQuestionCallsTheUser(t *testing.T) {
	_, out, err := asked(t, screen.Options{Size: size(80, 24)}, change(), "y\n")
	call, answered := strings.Index(out, "\a\x1b[22;0t\x1b]2;hone: a question waits\a\n[1/1]"), strings.Index(out, "\x1b[23;0t")
	if err != nil || call < 0 || answered < call {
		t.Errorf("%v: %q", err, out)
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
