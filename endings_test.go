package hone_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/model"
	"hone/workspace"
)

// away is a user who cannot be asked, although there is a terminal.
func away(hone.Question) (hone.Answer, error) { return hone.Answer{By: history.NoUser}, nil }

// G2, G12. The answer to a question decides how a run with a passing check ends.
func TestEndingsWithACleanCheck(t *testing.T) {
	for name, c := range map[string]struct {
		human hone.Human
		kind  hone.Kind
		why   string
		note  string
	}{
		"no terminal":         {nil, hone.KindBlocked, "2 questions are open: asked, new; the check passes", ""},
		"in the background":   {&person{answer: away}, hone.KindBlocked, "2 questions are open: asked, new; the check passes", ""},
		"declined":            {&person{answer: no}, hone.KindDone, "the check passes", "2 changes were declined: asked, new"},
		"declined in advance": {hone.Never{}, hone.KindDone, "the check passes", "2 changes were declined: asked, new"},
		"approved":            {hone.Always{}, hone.KindDone, "the check passes", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := crashtest.Workspace(t, map[string]string{"asked": "old"})
			p := process{round: applies([]workspace.Edit{edit("asked", "1"), edit("new", "1"), edit("other", "1")}), set: func(r *hone.Run) {
				approve(c.human, "asked", "new")(r)
				r.Check = checks(new(int), nil)
			}}
			end := p.end(t, dir)
			wantEnd(t, end, c.kind)
			if end.Why != c.why || strings.Join(end.Notes, "\n") != c.note {
				t.Errorf("the end says %q, notes %q", end.Why, end.Notes)
			}
			before := len(events(t, dir))
			if again := p.end(t, dir); again.Kind != c.kind || c.human == nil && len(events(t, dir)) != before {
				t.Errorf("resumed without a user: %+v", again)
			}
			p.replays(t, dir)
		})
	}
}

// A pending question of any round is asked first when the run is resumed on a
// terminal, also if the check passes, and costs no further round.
func TestPendingQuestionsAreAskedFirst(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(hone.Question) (hone.Answer, error)
		kind   hone.Kind
		note   string
		asked  int
	}{
		"yes":         {yes, hone.KindDone, "", 1},
		"no":          {no, hone.KindDone, "1 change was declined: asked", 1},
		"not now":     {later, hone.KindBlocked, "", 1},
		"still away":  {away, hone.KindBlocked, "", 1},
		"it changed":  {yes, hone.KindDone, "1 change was declined: asked", 0},
		"nothing yet": {nil, hone.KindBlocked, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := crashtest.Workspace(t, map[string]string{"asked": "old"})
			rounds, checked := 0, 0
			p := process{round: func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
				if rounds++; r.Round() > 1 {
					return applies([]workspace.Edit{edit("other", "2")})(ctx, r, prior)
				}
				return applies([]workspace.Edit{edit("asked", "new")})(ctx, r, prior)
			}}
			set := func(h hone.Human) {
				p.set = func(r *hone.Run) {
					approve(h, "asked")(r)
					r.Check = checks(&checked, []check.Finding{wrong("not yet")}, nil)
				}
			}
			set(nil)
			end := p.end(t, dir)
			wantEnd(t, end, hone.KindBlocked)
			if want := "1 question is open: asked; the check passes"; end.Why != want || end.Rounds != 2 {
				t.Errorf("%q after %d rounds, want %q after 2", end.Why, end.Rounds, want)
			}
			h := &person{answer: c.answer}
			if c.answer != nil {
				set(h)
			}
			if name == "it changed" {
				crashtest.WriteFile(dir, "asked", "mine")
			}
			for range 2 {
				end = p.end(t, dir)
				wantEnd(t, end, c.kind)
			}
			if again := c.kind == hone.KindBlocked && c.answer != nil; rounds != 2 || again != (len(h.asked) == 2) || !again && len(h.asked) != c.asked {
				t.Errorf("%d rounds, asked %d times", rounds, len(h.asked))
			}
			if got := strings.Join(end.Notes, "\n"); got != c.note {
				t.Errorf("notes %q", got)
			}
			p.replays(t, dir)
		})
	}
}

