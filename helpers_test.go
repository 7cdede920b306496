package hone_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"hone"
	"hone/check"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/model"
	"hone/workspace"
)

// process is one process of a program on a workspace. It starts a run, or
// resumes the last one, for three rounds.
type process struct {
	ctx     context.Context // nil: never canceled
	round   hone.Round
	set     func(*hone.Run) // may be nil
	observe journal.Observer
	fresh   bool // starts a run even if there is one
	list    workspace.Lister
}

// live runs the process. It checks each line of the journal against the schema.
func (p process) live(t testing.TB, dir string) (hone.End, error) {
	t.Helper()
	end, events, err := crashtest.Process{Ctx: p.ctx, Observer: p.observe, New: p.fresh, List: p.list, Setup: func(r *hone.Run) hone.Round {
		r.Limits.Rounds = 3
		if p.set != nil {
			p.set(r)
		}
		return p.round
	}}.Run(dir)
	holdAgainstSchema(t, events)
	return end, err
}

// end is live for a process that must succeed.
func (p process) end(t testing.TB, dir string) hone.End {
	t.Helper()
	end, err := p.live(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	return end
}

// killed is the value that a killed process panics with.
type killed struct{}

// killedAt runs the process, kills it at the first event for which at returns
// true, and reports whether it was killed. A killed process does nothing more.
func (p process) killedAt(t testing.TB, dir string, at func(when string, typ journal.Type, phase journal.Phase) bool) (dead bool) {
	t.Helper()
	p.observe = journal.Observer{
		Before: func(n journal.Entry) {
			if at("before", n.Type, n.Phase) {
				panic(killed{})
			}
		},
		After: func(e journal.Event) {
			if at("after", e.Type, e.Phase) {
				panic(killed{})
			}
		},
	}
	defer func() {
		p := recover()
		if p != nil && p != (killed{}) {
			panic(p)
		}
		dead = p != nil
	}()
	_, _ = p.live(t, dir)
	return false
}

// on is an argument of killedAt: the first event of a type and phase.
func on(when string, typ journal.Type, phase journal.Phase) func(string, journal.Type, journal.Phase) bool {
	return func(w string, ty journal.Type, p journal.Phase) bool { return w == when && ty == typ && p == phase }
}

// must panics if an error occurs that only a wrong test can cause.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// events reads the last run's journal.
func events(t testing.TB, dir string) []journal.Event {
	t.Helper()
	home := must(journal.FindHome(dir))
	defer home.Close()
	return must(home.Read(must(home.FindRun("last"))))
}

// of returns the payloads of the events of a type and phase, in order.
func of[T any](t testing.TB, events []journal.Event, typ journal.Type, phase journal.Phase) []T {
	t.Helper()
	var all []T
	for _, e := range events {
		if e.Type == typ && e.Phase == phase {
			var v T
			must(0, e.Decode(&v))
			all = append(all, v)
		}
	}
	return all
}

// object reads an object of the workspace.
func object(t testing.TB, dir, name string) []byte {
	t.Helper()
	home := must(journal.FindHome(dir))
	defer home.Close()
	return must(home.Get(name))
}

// text is a reply with one text.
func text(s string) model.Reply {
	return model.Reply{Parts: []model.Part{{Text: s}}, Finish: model.Stop, Usage: &model.Usage{Input: 10, Output: 5}}
}

// user is a conversation of one message.
func user(s string) []model.Message {
	return []model.Message{{Role: model.User, Parts: []model.Part{{Text: s}}}}
}

// answers is a model that gives one answer after another.
type answers struct {
	mu       sync.Mutex
	list     []answer
	requests []model.Request
}

type answer func(context.Context, model.Request) (model.Reply, error)

func (a *answers) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	a.mu.Lock()
	n := len(a.requests)
	a.requests = append(a.requests, req)
	a.mu.Unlock()
	if n >= len(a.list) {
		return model.Reply{}, &model.Error{Kind: model.Invalid, Message: "the test has no further answer"}
	}
	return a.list[n](ctx, req)
}

