package hone

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"hone/history"
	"hone/model"
	"hone/tool"
)

// How a conversation ended.
const (
	EndedAnswer = "answer" // the model gave its answer
	EndedTurns  = "turns"  // the turns were used up; the last reply is what there is
	EndedCalls  = "calls"  // the calls were used up
	EndedBudget = "budget" // the run's budget is nearly used up
)

// Conversation is what came of one: its last reply, and how it got there.
type Conversation struct {
	// Reply is the last one. Where the model was told to answer and called
	// tools all the same, its calls were not run.
	Reply model.Reply
	Ended string
	Turns int
	Calls []Called // in order, those that were refused too
	Usage model.Usage
}

// Called is a tool call and what came of it.
type Called struct {
	Name string
	Args string
	// Refused says why the call was not run; empty where it was.
	Refused string
	Result  tool.Result
}

// Why a call was not run.
const (
	RefusedJSON    = "bad_json"       // its arguments cannot be read
	RefusedName    = "unknown_tool"   // there is no such tool
	RefusedRepeat  = "repeat_blocked" // the same call was answered often enough
	RefusedTurn    = "iteration_skip" // too many in one reply
	RefusedSession = "tool_budget"    // too many in the session
)

// Talk asks a role and runs the tools that it calls, until it answers or its
// session is used up. Everything that the model is sent is on record, each
// piece once; all that the conversation knows is folded from it. An agent holds
// the whole conversation by itself: of that only its answer is known.
func (r *Run) Talk(ctx context.Context, role Role, messages []model.Message) (Conversation, error) {
	at := r.at
	defer func() { r.at = at }()
	r.sessions++
	r.at.Session = r.sessions
	if role.Agent {
		return r.delegate(ctx, role, messages)
	}
	role.Bounds = role.Bounds.Resolved()
	t := &talk{r: r, role: role, history: slices.Clone(messages), seen: map[string]string{}, times: map[string]int{}}
	for _, one := range role.Tools {
		t.specs = append(t.specs, one.Spec)
	}
	err := t.takeTurns(ctx)
	return t.Conversation, err
}

// talk is a conversation under way.
type talk struct {
	Conversation
	r       *Run
	role    Role
	specs   []model.Spec
	history []model.Message

	lastRequest string // the object of the last request; empty: the next is kept whole
	lastLength  int    // how many messages of the history it holds
	prompts     int    // how often the model was told that it had not answered

	runCount int               // calls
	outputs  []string          // of all calls, whole; the first is number 1
	seen     map[string]string // what the model was shown of files, by path
	times    map[string]int    // how often each call was answered since something changed
}

// hold takes turns until the conversation ends: by an answer, or because there
// is not enough left for more than one.
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
		reply, err := t.ask(ctx, left)
		if err != nil {
			return err
		}
		t.Reply = reply
		if reply.Usage != nil {
			t.Usage = t.Usage.Add(*reply.Usage)
		}
		if err := t.handleReply(ctx, reply); err != nil {
			return err
		}
	}
	return nil
}

// close has the model give its answer with the reply that comes next.
func (t *talk) requestAnswer(how, why string) {
	t.Ended = how
	t.addText(why + " Give your final answer now, from what you know, and call no more tools.")
}

// take makes of a reply what comes next.
func (t *talk) handleReply(ctx context.Context, reply model.Reply) error {
	calls := reply.Calls()
	last := t.Ended != ""
	switch {
	case last && reply.Finish == model.Stop && len(calls) == 0 && strings.TrimSpace(reply.Text()) != "":
		t.Ended = EndedAnswer
	case last:
	case !reply.Finish.Normal():
		// What was cut off is not sent back: parts of it may be unreadable.
		t.addText(fmt.Sprintf("Your last reply was not taken, and none of its calls was run: it ended early (%s). Go on in smaller steps.", finishText(reply)))
	case len(calls) > 0:
		return t.runCalls(ctx, reply, calls)
	default:
		t.handleAnswer(reply)
	}
	return nil
}

// ending is why a reply ended, in words.
func finishText(reply model.Reply) string {
	if reply.Detail == "" {
		return string(reply.Finish)
	}
	return fmt.Sprintf("%s: %s", reply.Finish, reply.Detail)
}

// mostPrompts is how often in a row a model that neither calls nor answers is
// told to.
const maxPrompts = 2

// answered takes a reply without calls for the answer, unless the role says
// that it is none.
func (t *talk) handleAnswer(reply model.Reply) {
	text := strings.TrimSpace(reply.Text())
	missing := ""
	switch {
	case text == "":
		missing = "Your reply was empty. Call tools to go on, or give your final answer."
	case t.role.Answered != nil:
		missing = t.role.Answered(text)
	}
	if missing == "" || t.prompts >= maxPrompts {
		t.Ended = EndedAnswer
		return
	}
	t.prompts++
	if len(reply.Parts) > 0 && text != "" {
		t.history = append(t.history, model.Message{Role: model.Assistant, Parts: reply.Parts})
	}
	t.addText(missing)
}

