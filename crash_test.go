package hone_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hone"
	"hone/check"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/model"
	"hone/workspace"
)

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
		again := func(context.Context, []string) (seen, error) {
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
			return process{round: everyKind(dir, m), observe: o, set: func(r *hone.Run) {
				r.Human = hone.Always{}
				r.Rules.Approve = []string{"sub/**"}
				r.Check = func(context.Context) ([]check.Finding, error) {
					b, err := os.ReadFile(filepath.Join(dir, "a"))
					if string(b) == "two" {
						return nil, err
					}
					return []check.Finding{{Source: "check", Text: "a must be two"}}, err
				}
			}}.end(t, dir)
		},
	}.Run(t)
}
