package hone_test

import (
	"context"
	"fmt"
	"testing"

	"hone"
	"hone/check"
	"hone/check/judge"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/model"
	"hone/workspace"
)

// meddles is a round whose command changes protected files, and whose edits ask
// to change them.
func meddles(dir string, edits func(round int) []workspace.Edit) hone.Round {
	return func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
		command := func(context.Context) (seen, error) {
			crashtest.WriteFile(dir, "tests/t", fmt.Sprint("bought in round ", r.Round()))
			crashtest.WriteFile(dir, "tests/new", "new")
			if crashtest.ReadFile(dir, "tests/gone") != "no file" {
				return seen{"done"}, removeFile(dir, "tests/gone")
			}
			return seen{"done"}, nil
		}
		again := func(ctx context.Context, _ []string) (seen, error) { return command(ctx) }
		if _, err := hone.Once(ctx, r, "command", "meddle", command, again); err != nil {
			return nil, err
		}
		_, err := r.Apply(ctx, workspace.Change{Edits: edits(r.Round())}, nil)
		return nil, err
	}
}

// The check must fail first, its files are restored after commands, an edit of
// it is approved and another declined, and it must pass on a copy too.
func TestCrashOfATrustedCheck(t *testing.T) {
	edits := func(round int) []workspace.Edit {
		list := []workspace.Edit{edit("a", fmt.Sprint(round)), edit("tests/t", "mine"), edit("tests/more", fmt.Sprint(round))}
		if round == 3 {
			list = append(list, edit("proof", "here"))
		}
		return list
	}
	crashtest.Scene{
		Setup: func(_ testing.TB, dir string) {
			for _, name := range []string{"a", "tests/t", "tests/gone", "tests/more"} {
				crashtest.WriteFile(dir, name, "zero")
			}
		},
		Play: func(t testing.TB, dir string, _ model.Model, o journal.Observer) hone.End {
			end := process{round: meddles(dir, edits), observe: o, set: func(r *hone.Run) {
				r.Trust.Protect = []string{"tests/**"}
				r.Human = &person{answer: func(q hone.Question) (hone.Answer, error) {
					return hone.Answer{Approved: q.Path == "tests/more", By: "user"}, nil
				}}
				r.Check = func(context.Context) ([]check.Finding, error) {
					if n := crashtest.ReadFile(dir, "a"); n != "2" && n != "3" {
						return []check.Finding{wrong("a must be more than 1")}, nil
					}
					return nil, nil
				}
				r.Trust.Proof = &hone.Proof{}
				r.Trust.Copied = func(_ context.Context, copied string) ([]check.Finding, error) {
					if crashtest.ReadFile(copied, "proof") != "here" {
						return []check.Finding{wrong("there is no proof in the copy")}, nil
					}
					return nil, nil
				}
			}}.end(t, dir)
			if end.Kind != hone.KindDone || crashtest.ReadFile(dir, "tests/t") != "zero" || crashtest.ReadFile(dir, "tests/gone") != "zero" || crashtest.ReadFile(dir, "tests/more") != "3" {
				t.Errorf("the run ended %+v; tests hold %q, %q and %q", end, crashtest.ReadFile(dir, "tests/t"), crashtest.ReadFile(dir, "tests/gone"), crashtest.ReadFile(dir, "tests/more"))
			}
			return end
		},
	}.Run(t)
}