// say adds words of the harness to what the model is sent next. What was sent
// before is not changed any more, so that the provider's cache has it; and as
// not every provider takes two messages of one side in a row, a reply that was
// not taken leaves its place behind.
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

// ask makes the call of a turn, within what is left for it.
func (t *talk) ask(ctx context.Context, left Allowance) (model.Reply, error) {
	whole, err := t.request(ctx, left.Request)
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
	if left.Output > 0 {
		role.MaxOutput = left.Output
	}
	return t.r.send(ctx, role, whole, keep)
}

// request is all that is sent, redacted; older tool output gives way where it
// would not fit the context, or the budget, which pays for so many bytes. The
// error is a [*ContextError] where that is not enough.
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

// crowded reports whether a request takes more than four fifths of the context
// (ruling G13); a token is taken for four bytes.
func (role Role) crowded(bytes int64) bool {
	return role.Context > 0 && bytes/4 > role.Context*8/10
}

// elided is the record of tool output that is not sent any more.
type elided struct {
	Results int   `json:"results"` // so many, the oldest ones
	Bytes   int64 `json:"bytes"`
}

// surplus is how much of a crowded request gives way, so that it fills two
// fifths of the context; 0 where it is not crowded.
func (t *talk) surplus(size int64) int64 {
	if !t.role.crowded(size) {
		return 0
	}
	return size - t.role.Context*4*4/10
}

// worthEliding reports whether tool output should give way in a crowded
// request: never for little while all fits, as that breaks the provider's cache.
func (t *talk) worthEliding(size int64) bool {
	goal := t.surplus(size)
	can := t.elideOutput(goal, false, false)
	return can.Results > 0 && (can.Bytes >= goal/4 || t.role.Fits(size) != nil)
}

// elide takes so many bytes of tool output out of the history, the oldest first,
// in one go; the last results too where all may go.
func (t *talk) elide(ctx context.Context, goal int64, all bool) error {
	can := t.elideOutput(goal, all, false)
	if can.Results == 0 {
		return nil
	}
	_, err := Step(ctx, t.r, "elide", goal, func(context.Context) (elided, error) { return can, nil })
	if err == nil {
		t.elideOutput(goal, all, true)
		t.lastRequest, t.lastLength = "", 0
		clear(t.times) // what was answered is not there to be used any more
	}
	return err
}

// remove takes so many bytes of output out of the history, or counts what it
// would take. The last results stay, unless all may go.
func (t *talk) elideOutput(goal int64, all, really bool) (done elided) {
	end := t.lastResults()
	if all {
		end++
	}
	for i := 0; i < end && done.Bytes < goal; i++ {
		parts := t.history[i].Parts
		for j, p := range parts {
			if p.Result == nil || done.Bytes >= goal {
				continue
			}
			note := fmt.Sprintf("[%d bytes of output are not shown any more; call again for what you still need]", len(p.Result.Text))
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
			}
		}
	}
	return done
}

// lastResults is the index of the last message that holds results; -1 where
// there is none.
func (t *talk) lastResults() int {
	i := len(t.history) - 1
	for i >= 0 && !slices.ContainsFunc(t.history[i].Parts, func(p model.Part) bool { return p.Result != nil }) {
		i--
	}
	return i
}

// input is what a tool is told of the session. It does not change while tools
// run beside each other.
func (t *talk) toolInput(args string) tool.Input {
	seen, outputs := maps.Clone(t.seen), t.outputs
	return tool.Input{
		Args: json.RawMessage(args),
		Seen: func(path string) (string, bool) {
			digest, ok := seen[path]
			return digest, ok
		},
		Output: func(call int) (string, bool) {
			if call < 1 || call > len(outputs) {
				return "", false
			}
			return outputs[call-1], true
		},
	}
}

// was is what a file held before a call changed it that was cut off and is run
// again: the tool must not take its own change for somebody else's.
func (t *talk) originalContents(path string) ([]byte, bool) {
	id := t.r.named("apply")
	begin, _ := t.r.Journal.Lookup(id)
	if begin == nil {
		return nil, false
	}
	apply, _ := history.Decode(*begin).Payload.(history.ApplyBegun)
	for _, v := range apply.Verdicts {
		if v.Path == path && v.Before.Exists() {
			content, err := t.r.Journal.Home().Get(v.Before.Digest)
			return content, err == nil
		}
	}
	return nil, false
}
