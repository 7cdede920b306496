package hone

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"hone/check"
	"hone/history"
	"hone/internal/reply"
	"hone/model"
	"hone/model/paid"
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
// The error may be a [*ContextError], or a [*Stop] if the provider failed, or if the budget
// does not pay for the first turn or, later, for a final answer.
func (r *Run) Talk(ctx context.Context, role Role, messages []model.Message) (Conversation, error) {
	m, err := r.recorded(role)
	if err != nil {
		return Conversation{}, err
	}
	m.role.Bounds = m.role.Bounds.Resolved()
	t := &talk{r: r, role: m.role, model: m, history: slices.Clone(messages), seen: map[string]string{}, times: map[string]int{}, told: map[string]string{}}
	for _, one := range t.role.Tools {
		t.specs = append(t.specs, one.Spec)
	}
	defer r.startSession()()
	for t.Ended == "" {
		t.Turns++
		r.at.Turn, r.at.Call = t.Turns, 0
		switch {
		case t.runCount >= t.role.Bounds.Calls:
			t.requestAnswer(EndedCalls, "Your tool calls are used up.")
		case t.Turns >= t.role.Bounds.Turns:
			t.requestAnswer(EndedTurns, "This is your last turn.")
		}
		left, err := t.allowance(ctx)
		if err != nil {
			return t.Conversation, err
		}
		if left.Last {
			t.requestAnswer(EndedBudget, "The budget is nearly used up.")
		}
		req, err := t.request(ctx, left.Request)
		if err != nil {
			return t.Conversation, err
		}
		t.sent, req.MaxOutput = len(t.history), left.Output
		got, err := t.model.Generate(ctx, req)
		if err != nil {
			return t.Conversation, err
		}
		t.Reply = got
		if got.Usage != nil {
			t.Usage = t.Usage.Add(*got.Usage)
		}
		if t.discarded++; got.Finish.Normal() {
			t.discarded = 0
		}
		calls, answer := got.Calls(), strings.TrimSpace(reply.Answer(got.Text(), nil))
		switch {
		case t.final != "" && got.Finish == model.Stop && len(calls) == 0 && answer != "":
			t.Ended = EndedAnswer
		case t.final != "":
			t.Ended = t.final
		case t.discarded == maxWaste:
			err = t.cut(ctx, EndedDiscarded, discardedText(got.Finish))
		case t.discarded > 0:
			// An incomplete reply is not sent back: parts of it may be unreadable.
			t.addText("Your last reply was discarded and none of its calls was run: " + reply.EndProblem(got) + ".")
		case len(calls) > 0:
			err = t.runCalls(ctx, got.Parts, calls)
		default:
			err = t.takeAnswer(got.Parts, answer)
		}
		if err != nil {
			return t.Conversation, err
		}
	}
	return t.Conversation, nil
}

func (r *Run) startSession() (end func()) {
	at := r.at
	r.sessions++
	r.at.Session = r.sessions
	return func() { r.at = at }
}

type talk struct {
	Conversation
	r       *Run
	role    Role
	specs   []model.Spec
	model   *recorded
	history []model.Message

	final     string // why the next reply is the last one; empty if it is not
	sent      int    // number of messages that the last request contains
	prompts   int    // how often in a row the model was told that it had not answered
	discarded int    // how many replies in a row did not end normally
	failing   string // the calls and results of the last turn if all of them failed
	failures  int    // how many turns in a row were like it

	runCount int               // number of calls that were run
	outputs  []string          // complete outputs of all calls
	seen     map[string]string // digests of the files that the model was shown, by path
	times    map[string]int    // how often each call was answered since the last change
	told     map[string]string // what the last run of each command said, by the call's key
	tree     string            // the digest of the tree after the last command; "" before the first
}

func (t *talk) requestAnswer(ended, why string) {
	t.final = ended
	t.addText(why + " Give your final answer now, from what you know, and call no more tools.")
}

// maxPrompts limits how often in a row a model that neither calls tools nor
// answers is told to do so.
const maxPrompts = 2

