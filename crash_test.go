package hone_test

import (
	"context"
	"fmt"
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

// effects is a file that a step appends to, so that a repetition shows.
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
		Setup: func(t testing.TB, dir string) {
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

// The user says yes, no, edits contents, and says yes to all the rest. What was
// declined is reported, asked about again in the next round, and declined again.
func TestCrashAmongAnswers(t *testing.T) {
	round := func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
		text := "w" + fmt.Sprint(r.Round(), len(prior))
		for range 2 {
			vs, err := r.Apply(ctx, workspace.Change{Edits: []workspace.Edit{
				edit("asked/yes", text), edit("asked/no", text), edit("plain", text), edit("asked/edit", text), edit("asked/all", text), edit("asked/rest", text),
				{Path: "asked/gone", Delete: true}, edit(".hone/x", text),
			}}, nil)
			if err != nil {
				return nil, err
			}
			text += string(vs[1].Ruling)
		}
		return nil, nil
	}
	crashtest.Scene{
		Setup: func(_ testing.TB, dir string) {
			for _, name := range []string{"asked/yes", "asked/no", "asked/gone"} {
				crashtest.WriteFile(dir, name, "zero")
			}
		},
		Play: func(t testing.TB, dir string, m model.Model, o journal.Observer) hone.End {
			return process{round: round, observe: o, set: func(r *hone.Run) {
				r.Rules.Approve = []string{"asked/**"}
				r.Human = &person{answer: func(q hone.Question) (hone.Answer, error) {
					if q.Path == "asked/edit" {
						return edits("edited " + string(q.New))(q)
					}
					return hone.Answer{Approved: q.Path != "asked/no", Rest: q.Path == "asked/all", By: "user"}, nil
				}}
				r.Check = func(context.Context) ([]check.Finding, error) {
					if strings.HasPrefix(crashtest.ReadFile(dir, "plain"), "w2") {
						return []check.Finding{advice("well done")}, nil
					}
					return []check.Finding{wrong("plain must be of round 2"), advice("see " + crashtest.ReadFile(dir, "asked/all"))}, nil
				}
			}}.end(t, dir)
		},
	}.Run(t)
}

// A question stays open, is denied because no user can be asked, and is
// answered in a third process.
func TestCrashAroundOpenQuestions(t *testing.T) {
	crashtest.Scene{
		Setup: func(_ testing.TB, dir string) { crashtest.WriteFile(dir, "asked", "zero") },
		Play: func(t testing.TB, dir string, m model.Model, o journal.Observer) (end hone.End) {
			for _, human := range []hone.Human{&person{answer: later}, nil, &person{answer: edits("mine")}} {
				if b := crashtest.ReadFile(dir, "asked"); b != "zero" && human == nil {
					continue
				}
				p := process{round: applies([]workspace.Edit{edit("asked", "one"), edit("b", "bee"), edit("c", "sea")}), observe: o, set: func(r *hone.Run) {
					r.Rules.Approve = []string{"asked"}
					r.Human = human
				}}
				if end = p.end(t, dir); end.Kind != hone.KindBlocked {
					return end
				}
			}
			return end
		},
	}.Run(t)
}

// An agent's session changes files and makes model calls of its own. If it is
// interrupted the next session is told so, and continues from there. A file of the user's
// tools that it makes is removed, whenever the run is killed (ruling G26).
func TestCrashOfAnAgent(t *testing.T) {
	crashtest.Scene{
		Replies: []model.Reply{text("first"), text("second")},
		Setup:   func(_ testing.TB, dir string) { crashtest.WriteFile(dir, "a", "zero") },
		Play: func(t testing.TB, dir string, m model.Model, o journal.Observer) hone.End {
			round := func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
				role := agent(func(ctx context.Context, req model.Request) (model.Reply, error) {
					reply, err := m.Generate(ctx, req)
					if err != nil {
						return reply, err
					}
					_, settle, err := r.Account().Reserve("builder", hone.Candidate{Called: "test/inner", MaxOutput: 1000}, 100)
					if err != nil {
						return reply, err
					}
					crashtest.WriteFile(dir, "a", reply.Text())
					crashtest.WriteFile(dir, "in/"+reply.Text(), "made")
					crashtest.WriteFile(dir, ".mcp.json", reply.Text())
					return reply, settle(&model.Usage{Input: 10, Output: 10}, nil)
				})
				_, err := r.Delegate(ctx, role, user("do it"))
				return nil, err
			}
			end := process{round: round, observe: o, set: func(r *hone.Run) {
				r.Trust.Tools = true
				r.Check = func(context.Context) ([]check.Finding, error) {
					if crashtest.ReadFile(dir, "a") != "second" {
						return []check.Finding{wrong("a must be second")}, nil
					}
					return nil, nil
				}
			}}.end(t, dir)
			if content := crashtest.ReadFile(dir, ".mcp.json"); content != "no file" {
				t.Errorf("the run left .mcp.json: %q", content)
			}
			books := newBooks()
			for _, e := range events(t, dir) {
				books.take(e)
			}
			if tokens, _ := books.sum(); tokens != end.Tokens {
				t.Errorf("the run ended at %d tokens, and %d are on the books", end.Tokens, tokens)
			}
			return end
		},
	}.Run(t)
}
