package hone_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/crashtest"
	"hone/internal/crashtest/waittest"
	"hone/journal"
	"hone/model"
	"hone/workspace"
)

// odd is a result with an event's own keys and a hidden field.
type odd struct {
	Type   string         `json:"type"`
	Input  string         `json:"input"`
	Prev   map[string]int `json:"prev"`
	Hidden string         `json:"-"`
}

// looks is a round that takes one step and keeps its result.
func looks[T any](name string, input any, do func(context.Context) (T, error), show func(T)) hone.Round {
	return func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		v, err := hone.Step(ctx, r, name, input, do)
		if err == nil {
			show(v)
		}
		return nil, err
	}
}

// The first process gets the same result as a resumed one.
func TestStepGoesThroughJSON(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	t.Run("a struct", func(t *testing.T) {
		stepTwice(t, seen{"here"}, seen{"here"})
	})
	t.Run("a struct with an event's keys", func(t *testing.T) {
		stepTwice(t, odd{"t", "i", map[string]int{"a": 1}, "gone"}, odd{"t", "i", map[string]int{"a": 1}, ""})
	})
	t.Run("no struct at all", func(t *testing.T) { stepTwice(t, []string{"a", "b"}, []string{"a", "b"}) })
	t.Run("a large result", func(t *testing.T) { stepTwice(t, seen{long}, seen{long}) })
}

func stepTwice[T any](t *testing.T, result, want T) {
	dir := t.TempDir()
	did := 0
	var got []T
	p := process{round: looks("look", "in", func(context.Context) (T, error) {
		did++
		return result, nil
	}, func(v T) { got = append(got, v) })}
	if !p.killedAt(t, dir, on("before", "round", "")) {
		t.Fatal("the run was not killed")
	}
	wantEnd(t, p.end(t, dir), hone.KindDone)
	if diff := cmp.Diff([]T{want, want}, got); diff != "" {
		t.Errorf("what the step returned, and the resumed one (-want +got):\n%s", diff)
	}
	if did != 1 {
		t.Errorf("a recorded step was done %d times", did)
	}
	for _, e := range events(t, dir) {
		if len(e.Line()) > 20<<10 {
			t.Errorf("a line has %d bytes; what is large belongs into an object", len(e.Line()))
		}
	}
}

// A failed step has no record, and is done again.
func TestStepErrorIsNotRemembered(t *testing.T) {
	dir := t.TempDir()
	did := 0
	p := process{round: looks("look", nil, func(context.Context) (seen, error) {
		if did++; did == 1 {
			return seen{}, errors.New("busy")
		}
		return seen{"now"}, nil
	}, func(seen) {})}
	wantEnd(t, p.end(t, dir), hone.KindFailed)
	if n := len(of[seen](t, events(t, dir), "step", journal.Record)); n != 1 { // the engine's own look
		t.Errorf("%d steps are on record", n)
	}
	wantEnd(t, p.end(t, dir), hone.KindDone)
	if did != 2 {
		t.Errorf("the step was done %d times, want 2", did)
	}
}

// A recorded answer is never given to a different question, whether the step
// was recorded or only started.
func TestStepWithAnotherInput(t *testing.T) {
	for _, place := range []struct {
		name string
		kill func(string, journal.Type, journal.Phase) bool
	}{
		{"recorded", on("before", "round", "")},
		{"begun", nthStep("before", journal.Record, 2)},
	} {
		t.Run(place.name, func(t *testing.T) {
			dir := t.TempDir()
			look := func(context.Context) (seen, error) { return seen{"x"}, nil }
			if !(process{round: looks("look", "one", look, func(seen) {})}).killedAt(t, dir, place.kill) {
				t.Fatal("the run was not killed")
			}
			end := process{round: looks("look", "two", look, func(seen) {})}.end(t, dir)
			wantEnd(t, end, hone.KindFailed)
			for _, in := range []string{`"one"`, `"two"`} {
				if d := workspace.Digest([]byte(in))[:12]; !strings.Contains(end.Why, d) {
					t.Errorf("the reason does not name the digest %s: %s", d, end.Why)
				}
			}
		})
	}
}

// nthStep is an argument of killedAt: the nth step event of a phase.
func nthStep(when string, phase journal.Phase, n int) func(string, journal.Type, journal.Phase) bool {
	return func(w string, typ journal.Type, p journal.Phase) bool {
		if w != when || typ != "step" || p != phase {
			return false
		}
		n--
		return n == 0
	}
}

