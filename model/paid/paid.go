// Package paid asks models that cost money.
//
// A [Model] is a [model.Model] around others. It reserves what each attempt can cost before
// the request leaves, repeats an attempt that failed for a while, waits out an outage, and
// lets the next of its candidates take over from one that stays out of service (rulings G7,
// G11 and G17). A [Session] is one around a command-line agent. What they spend, and what is
// left, is in an [Account].
//
// Which candidate is asked, and what is spent, follows from the journal alone. Nothing else
// is remembered, so that a resumed run asks the model that the killed one asked last.
package paid

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"hone/history"
	"hone/journal"
	"hone/model"
)

// Candidate is a model that can reply to a role's requests, with its own limit and price.
type Candidate struct {
	Model  model.Model
	Called string // as the user names it: "gemini/gemini-2.5-pro"
	// MaxOutput limits the tokens of a reply. It must be greater than 0, because a reply
	// without a limit has no maximum cost to reserve.
	MaxOutput int64
	// Price is nil if it is unknown. A run with a cost limit needs it.
	Price *Price
}

// Model asks the first of its candidates that has not failed in the run. A request is the same
// for all of them, so that none of what was sent or recorded depends on which one replied;
// only opaque parts go to no other model than the one that wrote them.
type Model struct {
	Account    *Account
	Role       string
	Round      int
	Candidates []Candidate
	Context    int64 // as in hone.Role; 0 means that it is unknown
	// Size is how many bytes the request has in its recorded form, by which it is charged; 0
	// means that the caller has not counted them.
	Size int64
}

// Generate returns the reply of the first candidate that has one. MaxOutput of the request
// lowers the candidates' own limits; 0 does not. The error is a [*history.Stop] if the budget
// does not pay for the request or no candidate replied, or a [*ContextError].
func (m Model) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	size := m.Size
	if size == 0 {
		var err error
		if size, err = sizeOf(req); err != nil {
			return model.Reply{}, err
		}
	}
	now, next := m.InService()
	pause := m.Account.Retry.backoff()
	for req.Attempt = 0; ; req.Attempt++ {
		reply, err := m.attempt(ctx, now, req, size)
		var fault *model.Error
		if err == nil || ctx.Err() != nil || !errors.As(err, &fault) {
			return reply, err
		}
		p := m.Account.patience(now.Called, next != nil)
		switch ended := p.ends(fault, req.Attempt+1); {
		case ended && next != nil && (fault.Temporary() || fault.Kind == model.Quota): // a wrong key, or a request that is rejected, must not go unnoticed
			err = m.PassOn(fault.Error())
			now, next = m.InService()
			req.Attempt = -1
			pause.Reset()
		case ended:
			err = m.giveUp(now, fault, size, req.Attempt+1, p)
		default:
			d := max(pause.NextBackOff(), fault.RetryAfter)
			if _, err = m.Account.Append(journal.Entry{Type: history.TypeRetry, Payload: history.Retried{
				Attempt: req.Attempt, Limit: p.attempts, Error: fault.Error(), Wait: d.Milliseconds()}}); err == nil {
				err = wait(ctx, d, time.Now)
			}
		}
		if err != nil {
			return model.Reply{}, err
		}
	}
}

func (m Model) attempt(ctx context.Context, c Candidate, req model.Request, size int64) (model.Reply, error) {
	if req.MaxOutput > 0 {
		c.MaxOutput = min(c.MaxOutput, req.MaxOutput)
	}
	held, err := m.Account.reserve(m.Role, c, req.Attempt, size+framingTokens)
	if err != nil {
		return model.Reply{}, err
	}
	req.MaxOutput = held.out
	req.Messages = withCacheMarks(readableBy(req.Messages, c.Called))
	reply, fault := c.Model.Generate(ctx, req)
	used, err := m.Account.commit(held, reply.Usage, fault)
	if err != nil {
		return model.Reply{}, err
	}
	if wrote := outputOf(reply, used); wrote > held.out {
		next := history.Next{First: "choose another model", Verb: history.NewRun}
		if held.out == c.MaxOutput { // the budget did not lower it
			next.First += ", or set a larger max-output in [model] of .config/hone.toml"
		}
		return model.Reply{}, &history.Stop{Kind: history.KindBudget, Next: next,
			Why: fmt.Sprintf("%s wrote %d tokens although the limit was %d: a provider that ignores the output limit cannot be kept within a budget", c.Called, wrote, held.out)}
	}
	if e := (*model.Error)(nil); errors.As(fault, &e) {
		if instead, ok := e.Reply(); ok {
			reply, fault = instead, nil
		}
	}
	reply.Usage = used // record no usage that is not plausible
	reply.Parts = signed(reply.Parts, c.Called)
	return reply, fault
}

