package hone

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"hone/history"
	"hone/internal/reply"
	"hone/model"
	"hone/tool"
	"hone/workspace"
)

func (t *talk) runCalls(ctx context.Context, parts []model.Part, calls []model.Call) error {
	t.prompts = 0
	var planned, waiting []*pendingCall // calls that only read run concurrently, any other call alone
	for i, call := range calls {
		c := t.planCall(call, i)
		planned = append(planned, c)
		if c.refused == "" && c.tool.ReadOnly {
			waiting = append(waiting, c)
			continue
		}
		if err := t.read(ctx, waiting); err != nil {
			return err
		}
		waiting = nil
		if err := t.run(ctx, c); err != nil {
			return err
		}
	}
	if err := t.read(ctx, waiting); err != nil {
		return err
	}
	answers := model.Message{Role: model.User}
	for i, c := range planned {
		called := Called{Name: c.call.Name, Args: c.call.Args, Refused: c.refused, Result: c.result}
		t.Calls = append(t.Calls, called)
		t.outputs = append(t.outputs, c.result.Text)
		answers.Parts = append(answers.Parts, model.Part{Result: &model.Result{
			ID: calls[i].ID, Name: calls[i].Name, Text: t.textForModel(called), Failed: c.result.Failed}})
	}
	t.hold(append(t.history, model.Message{Role: model.Assistant, Parts: parts}, answers))
	// A check that passes ends the session if the last call asks for that. The model would be asked once more for what its reply has said.
	said := strings.TrimSpace(reply.Answer(t.Reply.Text(), nil))
	failed := slices.ContainsFunc(planned, func(c *pendingCall) bool { return c.result.Failed })
	if planned[len(planned)-1].result.Ends && !failed && said != "" && (t.role.Answered == nil || t.role.Answered(said) == "") {
		t.Ended = EndedAnswer
		return nil
	}
	return t.noteFailures(ctx, t.Calls[len(t.Calls)-len(planned):])
}

type pendingCall struct {
	call    reply.Call
	index   int // in its reply, from 0
	tool    tool.Tool
	refused string
	result  tool.Result
}

func (t *talk) planCall(call model.Call, index int) *pendingCall {
	c := &pendingCall{call: reply.ReadCall(call, t.specs), index: index}
	i := slices.IndexFunc(t.role.Tools, func(one tool.Tool) bool { return one.Name == c.call.Name })
	switch bounds := t.role.Bounds; {
	case i < 0:
		c.refuse(RefusedName, c.call.Problem)
	case c.call.Problem != "":
		text := c.call.Problem
		if t.role.TextCalls {
			text += "\n" + callForm
		}
		c.refuse(RefusedJSON, text)
	case index >= bounds.PerTurn:
		c.refuse(RefusedTurn, fmt.Sprintf("not run: a reply may have %d calls at most", bounds.PerTurn))
	case t.runCount >= bounds.Calls:
		c.refuse(RefusedSession, fmt.Sprintf("not run: the session's %d calls are used up", bounds.Calls))
	case t.times[c.call.Key] >= orElse(t.role.Tools[i].MaxRepeats, 2):
		c.refuse(RefusedRepeat, "not run: the same call was answered before, and nothing has changed since; use that answer, or do something else")
	default:
		c.tool = t.role.Tools[i]
		t.runCount++
		t.times[c.call.Key]++
	}
	return c
}

func (c *pendingCall) input() any { return []string{c.call.Name, c.call.Args} }

func (c *pendingCall) refuse(why, text string) { c.refused, c.result = why, tool.Failure(text) }

// run runs a call that may change something, or records that it is refused.
func (t *talk) run(ctx context.Context, c *pendingCall) (err error) {
	at := t.r.at
	defer func() { t.r.at = at }()
	t.r.at.Call = c.index + 1
	s := &stepSpec{event: history.TypeTool, name: toolStepName}
	do := func(ctx context.Context) (tool.Result, error) { return t.doCall(ctx, c) }
	if c.refused != "" || !c.tool.RunsCommands {
		c.result, err = step(ctx, t.r, s, c.input(), t.opening(c), do)
		if c.refused == "" && !c.result.Failed {
			clear(t.times) // something may have changed, so calls may be repeated
		}
	} else {
		s.models = true
		begin := func(before history.Before) (any, error) { return t.callBegin(c, before) }
		interrupted := func(_ context.Context, changed []string) (tool.Result, error) {
			return tool.Failure("the command was interrupted, because the program that ran it stopped; it may or may not have done its work, and it was not run again. " +
				t.r.Rules.Guard.Redact(t.role.changesText(changed))), nil
		}
		var after history.Snapshot
		c.result, after, err = once(ctx, t.r, s, c.input(), begin, do, interrupted)
		if text := putBackText(after.Restored); text != "" {
			c.result.Add("\n[" + text + "]")
		}
		if paths := t.role.visiblePaths(after.Outside); len(paths) > 0 {
			c.result.Add(t.r.Rules.Guard.Redact("\n[while you were working, the user changed " + listed(paths) + "; keep these changes and build on them]"))
		}
		if t.tree != "" && t.tree != after.Tree { // other calls may be repeated; the command itself could change the tree each time
			maps.DeleteFunc(t.times, func(key string, _ int) bool { return key != c.call.Key })
		}
		t.tree = after.Tree
	}
	maps.Copy(t.seen, c.result.Shown)
	return err
}

func (t *talk) opening(c *pendingCall) opening {
	return func(context.Context) (any, error) { return t.callBegin(c, history.Before{}) }
}

