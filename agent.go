package hone

import (
	"context"
	"encoding/json"
	"slices"

	"hone/history"
	"hone/model"
	"hone/model/paid"
)

// Delegate lets a command-line agent (Role.Agent) work for one session, in which it uses its own
// tools and may change the tree. The result has only its answer, and what it reports as used.
//
// To the engine a session is a command. If it was interrupted, the agent starts anew, and is
// told so, with the files that changed. If the agent fails the error is a [*Stop], and a resumed
// run starts the session anew.
func (r *Run) Delegate(ctx context.Context, role Role, messages []model.Message) (Conversation, error) {
	defer r.startSession()()
	r.at.Turn = 1
	agent := paid.Session{Account: r.Account(), Role: role.Name, Candidate: role.ownModel()}
	ask := func(ctx context.Context, sent []byte) (history.Replied, error) {
		req := model.Request{Stream: r.Stream, Seq: r.Past().Replies()}
		if err := json.Unmarshal(sent, &req); err != nil {
			return history.Replied{}, err
		}
		reply, err := agent.Generate(ctx, req)
		if err != nil {
			return history.Replied{}, err
		}
		return r.storeReply(role.Name, role.Called, reply)
	}
	req := model.Request{System: role.System, Messages: messages, Reasoning: role.Reasoning}
	sent, err := r.encoded(req)
	if err != nil {
		return Conversation{}, err
	}
	session := effect(history.TypeAsk, role.Name, role.stepInput(sent), nil, func(ctx context.Context) (history.Replied, error) { return ask(ctx, sent) })
	session.models = true
	begin := func(before history.Before) (any, error) {
		name, err := r.Journal.Put(sent)
		return history.Asked{Role: role.Name, Model: role.Called, Request: name, Bytes: int64(len(sent)), Command: true, Before: before}, err
	}
	got, _, err := once(ctx, r, session, begin, func(ctx context.Context, changed []string) (history.Replied, error) {
		text := "An earlier session with this task was interrupted, because the program that ran it stopped; it is not known how far it got. " + r.Rules.Guard.Redact(role.changesText(changed))
		last := messages[len(messages)-1]
		// The last part is the instruction itself; see package model/agent.
		last.Parts = slices.Insert(slices.Clone(last.Parts), max(0, len(last.Parts)-1), model.Part{Text: text})
		req.Messages = append(slices.Clone(messages[:len(messages)-1]), last)
		sent, err := r.encoded(req)
		if err != nil {
			return history.Replied{}, err
		}
		name, err := r.Journal.Put(sent)
		if err != nil {
			return history.Replied{}, err
		}
		got, err := ask(ctx, sent)
		got.Request = name
		return got, err
	})
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
