package hone

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"hone/check"
	"hone/history"
	"hone/internal/reply"
	"hone/model"
	"hone/model/paid"
	"hone/tool"
	"hone/workspace"
)

// What a caller gives to the engine about models that cost money is in package paid too.
type (
	Candidate    = paid.Candidate
	Price        = paid.Price
	Retry        = paid.Retry
	ContextError = paid.ContextError
)

// Role describes whom a loop asks, and on which terms. Name, Model, Called and
// MaxOutput are required.
type Role struct {
	Name  string // "editor"
	Model model.Model
	// Agent means that Model is a command-line agent, whom only [Run.Delegate] asks.
	// It ignores Tools, Bounds and Answered. A proxy charges the model calls
	// that the agent makes; see [Run.Account].
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
	Fallbacks []Candidate
	// Escalation does the role's part in all further rounds after EscalateAfter rounds in
	// a row that left no fewer findings; 0 means DefaultEscalateAfter. Model and Fallbacks then take its
	// place if it fails. Context applies to it too. Nil never does. An agent must have
	// none.
	Escalation    *Candidate
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
	defer r.startSession()()
	r.at.Turn = 1
	m, err := r.recorded(role)
	if err != nil {
		return model.Reply{}, err
	}
	for e, last := range history.Of[history.Asked](r.Past().Events()) {
		if last.Role == role.Name && e.Step.Round == r.at.Round-1 {
			m.last = last.Request // the last of several is followed
		}
	}
	if m.last != "" {
		if m.sent, err = history.ReadWholeRequest(m.last, r.Journal.Home().Get); err != nil {
			return model.Reply{}, err
		}
	}
	return m.Generate(ctx, model.Request{System: m.role.System, Messages: messages, Reasoning: m.role.Reasoning})
}

// recorded is a role's model in one session. A call of it is a step: the request is recorded, and
// its reply is paid for once. Of a request that repeats the last one, only the rest is stored.
type recorded struct {
	r       *Run
	role    Role
	paid    paid.Model
	replied string        // who replied last, as the user names the model
	last    string        // object of the last request; empty if the next one is stored whole
	sent    model.Request // the last request
	// encoded is the next request; nil until its size is asked for.
	encoded []byte
}

// DefaultEscalateAfter is what 0 in EscalateAfter of a [Role] means.
const DefaultEscalateAfter = 2

// Whether the Escalation is the role's model follows from the recorded findings of the rounds before, so that a resumed run and
// a replay agree; the event only tells the user.
func (r *Run) recorded(role Role) (*recorded, error) {
	own, after := role.ownModel(), orElse(role.EscalateAfter, DefaultEscalateAfter)
	if up := role.Escalation; up != nil {
		if round := r.escalationRound(after); round > 0 {
			if !r.Past().HasEscalated(own.Called) {
				if err := r.tell(history.TypeEscalate, history.Escalated{Round: round, Role: role.Name, From: own.Called, To: up.Called, After: after}); err != nil {
					return nil, err
				}
			}
			role.Model, role.Called, role.MaxOutput, role.Price = up.Model, up.Called, up.MaxOutput, up.Price
			role.Escalation, role.Fallbacks = nil, slices.DeleteFunc(append([]Candidate{own}, role.Fallbacks...), func(c Candidate) bool { return c.Called == up.Called })
		}
	}
	return &recorded{r: r, role: role, paid: paid.Model{Account: r.Account(), Role: role.Name, Round: r.at.Round,
		Candidates: append([]Candidate{role.ownModel()}, role.Fallbacks...), Context: role.Context}}, nil
}

// encode returns the next request as it is recorded and sent. It must not change after that.
func (m *recorded) encode(req model.Request) (_ []byte, err error) {
	if m.encoded == nil {
		m.encoded, err = m.r.encoded(req)
	}
	return m.encoded, err
}