// An answer is final: the same change of the same contents is not asked about
// again.
func TestAnswersAreFinal(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"asked": "old"})
	h := &person{answer: no}
	p := process{round: func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
		return applies([]workspace.Edit{edit("asked", map[int]string{1: "new", 2: "new", 3: "other"}[r.Round()])})(ctx, r, prior)
	}, set: func(r *hone.Run) {
		approve(h, "asked")(r)
		r.Check = checks(new(int), []check.Finding{wrong("not yet")})
	}}
	wantEnd(t, p.end(t, dir), hone.KindBlocked)
	if len(h.asked) != 2 || string(h.asked[1].New) != "other" {
		t.Errorf("asked %+v", h.asked)
	}
	p.replays(t, dir)
}

// unusable is the finding about a reply that cannot be used.
var unusable = check.Finding{Source: check.SourceReply, Text: "it could not be read"}

// Replies that cannot be used, one after another, end a run for that reason.
func TestUnusableReplies(t *testing.T) {
	const two = "the model does not answer in the required form: 2 replies in a row could not be used"
	for name, c := range map[string]struct {
		bad     []bool // by round
		limit   int
		rounds  int
		kind    hone.Kind
		why     string
		notices []string
	}{
		"three in a row":     {[]bool{true, true, true}, 3, 5, hone.KindUnreadable, strings.Replace(two, "2", "3", 1), []string{two}},
		"not in a row":       {[]bool{true, true, false, true, true}, 3, 5, hone.KindRounds, "5 of 5 rounds used, and " + two, []string{two}},
		"rounds are used up": {[]bool{true}, 3, 1, hone.KindRounds, "1 of 1 rounds used, and the last reply could not be used", nil},
		"no limit":           {[]bool{true, true, true}, 0, 3, hone.KindRounds, "3 of 3 rounds used, and " + strings.Replace(two, "2", "3", 1), []string{two}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := crashtest.Workspace(t, nil)
			limit := c.limit
			p := process{round: func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
				if r.Round() <= len(c.bad) && !c.bad[r.Round()-1] {
					return applies([]workspace.Edit{edit("a", "1")})(ctx, r, prior)
				}
				return []check.Finding{unusable}, nil
			}, set: func(r *hone.Run) {
				r.Limits.Rounds, r.Limits.Unreadable = c.rounds, limit
				r.Check = checks(new(int), []check.Finding{wrong("not yet")})
			}}
			for range 2 {
				end := p.end(t, dir)
				if end.Kind != c.kind || end.Why != c.why || end.Next.Or == nil {
					t.Errorf("%+v", end)
				}
			}
			var said []string
			for _, n := range of[history.Notice](t, events(t, dir), "notice", "") {
				said = append(said, n.Text)
			}
			if diff := cmp.Diff(c.notices, said); diff != "" {
				t.Errorf("notices (-want +got):\n%s", diff)
			}
			if c.kind == hone.KindUnreadable {
				limit = 4
				if end := p.end(t, dir); end.Kind != hone.KindUnreadable || end.Rounds != 4 || flag(end.Next, "unreadable") != "8" {
					t.Errorf("with a higher limit: %+v", end)
				}
			}
			p.replays(t, dir)
		})
	}
}

// A check that could not run twice in a row ends the run. A resumed run tries
// the check again before it pays for another round.
func TestBrokenCheckEndsTheRun(t *testing.T) {
	broken := []check.Finding{{Source: "checker", Text: "no such program", Broken: true}}
	for name, c := range map[string]struct {
		later  []check.Finding // what the check finds when the run is resumed
		kind   hone.Kind
		rounds int
	}{
		"still broken": {broken, hone.KindFailed, 2},
		"fixed":        {nil, hone.KindDone, 2},
		"it finds":     {[]check.Finding{wrong("not yet")}, hone.KindRounds, 4},
	} {
		t.Run(name, func(t *testing.T) {
			dir := crashtest.Workspace(t, nil)
			found := broken
			p := process{round: func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
				return applies([]workspace.Edit{edit("a", string(rune('0'+r.Round())))})(ctx, r, prior)
			}, set: func(r *hone.Run) {
				r.Limits.Rounds = 4
				r.Check = func(context.Context) ([]check.Finding, error) { return found, nil }
			}}
			end := p.end(t, dir)
			wantEnd(t, end, hone.KindFailed)
			if end.Rounds != 2 || end.Next.Verb != hone.Resume {
				t.Errorf("%+v", end)
			}
			found = c.later
			for range 2 {
				if end = p.end(t, dir); end.Kind != c.kind || end.Rounds != c.rounds {
					t.Errorf("resumed: %+v", end)
				}
			}
			p.replays(t, dir)
		})
	}
}

