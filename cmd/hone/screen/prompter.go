package screen

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"hone"
	"hone/history"
	"hone/internal/render"
	"hone/story"
)

// Prompter asks the user at the terminal, one question per file, with the change
// as a diff.
type Prompter struct {
	// Present reports whether the user can be asked now; nil means always. If not,
	// the question is pending. It is called again and again while a question waits,
	// because the user may put the process into the background of the terminal.
	Present func() bool
	// Page shows a text in the user's pager; nil if there is none.
	Page func(text string) error
	// Edit opens contents in the user's editor, as a file with the base name of a
	// path, and returns the user's version; nil if there is no editor.
	Edit func(path string, content []byte) ([]byte, error)
	// Waits is called once for each question, before the user answers; nil does
	// nothing.
	Waits func(q hone.Question)

	screen      *Screen
	next        func() <-chan string
	total, left int    // questions about the current change, and those that follow
	path        string // of the last question
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

// lookForUser is how often a question that waits looks whether the user is present.
const lookForUser = 200 * time.Millisecond

// Ask shows the question and waits for an answer. After q, or at the end of
// input, it returns hone.ErrPending and the question stays open.
func (p *Prompter) Ask(ctx context.Context, q hone.Question) (hone.Answer, error) {
	if !p.present() {
		return hone.Answer{By: history.NoUser}, nil
	}
	again := (q.Edited || q.Problem != "") && q.Path == p.path && q.More == p.left // the user has edited what the last question was about
	if !again && (p.left == 0 || q.More != p.left-1) {
		p.total = q.More + 1
	}
	p.left, p.path = q.More, q.Path
	p.show(q, again)
	defer p.close()
	if p.Waits != nil && !again {
		p.Waits(q)
	}
	for {
		p.prompt(q)
		line, gone, err := p.line(ctx)
		switch {
		case err != nil:
			p.screen.Say("")
			return hone.Answer{}, err
		case gone:
			p.screen.Say("")
			return hone.Answer{By: history.NoUser}, nil
		case q.Asks != "" && strings.TrimSpace(line) == "q":
			return hone.Answer{}, hone.ErrPending
		case q.Asks != "":
			return hone.Answer{Text: strings.TrimSpace(line), By: "user"}, nil
		}
		if a, err, known := answer(line); known {
			return a, err
		}
		if content, ok := p.act(q, line); ok || ctx.Err() != nil {
			return hone.Answer{By: "user", Contents: content}, ctx.Err()
		}
	}
}

// gone means that the user cannot be asked any more.
func (p *Prompter) line(ctx context.Context) (line string, gone bool, err error) {
	look := time.NewTicker(lookForUser)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return "", false, ctx.Err()
		case line, ok := <-p.next():
			if !ok {
				return "", false, hone.ErrPending
			}
			return line, false, nil
		case <-look.C:
			if !p.present() {
				return "", true, nil
			}
		}
	}
}

func (p *Prompter) present() bool { return p.Present == nil || p.Present() }

// It opens the editor or the pager, or says what the answers mean. ok is false if the user has not edited the contents.
func (p *Prompter) act(q hone.Question, line string) (edited []byte, ok bool) {
	switch word := strings.ToLower(strings.TrimSpace(line)); {
	case p.edits(q) && (word == "e" || word == "edit"):
		return p.edit(q)
	case p.Page != nil && (word == "p" || word == "pager"):
		if err := p.Page(p.screen.o.Colour.Diff(diffOf(q))); err != nil {
			p.screen.Say("  the pager failed: %s", err.Error())
		}
	default:
		if word != "" && word != "?" {
			p.screen.Say("  unknown answer \"%s\"", render.Line(strings.TrimSpace(line)))
		}
		y, n := "make this change", "do not change this file"
		if q.AboutJudges() {
			y, n = "make this change again: then the run is done", "leave it as it is now: the model tries without the change if a round is left"
		}
		p.screen.Say("  y  %s\n  n  %s\n  a  make this change and all others that are asked about now", y, n)
		if p.edits(q) {
			p.screen.Say("  e  edit the new contents in $EDITOR or vi, and see the change again")
		}
		if p.Page != nil {
			p.screen.Say("  p  show the whole diff in $PAGER, or less")
		}
		p.screen.Say("  q  decide later: stop now, and hone resume asks again")
	}
	return nil, false
}