func (t *talk) doCall(ctx context.Context, c *pendingCall) (tool.Result, error) {
	if c.refused != "" {
		return c.result, nil
	}
	in := t.toolInput(c.call.Args)
	// Of a call that was interrupted and runs again: the tool would take its own change for the user's.
	in.Original = func(path string) ([]byte, bool) {
		begin, _ := t.r.Past().Begin(t.r.firstIdentity("apply"))
		apply, _ := begin.Payload.(history.ApplyBegun)
		i := slices.IndexFunc(apply.Verdicts, func(v workspace.Verdict) bool { return v.Path == path && v.Before.Exists() })
		if i < 0 {
			return nil, false
		}
		content, err := t.r.Journal.Home().Get(apply.Verdicts[i].Before.Digest)
		return content, err == nil
	}
	return c.tool.Run(ctx, in)
}

// toolStepName is the name of the steps of all calls. A model can call a tool
// by any name, so only the step's begin says which one.
const toolStepName = "tool"

// before is zero unless the call runs commands. Arguments that are too long for an event's line are stored as an object.
func (t *talk) callBegin(c *pendingCall, before history.Before) (history.ToolCall, error) {
	b := history.ToolCall{Role: t.role.Name, Tool: reply.Shorten(c.call.Name, reply.MaxName), Args: c.call.Args, Refused: c.refused,
		Command: before.Manifest != "", Before: before}
	if len(b.Args) <= inlineLimit {
		return b, nil
	}
	var err error
	b.Args = ""
	b.Object, err = t.r.Journal.Put(t.r.redact([]byte(c.call.Args)))
	return b, err
}

func (role Role) changesText(changed []string) string {
	visible := role.visiblePaths(changed)
	if len(visible) == 0 {
		return "No file has changed since it began."
	}
	return "Files that changed since it began: " + strings.Join(visible[:min(len(visible), 50)], ", ") + "."
}

func (role Role) visiblePaths(paths []string) []string {
	var visible []string
	for _, path := range paths {
		if role.Dir != "" {
			inside, ok := strings.CutPrefix(path, role.Dir+"/")
			if !ok {
				continue
			}
			path = inside
		}
		visible = append(visible, path)
	}
	return visible
}

const maxConcurrent = 8

// read runs calls that only read concurrently. It records their begins before, and their results after, in the order of the calls.
func (t *talk) read(ctx context.Context, group []*pendingCall) (err error) {
	at := t.r.at
	defer func() { t.r.at = at }()
	steps := make([]*stepSpec, len(group))
	for i, c := range group {
		t.r.at.Call = c.index + 1
		steps[i] = &stepSpec{event: history.TypeTool, name: toolStepName}
		if err = t.r.begin(ctx, steps[i], c.input(), t.opening(c)); err != nil {
			return err
		}
	}
	errs := make([]error, len(group))
	var fork sync.WaitGroup
	room := make(chan struct{}, maxConcurrent)
	for i, c := range group {
		if steps[i].record != nil {
			continue
		}
		in := t.toolInput(c.call.Args)
		fork.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			c.result, errs[i] = c.tool.Run(ctx, in)
		})
	}
	fork.Wait()
	for i, c := range group {
		if errs[i] != nil {
			return errs[i]
		}
		if c.result, err = finish(t.r, steps[i], c.result); err != nil {
			return err
		}
		maps.Copy(t.seen, c.result.Shown)
	}
	return nil
}

const shortAnswer = 400

// It omits what the last result of the same call said (ruling S12), and the middle of a long text, which the model can read
// with a tool.
func (t *talk) textForModel(c Called) string {
	limit := 16 << 10
	for _, one := range t.role.Tools {
		if one.Name == c.Name && one.MaxText > 0 {
			limit = one.MaxText
		}
	}
	text := c.Result.Text
	head, rest := c.Result.Parts()
	again := false
	if c.Result.Exit != nil {
		key, all := reply.Key(c.Name, c.Args), cmp.Or(head, text)
		if again = t.times[key] > 1 && t.told[key] == all && len(all) > shortAnswer; again {
			head = fmt.Sprintf("exit_code: %d; the same as your last run of it; no other call has changed a file since", *c.Result.Exit)
		}
		t.told[key] = all
	}
	switch {
	case again, head != "" && len(rest) > shortAnswer:
		return fmt.Sprintf("%s\n[its output has %d bytes; to see it, read or grep \"output:%d\"]", head, len(rest), len(t.outputs))
	case len(text) <= limit:
		return text
	}
	start, tail := wholeLines(text[:limit*2/3], false), wholeLines(text[len(text)-limit/3:], true)
	return fmt.Sprintf("%s\n[%d bytes omitted here; to see all, read \"output:%d\"]\n%s",
		start, len(text)-len(start)-len(tail), len(t.outputs), tail)
}

// The incomplete line stays if it is most of the piece.
func wholeLines(piece string, start bool) string {
	if start {
		if i := strings.IndexByte(piece, '\n'); i >= 0 && i < len(piece)/2 {
			return piece[i+1:]
		}
	} else if i := strings.LastIndexByte(piece, '\n'); i > len(piece)/2 {
		return piece[:i]
	}
	return strings.ToValidUTF8(piece, "")
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
		sent := p.Text
		if p.Result != nil {
			sent = p.Result.Text
		}
		if !strings.Contains(sent, path) {
			return false
		}
		for line := range strings.Lines(text) {
			if !strings.Contains(sent, strings.TrimSpace(line)) {
				return false
			}
		}
		return true
	})
}
