package hone_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hone"
	"hone/check"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/model"
	"hone/workspace"
)

func text(s string) model.Reply {
	return model.Reply{Parts: []model.Part{{Text: s}}, Finish: model.Stop, Usage: &model.Usage{Input: 10, Output: 5}}
}

// play is a process of its own: it opens everything afresh, goes on with the
// last run or starts one, and closes everything.
func play(t testing.TB, dir string, round hone.Round, o journal.Observer, change func(*hone.Run)) hone.End {
	t.Helper()
	ctx := context.Background()
	home, err := journal.OpenHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	lock, err := home.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	tree, err := workspace.Open(dir, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	if err := hone.Settle(ctx, home, tree, lock.Last); err != nil {
		t.Fatal(err)
	}
	r := &hone.Run{Tree: tree, Journal: openJournal(t, home), Limits: hone.Limits{Rounds: 3}}
	defer r.Journal.Close()
	if err := lock.Say(r.Journal.Run()); err != nil {
		t.Fatal(err)
	}
	r.Retry = hone.Retry{First: time.Millisecond}
	if change != nil {
		change(r)
	}
	r.Journal.Observe(o)
	if len(r.Journal.Events()) == 0 {
		if err := r.Start(hone.Start{Loop: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	end, err := r.Do(ctx, round)
	if err != nil {
		t.Fatal(err)
	}
	return end
}

func openJournal(t testing.TB, home *journal.Home) *journal.Journal {
	t.Helper()
	runs, err := home.Runs()
	if err != nil {
		t.Fatal(err)
	}
	var j *journal.Journal
	if len(runs) == 0 {
		j, err = home.Create(home.NewRun())
	} else {
		j, err = home.Open(runs[0])
	}
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// effects is a file that a step appends to, so that doing it twice shows.
func effects(dir string) string { return filepath.Join(dir, "effects") }

type seen struct {
	Text string `json:"text"`
}

// everyKind is a loop that takes a step of every kind in each round.
func everyKind(dir string, m model.Model) hone.Round {
	return func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
		looked, err := hone.Step(ctx, r, "look", prior, func(context.Context) (seen, error) {
			b, err := os.ReadFile(filepath.Join(dir, "a"))
			return seen{string(b)}, err
		})
		if err != nil {
			return nil, err
		}
		role := hone.Role{Name: "editor", Model: m, Called: "test/model", MaxOutput: 1000}
		reply, err := r.Ask(ctx, role, []model.Message{{Role: model.User, Parts: []model.Part{{Text: looked.Text}}}})
		if err != nil {
			return nil, err
		}
		run := func(context.Context) (seen, error) {
			f, err := os.OpenFile(effects(dir), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
			if err != nil {
				return seen{}, err
			}
			defer f.Close()
			_, err = f.WriteString(reply.Text() + "\n")
			return seen{"done"}, err
		}
		again := func(context.Context) (seen, error) {
			b, _ := os.ReadFile(effects(dir))
			if !strings.Contains(string(b), reply.Text()+"\n") {
				return run(ctx) // this test knows how to tell; most commands cannot
			}
			return seen{"interrupted, outcome unknown"}, nil
		}
		if _, err := hone.Once(ctx, r, "command", reply.Text(), run, again); err != nil {
			return nil, err
		}
		_, err = r.Apply(ctx, workspace.Change{Edits: []workspace.Edit{
			{Path: "a", Content: []byte(reply.Text())},
			{Path: "sub/asked", Content: []byte(reply.Text())},
			{Path: "../outside", Content: []byte("no")},
			{Path: "gone", Delete: true},
		}}, nil)
		return nil, err
	}
}

func TestCrashAtEveryPoint(t *testing.T) {
	crashtest.Scene{
		Replies: []model.Reply{text("one"), text("two")},
		Furnish: func(t testing.TB, dir string) {
			for name, s := range map[string]string{"a": "zero", "gone": "soon", "kept": "kept"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(s), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		},
		Play: func(t testing.TB, dir string, m model.Model, o journal.Observer) hone.End {
			return play(t, dir, everyKind(dir, m), o, func(r *hone.Run) {
				r.Human = hone.Always{}
				r.Rules.Approve = []string{"sub/**"}
				r.Check = func(context.Context) ([]check.Finding, error) {
					b, err := os.ReadFile(filepath.Join(dir, "a"))
					if string(b) == "two" {
						return nil, err
					}
					return []check.Finding{{Source: "check", Text: "a must be two"}}, err
				}
			})
		},
	}.Run(t)
}