func (p *Prompter) edits(q hone.Question) bool {
	return p.Edit != nil && !q.Delete && utf8.Valid(q.New) && !bytes.ContainsRune(q.New, 0)
}

// ok is false if the contents that the editor leaves are no change.
func (p *Prompter) edit(q hone.Question) (edited []byte, ok bool) {
	content := q.New
	if q.Refused != nil {
		content = q.Refused
	}
	edited, err := p.Edit(q.Path, content)
	switch {
	case err != nil:
		p.screen.Say("  not edited: %s", err.Error())
	case len(edited) == 0:
		p.screen.Say("  not edited: the editor left no text; n does not change the file")
	case bytes.Equal(edited, content), bytes.Equal(edited, q.New):
		p.screen.Say("  not edited: the contents are the same as before")
	default:
		return edited, true
	}
	return nil, false
}

func answer(line string) (a hone.Answer, err error, known bool) {
	a.By = "user"
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

// The number of lines of a diff that a question shows, unless only a few more follow. The pager
// shows the others.
const (
	diffLines = 15
	diffMore  = 5
)

// Sequences that call for the user: the bell, and a title that the terminal restores.
const (
	bell     = "\a"
	setTitle = "\x1b[22;0t\x1b]2;hone: a question waits\a"
	oldTitle = "\x1b[23;0t"
)

// again means that the user has just edited the change, and need not be called.
func (p *Prompter) show(q hone.Question, again bool) {
	s := p.screen
	defer s.lock()()
	s.endLine()
	s.asking = true
	if s.region != nil {
		if !again {
			s.text.WriteString(bell)
		}
		s.text.WriteString(setTitle)
	}
	if q.Asks != "" {
		fmt.Fprintf(&s.text, "\n%s\n%s\n", s.o.Colour.Bold("The model asks:"), p.wrapped(render.Line(q.Asks)))
		return
	}
	added, removed := render.Stat(q.Old, q.New)
	header := fmt.Sprintf("[%d/%d] %s %s", p.total-p.left, p.total, story.Verb(q), render.Line(q.Path))
	reason := render.Line(q.Reason)
	if q.Edited {
		reason = "edited by you; " + reason
	}
	about := "   (" + reason + ")"
	if q.AboutJudges() { // which has a long reason
		if q.Said != "" {
			reason += " (the model says: \"" + render.Line(q.Said) + "\")"
		}
		about = "\n" + p.wrapped(reason)
	}
	fmt.Fprintf(&s.text, "\n%s  %s%s\n", s.o.Colour.Bold(header), render.StatText(added, removed, "−"), about)
	if q.Problem != "" {
		fmt.Fprintf(&s.text, "  %s your contents cannot be used: %s\n", s.o.Colour.Yellow("!"), render.Line(q.Problem))
	}
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

func (p *Prompter) wrapped(text string) string {
	if p.screen.o.Size == nil {
		return "  " + text
	}
	columns, _ := p.screen.o.Size()
	return render.Wrap("  "+text, columns)
}

func (p *Prompter) close() {
	defer p.screen.lock()()
	p.screen.asking = false
	if p.screen.region != nil {
		p.screen.text.WriteString(oldTitle)
	}
}

func (p *Prompter) prompt(q hone.Question) {
	s := p.screen
	defer s.lock()()
	if q.Asks != "" {
		s.text.WriteString("Answer? [a line; empty: no answer; q: later] ")
		return
	}
	keys := "y/n/a/"
	if p.edits(q) {
		keys += "e/"
	}
	if p.Page != nil {
		keys += "p/"
	}
	fmt.Fprintf(&s.text, "%s %s? [%sq/?] ", story.Verb(q), render.Line(q.Path), keys)
}