// What was started but not recorded is not done again.
func TestOnceInterrupted(t *testing.T) {
	dir := t.TempDir()
	var did, asked int
	var got []seen
	p := process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		v, err := hone.Once(ctx, r, "bash", "make", func(context.Context) (seen, error) {
			did++
			crashtest.WriteFile(dir, "half", "done")
			return seen{"ran"}, nil
		}, func(_ context.Context, changed []string) (seen, error) {
			asked++
			if diff := cmp.Diff([]string{"half"}, changed); diff != "" {
				t.Errorf("what changed since it began (-want +got):\n%s", diff)
			}
			return seen{"outcome unknown"}, nil
		})
		got = append(got, v)
		return nil, err
	}}
	if !p.killedAt(t, dir, on("before", "command", journal.Record)) {
		t.Fatal("the run was not killed")
	}
	if !p.killedAt(t, dir, on("before", "round", "")) {
		t.Fatal("the run was not killed again")
	}
	wantEnd(t, p.end(t, dir), hone.KindDone)
	if did != 1 || asked != 1 {
		t.Errorf("done %d times and asked what became of it %d times, want 1 and 1", did, asked)
	}
	if diff := cmp.Diff([]seen{{"outcome unknown"}, {"outcome unknown"}}, got); diff != "" {
		t.Errorf("what it returned (-want +got):\n%s", diff)
	}
}

// A resumed run does not report what a command changed as an outside change.
func TestOnceIsNobodyElsesDoing(t *testing.T) {
	for _, place := range []struct {
		name string
		kill func(string, journal.Type, journal.Phase) bool
	}{
		{"killed in the command", on("before", "command", journal.Record)},
		{"killed after it", on("after", "command", journal.Record)},
		{"killed after the look", on("before", "round", "")},
	} {
		t.Run(place.name, func(t *testing.T) {
			dir := t.TempDir()
			p := process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
				run := func(context.Context) (seen, error) {
					crashtest.WriteFile(dir, "made", "by the command")
					return seen{"ran"}, nil
				}
				_, err := hone.Once(ctx, r, "bash", nil, run, func(ctx context.Context, _ []string) (seen, error) { return run(ctx) })
				return nil, err
			}}
			if !p.killedAt(t, dir, place.kill) {
				t.Fatal("the run was not killed")
			}
			wantEnd(t, p.end(t, dir), hone.KindDone)
			if o := of[history.Outside](t, events(t, dir), "outside", ""); len(o) != 0 {
				t.Errorf("told as changed by others: %v", o)
			}
		})
	}
}

