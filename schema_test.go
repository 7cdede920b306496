package hone_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/model"
	"hone/tool"
	"hone/workspace"
)

const schemaFile = "events.schema.json"

// eventSchema reads the published schema, once.
var eventSchema = sync.OnceValue(func() *jsonschema.Resolved {
	var s jsonschema.Schema
	must(0, json.Unmarshal(must(os.ReadFile(schemaFile)), &s))
	return must(s.Resolve(nil))
})

func validate(s *jsonschema.Resolved, line []byte) error {
	var v map[string]any
	if err := json.Unmarshal(line, &v); err != nil {
		return err
	}
	return s.Validate(v)
}

// fitting has the shapes of lines that fit the published schema. The crash tests write
// nearly the same lines thousands of times.
var fitting sync.Map

// holdAgainstSchema checks every line of a journal against the published
// schema. All tests of this package call it.
func holdAgainstSchema(t testing.TB, events []journal.Event) {
	t.Helper()
	s := eventSchema()
	for _, e := range events {
		shape := shapeOf(e.Line())
		if _, ok := fitting.Load(shape); ok {
			continue
		}
		if err := validate(s, e.Line()); err != nil {
			t.Errorf("the schema does not describe this event: %v\n%s", err, e.Line())
			continue
		}
		fitting.Store(shape, true)
	}
}

// shapeOf replaces what differs from run to run: the digits of numbers with several, and of
// digests and ids. Their lengths and signs stay, so that the schema, which bounds numbers
// only by 0 and 1, describes all lines of a shape or none.
func shapeOf(line []byte) string {
	shape := slices.Clone(line)
	isDigit := func(c byte) bool { return '0' <= c && c <= '9' }
	isHex := func(c byte) bool { return isDigit(c) || 'a' <= c && c <= 'f' }
	for i := 0; i < len(shape); {
		n, digits := 0, 0
		for ; i+n < len(shape) && isHex(shape[i+n]); n++ {
			if isDigit(shape[i+n]) {
				digits++
			}
		}
		word := shape[i : i+n]
		i += max(n, 1)
		switch {
		case digits == 0 || n == 1 || digits < n && n < 6:
		case digits < n:
			copy(word, bytes.Repeat([]byte("a"), n))
		default:
			copy(word, bytes.Repeat([]byte("1"), n))
		}
	}
	return string(shape)
}

func TestShapeOf(t *testing.T) {
	bound := regexp.MustCompile(`"(maximum|exclusive\w*|multipleOf)"|"(minimum|const)": *([2-9]|\d\d)`)
	if found := bound.Find(must(os.ReadFile(schemaFile))); found != nil {
		t.Errorf("the schema has %s, so that a shape must keep the digits of numbers", found)
	}
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`{"n":12}`, `{"n":97}`, true},
		{`{"n":12}`, `{"n":123}`, false},
		{`{"n":12}`, `{"n":-12}`, false},
		{`{"n":12}`, `{"n":"12"}`, false},
		{`{"n":0}`, `{"n":1}`, false},
		{`{"n":1}`, `{"n":2}`, false},
		{`{"n":0.25}`, `{"n":0.31}`, true},
		{`{"at":"2026-11-23T08:06:21.79Z"}`, `{"at":"2027-10-20T09:07:22.81Z"}`, true},
		{`{"d":"0123456789abcdef"}`, `{"d":"fedcba9876543210"}`, true},
		{`{"d":"0123456789abcdef"}`, `{"d":"fedcba987654321"}`, false},
		{`{"type":"add"}`, `{"type":"bad"}`, false},
		{`{"type":"facade"}`, `{"type":"decade"}`, false},
	} {
		if got := shapeOf([]byte(c.a)) == shapeOf([]byte(c.b)); got != c.same {
			t.Errorf("%s and %s: %v", c.a, c.b, got)
		}
	}
}

// walled is a wall with every field set.
func walled() history.Walls {
	return history.Walls{Wall: "landlock", Level: "guarded", Landlock: 7, Seccomp: true, Net: "off", Text: "landlock (guarded)",
		Why: "no user namespaces", Open: []string{"see that a file exists"}}
}