// Generate returns the model's reply, or the recorded one.
func (m *recorded) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	whole, err := m.encode(req)
	if err != nil {
		return model.Reply{}, err
	}
	m.encoded = nil
	keep := whole
	if added, ok := history.Added(m.last, m.sent, req); ok {
		if keep, err = m.r.encoded(added); err != nil {
			return model.Reply{}, err
		}
	}
	m.last, m.sent = workspace.Digest(keep), req
	m.sent.Messages = slices.Clone(req.Messages) // a conversation replaces old output in place
	open := func(context.Context) (any, error) {
		name, err := m.r.Journal.Put(keep)
		now, _ := m.paid.InService()
		return history.Asked{Role: m.role.Name, Model: now.Called, Request: name, Bytes: int64(len(whole)), Stronger: m.role.Escalation != nil}, err
	}
	got, err := step(ctx, m.r, &stepSpec{event: history.TypeAsk, name: m.role.Name}, m.role.stepInput(keep), open, func(ctx context.Context) (history.Replied, error) {
		sent := model.Request{MaxOutput: req.MaxOutput, Seq: m.r.Past().Facts().Replies, Stream: m.r.Stream, Received: m.r.Received,
			// The same in all processes of a run; it reveals nothing.
			CacheKey: workspace.Digest([]byte(m.r.Journal.Run() + "\x00" + m.role.Name))[:32]}
		if err := json.Unmarshal(whole, &sent); err != nil {
			return history.Replied{}, err
		}
		m.paid.Size = int64(len(whole))
		reply, err := m.paid.Generate(ctx, sent)
		if err != nil {
			return history.Replied{}, err
		}
		now, _ := m.paid.InService()
		return m.r.storeReply(m.role.Name, now.Called, reply)
	})
	m.replied = got.Model
	if err != nil {
		return model.Reply{}, err
	}
	return m.r.reply(got)
}

// Which of the role's models replied is not part of it: the record says that.
func (role Role) stepInput(request []byte) any {
	return []any{role.Name, role.Called, json.RawMessage(request)}
}

func (r *Run) reply(got history.Replied) (model.Reply, error) {
	return history.ReadReply(got, r.Journal.Home().Get)
}

func (r *Run) storeReply(role, called string, reply model.Reply) (history.Replied, error) {
	b, err := r.encoded(history.StoredReply{Reply: reply, Raw: reply.Raw})
	if err != nil {
		return history.Replied{}, err
	}
	got := history.Replied{Role: role, Model: called, Bytes: len(reply.Text()), Finish: reply.Finish, Detail: reply.Detail, Usage: reply.Usage}
	if len(b) <= inlineLimit {
		got.Stored = string(b)
		return got, nil
	}
	got.Reply, err = r.putHeld(b)
	return got, err
}

func (role Role) ownModel() Candidate {
	return Candidate{Model: role.Model, Called: role.Called, MaxOutput: role.MaxOutput, Price: role.Price}
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

// Text returns a prompt: one message of the user, with one part for each text.
func Text(texts ...string) []model.Message {
	m := model.Message{Role: model.User}
	for _, text := range texts {
		m.Parts = append(m.Parts, model.Part{Text: text})
	}
	return []model.Message{m}
}

// UsableText returns the text of a reply to [Run.Ask], without the model's reasoning
// and the empty lines after it. If the reply did not end normally, such as at its
// output limit (ruling G3), or has no text, the round returns the findings instead,
// which tell the model what to send. Otherwise they are nil.
func UsableText(got model.Reply) (string, []check.Finding) {
	if cause := reply.EndProblem(got); cause != "" {
		return "", check.Unusable(cause + ".")
	}
	text := reply.Answer(got.Text(), nil)
	if len(text) < len(got.Text()) {
		text = strings.TrimLeft(text, "\r\n")
	}
	if strings.TrimSpace(text) == "" {
		return "", check.Unusable("it was empty.")
	}
	return text, nil
}

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
		req := model.Request{Stream: r.Stream, Seq: r.Past().Facts().Replies}
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
	session := &stepSpec{event: history.TypeAsk, name: role.Name, models: true}
	begin := func(before history.Before) (any, error) {
		name, err := r.Journal.Put(sent)
		return history.Asked{Role: role.Name, Model: role.Called, Request: name, Bytes: int64(len(sent)), Command: true, Before: before}, err
	}
	got, _, err := once(ctx, r, session, role.stepInput(sent), begin, func(ctx context.Context) (history.Replied, error) { return ask(ctx, sent) }, func(ctx context.Context, changed []string) (history.Replied, error) {
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
