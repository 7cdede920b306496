package hone

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"hone/history"
	"hone/journal"
	"hone/model"
	"hone/tool"
)

// Role is whom a loop asks, and under which terms.
type Role struct {
	Name  string // "editor"
	Model model.Model
	// Agent says that Model is a command-line agent: a call of it is a whole
	// session, with tools of its own, that may change the tree. Tools, Bounds
	// and Answered then mean nothing, and what it asks models is charged by
	// whoever passes that on; see [Run.Reserve].
	Agent  bool
	Called string // the model as the user names it: "gemini/gemini-2.5-pro"
	System string
	// Reasoning is the effort asked for; empty leaves it to the provider.
	Reasoning model.Reasoning
	// MaxOutput is the most tokens that a reply may have. It must be positive:
	// without a limit that is sent nothing could be reserved.
	MaxOutput int64
	// Context is how many tokens the model can read and write in one call; 0
	// means that it is not known, and then the provider says when it is too
	// much.
	Context int64
	// Price is nil where it is not known.
	Price *Price

	// Folder is the part of the tree that the role works in, with slashes: of
	// what changed it is told only there, by paths relative to it. Empty is the
	// whole tree.
	Dir string
	// Tools are what the role can call in a conversation, in this order; see
	// [Run.Talk]. Ask offers none.
	Tools []tool.Tool
	// Bounds bound each of its sessions.
	Bounds Bounds
	// Answered says what an answer lacks that came without calls, worded for
	// the model; empty where it is one. Nil takes every text for an answer.
	Answered func(text string) string
}

// longestWait is how long a provider may ask to be left alone before the run
// rather stops and is gone on with later.
const maxWait = 15 * time.Minute

// Ask asks a role once and returns its reply, the recorded one where there is
// one. The whole request is kept. Temporary faults are tried again; each
// attempt is on the ledger before it leaves, with the most that it can use.
func (r *Run) Ask(ctx context.Context, role Role, messages []model.Message) (model.Reply, error) {
	at := r.at
	defer func() { r.at = at }()
	r.sessions++
	r.at.Session, r.at.Turn = r.sessions, 1
	sent, err := marshal(model.Request{System: role.System, Messages: messages, Reasoning: role.Reasoning})
	if err != nil {
		return model.Reply{}, err
	}
	sent = r.redact(sent)
	return r.send(ctx, role, sent, sent)
}

// send makes a call, of which keep is what is kept: the same, or what it adds
// to an earlier one.
func (r *Run) send(ctx context.Context, role Role, sent, keep []byte) (model.Reply, error) {
	open := func(context.Context) (any, error) {
		name, err := r.Journal.Home().Put(keep)
		return history.Asked{Role: role.Name, Model: role.Called, Request: name, Bytes: int64(len(sent))}, err
	}
	got, err := step(ctx, r, effect(history.TypeAsk, role.Name, role.stepInput(keep), open, func(ctx context.Context) (history.Replied, error) {
		return r.attempts(ctx, role, sent)
	}))
	if err != nil {
		return model.Reply{}, err
	}
	return r.reply(got)
}

// input is what the reply to a request depends on.
func (role Role) stepInput(request []byte) any {
	return []any{role.Name, role.Called, json.RawMessage(request)}
}

// reply reads the reply that a record names.
func (r *Run) reply(got history.Replied) (model.Reply, error) {
	return history.ReadReply(got, r.Journal.Home().Get)
}

// attempts makes the call until it succeeds, cannot, or was tried often enough.
func (r *Run) attempts(ctx context.Context, role Role, sent []byte) (history.Replied, error) {
	var req model.Request
	if err := json.Unmarshal(sent, &req); err != nil {
		return history.Replied{}, err
	}
	req.Stream, req.Seq, req.Messages = r.Stream, r.Past().Replies(), withCacheMarks(req.Messages)
	pause := r.Retry.backoff()
	for n := 0; ; n++ {
		req.Attempt = n
		reply, err := r.attempt(ctx, role, req, sent)
		if err == nil {
			return r.storeReply(role, reply, n+1)
		}
		var fault *model.Error
		if ctx.Err() != nil || !errors.As(err, &fault) {
			return history.Replied{}, err
		}
		wait := max(pause.NextBackOff(), fault.RetryAfter)
		if !fault.Temporary() || n+1 >= r.Retry.attempts() || wait > maxWait {
			return history.Replied{}, r.retryStop(role, fault, n+1)
		}
		if err := r.waitToRetry(ctx, fault, n, wait); err != nil {
			return history.Replied{}, err
		}
	}
}