// eventful is a workspace whose run has events of every type that the engine
// appends. Its first process is interrupted after its first round, and a file
// changes before the second process.
func eventful(t testing.TB) (dir string) {
	dir = crashtest.Workspace(t, map[string]string{"a": "zero", "asked": "zero"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	calls := func(context.Context, model.Request) (model.Reply, error) {
		return model.Reply{Finish: model.Calls, Parts: []model.Part{
			{Call: &model.Call{ID: "1", Name: "look", Args: "{}"}}, {Call: &model.Call{ID: "2", Name: "make", Args: "{}"}},
			{Call: &model.Call{ID: "3", Name: "make", Args: "no"}},
		}}, nil
	}
	exit := 2
	handy := editor(nil)
	handy.Tools = []tool.Tool{
		{Spec: model.Spec{Name: "look"}, ReadOnly: true, Run: func(context.Context, tool.Input) (tool.Result, error) {
			return tool.Result{Text: "zero", Shown: map[string]string{"a": "digest"}}, nil
		}},
		{Spec: model.Spec{Name: "make"}, RunsCommands: true, Run: func(context.Context, tool.Input) (tool.Result, error) {
			return tool.Result{Text: "failed", Failed: true, Exit: &exit}, nil
		}},
	}
	m := speaker(fails(&model.Error{Kind: model.Overloaded, Message: "busy"}), says("one"), calls, says("done"), says("two"), calls, says("done"))
	round := func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
		if err := r.Notice("told once"); err != nil {
			return nil, err
		}
		if err := r.Walled(walled()); err != nil {
			return nil, err
		}
		if err := r.Served(history.Served{What: history.Up, URL: "http://localhost:3000"}); err != nil {
			return nil, err
		}
		left := 3
		if err := r.Attempted(history.Attempt{Number: 1, Dir: "/copy", Run: "there", Model: "m", Findings: &left, Result: hone.KindDone, Why: "it passes", Applied: true}); err != nil {
			return nil, err
		}
		if _, err := r.Delegate(ctx, agent(says("worked")), user("work")); err != nil {
			return nil, err
		}
		role := editor(m)
		role.Escalation, role.EscalateAfter = &hone.Candidate{Model: m, Called: "test/other", MaxOutput: 1000}, 1
		reply, err := r.Ask(ctx, role, user("what now?"))
		if err != nil {
			return nil, err
		}
		run := func(context.Context) (seen, error) { return seen{"ran"}, nil }
		if _, err := hone.Once(ctx, r, "command", nil, run, nil); err != nil {
			return nil, err
		}
		handy.Model, handy.Called = speaker(fails(&model.Error{Kind: model.Quota, Status: 402, Message: "no credit"})), "test/first"
		handy.Fallbacks = []hone.Candidate{{Model: m, Called: "test/model", MaxOutput: 1000}}
		if _, err := r.Talk(ctx, handy, user("do it")); err != nil {
			return nil, err
		}
		_, err = r.Apply(ctx, workspace.Change{Edits: []workspace.Edit{
			edit("a", reply.Text()), edit("asked", reply.Text()), edit("../out", "no"), {Path: "none", Delete: true},
		}}, nil)
		return []check.Finding{advice("as you like")}, err
	}
	ran := 0
	p := process{ctx: ctx, round: round, set: func(r *hone.Run) {
		r.Limits = hone.Limits{Rounds: 3, Tokens: 1e6, Time: time.Hour}
		r.Rules.Approve = []string{"asked"}
		r.Check = func(context.Context) ([]check.Finding, error) {
			if ran++; ran == 2 {
				return nil, nil
			}
			return []check.Finding{{Source: "check", File: "a", Text: "not yet"}}, nil
		}
	}}
	round1 := p
	round1.round = func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
		if len(prior) > 0 {
			cancel()
			return nil, ctx.Err()
		}
		return round(ctx, r, prior)
	}
	wantEnd(t, round1.end(t, dir), hone.KindInterrupted)
	crashtest.WriteFile(dir, "a", "somebody else's")
	p.ctx = nil
	wantEnd(t, p.end(t, dir), hone.KindBlocked)
	if _, _, err := undo(t, dir, 1, true); err != nil {
		t.Fatal(err)
	}
	return dir
}

// engineTypes are the types of all events that the engine can append.
func engineTypes() []string {
	return []string{"apply", "approval", "ask", "attempt", "change", "check", "command", "commit", "end", "escalate", "failover", "notice", "outside",
		"reply", "reserve", "resume", "retry", "round", "server", "start", "step", "tool", "undo", "usage", "walls"}
}

func TestSchemaNamesEveryTypeThatARunAppends(t *testing.T) {
	types := map[string]bool{}
	for _, e := range events(t, eventful(t)) {
		types[string(e.Type)] = true
		switch p := history.Decode(e).Payload.(type) {
		case nil, history.Unreadable:
			t.Errorf("history does not know this event: %v\n%s", p, e.Line())
		}
	}
	if diff := cmp.Diff(engineTypes(), slices.Sorted(maps.Keys(types))); diff != "" {
		t.Errorf("types of events (-known +appended):\n%s", diff)
	}
	var s struct {
		Properties struct {
			Type struct{ Enum []string }
		}
	}
	must(0, json.Unmarshal(must(os.ReadFile(schemaFile)), &s))
	slices.Sort(s.Properties.Type.Enum)
	if diff := cmp.Diff(engineTypes(), s.Properties.Type.Enum); diff != "" {
		t.Errorf("types of events (-known +in the schema):\n%s", diff)
	}
}

// The schema rejects each kind of event if any field is removed or gets another
// type, or if a field is added.
func TestSchemaRefusesDamagedEvents(t *testing.T) {
	s := eventSchema()
	done := map[string]bool{}
	for _, e := range events(t, eventful(t)) {
		kind := string(e.Type) + " " + string(e.Phase)
		if done[kind] {
			continue
		}
		done[kind] = true
		for what, line := range damaged(t, e) {
			if validate(s, line) == nil {
				t.Errorf("%s: the schema takes an event with %s\n%s", kind, what, line)
			}
		}
	}
	if len(done) < len(engineTypes()) {
		t.Errorf("only %d kinds of events were damaged", len(done))
	}
}