// Earlier returns what earlier rounds recorded, in order, but nothing of this
// round or of steps of another name. Last returns what this round recorded too.
func TestEarlier(t *testing.T) {
	var past [][]seen
	var last []seen
	n, checked := 0, 0
	end := process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		for _, name := range []string{"look", "other", "look"} {
			n++
			if _, err := hone.Step(ctx, r, name, nil, func(context.Context) (seen, error) {
				return seen{name + strings.Repeat("'", n)}, nil
			}); err != nil {
				return nil, err
			}
		}
		p, err := hone.Earlier[seen](r, "look")
		past = append(past, p)
		l, _, err2 := hone.Last[seen](r, "look")
		last = append(last, l)
		return nil, errors.Join(err, err2)
	}, set: func(r *hone.Run) {
		r.Check = checks(&checked, []check.Finding{wrong("c")}, nil)
	}}.end(t, t.TempDir())
	wantEnd(t, end, hone.KindDone)
	if diff := cmp.Diff([][]seen{nil, {{"look'"}, {"look'''"}}}, past); diff != "" {
		t.Errorf("the past in rounds 1 and 2 (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]seen{{"look'''"}, {"look''''''"}}, last); diff != "" {
		t.Errorf("the last record in rounds 1 and 2 (-want +got):\n%s", diff)
	}
}

func TestNoticeIsToldOnce(t *testing.T) {
	dir := t.TempDir()
	p := process{round: func(_ context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		return nil, errors.Join(r.Notice("a"), r.Notice("a"), r.Notice("b"))
	}}
	if !p.killedAt(t, dir, on("before", "round", "")) {
		t.Fatal("the run was not killed")
	}
	p.end(t, dir)
	if diff := cmp.Diff([]history.Notice{{Text: "a"}, {Text: "b"}}, of[history.Notice](t, events(t, dir), "notice", "")); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
}

// A provider's key is nowhere in the run's files, wherever it came from, and
// not in the end that the user sees (ruling G6).
func TestKeysStayOut(t *testing.T) {
	const key = "sk-0123456789abcdef"
	dir := t.TempDir()
	m := speaker(
		fails(&model.Error{Kind: model.Overloaded, Message: "bad key " + key}),
		says("your key is "+key),
		fails(&model.Error{Kind: model.Auth, Message: "wrong key " + key, Hint: "unset " + key}))
	round := func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
		if err := r.Notice("notice " + key); err != nil {
			return nil, err
		}
		v, err := hone.Step(ctx, r, "look "+r.Journal.Run(), key, func(context.Context) (seen, error) { return seen{key}, nil })
		if err != nil {
			return nil, err
		}
		_, err = r.Ask(ctx, editor(m), user("prompt "+key+v.Text+strings.Join(texts(prior), "")))
		return []check.Finding{wrong("found " + key)}, err
	}
	set := func(r *hone.Run) {
		r.Redact = func(s string) string { return strings.ReplaceAll(s, key, "[key]") }
	}
	end := process{round: round, set: set}.end(t, dir)
	wantEnd(t, end, hone.KindFailed)
	if strings.Contains(end.Why+end.Next.First+strings.Join(texts(end.Findings), ""), key) {
		t.Errorf("the end has the key: %+v", end)
	}
	if got := m.requests[2].Messages[0].Parts[0].Text; got != "prompt [key][key]found [key]" {
		t.Errorf("the model was sent %q", got)
	}
	leak := func(context.Context, *hone.Run, []check.Finding) ([]check.Finding, error) {
		return nil, errors.New("a plain error with " + key)
	}
	if end := (process{round: leak, set: set}).end(t, dir); strings.Contains(end.Why, key) {
		t.Errorf("the end has the key: %+v", end)
	}
	must(0, filepath.WalkDir(filepath.Join(dir, journal.HomeName), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.Contains(string(must(os.ReadFile(path))), key) {
			t.Errorf("%s holds the key", path)
		}
		return err
	}))
}

// No goroutine is left after a run is canceled while it waits for a model or
// between two attempts.
func TestNoGoroutinesAreLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		hang := speaker(func(ctx context.Context, _ model.Request) (model.Reply, error) {
			cancel()
			<-ctx.Done()
			return model.Reply{}, ctx.Err()
		})
		wantEnd(t, process{ctx: ctx, round: asks(editor(hang), "?")}.end(t, t.TempDir()), hone.KindInterrupted)
		ctx, cancel = context.WithCancel(t.Context())
		busy := speaker(func(context.Context, model.Request) (model.Reply, error) {
			time.AfterFunc(time.Millisecond, cancel)
			return model.Reply{}, &model.Error{Kind: model.Overloaded, Message: "busy", RetryAfter: time.Minute}
		})
		wantEnd(t, process{ctx: ctx, round: asks(editor(busy), "?")}.end(t, t.TempDir()), hone.KindInterrupted)
	}
	if !waittest.Until(func() bool { return runtime.NumGoroutine() <= before }) {
		t.Errorf("%d goroutines before, %d after", before, runtime.NumGoroutine())
	}
}

// A run whose start fails records nothing, and Do returns the error.
func TestStartFails(t *testing.T) {
	dir := t.TempDir()
	full := errors.New("the disk is full")
	var run *hone.Run
	p := process{round: func(context.Context, *hone.Run, []check.Finding) ([]check.Finding, error) {
		t.Error("the round was called")
		return nil, nil
	}, set: func(r *hone.Run) {
		run, r.OnStart = r, func() error { return full }
	}}
	end, err := p.live(t, dir)
	if !errors.Is(err, full) || end.Kind != hone.KindFailed || end.Why != full.Error() {
		t.Errorf("%+v, %v", end, err)
	}
	if err := run.Notice("too late"); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
	if n := len(run.Journal.Events()); n != 0 {
		t.Errorf("%d events are recorded", n)
	}
}

// OnStart is called once, before the first event, whatever that is.
func TestOnStart(t *testing.T) {
	dir := t.TempDir()
	starts := 0
	p := process{round: finds(), set: func(r *hone.Run) {
		r.OnStart = func() error {
			starts++
			return r.Start(hone.Start{Loop: "test", Limits: r.Limits, Settings: json.RawMessage("{}")})
		}
		must(0, r.Notice("hello"))
	}}
	wantEnd(t, p.end(t, dir), hone.KindDone)
	recorded := events(t, dir)
	if starts != 1 || recorded[0].Type != "start" || recorded[1].Type != "notice" {
		t.Errorf("%d starts, then %s and %s", starts, recorded[0].Type, recorded[1].Type)
	}
}
