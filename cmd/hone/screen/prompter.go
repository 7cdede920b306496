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

	screen *Screen
	next   func() <-chan string
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
	p.show(q)
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
			p.screen.Say("  y: make this change · n: do not change the file · a: make this and all other changes of this reply · q: make no change of this reply and stop")
		}
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

func (p *Prompter) show(q hone.Question) {
	s := p.screen
	defer s.lock()()
	s.endLine()
	s.asking = true
	fmt.Fprintf(&s.text, "\n%s\n", s.o.Colour.Diff(render.Diff(render.Line(q.Path), q.Old, q.New)))
}

func (p *Prompter) prompt(q hone.Question) {
	s := p.screen
	defer s.lock()()
	verb := "Change"
	switch {
	case q.Delete:
		verb = "Delete"
	case !q.Before.Exists():
		verb = "Create"
	}
	more := ""
	if q.More > 0 {
		more = fmt.Sprintf(" (%d more questions)", q.More)
	}
	fmt.Fprintf(&s.text, "%s %s? Approval is needed because %s.%s [y/n/a/q] ", verb, render.Line(q.Path), render.Line(q.Reason), more)
}