// If the reply seems to contain a call as text, the model and the user are told that it is not read.
func (t *talk) takeAnswer(parts []model.Part, text string) error {
	missing := ""
	called, named := reply.WrittenCall(text, t.specs)
	switch {
	case text == "":
		missing = "Your reply was empty. Call tools to continue, or give your final answer."
	case t.role.Answered != nil:
		missing = t.role.Answered(text)
	case named:
		missing = "Your reply contains what looks like a call. If it was your answer, repeat it without that."
	}
	if missing == "" || t.prompts >= maxPrompts {
		t.Ended = EndedAnswer
		return nil
	}
	t.prompts++
	if len(parts) > 0 && text != "" {
		t.hold(append(t.history, model.Message{Role: model.Assistant, Parts: parts}))
	}
	if !called {
		t.addText(missing)
		return nil
	}
	if t.role.TextCalls {
		t.addText(missing + " If it was meant to contain a call, that cannot be read. " + callForm)
		return nil
	}
	t.addText(missing + " A call that is written as text is not read: use the tool calls of the API.")
	return t.r.Advise(Notice{Text: t.model.replied + " writes tool calls as text, which are not read",
		Next: Next{Verb: NewRun, Flags: []Flag{{Name: "tools", Value: "text"}}, Remark: "which reads them"}})
}

const callForm = "Write a call like this, with each tag alone on its line and outside of fences:\n" + reply.CallExample

// It does not change messages that were sent already, so that the provider can use its cache. Not every provider accepts two
// consecutive messages of the user, so it inserts a placeholder for a reply that was discarded.
func (t *talk) addText(text string) {
	part := model.Part{Text: text}
	n := len(t.history)
	if n > t.sent && t.history[n-1].Role == model.User {
		last := t.history[n-1]
		last.Parts = append(last.Parts[:len(last.Parts):len(last.Parts)], part)
		t.hold(append(t.history[:n-1:n-1], last))
		return
	}
	if n > 0 && t.history[n-1].Role == model.User {
		t.hold(append(t.history, model.Message{Role: model.Assistant, Parts: []model.Part{{Text: "(no reply)"}}}))
	}
	t.hold(append(t.history, model.Message{Role: model.User, Parts: []model.Part{part}}))
}

// The allowance is a step, because the request depends on it and the ledger differs after a crash. If the budget cannot pay for
// the next request, the error is a [*Stop]. Errors are not recorded, so a resumed run computes the allowance again.
func (t *talk) allowance(ctx context.Context) (paid.Allowance, error) {
	return Step(ctx, t.r, "budget", nil, func(context.Context) (paid.Allowance, error) {
		_, size, err := t.next()
		if err != nil {
			return paid.Allowance{}, err
		}
		last := t.final != "" || len(t.specs) == 0
		if !last {
			a, err := t.model.paid.Turn(size)
			if err == nil || t.Turns == 1 { // do not start a conversation that can only be ended
				return a, err
			}
		}
		a, err := t.model.paid.Answer(size, t.elideOutput(math.MaxInt64, true, false).Bytes)
		if !last {
			a.Last, a.Said = true, "the budget is nearly used up, and the "+t.role.Name+" is asked for its answer"
		}
		return a, err
	})
}

// most is in bytes; 0 means any number. Older tool output is omitted if the request would fit neither it nor the context. If
// that is not enough, the error is a [*ContextError]. As long as the request fits, a small saving is not worth losing the
// provider's cache.
func (t *talk) request(ctx context.Context, most int64) (model.Request, error) {
	req, size, err := t.next()
	over := most > 0 && size > most
	if err != nil || !over && !t.role.crowded(size) {
		return req, err
	}
	goal := int64(0)
	if t.role.crowded(size) {
		goal = size - t.role.Context*4*4/10 // what is left fills two fifths of the context
	}
	if can := t.elideOutput(goal, false, false); over {
		err = t.elide(ctx, max(size-most, goal), true)
	} else if can.Results > 0 && (can.Bytes >= goal/4 || t.role.Fits(size) != nil) {
		err = t.elide(ctx, goal, false)
	}
	if err != nil {
		return req, err
	}
	if req, size, err = t.next(); err != nil {
		return req, err
	}
	return req, t.role.Fits(size)
}

