package hone

import (
	"context"
	"slices"
	"strings"

	"hone/history"
	"hone/model"
	"hone/tool"
)

// A session whose answer turned out wrong can continue in the next round, so that
// the model need not read everything again. All of it follows from the journal.

// maxContinued is the maximum number of bytes of a session that is continued if
// the role's context is not known.
const maxContinued = 256 << 10

// continued is the record of the step "continue": the session of the round
// before that is continued. A zero Session means that a new one is needed.
type continued struct {
	Role    string `json:"role"`
	Session int    `json:"session,omitempty"`
}

// Continue is like [Run.Talk], but continues the role's last session of the previous
// round: the model is sent the messages of that session, and then the text.
// ok is false if nothing was sent, because a new session is needed: there is no
// such session, it ended without an answer, or it takes more than two fifths of
// the context or than the budget pays for.
func (r *Run) Continue(ctx context.Context, role Role, text string) (c Conversation, ok bool, err error) {
	t, err := r.newTalk(role)
	if err != nil {
		return c, false, err
	}
	last, err := Step(ctx, r, "continue", role.Name, func(context.Context) (continued, error) {
		asked := r.lastAsked(role, r.at.Round-1)
		if asked == nil {
			return continued{Role: role.Name}, nil
		}
		ok, err := t.restore(*asked, text)
		if err != nil || !ok {
			return continued{Role: role.Name}, err
		}
		_, size, err := t.next()
		most := t.role.Context * 4 * 4 / 10
		if most == 0 {
			most = maxContinued
		}
		if _, refusal := t.model.paid.Turn(size); err != nil || size > most || refusal != nil {
			return continued{Role: role.Name}, err
		}
		return continued{role.Name, asked.Step.Session}, nil
	})
	if err != nil || last.Session == 0 {
		return c, false, err
	}
	if len(t.history) == 0 { // the decision is already recorded
		if _, err := t.restore(*r.lastAsked(role, r.at.Round-1), text); err != nil {
			return c, false, err
		}
	}
	c, err = t.converse(ctx)
	return c, true, err
}

func (r *Run) lastAsked(role Role, round int) *history.Event {
	for _, e := range slices.Backward(r.Past().Events()) {
		if a, ok := e.Payload.(history.Asked); ok && a.Role == role.Name && e.Step.Round == round {
			return &e
		}
	}
	return nil
}

// It reports whether the session ended with an answer.
func (t *talk) restore(last history.Event, text string) (ok bool, err error) {
	if err := t.model.follow(last.Payload.(history.Asked).Request); err != nil {
		return false, err
	}
	record, ok := t.r.Past().Record(*last.Step)
	if !ok {
		return false, nil
	}
	replied, _ := record.Payload.(history.Replied)
	reply, err := t.r.reply(replied)
	if err != nil || !reply.Finish.Normal() || len(reply.Calls()) > 0 || strings.TrimSpace(reply.Text()) == "" {
		return false, err
	}
	t.sent = len(t.model.sent.Messages)
	t.hold(append(slices.Clone(t.model.sent.Messages), model.Message{Role: model.Assistant, Parts: reply.Parts}))
	t.addText(text)
	err = t.restoreResults(last.Step.Round, last.Step.Session)
	return err == nil, err
}

func (t *talk) restoreResults(round, session int) error {
	for _, e := range t.r.Past().Records("continue") {
		if e.Step.Round != round {
			continue
		}
		c, err := result[continued](t.r, e.Event)
		if err != nil {
			return err
		}
		if c.Role == t.role.Name && c.Session > 0 {
			if err := t.restoreResults(round-1, c.Session); err != nil {
				return err
			}
		}
	}
	for _, e := range t.r.Past().Records(toolStepName) {
		if e.Step.Round != round || e.Step.Session != session {
			continue
		}
		got, err := result[tool.Result](t.r, e.Event)
		if err != nil {
			return err
		}
		afterwards := *e.Step
		afterwards.Name, afterwards.Index = history.StepSnapshot, 0
		record, _ := t.r.Past().Record(afterwards)
		snapshot, _ := record.Payload.(history.Snapshot)
		t.outputs = append(t.outputs, t.withNotes(got, snapshot).Text)
		for path, digest := range got.Shown {
			t.seen[path] = digest
		}
	}
	return nil
}
