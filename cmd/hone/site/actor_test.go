package site

import (
	"context"
	"strings"
	"testing"
	"time"

	"hone"
	"hone/workspace"
)

// terminalUser is a user at a terminal, who answers when a test says so.
type terminalUser chan bool

func (u terminalUser) Ask(ctx context.Context, _ hone.Question) (hone.Answer, error) {
	select {
	case yes := <-u:
		return hone.Answer{Approved: yes, By: "user"}, nil
	case <-ctx.Done():
		return hone.Answer{}, ctx.Err()
	}
}

// TestDesk: the first answer wins, on the page or in the terminal, and the other loses.
func TestDesk(t *testing.T) {
	q := hone.Question{Path: "a", After: workspace.Image{Digest: "d"}}
	user, said := make(terminalUser), ""
	d := &desk{run: "r", terminal: user, say: func(text string) { said = text }}
	ask := func() <-chan hone.Answer {
		answered := make(chan hone.Answer)
		go func() {
			a, err := d.Ask(t.Context(), q)
			if err != nil {
				t.Error(err)
			}
			answered <- a
		}()
		for d.question() == nil {
			time.Sleep(time.Millisecond)
		}
		return answered
	}
	answered := ask()
	if d.answer(q.Digest("another run"), true) == nil {
		t.Error("an answer to another question counts")
	}
	if err := d.answer(q.Digest("r"), true); err != nil {
		t.Error(err)
	}
	if d.answer(q.Digest("r"), false) == nil {
		t.Error("a second answer counts")
	}
	if a := <-answered; !a.Approved || !strings.Contains(said, "answered on the page: yes") {
		t.Errorf("%+v, %q", a, said)
	}
	answered = ask()
	user <- false
	if a := <-answered; a.Approved {
		t.Errorf("%+v", a)
	}
	if d.answer(q.Digest("r"), true) == nil {
		t.Error("an answer counts after the one in the terminal")
	}
}

// TestActorIsClosed: an ended server resumes no run, because nothing would stop that run.
func TestActorIsClosed(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	var s Source
	s.Allow(ctx, Options{Say: func(string) {}})
	x := s.Actor()
	end()
	s.Close()
	if _, _, err := x.reserve(t.Context(), "dir", "run"); err == nil || len(x.children) > 0 {
		t.Error(err, x.children)
	}
}
