package web

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
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
	d := &OwnRun{ID: "r"}
	ctx, human := d.Attend(t.Context(), user, func(text string) { said = text })
	defer d.Stop()
	ask := func() <-chan hone.Answer {
		answered := make(chan hone.Answer)
		go func() {
			a, err := human.Ask(ctx, q)
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
	if d.answer(q.Digest("another run")+"=yes") == nil {
		t.Error("an answer to another question counts")
	}
	for _, text := range []string{"", q.Digest("r"), q.Digest("r") + "=perhaps"} {
		if d.answer(text) == nil {
			t.Errorf("%q is an answer", text)
		}
	}
	if err := d.answer(q.Digest("r") + "=yes"); err != nil {
		t.Error(err)
	}
	if d.answer(q.Digest("r")+"=no") == nil {
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
	if d.answer(q.Digest("r")+"=yes") == nil {
		t.Error("an answer counts after the one in the terminal")
	}
}

// TestNothingBegins: an ended server does nothing for the user, because nothing would wait for it.
func TestNothingBegins(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(ctx, l, nil, Options{Say: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	end()
	if err := s.Serve(l); err != nil {
		t.Error(err)
	}
	w := httptest.NewRecorder()
	s.allowed(s.act).ServeHTTP(w, httptest.NewRequest("POST", "/act/resume/run", nil))
	if w.Code != http.StatusInternalServerError {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
}
