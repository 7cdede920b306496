package hone

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"hone/history"
	"hone/model"
	"hone/tool"
)

// run runs the calls of a reply and puts their results into the history, all
// of them and in order.
func (t *talk) runCalls(ctx context.Context, reply model.Reply, calls []model.Call) error {
	t.prompts = 0
	results := make([]Called, len(calls))
	for i := 0; i < len(calls); {
		n, err := t.runGroup(ctx, calls, i, results)
		if err != nil {
			return err
		}
		i += n
	}
	answers := model.Message{Role: model.User}
	for i, c := range results {
		t.Calls = append(t.Calls, c)
		t.outputs = append(t.outputs, c.Result.Text)
		answers.Parts = append(answers.Parts, model.Part{Result: &model.Result{
			ID: calls[i].ID, Name: c.Name, Text: t.textForModel(c), Failed: c.Result.Failed}})
	}
	t.history = append(t.history, model.Message{Role: model.Assistant, Parts: reply.Parts}, answers)
	return nil
}

// group runs the calls from i on that can run beside each other, and returns
// how many those are: neighbours that only look, or one.
func (t *talk) runGroup(ctx context.Context, calls []model.Call, i int, results []Called) (int, error) {
	var group []*pendingCall
	for j := i; j < len(calls); j++ {
		c := t.planCall(calls[j], j)
		looks := c.refused == "" && c.tool.ReadOnly
		if len(group) > 0 && !looks {
			t.unplanCall(c)
			break
		}
		group = append(group, c)
		if !looks {
			break
		}
	}
	if err := t.runPlanned(ctx, group); err != nil {
		return 0, err
	}
	for k, c := range group {
		results[i+k] = Called{Name: c.call.Name, Args: c.call.Args, Refused: c.refused, Result: c.result}
		t.noteResult(c)
	}
	return len(group), nil
}

// calling is a call on its way.
type pendingCall struct {
	call    model.Call
	index   int // in its reply, from 0
	tool    tool.Tool
	key     string // what tells it from other calls
	refused string
	result  tool.Result
}

// plan looks at a call, and says why it is not to be run where it is not.
func (t *talk) planCall(call model.Call, index int) *pendingCall {
	c := &pendingCall{call: call, index: index, key: call.Name + "\x00" + compact(call.Args)}
	i := slices.IndexFunc(t.role.Tools, func(one tool.Tool) bool { return one.Name == call.Name })
	switch bounds := t.role.Bounds; {
	case i < 0:
		c.refuse(RefusedName, fmt.Sprintf("there is no tool %q; there are: %s", shorten(call.Name, maxNameBytes), t.names()))
	case !json.Valid([]byte(call.Args)):
		c.refuse(RefusedJSON, fmt.Sprintf("the arguments are not JSON: %s. They were: %s", jsonError(call.Args), shorten(call.Args, 500)))
	case index >= bounds.PerTurn:
		c.refuse(RefusedTurn, fmt.Sprintf("not run: a reply may have %d calls at most", bounds.PerTurn))
	case t.runCount >= bounds.Calls:
		c.refuse(RefusedSession, fmt.Sprintf("not run: the session's %d calls are used up", bounds.Calls))
	case t.times[c.key] >= orElse(t.role.Tools[i].MaxRepeats, 2):
		c.refuse(RefusedRepeat, "not run: this very call was answered before, and nothing was changed since; use what it said, or do something else")
	default:
		c.tool = t.role.Tools[i]
		t.runCount++
		t.times[c.key]++
	}
	return c
}

// unplan takes back what plan counted.
func (t *talk) unplanCall(c *pendingCall) {
	if c.refused == "" {
		t.runCount--
		t.times[c.key]--
	}
}

func (c *pendingCall) refuse(why, text string) { c.refused, c.result = why, tool.Failure(text) }

// compact is a call's arguments without white space that means nothing; its
// numbers stay as they are written, as float64 would make long ones the same.
func compact(args string) string {
	var v any
	d := json.NewDecoder(strings.NewReader(args))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return args
	}
	b, err := json.Marshal(v)
	if err != nil {
		return args
	}
	return string(b)
}

func jsonError(args string) string {
	var v any
	if err := json.Unmarshal([]byte(args), &v); err != nil {
		return err.Error()
	}
	return "unreadable"
}

func (t *talk) names() string {
	var names []string
	for _, one := range t.role.Tools {
		names = append(names, one.Name)
	}
	return strings.Join(names, ", ")
}

// note remembers what a call showed and changed.
func (t *talk) noteResult(c *pendingCall) {
	for path, digest := range c.result.Shown {
		t.seen[path] = digest
	}
	if c.refused == "" && !c.tool.ReadOnly && !c.tool.RunsCommands && !c.result.Failed {
		clear(t.times)
	}
}