// optional are fields that an event may lack.
const optional = " cost usage detail limit delete rest reason attempted next why result checked phase input error same_as best_round notes flaky put_back landlock seccomp open saw left applied attempt_run said "

// damaged returns the lines that result from damaging an event, by the damage.
func damaged(t *testing.T, e journal.Event) map[string][]byte {
	t.Helper()
	var whole map[string]any
	must(0, json.Unmarshal(e.Line(), &whole))
	lines := map[string][]byte{}
	change := func(what string, f func(map[string]any)) {
		m := maps.Clone(whole)
		f(m)
		lines[what] = must(json.Marshal(m))
	}
	open := e.Phase == journal.Record && (e.Type == "step" || e.Type == "command")
	for key := range whole {
		if open && !strings.Contains(" v seq time run type phase step input active_ms prev mac ", " "+key+" ") {
			continue // a step's own result
		}
		if !strings.Contains(optional, " "+key+" ") {
			change("no "+key, func(m map[string]any) { delete(m, key) })
		}
		change("a strange "+key, func(m map[string]any) { m[key] = []any{[]any{}} })
	}
	if !open {
		change("a field of its own", func(m map[string]any) { m["extra"] = 1 })
	}
	change("another type", func(m map[string]any) { m["type"] = "tool?" })
	return lines
}

func TestSchemaRefuses(t *testing.T) {
	s := eventSchema()
	envelope := `"v":1,"seq":1,"time":"2026-01-02T03:04:05Z","run":"r","active_ms":0,"prev":""`
	digest := strings.Repeat("0", 64)
	call := `"type":"tool","phase":"begin","step":{"round":1,"session":1,"turn":1,"call":1,"name":"tool"},"input":"` + digest + `","role":"r","tool":"look","args":"{}"`
	for _, tt := range []struct {
		name, fields string
		ok           bool
	}{
		{"a notice", `"type":"notice","text":"x"`, true},
		{"a notice of a step", `"type":"notice","text":"x","phase":"begin","step":{"round":1,"name":"x"}`, false},
		{"an apply of no step", `"type":"apply","verdicts":[]`, false},
		{"a reply that begins", `"type":"reply","phase":"begin","step":{"round":1,"name":"x"}`, false},
		{"an exit status that is none", `"type":"end","result":"done","exit":7,"why":"","rounds":1,"tokens":0,"assumed_tokens":0,"findings":[]`, false},
		{"an end", `"type":"end","result":"done","why":"","rounds":1,"tokens":0,"assumed_tokens":0,"findings":[]`, true},
		{"an end in the feed", `"type":"end","result":"done","exit":0,"why":"","rounds":1,"tokens":0,"assumed_tokens":0,"findings":[]`, true},
		{"an end of no kind", `"type":"end","result":"finished","why":"","rounds":1,"tokens":0,"assumed_tokens":0,"findings":[]`, false},
		{"an end with what to do next", `"type":"end","result":"rounds","next":{"verb":"resume","flags":[{"name":"rounds","value":"4"}]},"why":"","rounds":1,"tokens":0,"assumed_tokens":0,"findings":[]`, true},
		{"an end with two things to do next", `"type":"end","result":"rounds","next":{"verb":"resume","or":{"flags":[{"name":"net"}],"remark":"which helps"}},"why":"","rounds":1,"tokens":0,"assumed_tokens":0,"findings":[]`, true},
		{"an end with nothing to do instead", `"type":"end","result":"rounds","next":{"verb":"resume","or":{}},"why":"","rounds":1,"tokens":0,"assumed_tokens":0,"findings":[]`, false},
		{"an end with nothing to do next", `"type":"end","result":"rounds","next":{},"why":"","rounds":1,"tokens":0,"assumed_tokens":0,"findings":[]`, false},
		{"a tool call", call, true},
		{"a command", call + `,"command":true,"manifest":"` + digest + `"`, true},
		{"a command of no tree", call + `,"command":true`, false},
		{"a tree of no command", call + `,"manifest":"` + digest + `"`, false},
		{"a call that is refused", call + `,"refused":"bad_json"`, true},
		{"a command that is refused", call + `,"command":true,"manifest":"` + digest + `","refused":"bad_json"`, false},
		{"a call that is refused for no known reason", call + `,"refused":"why not"`, false},
		{"arguments here and there", call + `,"object":"` + digest + `"`, false},
		{"a call's record without a result", strings.Replace(call, "begin", "record", 1), false},
		{"findings that are null", `"type":"end","result":"done","exit":0,"why":"","rounds":1,"tokens":0,"assumed_tokens":0,"findings":null`, false},
	} {
		if err := validate(s, []byte("{"+envelope+","+tt.fields+"}")); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if err := validate(s, []byte("[]")); err == nil {
		t.Error("an array is taken for an event")
	}
}