func (t *talk) next() (req model.Request, size int64, err error) {
	req = model.Request{System: t.role.System, Messages: t.history, Tools: t.specs, Reasoning: t.role.Reasoning}
	b, err := t.model.encode(req)
	return req, int64(len(b)), err
}

func (t *talk) hold(messages []model.Message) { t.history, t.model.encoded = messages, nil }

// A long conversation outgrows the model's context, or what the budget pays for.
// Then the oldest tool output is replaced by a note: the model can repeat a call.

// The limit is four fifths of the context (ruling G13), at four bytes a token.
func (role Role) crowded(bytes int64) bool {
	return role.Context > 0 && bytes/4 > role.Context*8/10
}

type elided struct {
	Results int   `json:"results"` // number of results, the oldest first
	Bytes   int64 `json:"bytes"`
}

// The oldest output goes first, and the last results only if all is set.
func (t *talk) elide(ctx context.Context, goal int64, all bool) error {
	can := t.elideOutput(goal, all, false)
	if can.Results == 0 {
		return nil
	}
	_, err := Step(ctx, t.r, "elide", goal, func(context.Context) (elided, error) { return can, nil })
	if err == nil {
		t.elideOutput(goal, all, true)
		clear(t.times) // the model may repeat calls whose output it no longer has
	}
	return err
}

// Nothing is recorded. If really is not set, it only returns what it would omit.
func (t *talk) elideOutput(goal int64, all, really bool) (done elided) {
	end := len(t.history) - 1 // the last results
	for end >= 0 && !slices.ContainsFunc(t.history[end].Parts, func(p model.Part) bool { return p.Result != nil }) {
		end--
	}
	if all {
		end++
	}
	for i := 0; i < end && done.Bytes < goal; i++ {
		parts := t.history[i].Parts
		for j, p := range parts {
			if p.Result == nil || done.Bytes >= goal {
				continue
			}
			note := fmt.Sprintf("[%d bytes of output omitted to save space; repeat the call if you still need it]", len(p.Result.Text))
			if len(p.Result.Text) <= 2*len(note) {
				continue
			}
			done.Results++
			done.Bytes += int64(len(p.Result.Text) - len(note))
			if really {
				result := *p.Result
				result.Text = note
				parts = append(parts[:0:0], parts...)
				parts[j].Result = &result
				t.history[i].Parts = parts
				t.hold(t.history)
			}
		}
	}
	return done
}

// maxWaste is how many turns in a row of a session may bring nothing.
const maxWaste = 3

func discardedText(finish model.Finish) string {
	switch finish {
	case model.Filtered:
		return fmt.Sprintf("the model refused, or its provider filtered, %d replies in a row", maxWaste)
	case model.Length:
		return fmt.Sprintf("%d replies in a row reached the output limit", maxWaste)
	}
	return fmt.Sprintf("%d replies in a row did not end normally", maxWaste)
}

func (t *talk) noteFailures(ctx context.Context, results []Called) error {
	key := ""
	for _, c := range results {
		if !c.Result.Failed && (c.Result.Exit == nil || *c.Result.Exit == 0) {
			t.failing, t.failures = "", 0
			return nil
		}
		key += reply.Key(c.Name, c.Args) + "\x00" + check.Normalize(c.Result.Text) + "\x00"
	}
	if t.failing != key {
		t.failing, t.failures = key, 0
	}
	if t.failures++; t.failures < maxWaste {
		return nil
	}
	return t.cut(ctx, EndedRepeats, fmt.Sprintf("it made the same failing call of %s %d times in a row", results[0].Name, t.failures))
}

// If the role has another model, that one does the next round.
func (t *talk) cut(ctx context.Context, ended, why string) error {
	t.Ended = ended
	now, _ := t.model.paid.InService()
	c, err := Step(ctx, t.r, stepCutShort, nil, func(context.Context) (cutShort, error) {
		return cutShort{Role: t.role.Name, Model: now.Called, Why: why, Report: history.Report{Said: "the session of the " + t.role.Name + " is ended: " + why}}, nil
	})
	if err != nil || t.r.Past().HasFailed(c.Model) {
		return err
	}
	return t.model.paid.PassOn("its session was ended: " + c.Why)
}
