package hone

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"hone/history"
	"hone/journal"
	"hone/model"
	"hone/tool"
)

// Role describes whom a loop asks, and on which terms. Name, Model, Called and
// MaxOutput are required.
type Role struct {
	Name  string // "editor"
	Model model.Model
	// Agent means that Model is a command-line agent. One call of it is a whole
	// session, in which the agent uses its own tools and may change the tree.
	// It ignores Tools, Bounds and Answered. A proxy charges the model calls
	// that the agent makes; see [Run.Reserve].
	Agent  bool
	Called string // the model as the user names it: "gemini/gemini-2.5-pro"
	System string
	// Reasoning is the requested effort; empty leaves it to the provider.
	Reasoning model.Reasoning
	// MaxOutput limits the tokens of a reply. It must be greater than 0,
	// because a reply without a limit has no maximum cost to reserve.
	MaxOutput int64
	// Context is how many tokens the model can read and write in one call; 0
	// means that it is unknown. Then only the provider reports that a request
	// is too long.
	Context int64
	// Price is nil if it is unknown. A run with a cost limit needs it.
	Price *Price
	// Fallbacks take the place of Model, in this order, for the rest of the run: each
	// when all attempts at a call of the one before failed because it is overloaded, out
	// of quota or unreachable. Context then applies to all of them, and should be the
	// smallest. Nil means that there are none. An agent must have none.
	Fallbacks []Substitute
	// Escalation does the role's part in all further rounds after EscalateAfter rounds in
	// a row that left no fewer findings; 0 means DefaultEscalateAfter. Model and Fallbacks then take its
	// place if it fails. Context applies to it too. Nil never does. An agent must have
	// none.
	Escalation    *Substitute
	EscalateAfter int

	// Dir is the directory of the tree that the role works in, with slashes.
	// The role learns only of changes in it, with paths relative to it. Empty
	// means the whole tree.
	Dir string
	// Tools are the tools that the role can call in a conversation
	// ([Run.Talk]), in this order; nil offers none. [Run.Ask] offers none.
	Tools []tool.Tool
	// TextCalls means that Model reads tool calls in the text of its replies.
	TextCalls bool
	// Bounds limit each of the role's sessions.
	Bounds Bounds
	// Answered judges a reply that has text and no calls. It returns what is
	// missing, as a text for the model, or an empty string if the reply is the
	// answer. Nil accepts every text as the answer.
	Answered func(text string) string
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
func (r *Run) patience(called string, spare bool) patience {
	if spare {
		return patience{attempts: r.Retry.maxAttempts(false), wait: maxSpareWait}
	}
	p := patience{attempts: r.Retry.maxAttempts(r.Past().HasReplied(called)), wait: maxWait}
	if p.attempts == 0 {
		p.wait = r.Limits.Time
		if p.wait > 0 {
			p.wait = max(1, p.wait-r.Journal.Active())
		}
	}
	return p
}

func (p patience) ends(fault *model.Error, attempts int) bool {
	return !fault.Temporary() || p.attempts > 0 && attempts >= p.attempts || p.tooLong(fault.RetryAfter)
}

func (p patience) tooLong(wait time.Duration) bool { return p.wait > 0 && wait > p.wait }

// Ask sends one request to a role and returns the reply, or the recorded reply
// if there is one. It records the complete request, but stores only what it adds to
// the role's last request in the round before. It repeats the request after temporary
// errors. Before each attempt it reserves the maximum that the attempt can cost.
//
// [UsableText] returns the text of a reply, which may also be cut off, empty, or
// reasoning in part. [Run.Interpret] judges files that the model sent, and [Run.Apply]
// writes them. The example of the package is a loop with one question, and
// hone/loop/reconcile a complete one.
//
// The error may be a [*ContextError], or a [*Stop] if the budget does not pay
// for the request or the provider failed.
func (r *Run) Ask(ctx context.Context, role Role, messages []model.Message) (model.Reply, error) {
	at := r.at
	defer func() { r.at = at }()
	r.sessions++
	r.at.Session, r.at.Turn = r.sessions, 1
	role, err := r.escalatedRole(role)
	if err != nil {
		return model.Reply{}, err
	}
	sent, err := marshal(model.Request{System: role.System, Messages: messages, Reasoning: role.Reasoning})
	if err != nil {
		return model.Reply{}, err
	}
	sent = r.redact(sent)
	keep, err := r.addedRequest(role, sent)
	if err != nil {
		return model.Reply{}, err
	}
	return r.send(ctx, role, sent, keep)
}

// addedRequest returns a request as it is stored: only the parts that it adds to the
// role's last request in the round before, or all of it if it repeats none.
func (r *Run) addedRequest(role Role, sent []byte) ([]byte, error) {
	last := r.lastAsked(role, r.at.Round-1)
	if last == nil {
		return sent, nil
	}
	object := last.Payload.(history.Asked).Request
	earlier, err := history.ReadWholeRequest(object, r.Journal.Home().Get)
	if err != nil {
		return nil, err
	}
	var now model.Request
	if err := json.Unmarshal(sent, &now); err != nil {
		return nil, err
	}
	repeated := repeatedParts(earlier, now)
	if repeated == 0 {
		return sent, nil
	}
	return marshal(history.AddedRequest{After: object, Repeated: repeated, Parts: now.Messages[0].Parts[repeated:]})
}

// It returns 0 if the requests differ in anything else.
func repeatedParts(earlier, now model.Request) int {
	if earlier.System != now.System || earlier.Reasoning != now.Reasoning || len(earlier.Tools)+len(now.Tools) > 0 ||
		len(earlier.Messages) != 1 || len(now.Messages) != 1 || earlier.Messages[0].Role != now.Messages[0].Role {
		return 0
	}
	was, is := earlier.Messages[0].Parts, now.Messages[0].Parts
	n := 0
	for n < min(len(was), len(is)) && reflect.DeepEqual(was[n], is[n]) {
		n++
	}
	return n
}

// keep is what is stored: the request, or what it adds to an earlier one.
func (r *Run) send(ctx context.Context, role Role, sent, keep []byte) (model.Reply, error) {
	open := func(context.Context) (any, error) {
		name, err := r.Journal.Home().Put(keep)
		now, _ := r.inService(role)
		return history.Asked{Role: role.Name, Model: now.Called, Request: name, Bytes: int64(len(sent))}, err
	}
	got, err := step(ctx, r, effect(history.TypeAsk, role.Name, role.stepInput(keep), open, func(ctx context.Context) (history.Replied, error) {
		return r.attempts(ctx, role, sent)
	}))
	r.stale = true // the user may have changed files meanwhile
	if err != nil {
		return model.Reply{}, err
	}
	return r.reply(got)
}

// Which of the role's models replied is not part of it: the record says that.
func (role Role) stepInput(request []byte) any {
	return []any{role.Name, role.Called, json.RawMessage(request)}
}

func (r *Run) reply(got history.Replied) (model.Reply, error) {
	return history.ReadReply(got, r.Journal.Home().Get)
}

func (r *Run) attempts(ctx context.Context, role Role, sent []byte) (history.Replied, error) {
	now, next := r.inService(role)
	var req model.Request
	if err := json.Unmarshal(sent, &req); err != nil {
		return history.Replied{}, err
	}
	req.Stream, req.CacheKey = r.Stream, r.cacheKey(role)
	req.Received = r.Received
	req.Seq, req.Messages = r.Past().Replies(), withCacheMarks(readableBy(req.Messages, now.Called))
	pause := r.Retry.backoff()
	for n := 0; ; n++ {
		req.Attempt = n
		reply, err := r.attempt(ctx, now, req, sent)
		if err == nil {
			return r.storeReply(now, role.signed(reply, now.Called), n+1)
		}
		var fault *model.Error
		if ctx.Err() != nil || !errors.As(err, &fault) {
			return history.Replied{}, err
		}
		p := r.patience(now.Called, next != "")
		if p.ends(fault, n+1) && next != "" && failsOver(fault) {
			if err := r.failOver(now, next, fault.Error()); err != nil {
				return history.Replied{}, err
			}
			return r.attempts(ctx, role, sent)
		}
		if p.ends(fault, n+1) {
			return history.Replied{}, r.retryStop(now, fault, n+1, p)
		}
		failed := history.Retried{Attempt: n, Limit: p.attempts, Error: r.cleanText(fault.Error())}
		if err := r.waitToRetry(ctx, failed, max(pause.NextBackOff(), fault.RetryAfter)); err != nil {
			return history.Replied{}, err
		}
	}
}

func (r *Run) storeReply(role Role, reply model.Reply, attempts int) (history.Replied, error) {
	b, err := marshal(history.StoredReply{Reply: reply, Raw: reply.Raw})
	if err != nil {
		return history.Replied{}, err
	}
	name, err := r.putHeld(r.redact(b))
	return history.Replied{Role: role.Name, Model: role.Called, Reply: name, Bytes: len(reply.Text()),
		Finish: reply.Finish, Detail: reply.Detail, Usage: reply.Usage, Attempts: attempts}, err
}

func (r *Run) attempt(ctx context.Context, role Role, req model.Request, sent []byte) (model.Reply, error) {
	held, err := r.reserve(role, req.Attempt, int64(len(sent))+framingTokens)
	if err != nil {
		return model.Reply{}, err
	}
	if err := r.release(held); err != nil {
		return model.Reply{}, err
	}
	req.MaxOutput = held.out
	if r.Thinking != nil {
		r.Thinking()
	}
	reply, fault := role.Model.Generate(ctx, req)
	used, err := r.commit(held, reply.Usage, fault)
	if err != nil {
		return model.Reply{}, err
	}
	reply.Usage = used // record no usage that is not plausible
	if used != nil && used.Output > held.out {
		next := Next{First: "choose another model", Verb: NewRun}
		if held.out == role.MaxOutput { // the budget did not lower it
			next.First += ", or set a larger max-output in [model] of .config/hone.toml"
		}
		return model.Reply{}, &Stop{Kind: KindBudget, Next: next,
			Why: fmt.Sprintf("%s wrote %d tokens although the limit was %d: a provider that ignores the output limit cannot be kept within a budget", role.Called, used.Output, held.out)}
	}
	return reply, fault
}

func (r *Run) waitToRetry(ctx context.Context, failed history.Retried, d time.Duration) error {
	failed.Wait = d.Milliseconds()
	if _, err := r.append(journal.Entry{Type: history.TypeRetry, Payload: failed}); err != nil {
		return err
	}
	return wait(ctx, d, time.Now)
}

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

func (r *Run) retryStop(role Role, fault *model.Error, attempts int, p patience) error {
	stop := &Stop{Kind: KindFailed, Next: afterFault(fault), Why: fmt.Sprintf("%s did not answer: %s", role.Called, r.cleanText(fault.Error()))}
	switch {
	case fault.Kind == model.TooLong:
		return &ContextError{Limit: role.Context, Says: r.cleanText(fault.Message)}
	case p.tooLong(fault.RetryAfter):
		stop.Next = resumeAfter(fmt.Sprintf("wait %s, as the provider asks", durationText(fault.RetryAfter)))
	case attempts > 1:
		stop.Why += fmt.Sprintf(" (%d attempts)", attempts)
	}
	return stop
}

func afterFault(fault *model.Error) Next {
	next := resumeAfter(fault.Hint)
	if fault.Alternative != "" {
		next.Or = &Next{First: fault.Alternative}
	}
	return next
}

// Fits returns a [*ContextError] if a request of so many bytes does not fit the
// role's context together with a reply. It counts four bytes as one token.
func (role Role) Fits(bytes int64) error {
	need := bytes/4 + min(role.MaxOutput, role.Context/8)
	if role.Context == 0 || need <= role.Context {
		return nil
	}
	return &ContextError{Need: need, Limit: role.Context}
}

// It is the same in all processes of a run, and reveals nothing.
func (r *Run) cacheKey(role Role) string {
	return sum([]byte(r.Journal.Run() + "\x00" + role.Name))[:32]
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
	marked := append([]model.Message{}, messages...)
	for _, i := range []int{0, max(0, len(marked)-3), len(marked) - 1} {
		parts := append([]model.Part{}, marked[i].Parts...)
		if n := len(parts); n > 0 {
			parts[n-1].Cache = true
		}
		marked[i].Parts = parts
	}
	return marked
}
