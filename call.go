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
)

func (t *talk) runCalls(ctx context.Context, got model.Reply, calls []model.Call) error {
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
			ID: calls[i].ID, Name: calls[i].Name, Text: t.textForModel(c), Failed: c.Result.Failed}})
	}
	t.history = append(t.history, model.Message{Role: model.Assistant, Parts: got.Parts}, answers)
	return t.noteFailures(ctx, results)
}

// Consecutive calls of read-only tools run concurrently, any other call alone. It returns how many it ran.
func (t *talk) runGroup(ctx context.Context, calls []model.Call, i int, results []Called) (int, error) {
	var group []*pendingCall
	for j := i; j < len(calls); j++ {
		c := t.planCall(calls[j], j)
		readOnly := c.refused == "" && c.tool.ReadOnly
		if len(group) > 0 && !readOnly {
			t.unplanCall(c)
			break
		}
		group = append(group, c)
		if !readOnly {
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

type pendingCall struct {
	call    model.Call
	index   int // in its reply, from 0
	tool    tool.Tool
	key     string // equal for equal calls
	refused string
	result  tool.Result
}

func (t *talk) planCall(call model.Call, index int) *pendingCall {
	call.Name = reply.ToolName(call.Name, t.toolNames())
	call.Args, _ = reply.Arguments(call.Args)
	c := &pendingCall{call: call, index: index, key: callKey(call.Name, call.Args)}
	i := slices.IndexFunc(t.role.Tools, func(one tool.Tool) bool { return one.Name == call.Name })
	switch bounds := t.role.Bounds; {
	case i < 0:
		c.refuse(RefusedName, fmt.Sprintf("there is no tool %q; %s", shorten(call.Name, maxNameBytes),
			cmp.Or(reply.CallHint(call.Name, t.specs), "there are: "+strings.Join(t.toolNames(), ", "))))
	case !json.Valid([]byte(call.Args)):
		text := fmt.Sprintf("the arguments are not JSON: %s. They were: %s", jsonError(call.Args), shorten(call.Args, 500))
		if t.role.TextCalls {
			text += "\n" + callForm
		}
		c.refuse(RefusedJSON, text)
	case index >= bounds.PerTurn:
		c.refuse(RefusedTurn, fmt.Sprintf("not run: a reply may have %d calls at most", bounds.PerTurn))
	case t.runCount >= bounds.Calls:
		c.refuse(RefusedSession, fmt.Sprintf("not run: the session's %d calls are used up", bounds.Calls))
	case t.times[c.key] >= orElse(t.role.Tools[i].MaxRepeats, 2):
		c.refuse(RefusedRepeat, "not run: the same call was answered before, and nothing has changed since; use that answer, or do something else")
	default:
		c.tool = t.role.Tools[i]
		t.runCount++
		t.times[c.key]++
	}
	return c
}

func (t *talk) unplanCall(c *pendingCall) {
	if c.refused == "" {
		t.runCount--
		t.times[c.key]--
	}
}

func (c *pendingCall) refuse(why, text string) { c.refused, c.result = why, tool.Failure(text) }

func callKey(name, args string) string { return name + "\x00" + compact(args) }

// Numbers stay as they are written: as float64, long ones would become equal.
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

func (t *talk) toolNames() []string {
	var names []string
	for _, one := range t.role.Tools {
		names = append(names, one.Name)
	}
	return names
}

// After a call that may have changed something, calls may be repeated.
func (t *talk) noteResult(c *pendingCall) {
	for path, digest := range c.result.Shown {
		t.seen[path] = digest
	}
	if c.refused == "" && !c.tool.ReadOnly && !c.tool.RunsCommands && !c.result.Failed {
		clear(t.times)
	}
}

func (t *talk) runPlanned(ctx context.Context, group []*pendingCall) error {
	if len(group) > 1 {
		return t.runConcurrently(ctx, group)
	}
	c := group[0]
	at := t.r.at
	defer func() { t.r.at = at }()
	t.r.at.Call = c.index + 1
	w := t.callStep(c)
	w.models = true
	if c.refused != "" || !c.tool.RunsCommands {
		var err error
		c.result, err = step(ctx, t.r, w)
		return err
	}
	begin := func(manifest string) (any, error) { return t.callBegin(c, manifest) }
	result, after, err := once(ctx, t.r, command(t.r, w, begin, t.interruptedResult))
	t.noteTree(c, after.Tree)
	c.result = t.withNotes(result, after)
	return err
}

// If the tree has changed since the last command, other calls may be repeated. The command itself may not: it could change the
// tree each time.
func (t *talk) noteTree(c *pendingCall, tree string) {
	if t.tree != "" && t.tree != tree {
		maps.DeleteFunc(t.times, func(key string, _ int) bool { return key != c.key })
	}
	t.tree = tree
}

func (t *talk) withNotes(result tool.Result, after history.Snapshot) tool.Result {
	judges, tools := t.r.restoredNotes(after.Restored)
	if judges != "" {
		result.Add("\n[" + judges + "; change the code, not what checks it]")
	}
	if tools != "" {
		result.Add("\n[" + tools + "; if the work needs the change, write the file with a tool: the user is asked]")
	}
	if paths := t.role.visiblePaths(after.Outside); len(paths) > 0 {
		result.Add(t.r.Rules.Guard.Redact("\n[while you were working, the user changed " + listed(paths) + "; keep these changes and build on them]"))
	}
	return result
}

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

// toolStepName is the name of the steps of all calls. A model can call a tool
// by any name, so only the step's begin says which one.
const toolStepName = "tool"

// maxNameBytes limits how much of a tool's name is repeated: a model can call a
// name of any length.
const maxNameBytes = 100

// manifest is empty unless the call runs commands. Arguments that are too long for an event's line are stored as an object.
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

func (t *talk) interruptedResult(_ context.Context, changed []string) (tool.Result, error) {
	return tool.Failure("the command was interrupted, because the program that ran it stopped; it may or may not have done its work, and it was not run again. " +
		t.r.Rules.Guard.Redact(t.role.changesText(changed))), nil
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

// It records their begins before, and their results after, in the order of the calls.
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

// shortAnswer is the size in bytes up to which an answer is sent again as it is.
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
	text, brief := c.Result.Text, c.Result.Brief
	if c.Result.Exit != nil {
		key, all := callKey(c.Name, c.Args), cmp.Or(brief, text)
		if t.times[key] > 1 && t.told[key] == all && len(all) > shortAnswer {
			brief = fmt.Sprintf("exit_code: %d; the same as your last run of it; no other call has changed a file since", *c.Result.Exit)
		}
		t.told[key] = all
	}
	switch {
	case brief != "" && len(text) <= shortAnswer && c.Result.Brief != "":
		return brief + "\n[its output:]\n" + text
	case brief != "":
		return fmt.Sprintf("%s\n[its output has %d bytes; to see it, read or grep \"output:%d\"]", brief, len(text), len(t.outputs))
	case len(text) <= limit:
		return text
	}
	head, tail := wholeLines(text[:limit*2/3], false), wholeLines(text[len(text)-limit/3:], true)
	return fmt.Sprintf("%s\n[%d bytes omitted here; to see all, read \"output:%d\"]\n%s",
		head, len(text)-len(head)-len(tail), len(t.outputs), tail)
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

func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most/2]+" … "+text[len(text)-most/2:], "")
}
