package web

import (
	"cmp"
	"context"
	"strings"
	"sync"

	"hone"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/page"
	"hone/cmd/hone/report"
)

// OwnRun is the run of this process. After [OwnRun.Attend] the user can act on it on its page.
type OwnRun struct {
	ID    string
	Reply *page.Reply // that the run waits for; nil if it is not known

	stop     func()
	terminal hone.Human
	say      func(text string)

	mu    sync.Mutex
	waits *hone.Question // nil if none does
	leave func()         // ends the question at the terminal
	given *hone.Answer   // on the page; nil before
}

// Attend lets the user stop the run on the page, and answer its questions there as well as to
// human, who is asked in the terminal; nil asks none. The run must have the returned context,
// which the caller must end with [OwnRun.Stop], and the returned Human.
func (o *OwnRun) Attend(ctx context.Context, human hone.Human, say func(text string)) (context.Context, hone.Human) {
	ctx, o.stop = context.WithCancel(ctx)
	o.terminal, o.say = human, say
	if human == nil {
		return ctx, nil
	}
	return ctx, o
}

// Stop stops the run.
func (o *OwnRun) Stop() { o.stop() }

// Ask asks at the terminal and on the page. The first answer counts.
func (o *OwnRun) Ask(ctx context.Context, q hone.Question) (hone.Answer, error) {
	asking, leave := context.WithCancel(ctx)
	defer leave()
	o.mu.Lock()
	o.waits, o.leave, o.given = &q, leave, nil
	o.mu.Unlock()
	a, err := o.terminal.Ask(asking, q)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waits = nil
	if o.given == nil {
		return a, err
	}
	text := cmp.Or(o.given.Text, "no")
	if o.given.Approved {
		text = "yes"
	}
	o.say("  answered on the page: " + text)
	return *o.given, nil
}

func (o *OwnRun) question() *hone.Question {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.given != nil {
		return nil
	}
	return o.waits
}

// answer answers the question that waits, if text is its digest with = and an answer to it.
func (o *OwnRun) answer(text string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	digest, value, _ := strings.Cut(text, "=")
	if o.waits == nil || o.given != nil || o.waits.Digest(o.ID) != digest {
		return failure.Usage("this question no longer waits for an answer", "")
	}
	a, ok := report.ParseAnswer(*o.waits, value)
	if !ok {
		return failure.Usage("the answer to this question is yes or no", "")
	}
	o.given = &a
	o.leave()
	return nil
}
