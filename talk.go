package hone

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"hone/history"
	"hone/internal/reply"
	"hone/model"
	"hone/tool"
)

// How a conversation ended.
const (
	EndedAnswer = "answer" // the model answered
	EndedTurns  = "turns"  // the turns are used up, without an answer
	EndedCalls  = "calls"  // the calls are used up
	EndedBudget = "budget" // the run's budget is nearly used up

	EndedDiscarded = "discarded" // three replies in a row were refused, filtered or cut
	EndedRepeats   = "repeats"   // the same calls failed in the same way three times in a row
)

// Conversation is the result of a conversation.
type Conversation struct {
	// Reply is the last reply. If the model was asked for its answer and called
	// tools instead, they were not run.
	Reply model.Reply
	Ended string // one of the constants above
	Turns int
	Calls []Called    // in order, including refused calls
	Usage model.Usage // of all turns, as far as the provider reported it
}

// Called is a tool call with its result.
type Called struct {
	Name string
	Args string
	// Refused says why the call was not run, as one of the Refused constants;
	// empty if it was run.
	Refused string
	Result  tool.Result
}

// Why a call was not run.
const (
	RefusedJSON    = "bad_json"       // its arguments are not JSON
	RefusedName    = "unknown_tool"   // the role has no such tool
	RefusedRepeat  = "repeat_blocked" // the same call was answered too often
	RefusedTurn    = "iteration_skip" // the reply has too many calls
	RefusedSession = "tool_budget"    // the session has too many calls
)

// Talk asks a role, and runs the tools that it calls until it answers or its
// session is used up. Everything that the model is sent is recorded, each piece
// once, and the state of the conversation follows from the records.
//
// If the role is an agent, it holds the whole conversation by itself, and the
// result has only its answer.
//
// The error may be a [*ContextError], or a [*Stop] if the budget does not pay
// for the first turn or the provider failed.
func (r *Run) Talk(ctx context.Context, role Role, messages []model.Message) (Conversation, error) {
	if !role.Agent {
		role, err := r.escalatedRole(role)
		if err != nil {
			return Conversation{}, err
		}
		return r.converse(ctx, r.newTalk(role, slices.Clone(messages)))
	}
	defer r.startSession()()
	return r.delegate(ctx, role, messages)
}

func (r *Run) startSession() (end func()) {
	at := r.at
	r.sessions++
	r.at.Session = r.sessions
	return func() { r.at = at }
}

func (r *Run) newTalk(role Role, messages []model.Message) *talk {
	role.Bounds = role.Bounds.Resolved()
	t := &talk{r: r, role: role, history: messages, seen: map[string]string{}, times: map[string]int{}, told: map[string]string{}}
	for _, one := range role.Tools {
		t.specs = append(t.specs, one.Spec)
	}
	return t
}

func (r *Run) converse(ctx context.Context, t *talk) (Conversation, error) {
	defer r.startSession()()
	err := t.takeTurns(ctx)
	return t.Conversation, err
}

type talk struct {
	Conversation
	r       *Run
	role    Role
	specs   []model.Spec
	history []model.Message

	lastRequest string // object of the last request; empty if the next one is stored whole
	lastLength  int    // number of messages that the last request contains
	prompts     int    // how often in a row the model was told that it had not answered
	discarded   int    // how many replies in a row did not end normally
	failing     string // the calls and results of the last turn if all of them failed
	failures    int    // how many turns in a row were like it

	runCount int               // number of calls that were run
	outputs  []string          // complete outputs of all calls
	seen     map[string]string // digests of the files that the model was shown, by path
	times    map[string]int    // how often each call was answered since the last change
	told     map[string]string // what the last run of each command said, by the call's key
	tree     string            // the digest of the tree after the last command; "" before the first
}

func (t *talk) takeTurns(ctx context.Context) error {
	for t.Ended == "" {
		t.Turns++
		t.r.at.Turn, t.r.at.Call = t.Turns, 0
		switch {
		case t.runCount >= t.role.Bounds.Calls:
			t.requestAnswer(EndedCalls, "Your tool calls are used up.")
		case t.Turns >= t.role.Bounds.Turns:
			t.requestAnswer(EndedTurns, "This is your last turn.")
		}
		left, err := t.recordedAllowance(ctx)
		if err != nil {
			return err
		}
		if left.Last {
			t.requestAnswer(EndedBudget, "The budget is nearly used up.")
		}
		got, err := t.ask(ctx, left)
		if err != nil {
			return err
		}
		t.Reply = got
		if got.Usage != nil {
			t.Usage = t.Usage.Add(*got.Usage)
		}
		if err := t.handleReply(ctx, got); err != nil {
			return err
		}
	}
	return nil
}

func (t *talk) requestAnswer(ended, why string) {
	t.Ended = ended
	t.addText(why + " Give your final answer now, from what you know, and call no more tools.")
}

func (t *talk) handleReply(ctx context.Context, got model.Reply) error {
	calls := got.Calls()
	last := t.Ended != ""
	if err := t.noteDiscarded(ctx, got); err != nil {
		return err
	}
	switch {
	case last && got.Finish == model.Stop && len(calls) == 0 && answerText(got) != "":
		t.Ended = EndedAnswer
	case last, t.Ended != "":
	case !got.Finish.Normal():
		// An incomplete reply is not sent back: parts of it may be unreadable.
		t.addText("Your last reply was discarded and none of its calls was run: " + reply.EndProblem(got) + ".")
	case len(calls) > 0:
		return t.runCalls(ctx, got, calls)
	default:
		return t.handleAnswer(got)
	}
	return nil
}

func answerText(got model.Reply) string {
	return strings.TrimSpace(reply.Answer(got.Text(), nil))
}