// carry runs planned calls, and records them in their order.
func (t *talk) runPlanned(ctx context.Context, group []*pendingCall) error {
	if len(group) > 1 {
		return t.runConcurrently(ctx, group)
	}
	c := group[0]
	at := t.r.at
	defer func() { t.r.at = at }()
	t.r.at.Call = c.index + 1
	w := t.callStep(c)
	if c.refused != "" || !c.tool.RunsCommands {
		var err error
		c.result, err = step(ctx, t.r, w)
		return err
	}
	begun := func(manifest string) (any, error) { return t.callBegin(c, manifest) }
	result, restored, err := once(ctx, t.r, command(t.r, w, begun, t.interrupted))
	c.result = result
	if note := restoredNote(restored); note != "" {
		c.result.Text += "\n[" + note + "; change the code, not what checks it]"
	}
	return err
}

// work is a call as a step.
func (t *talk) callStep(c *pendingCall) stepWork[tool.Result] {
	open := func(context.Context) (any, error) { return t.callBegin(c, "") }
	return effect(history.TypeTool, toolStepName, []string{c.call.Name, c.call.Args}, open, func(ctx context.Context) (tool.Result, error) {
		if c.refused != "" {
			return c.result, nil
		}
		in := t.toolInput(c.call.Args)
		in.Original = t.originalContents
		return c.tool.Run(ctx, in)
	})
}

// toolStep is the name of the step that a call is; which tool it calls is told
// by its begin, as models can call by any name.
const toolStepName = "tool"

// longestName is how many bytes of a tool's name are repeated: a model can
// call by a name of any length.
const maxNameBytes = 100

// begun is a call's begin; manifest is empty where it runs no commands.
// Arguments that are too long for a line are kept as an object.
func (t *talk) callBegin(c *pendingCall, manifest string) (history.ToolCall, error) {
	b := history.ToolCall{Role: t.role.Name, Tool: shorten(c.call.Name, maxNameBytes), Args: c.call.Args, Refused: c.refused,
		Command: manifest != "", Manifest: manifest}
	if len(b.Args) <= inlineLimit {
		return b, nil
	}
	var err error
	b.Args = ""
	b.Object, err = t.r.Journal.Home().Put(t.r.redact([]byte(c.call.Args)))
	return b, err
}

// interrupted is the result of a command that was cut off.
func (t *talk) interrupted(_ context.Context, changed []string) (tool.Result, error) {
	return tool.Failure("the command was cut off, because the program that ran it ended; whether it did what it was to do is not known, and it was not run again. " +
		t.role.changesText(changed)), nil
}

// since says which files have changed since something began, as far as they
// are the role's.
func (role Role) changesText(changed []string) string {
	var own []string
	for _, path := range changed {
		if role.Dir != "" {
			inside, ok := strings.CutPrefix(path, role.Dir+"/")
			if !ok {
				continue
			}
			path = inside
		}
		own = append(own, path)
	}
	if len(own) == 0 {
		return "No file has changed since it began."
	}
	return "Files that changed since it began: " + strings.Join(own[:min(len(own), 50)], ", ") + "."
}

// mostBeside is how many calls run at the same time.
const maxConcurrent = 8

// beside runs calls that only look at the same time. Their places are given
// before, and their records are written after, in the order of the calls.
func (t *talk) runConcurrently(ctx context.Context, group []*pendingCall) (err error) {
	at := t.r.at
	defer func() { t.r.at = at }()
	places := make([]stepPlace, len(group))
	for i, c := range group {
		t.r.at.Call = c.index + 1
		if places[i], err = t.r.begin(ctx, t.callStep(c).stepEntry); err != nil {
			return err
		}
	}
	errs := make([]error, len(group))
	var fork sync.WaitGroup
	room := make(chan struct{}, maxConcurrent)
	for i, c := range group {
		if places[i].record != nil {
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
		if c.result, err = finish(t.r, places[i], c.result); err != nil {
			return err
		}
	}
	return nil
}

// cut is a result as the model is sent it: what is too long is left out in the
// middle, and can be had with the tool that reads.
func (t *talk) textForModel(c Called) string {
	most := 16 << 10
	for _, one := range t.role.Tools {
		if one.Name == c.Name && one.MaxText > 0 {
			most = one.MaxText
		}
	}
	text := c.Result.Text
	if len(text) <= most {
		return text
	}
	head, tail := wholeLines(text[:most*2/3], false), wholeLines(text[len(text)-most/3:], true)
	return fmt.Sprintf("%s\n[%d bytes are left out here; the whole is \"output:%d\" for the tool that reads]\n%s",
		head, len(text)-len(head)-len(tail), len(t.outputs), tail)
}

// lines is a piece of a text without the torn line at its end, or at its
// beginning, unless that is most of it.
func wholeLines(piece string, beginning bool) string {
	if beginning {
		if i := strings.IndexByte(piece, '\n'); i >= 0 && i < len(piece)/2 {
			return piece[i+1:]
		}
	} else if i := strings.LastIndexByte(piece, '\n'); i > len(piece)/2 {
		return piece[:i]
	}
	return strings.ToValidUTF8(piece, "")
}

// middle is a text shortened to about so many bytes.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most/2]+" … "+text[len(text)-most/2:], "")
}