// calls returns how often the model was asked.
func (a *answers) calls() int { return len(a.requests) }

func says(s string) answer {
	return func(context.Context, model.Request) (model.Reply, error) { return text(s), nil }
}

func fails(err error) answer {
	return func(context.Context, model.Request) (model.Reply, error) { return model.Reply{}, err }
}

// speaker is a model that gives these answers, in order.
func speaker(list ...answer) *answers { return &answers{list: list} }

// editor is a role whose replies may have a thousand tokens.
func editor(m model.Model) hone.Role {
	return hone.Role{Name: "editor", Model: m, Called: "test/model", System: "be brief", MaxOutput: 1000}
}

// asks is a round that asks one question and returns no finding.
func asks(role hone.Role, prompt string) hone.Round {
	return func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		_, err := r.Ask(ctx, role, user(prompt))
		return nil, err
	}
}

// applies is a round that makes edits and returns findings.
func applies(edits []workspace.Edit, findings ...check.Finding) hone.Round {
	return func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		_, err := r.Apply(ctx, workspace.Change{Edits: edits}, nil)
		return findings, err
	}
}

// finds is a round that changes nothing.
func finds(findings ...check.Finding) hone.Round { return applies(nil, findings...) }

func edit(path, content string) workspace.Edit {
	return workspace.Edit{Path: path, Content: []byte(content)}
}

// checks is a check that returns one list of findings after another, and then
// the last one every time. It counts its runs in asked.
func checks(asked *int, lists ...[]check.Finding) check.Func {
	return func(context.Context) ([]check.Finding, error) {
		*asked++
		return lists[min(*asked, len(lists))-1], nil
	}
}

func wrong(s string) check.Finding { return check.Finding{Source: "test", Text: s} }

func advice(s string) check.Finding {
	return check.Finding{Source: "test", Text: s, Advisory: true}
}

// texts returns the texts of findings.
func texts(findings []check.Finding) []string {
	list := []string{}
	for _, f := range findings {
		list = append(list, f.Text)
	}
	return list
}

// person is a user who answers questions by their path, and remembers them.
type person struct {
	answer func(q hone.Question) (hone.Answer, error)
	asked  []hone.Question
}

func (p *person) Ask(_ context.Context, q hone.Question) (hone.Answer, error) {
	p.asked = append(p.asked, q)
	return p.answer(q)
}

func (p *person) paths() []string {
	var paths []string
	for _, q := range p.asked {
		paths = append(paths, q.Path)
	}
	slices.Sort(paths)
	return paths
}

func yes(hone.Question) (hone.Answer, error) {
	return hone.Answer{Approved: true, By: "user"}, nil
}

func no(hone.Question) (hone.Answer, error) { return hone.Answer{By: "user"}, nil }

// edits returns an answer that writes other contents, and approves them when they are
// asked about.
func edits(contents string) func(hone.Question) (hone.Answer, error) {
	return func(q hone.Question) (hone.Answer, error) {
		if q.Edited {
			return yes(q)
		}
		return hone.Answer{By: "user", Contents: []byte(contents)}, nil
	}
}

func later(hone.Question) (hone.Answer, error) { return hone.Answer{}, hone.ErrPending }

// flag returns the value of a flag in an advice to resume; empty if it has
// none.
func flag(next hone.Next, name string) string {
	for _, f := range next.Flags {
		if next.Verb == hone.Resume && f.Name == name {
			return f.Value
		}
	}
	return ""
}

// wantEnd checks how a run ended.
func wantEnd(t testing.TB, end hone.End, kind hone.Kind) {
	t.Helper()
	if end.Kind != kind {
		t.Fatalf("the run ended %q (%s; %+v), want %q", end.Kind, end.Why, end.Next, kind)
	}
}

func removeFile(dir, name string) error { return os.Remove(filepath.Join(dir, name)) }
