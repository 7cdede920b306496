package site

import (
	"context"
	"sync"

	"hone"
	"hone/cmd/hone/failure"
)

// OwnRun is the run of this process, on which the user can act on its page.
type OwnRun struct {
	id   string
	stop func()
	desk *desk
}

// NewOwnRun lets the user act on a run of this process: human, who is asked in the terminal, or
// the page answers its questions; nil means that it asks none. The caller must run it with the
// returned context, with [OwnRun.Human], and must stop it. say says in the terminal what the
// page answered.
func NewOwnRun(ctx context.Context, id string, human hone.Human, say func(text string)) (context.Context, *OwnRun) {
	ctx, stop := context.WithCancel(ctx)
	return ctx, &OwnRun{id: id, stop: stop, desk: &desk{run: id, terminal: human, say: say}}
}

// Stop stops the run.
func (o *OwnRun) Stop() { o.stop() }

// Human returns who answers the questions of the run; nil if it asks none.
func (o *OwnRun) Human() hone.Human {
	if o.desk.terminal == nil {
		return nil
	}
	return o.desk
}

// desk is a [hone.Human] that asks in the terminal, and also accepts an answer from the page.
// The first answer counts.
type desk struct {
	run      string
	terminal hone.Human
	say      func(text string)

	mu    sync.Mutex
	waits *hone.Question // nil if none does
	leave func()         // ends the question at the terminal
	given *hone.Answer   // on the page; nil before
}

// Ask asks at the terminal and on the page.
func (d *desk) Ask(ctx context.Context, q hone.Question) (hone.Answer, error) {
	asking, leave := context.WithCancel(ctx)
	defer leave()
	d.mu.Lock()
	d.waits, d.leave, d.given = &q, leave, nil
	d.mu.Unlock()
	a, err := d.terminal.Ask(asking, q)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waits = nil
	if d.given == nil {
		return a, err
	}
	d.say("  answered on the page: " + yesNo(d.given.Approved))
	return *d.given, nil
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// question returns the question that waits for an answer; nil if there is none.
func (d *desk) question() *hone.Question {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.given != nil {
		return nil
	}
	return d.waits
}

// answer answers the question that waits, if it has that digest.
func (d *desk) answer(digest string, approved bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waits == nil || d.given != nil || d.waits.Digest(d.run) != digest {
		return failure.Usage("this question no longer waits for an answer", "")
	}
	d.given = &hone.Answer{Approved: approved, By: "user"}
	d.leave()
	return nil
}