// sparseTokenBytes is how many bytes a token has in the text of a reply that has few tokens for
// its size: long runs of spaces.
const sparseTokenBytes = 20

// If the provider does not say it plausibly, the text tells how many tokens it has at least.
func outputOf(reply model.Reply, used *model.Usage) int64 {
	if used == nil {
		return reply.Size() / sparseTokenBytes
	}
	return used.Output
}

// InService returns the candidate that is asked now, and the one that takes its place if it
// fails too; nil if there is none.
func (m Model) InService() (now Candidate, next *Candidate) {
	left := slices.DeleteFunc(slices.Clone(m.Candidates), func(c Candidate) bool { return m.Account.Past().HasFailed(c.Called) })
	switch len(left) {
	case 0:
		return m.Candidates[len(m.Candidates)-1], nil
	case 1:
		return left[0], nil
	}
	return left[0], &left[1]
}

// PassOn lets the next candidate take the place of the one that is asked now, for the rest of
// the run. Without another candidate it does nothing.
func (m Model) PassOn(why string) error {
	now, next := m.InService()
	if next == nil {
		return nil
	}
	_, err := m.Account.Append(journal.Entry{Type: history.TypeFailover, Payload: history.FailedOver{
		Round: m.Round, Role: m.Role, From: now.Called, To: next.Called, Error: why}})
	return err
}

// smallContext is less than any model has, in tokens.
const smallContext = 8 << 10

// size is that of the request, in bytes.
func (m Model) giveUp(c Candidate, fault *model.Error, size int64, attempts int, p patience) error {
	stop := &history.Stop{Kind: history.KindFailed, Next: afterFault(fault), Why: fmt.Sprintf("%s did not answer: %s", c.Called, fault.Error())}
	// A server, or a proxy in front of it, may limit the size of a request far below the model's context.
	limited := fault.Status == http.StatusRequestEntityTooLarge && size/4 < max(m.Context, smallContext)/2
	switch {
	case fault.Kind == model.TooLong && !limited:
		return &ContextError{Limit: m.Context, Says: fault.Message}
	case p.tooLong(fault.RetryAfter):
		stop.Next = history.ResumeAfter(fmt.Sprintf("wait %s, as the provider asks", history.DurationText(fault.RetryAfter)))
	case attempts > 1:
		stop.Why += fmt.Sprintf(" (%d attempts)", attempts)
	}
	return stop
}

func afterFault(fault *model.Error) history.Next {
	next := history.ResumeAfter(fault.Hint)
	if fault.Alternative != "" {
		next.Or = &history.Next{First: fault.Alternative}
	}
	return next
}

// ContextError is the error for a request that does not fit the model's context
// (ruling G10). The loop adds what takes the space.
type ContextError struct {
	Need   int64  // estimated tokens of the request; 0 if the provider rejected it
	Limit  int64  // tokens; 0 if unknown
	Says   string // the provider's message, if it rejected the request
	Room   string // what takes the space, in lines; empty if unknown
	Remedy string // how to save space, as a clause in the imperative; empty if unknown
}

// Next returns what the user can do: save space, or change the limit.
func (e *ContextError) Next() history.Next {
	first := strings.TrimPrefix(e.Remedy+", or choose a model with a larger context", ", or ")
	if e.Need > 0 { // the limit is hone's own
		first += fmt.Sprintf(", or set context in [model] of .config/hone.toml if the model has more than %d tokens", e.Limit)
	}
	return history.Next{First: first, Verb: history.NewRun}
}

func (e *ContextError) Error() string {
	text := "the prompt does not fit the model's context: " + e.Says
	if e.Need > 0 {
		text = fmt.Sprintf("the prompt does not fit the model's context: about %d tokens, but the limit is %d", e.Need, e.Limit)
	}
	if e.Room != "" {
		text += "\n" + e.Room
	}
	return text
}

// signed returns the parts of a reply with the name of the model that wrote them.
func signed(parts []model.Part, called string) []model.Part {
	parts = slices.Clone(parts)
	for i, p := range parts {
		if p.Opaque != nil {
			opaque := *p.Opaque
			opaque.From = called
			parts[i].Opaque = &opaque
		}
	}
	return parts
}