// The check passes only with a weaker test, twice: the test is taken back, and the user
// approves one of the changes and declines the other.
func TestCrashOfAQuestionAboutJudges(t *testing.T) {
	passes := func(dir string) []check.Finding {
		for _, name := range []string{"a_test.sh", "b_test.sh"} {
			if crashtest.ReadFile(dir, name) != "weak" {
				return []check.Finding{wrong(name + " fails")}
			}
		}
		return nil
	}
	crashtest.Scene{
		Setup: func(_ testing.TB, dir string) {
			crashtest.WriteFile(dir, "a_test.sh", "strong")
			crashtest.WriteFile(dir, "b_test.sh", "strong")
		},
		Play: func(t testing.TB, dir string, _ model.Model, o journal.Observer) hone.End {
			round := applies([]workspace.Edit{edit("a_test.sh", "weak"), edit("b_test.sh", "weak"), edit("a", "done")})
			end := process{round: round, observe: o, set: func(r *hone.Run) {
				r.Limits.Rounds = 2
				r.Trust.Judges = judge.Of("sh a_test.sh")
				r.Trust.Copied = func(_ context.Context, copied string) ([]check.Finding, error) { return passes(copied), nil }
				r.Check = func(context.Context) ([]check.Finding, error) { return passes(dir), nil }
				r.Human = hone.Always{Others: &person{answer: func(q hone.Question) (hone.Answer, error) {
					if !q.AboutJudges() {
						t.Errorf("asked about %s: %s", q.Path, q.Reason)
					}
					return hone.Answer{Approved: q.Path == "b_test.sh", By: "user"}, nil
				}}}
			}}.end(t, dir)
			if a, b := crashtest.ReadFile(dir, "a_test.sh"), crashtest.ReadFile(dir, "b_test.sh"); end.Kind != hone.KindBlocked || a != "strong" || b != "weak" {
				t.Errorf("the run ended %+v; the tests hold %q and %q", end, a, b)
			}
			return end
		},
	}.Run(t)
}

// TestJudgeChangesWhileItIsAskedAbout: the user saves a file and then allows the model's change to it, which is
// no longer made. The check has not seen that tree, so the run is not done.
func TestJudgeChangesWhileItIsAskedAbout(t *testing.T) {
	dir := t.TempDir()
	crashtest.WriteFile(dir, "a_test.sh", "strong")
	passes := func(dir string) []check.Finding {
		if crashtest.ReadFile(dir, "a_test.sh") != "weak" {
			return []check.Finding{wrong("a_test.sh fails")}
		}
		return nil
	}
	end := process{round: applies([]workspace.Edit{edit("a_test.sh", "weak")}), set: func(r *hone.Run) {
		r.Limits.Rounds = 1
		r.Trust.Judges = judge.Of("sh a_test.sh")
		r.Trust.Copied = func(_ context.Context, copied string) ([]check.Finding, error) { return passes(copied), nil }
		r.Check = func(context.Context) ([]check.Finding, error) { return passes(dir), nil }
		r.Human = hone.Always{Others: &person{answer: func(hone.Question) (hone.Answer, error) {
			crashtest.WriteFile(dir, "a_test.sh", "mine")
			return hone.Answer{Approved: true, By: "user"}, nil
		}}}
	}}.end(t, dir)
	if got := crashtest.ReadFile(dir, "a_test.sh"); end.Kind == hone.KindDone || got != "mine" {
		t.Errorf("the run ended %+v with %q", end, got)
	}
}

// The rounds are used up, and the tree of the round with the fewest findings is
// restored.
func TestCrashOfTheBestRound(t *testing.T) {
	edits := func(round int) []workspace.Edit {
		list := []workspace.Edit{edit("a", fmt.Sprint(round)), edit(fmt.Sprint("made/", round), "made")}
		if round > 1 {
			list = append(list, workspace.Edit{Path: fmt.Sprint("made/", round-1), Delete: true})
		}
		return list
	}
	crashtest.Scene{
		Setup: func(_ testing.TB, dir string) {
			crashtest.WriteFile(dir, "a", "zero")
			crashtest.WriteFile(dir, "tests/gone", "zero")
		},
		Play: func(t testing.TB, dir string, _ model.Model, o journal.Observer) hone.End {
			end := process{round: meddles(dir, edits), observe: o, set: func(r *hone.Run) {
				r.Trust.KeepBest = true
				r.Check = func(context.Context) ([]check.Finding, error) {
					found := []check.Finding{wrong("never right")}
					if crashtest.ReadFile(dir, "a") != "2" {
						found = append(found, wrong("a is "+crashtest.ReadFile(dir, "a")))
					}
					return found, nil
				}
			}}.end(t, dir)
			if end.Kind != hone.KindRounds || crashtest.ReadFile(dir, "a") != "2" || crashtest.ReadFile(dir, "made/2") != "made" || crashtest.ReadFile(dir, "made/3") != "no file" {
				t.Errorf("the run ended %+v with a = %q", end, crashtest.ReadFile(dir, "a"))
			}
			return end
		},
	}.Run(t)
}
