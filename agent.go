package hone

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"hone/history"
	"hone/model"
)

// To the engine a session is a command: it is not repeated as it was. If it was interrupted, an agent starts anew and is told
// so, with the files that changed.
func (r *Run) delegate(ctx context.Context, role Role, messages []model.Message) (Conversation, error) {
	r.at.Turn = 1
	request := model.Request{System: role.System, Messages: messages, Reasoning: role.Reasoning}
	sent, err := marshal(request)
	if err != nil {
		return Conversation{}, err
	}
	sent = r.redact(sent)
	session := effect(history.TypeAsk, role.Name, role.stepInput(sent), nil, func(ctx context.Context) (history.Replied, error) {
		return r.askAgent(ctx, role, sent)
	})
	session.models = true
	begin := func(manifest string) (any, error) {
		name, err := r.Journal.Home().Put(sent)
		return history.Asked{Role: role.Name, Model: role.Called, Request: name, Bytes: int64(len(sent)), Command: true, Manifest: manifest}, err
	}
	got, _, err := once(ctx, r, command(r, session, begin, func(ctx context.Context, changed []string) (history.Replied, error) {
		return r.restartAgent(ctx, role, request, changed)
	}))
	if err != nil {
		return Conversation{}, err
	}
	reply, err := r.reply(got)
	t := Conversation{Reply: reply, Ended: EndedAnswer, Turns: 1}
	if got.Usage != nil {
		t.Usage = *got.Usage
	}
	if !reply.Finish.Normal() {
		t.Ended = EndedTurns
	}
	return t, err
}

// If the agent fails nothing is recorded, and a resumed run starts the session anew.
func (r *Run) askAgent(ctx context.Context, role Role, sent []byte) (history.Replied, error) {
	var req model.Request
	if err := json.Unmarshal(sent, &req); err != nil {
		return history.Replied{}, err
	}
	req.Stream, req.Seq = r.Stream, r.Past().Replies()
	if err := r.holdSpace(role.MaxOutput); err != nil {
		return history.Replied{}, err
	}
	if err := r.sending(); err != nil {
		return history.Replied{}, err
	}
	before := r.Past().Ledger().Reserves
	reply, fault := role.Model.Generate(ctx, req)
	used := reply.Usage
	var failed *model.Error
	if errors.As(fault, &failed) {
		used = failed.Usage
	}
	used = plausibleUsage(used, 0)
	reply.Usage = used
	if r.Past().Ledger().Reserves == before && (used != nil || failed == nil || !failed.Rejected()) {
		if err := r.chargeSession(role, used, int64(len(sent))); err != nil {
			return history.Replied{}, err
		}
	}
	switch {
	case fault == nil:
		return r.storeReply(role, reply, 1)
	case ctx.Err() == nil && failed != nil:
		why := failed.Error()
		if failed.Kind == model.Failed {
			why = failed.Message // the result's kind says that it failed
		}
		return history.Replied{}, &Stop{Kind: KindFailed, Why: fmt.Sprintf("%s: %s", role.Called, r.cleanText(why)), Next: afterFault(failed)}
	}
	return history.Replied{}, fault
}

func (r *Run) restartAgent(ctx context.Context, role Role, req model.Request, changed []string) (history.Replied, error) {
	text := "An earlier session with this task was interrupted, because the program that ran it stopped; it is not known how far it got. " + r.Rules.Guard.Redact(role.changesText(changed))
	last := req.Messages[len(req.Messages)-1]
	// The last part is the instruction itself; see the package command.
	last.Parts = slices.Insert(slices.Clone(last.Parts), max(0, len(last.Parts)-1), model.Part{Text: text})
	req.Messages = append(slices.Clone(req.Messages[:len(req.Messages)-1]), last)
	sent, err := marshal(req)
	if err != nil {
		return history.Replied{}, err
	}
	sent = r.redact(sent)
	name, err := r.Journal.Home().Put(sent)
	if err != nil {
		return history.Replied{}, err
	}
	got, err := r.askAgent(ctx, role, sent)
	got.Request = name
	return got, err
}