// maxPrompts limits how often in a row a model that neither calls tools nor
// answers is told to do so.
const maxPrompts = 2

// If the reply seems to contain a call as text, the model and the user are told that it is not read.
func (t *talk) handleAnswer(got model.Reply) error {
	text := answerText(got)
	missing := ""
	switch {
	case text == "":
		missing = "Your reply was empty. Call tools to continue, or give your final answer."
	case t.role.Answered != nil:
		missing = t.role.Answered(text)
	}
	if missing == "" || t.prompts >= maxPrompts {
		t.Ended = EndedAnswer
		return nil
	}
	t.prompts++
	if len(got.Parts) > 0 && text != "" {
		t.history = append(t.history, model.Message{Role: model.Assistant, Parts: got.Parts})
	}
	if !reply.WrittenCall(text, t.toolNames()) {
		t.addText(missing)
		return nil
	}
	if t.role.TextCalls {
		t.addText(missing + " If it was meant to contain a call, that cannot be read. " + callForm)
		return nil
	}
	t.addText(missing + " A call that is written as text is not read: use the tool calls of the API.")
	writer, _ := t.r.inService(t.role)
	return t.r.Advise(Notice{Text: writer.Called + " writes tool calls as text, which are not read",
		Next: Next{Verb: NewRun, Flags: []Flag{{Name: "tools", Value: "text"}}, Remark: "which reads them"}})
}

const callForm = "Write a call like this, with each tag alone on its line and outside of fences:\n" + reply.CallExample

// It does not change messages that were sent already, so that the provider can use its cache. Not every provider accepts two
// consecutive messages of the user, so it inserts a placeholder for a reply that was discarded.
func (t *talk) addText(text string) {
	part := model.Part{Text: text}
	n := len(t.history)
	if n > t.lastLength && t.history[n-1].Role == model.User {
		last := t.history[n-1]
		last.Parts = append(last.Parts[:len(last.Parts):len(last.Parts)], part)
		t.history = append(t.history[:n-1:n-1], last)
		return
	}
	if n > 0 && t.history[n-1].Role == model.User {
		t.history = append(t.history, model.Message{Role: model.Assistant, Parts: []model.Part{{Text: "(no reply)"}}})
	}
	t.history = append(t.history, model.Message{Role: model.User, Parts: []model.Part{part}})
}

func (t *talk) ask(ctx context.Context, a Allowance) (model.Reply, error) {
	whole, err := t.request(ctx, a.Request)
	if err != nil {
		return model.Reply{}, err
	}
	keep := whole
	if t.lastRequest != "" {
		if keep, err = marshal(history.AddedRequest{After: t.lastRequest, Messages: t.history[t.lastLength:]}); err != nil {
			return model.Reply{}, err
		}
		keep = t.r.redact(keep)
	}
	t.lastRequest, t.lastLength = sum(keep), len(t.history)
	role := t.role
	if a.Output > 0 {
		role = role.limitOutput(a.Output)
	}
	return t.r.send(ctx, role, whole, keep)
}

// most is in bytes; 0 means any number. Older tool output is omitted if the request would fit neither it nor the context. If
// that is not enough, the error is a [*ContextError].
func (t *talk) request(ctx context.Context, most int64) ([]byte, error) {
	whole, err := t.encode()
	size := int64(len(whole))
	over := most > 0 && size > most
	switch {
	case err != nil || !over && !t.role.crowded(size):
		return whole, err
	case over:
		err = t.elide(ctx, max(size-most, t.surplus(size)), true)
	case t.worthEliding(size):
		err = t.elide(ctx, t.surplus(size), false)
	}
	if err != nil {
		return nil, err
	}
	if whole, err = t.encode(); err != nil {
		return nil, err
	}
	return whole, t.role.Fits(int64(len(whole)))
}

func (t *talk) encode() ([]byte, error) {
	b, err := marshal(model.Request{System: t.role.System, Messages: t.history, Tools: t.specs, Reasoning: t.role.Reasoning})
	return t.r.redact(b), err
}

// It does not change while tools run concurrently.
func (t *talk) toolInput(args string) tool.Input {
	seen, outputs, history := maps.Clone(t.seen), t.outputs, t.history
	return tool.Input{
		Args: json.RawMessage(args),
		Seen: func(path string) (string, bool) {
			digest, ok := seen[path]
			return digest, ok
		},
		Told: func(path, text string) bool {
			return slices.ContainsFunc(history, func(m model.Message) bool { return m.Role == model.User && tells(m, path, text) })
		},
		Output: func(call int) (string, bool) {
			if call < 1 || call > len(outputs) {
				return "", false
			}
			return outputs[call-1], true
		},
	}
}

// tells reports whether one part of a message names a file and contains each line of a text.
func tells(m model.Message, path, text string) bool {
	return slices.ContainsFunc(m.Parts, func(p model.Part) bool {
		said := p.Text
		if p.Result != nil {
			said = p.Result.Text
		}
		if !strings.Contains(said, path) {
			return false
		}
		for line := range strings.Lines(text) {
			if !strings.Contains(said, strings.TrimSpace(line)) {
				return false
			}
		}
		return true
	})
}

// originalContents returns what a file contained before a call changed it that
// was interrupted and now runs again. Without it the tool would take its own
// change for the user's.
func (t *talk) originalContents(path string) ([]byte, bool) {
	begin, _ := t.r.Past().Begin(t.r.firstIdentity("apply"))
	apply, _ := begin.Payload.(history.ApplyBegun)
	for _, v := range apply.Verdicts {
		if v.Path == path && v.Before.Exists() {
			content, err := t.r.Journal.Home().Get(v.Before.Digest)
			return content, err == nil
		}
	}
	return nil, false
}