// keep stores an accepted reply.
func (r *Run) storeReply(role Role, reply model.Reply, attempts int) (history.Replied, error) {
	b, err := marshal(history.StoredReply{Reply: reply, Raw: reply.Raw})
	if err != nil {
		return history.Replied{}, err
	}
	name, err := r.Journal.Home().Put(r.redact(b))
	return history.Replied{Role: role.Name, Model: role.Called, Reply: name, Bytes: len(reply.Text()),
		Finish: reply.Finish, Detail: reply.Detail, Usage: reply.Usage, Attempts: attempts}, err
}

// attempt makes one attempt, with its reserve before and its commit after.
func (r *Run) attempt(ctx context.Context, role Role, req model.Request, sent []byte) (model.Reply, error) {
	held, err := r.reserve(role, req.Attempt, int64(len(sent))+framingTokens)
	if err != nil {
		return model.Reply{}, err
	}
	req.MaxOutput = held.out
	reply, fault := role.Model.Generate(ctx, req)
	used, err := r.commit(held, reply.Usage, fault)
	if err != nil {
		return model.Reply{}, err
	}
	reply.Usage = used // what cannot be is not on record as said
	if used != nil && used.Output > held.out {
		return model.Reply{}, &Stop{Kind: KindBudget, Next: Next{First: "choose another model", Verb: NewRun},
			Why: fmt.Sprintf("%s wrote %d tokens where %d were allowed: a provider that ignores the output limit cannot be held to a budget", role.Called, used.Output, held.out)}
	}
	return reply, fault
}

func (r *Run) waitToRetry(ctx context.Context, fault *model.Error, n int, d time.Duration) error {
	e := history.Retried{Attempt: n, Error: r.cleanText(fault.Error()), Wait: d.Milliseconds()}
	if _, err := r.append(journal.Entry{Type: history.TypeRetry, Payload: e}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// retryStop is the stop for a fault that another attempt now does not help.
func (r *Run) retryStop(role Role, fault *model.Error, attempts int) error {
	stop := &Stop{Kind: KindFailed, Next: afterFault(fault), Why: fmt.Sprintf("%s did not answer: %s", role.Called, r.cleanText(fault.Error()))}
	switch {
	case fault.Kind == model.TooLong:
		return &ContextError{Limit: role.Context, Says: r.cleanText(fault.Message)}
	case fault.RetryAfter > maxWait:
		stop.Next = resumeAfter(fmt.Sprintf("wait %s, as it asks", fault.RetryAfter))
	case attempts > 1:
		stop.Why += fmt.Sprintf(" (%d attempts)", attempts)
	}
	return stop
}

// afterFault is what the user can do about a provider's or an agent's fault.
func afterFault(fault *model.Error) Next {
	return Next{First: fault.Hint, Verb: Resume, Or: fault.Alternative}
}

// Fits says whether a request of so many bytes fits the role's context beside
// a reply; a token is taken for four bytes. The error is a [*ContextError].
func (role Role) Fits(bytes int64) error {
	need := bytes/4 + min(role.MaxOutput, role.Context/8)
	if role.Context == 0 || need <= role.Context {
		return nil
	}
	return &ContextError{Need: need, Limit: role.Context}
}

// cacheMarks marks where a conversation's stable parts end, for providers that
// want to be told: its first message, and all that is sent now, which the next
// turn repeats. A request of one message keeps the marks that its loop set.
func withCacheMarks(messages []model.Message) []model.Message {
	if len(messages) < 2 {
		return messages
	}
	marked := append([]model.Message{}, messages...)
	for _, i := range []int{0, len(marked) - 1} {
		parts := append([]model.Part{}, marked[i].Parts...)
		if n := len(parts); n > 0 {
			parts[n-1].Cache = true
		}
		marked[i].Parts = parts
	}
	return marked
}