// A run that changed nothing says so.
func TestNothingWasChanged(t *testing.T) {
	for name, c := range map[string]struct {
		edits []workspace.Edit
		check bool
		why   string
	}{
		"with a check":          {nil, true, "the check passes, and nothing was changed"},
		"with a check, changed": {[]workspace.Edit{edit("a", "2")}, true, "the check passes"},
		"without a check":       {nil, false, "nothing was changed; not verified, because no check was given"},
		"the same contents":     {[]workspace.Edit{edit("a", "1")}, true, "the check passes, and nothing was changed"},
	} {
		dir := crashtest.Workspace(t, map[string]string{"a": "1"})
		p := process{round: applies(c.edits), set: func(r *hone.Run) {
			if c.check {
				r.Check = checks(new(int), nil)
			}
		}}
		if end := p.end(t, dir); end.Kind != hone.KindDone || end.Why != c.why {
			t.Errorf("%s: %+v", name, end)
		}
		p.replays(t, dir)
	}
}

// Questions stay pending in two rounds, the check passes, and the user approves
// one of them and declines the other.
func TestCrashAroundPendingQuestions(t *testing.T) {
	crashtest.Scene{
		Setup: func(_ testing.TB, dir string) {
			crashtest.WriteFile(dir, "one", "zero")
			crashtest.WriteFile(dir, "two", "zero")
		},
		Play: func(t testing.TB, dir string, _ model.Model, o journal.Observer) (end hone.End) {
			p := process{observe: o, round: func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
				asked := edit(map[int]string{1: "one", 2: "two"}[r.Round()], "new")
				return applies([]workspace.Edit{asked, edit("made", string(rune('0'+r.Round())))})(ctx, r, prior)
			}}
			decides := &person{answer: func(q hone.Question) (hone.Answer, error) {
				return hone.Answer{Approved: q.Path == "one", By: "user"}, nil
			}}
			for _, human := range []hone.Human{nil, &person{answer: away}, decides} {
				p.set = func(r *hone.Run) {
					approve(human, "one", "two")(r)
					r.Check = func(context.Context) ([]check.Finding, error) {
						if crashtest.ReadFile(dir, "made") == "1" {
							return []check.Finding{wrong("not yet")}, nil
						}
						return nil, nil
					}
				}
				if end = p.end(t, dir); end.Kind != hone.KindBlocked {
					return end
				}
			}
			return end
		},
	}.Run(t)
}

// The check cannot run twice, is fixed, and then replies cannot be used.
func TestCrashAroundBadEnds(t *testing.T) {
	crashtest.Scene{
		Setup: func(testing.TB, string) {},
		Play: func(t testing.TB, dir string, _ model.Model, o journal.Observer) (end hone.End) {
			p := process{observe: o, round: func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
				if r.Round() > 2 {
					return []check.Finding{unusable}, nil
				}
				return applies([]workspace.Edit{edit("a", string(rune('0'+r.Round())))})(ctx, r, prior)
			}}
			for _, found := range []check.Finding{{Source: "checker", Text: "no such program", Broken: true}, wrong("not yet")} {
				p.set = func(r *hone.Run) {
					r.Limits.Rounds, r.Limits.Unreadable = 9, 2
					r.Check = checks(new(int), []check.Finding{found})
				}
				end = p.end(t, dir)
			}
			return end
		},
	}.Run(t)
}
