package screen

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"hone"
	"hone/history"
	"hone/internal/render"
)

// Prompter asks the user at the terminal, one question per file, with the change
// as a diff.
type Prompter struct {
	// Present reports whether the user can be asked now; nil means always. If not,
	// the question is pending.
	Present func() bool
	// Page shows a text in the user's pager; nil if there is none.
	Page func(text string) error
	// Waits is called once for each question, before the user answers; nil does
	// nothing.
	Waits func(ctx context.Context, q hone.Question)

	screen      *Screen
	next        func() <-chan string
	total, left int // questions about the current change, and those that follow
}

// NewPrompter returns a Prompter that takes its answers from [Lines].
func NewPrompter(s *Screen, next func() <-chan string) *Prompter {
	return &Prompter{screen: s, next: next}
}

// Lines returns a function that requests the next line of an input, and returns the
// channel that will have it. The channel is closed at the end of input. A read from a
// terminal cannot be canceled, and stops a process in the background; so nothing is
// read before it is requested.
func Lines(in io.Reader) (next func() <-chan string) {
	lines, wanted := make(chan string), make(chan struct{}, 1)
	go func() {
		defer close(lines)
		scan := bufio.NewScanner(in)
		for range wanted {
			if !scan.Scan() {
				return
			}
			lines <- scan.Text()
		}
	}()
	return func() <-chan string {
		select {
		case wanted <- struct{}{}:
		default: // it is requested already
		}
		return lines
	}
}

// Ask shows the question and waits for an answer. After q, or at the end of
// input, it returns hone.ErrPending and the question stays open.
func (p *Prompter) Ask(ctx context.Context, q hone.Question) (hone.Answer, error) {
	if p.Present != nil && !p.Present() {
		return hone.Answer{By: history.NoUser}, nil
	}
	p.count(q)
	p.show(q)
	defer p.close()
	if p.Waits != nil {
		p.Waits(ctx, q)
	}
	for {
		p.prompt(q)
		select {
		case <-ctx.Done():
			p.screen.Say("")
			return hone.Answer{}, ctx.Err()
		case line, ok := <-p.next():
			if !ok {
				p.screen.Say("")
				return hone.Answer{}, hone.ErrPending
			}
			if a, err, known := answer(line); known {
				return a, err
			}
			p.explain(q, line)
		}
	}
}

// count counts the questions about a change, of which q is the next one.
func (p *Prompter) count(q hone.Question) {
	if p.left == 0 || q.More != p.left-1 {
		p.total = q.More + 1
	}
	p.left = q.More
}

// explain shows the whole change in the pager if the user wants that, or else what the
// answers mean.
func (p *Prompter) explain(q hone.Question, line string) {
	if word := strings.ToLower(strings.TrimSpace(line)); p.Page != nil && (word == "p" || word == "pager") {
		if err := p.Page(p.screen.o.Colour.Diff(diffOf(q))); err != nil {
			p.screen.Say("  the pager failed: %s", err.Error())
		}
		return
	}
	p.screen.Say("  y  make this change\n  n  do not change this file\n  a  make this and all other changes of this reply\n  q  make no change of this reply, and stop")
	if p.Page != nil {
		p.screen.Say("  p  show the whole diff in $PAGER, or less")
	}
}

func answer(line string) (a hone.Answer, err error, known bool) {
	a.By = "person"
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		a.Approved = true
	case "n", "no":
	case "a", "all":
		a.Approved, a.Rest = true, true
	case "q", "quit":
		err = hone.ErrPending
	default:
		return a, nil, false
	}
	return a, err, true
}

func diffOf(q hone.Question) string { return render.Diff(render.Line(q.Path), q.Old, q.New) }

// The number of lines of a diff that a question shows, unless only a few more follow.
const (
	diffLines = 15
	diffMore  = 5
)

// Sequences that call for the user: the bell, and a title that the terminal restores.
const (
	callUser = "\a\x1b[22;0t\x1b]2;hone: a question waits\a"
	userCame = "\x1b[23;0t"
)

// show shows the header of a question, and the change.
func (p *Prompter) show(q hone.Question) {
	s := p.screen
	defer s.lock()()
	s.endLine()
	s.asking = true
	if s.region != nil {
		s.text.WriteString(callUser)
	}
	added, removed := render.Stat(q.Old, q.New)
	header := fmt.Sprintf("[%d/%d] %s %s", p.total-p.left, p.total, verbOf(q), render.Line(q.Path))
	fmt.Fprintf(&s.text, "\n%s  %s   (%s)\n", s.o.Colour.Bold(header), StatText(added, removed, "−"), render.Line(q.Reason))
	lines := strings.SplitAfter(strings.TrimRight(diffOf(q), "\n"), "\n")
	shown := len(lines)
	if p.Page != nil && shown > diffLines+diffMore {
		shown = diffLines
	}
	s.text.WriteString(s.o.Colour.Diff(strings.TrimRight(strings.Join(lines[:shown], ""), "\n")) + "\n")
	if more := len(lines) - shown; more > 0 {
		s.text.WriteString(s.o.Colour.Dim(fmt.Sprintf("  … %s (p shows all)", render.Count(more, "more line"))) + "\n")
	}
}

// close ends a question.
func (p *Prompter) close() {
	defer p.screen.lock()()
	p.screen.asking = false
	if p.screen.region != nil {
		p.screen.text.WriteString(userCame)
	}
}

func verbOf(q hone.Question) string {
	switch {
	case q.Delete:
		return "Delete"
	case !q.Before.Exists():
		return "Create"
	}
	return "Change"
}

func (p *Prompter) prompt(q hone.Question) {
	s := p.screen
	defer s.lock()()
	keys := "y/n/a/q/?"
	if p.Page != nil {
		keys = "y/n/a/p/q/?"
	}
	fmt.Fprintf(&s.text, "%s %s? [%s] ", verbOf(q), render.Line(q.Path), keys)
}