// A model can neither read nor verify the opaque parts of others: even models of the same provider reject them.
func readableBy(messages []model.Message, called string) []model.Message {
	foreign := func(p model.Part) bool { return p.Opaque != nil && p.Opaque.From != "" && p.Opaque.From != called }
	own := slices.Clone(messages)
	for i, m := range own {
		if slices.ContainsFunc(m.Parts, foreign) {
			own[i].Parts = slices.DeleteFunc(slices.Clone(m.Parts), foreign)
		}
	}
	return own
}

// withCacheMarks marks where the stable parts of a conversation end, for
// providers that need marks to cache them: after the first message; after the
// last, which the next turn repeats; and where the turn before had that mark,
// because providers look for it only near a mark, and a turn may have many
// parts. It leaves a request of one message as the loop marked it.
func withCacheMarks(messages []model.Message) []model.Message {
	if len(messages) < 2 {
		return messages
	}
	marked := slices.Clone(messages)
	for _, i := range []int{0, max(0, len(marked)-3), len(marked) - 1} {
		parts := slices.Clone(marked[i].Parts)
		if n := len(parts); n > 0 {
			parts[n-1].Cache = true
		}
		marked[i].Parts = parts
	}
	return marked
}

func sizeOf(req model.Request) (int64, error) {
	b, err := journal.Encode(req)
	return int64(len(b)), err
}

// Retry says how often and when a request is repeated after a temporary error
// of a provider.
type Retry struct {
	// Attempts is the maximum number of attempts at a call, including the first. 0
	// means 6 until the model has replied in the run, because its address may be
	// wrong, and no limit afterwards: then only the run's time limits an outage
	// (ruling G17).
	Attempts int
	First    time.Duration // wait before the second attempt, doubled for each further one; 0 means 1 s
	// Most is the maximum wait, unless the provider asks for more, before it is
	// varied by half; 0 means 200 s, so that no wait is longer than 5 min.
	Most time.Duration
}

// 0 means no limit.
func (t Retry) maxAttempts(replied bool) int {
	if t.Attempts == 0 && !replied {
		return 6
	}
	return t.Attempts
}

func (t Retry) backoff() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier = time.Second, 200*time.Second, 2
	if t.First > 0 {
		b.InitialInterval = t.First
	}
	if t.Most > 0 {
		b.MaxInterval = t.Most
	}
	b.Reset()
	return b
}

const (
	// maxWait is the longest delay that a provider may ask for before its first reply
	// in a run. If it asks for more, the run stops.
	maxWait = 15 * time.Minute
	// maxSpareWait is the longest delay that it may ask for if another model can take its
	// place. Limits per minute end within it.
	maxSpareWait = time.Minute
)

// patience is how long a call may take in spite of temporary errors.
type patience struct {
	attempts int           // maximum number; 0 means no limit
	wait     time.Duration // maximum delay that the provider may ask for; 0 means no limit
}

// patience returns the patience with a model (ruling G17). Once the model has replied in
// the run, only the run's time limits an outage: a user who sleeps cannot resume the run.
// If another model can take its place, that is always better than to wait.
func (a *Account) patience(called string, spare bool) patience {
	if spare {
		return patience{attempts: a.Retry.maxAttempts(false), wait: maxSpareWait}
	}
	p := patience{attempts: a.Retry.maxAttempts(a.Past().HasReplied(called)), wait: maxWait}
	if p.attempts == 0 {
		p.wait = a.Limits.Time
		if p.wait > 0 {
			p.wait = max(1, p.wait-a.Active())
		}
	}
	return p
}

func (p patience) ends(fault *model.Error, attempts int) bool {
	return !fault.Temporary() || p.attempts > 0 && attempts >= p.attempts || p.tooLong(fault.RetryAfter)
}

func (p patience) tooLong(wait time.Duration) bool { return p.wait > 0 && wait > p.wait }

const lookAtClock = time.Second

// wait waits until d has passed by the time of day or by the process's clock, whichever is
// earlier. Linux stops the process's clock while the machine is suspended, and the user
// may set the time of day back.
func wait(ctx context.Context, d time.Duration, now func() time.Time) error {
	started := now()
	for {
		at := now()
		left := d - max(at.Sub(started), at.Round(0).Sub(started.Round(0)))
		if left <= 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(left, lookAtClock)):
		}
	}
}
