package hone_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/workspace"
)

// approve sets which files need an approval.
func approve(h hone.Human, patterns ...string) func(*hone.Run) {
	return func(r *hone.Run) {
		r.Human = h
		r.Rules.Approve = patterns
	}
}

// Apply returns verdicts in the order of the edits. A refusal is a verdict, not
// an error, and does not block the other edits.
func TestApplyGivesVerdicts(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"same": "same", "gone": "soon", "seen": "old", "unseen": "old"})
	var got []workspace.Verdict
	end := process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		ch := workspace.Change{Edits: []workspace.Edit{
			edit("./new", "n"), edit("../out", "x"), edit("same", "same"), {Path: "gone", Delete: true},
			edit("asked", "a"), edit("seen", "s"), edit("unseen", "u"), {Path: "not/there", Delete: true},
		}}
		var err error
		got, err = r.Apply(ctx, ch, func(path string) (string, bool) {
			return workspace.Digest([]byte(crashtest.ReadFile(dir, path))), path != "unseen"
		})
		return nil, err
	}, set: approve(&person{answer: func(q hone.Question) (hone.Answer, error) {
		return hone.Answer{Approved: q.Path == "asked", By: "user"}, nil
	}}, "asked")}.end(t, dir)
	wantEnd(t, end, hone.KindDone) // most are applied (ruling B8)
	var rulings []string
	for _, v := range got {
		rulings = append(rulings, v.Path+" "+string(v.Ruling))
		if v.Ruling != workspace.Allow && v.Reason == "" {
			t.Errorf("no reason for %+v", v)
		}
	}
	want := []string{"new allow", "../out deny", "same drop", "gone allow", "asked allow", "seen allow", "unseen declined", "not/there drop"}
	if diff := cmp.Diff(want, rulings); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	for name, content := range map[string]string{"new": "n", "same": "same", "gone": "no file", "asked": "a", "seen": "s", "unseen": "old"} {
		if s := crashtest.ReadFile(dir, name); s != content {
			t.Errorf("%s is %q, want %q", name, s, content)
		}
	}
	changes := of[history.Changed](t, events(t, dir), "change", journal.Record)
	if len(changes) != len(got) {
		t.Fatalf("%d edits are told as %d changes", len(got), len(changes))
	}
	for i, c := range changes {
		if diff := cmp.Diff(got[i], c.Verdict); diff != "" {
			t.Errorf("the verdict and its event:\n%s", diff)
		}
		kept := c.Ruling == workspace.Deny || c.Ruling == workspace.Declined
		if kept != (c.Attempted != "") {
			t.Errorf("%s: attempted contents %q", c.Path, c.Attempted)
		}
		if kept && string(object(t, dir, c.Attempted)) != map[string]string{"../out": "x", "unseen": "u"}[c.Path] {
			t.Errorf("%s: what was attempted is %q", c.Path, object(t, dir, c.Attempted))
		}
	}
}

// A question and the contents that it is about are recorded before it is asked,
// and its answer applies only to their digests.
func TestQuestionIsOnRecordBeforeItIsAsked(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"a": "old", "b": "soon"})
	h := &person{}
	h.answer = func(q hone.Question) (hone.Answer, error) {
		all := events(t, dir)
		last := all[len(all)-1]
		if last.Type != "approval" || last.Phase != journal.Begin {
			t.Errorf("the last event is %s %s when the question is asked", last.Type, last.Phase)
		}
		var recorded hone.Question
		must(0, last.Decode(&recorded))
		if recorded.Path != q.Path || recorded.Before != q.Before || recorded.After != q.After || recorded.Delete != q.Delete {
			t.Errorf("recorded %+v, asked %+v", recorded, q)
		}
		if s := string(object(t, dir, q.Before.Digest)); s != string(q.Old) || s != crashtest.ReadFile(dir, q.Path) {
			t.Errorf("%s was %q, its object is %q", q.Path, q.Old, s)
		}
		if q.After.Exists() && string(object(t, dir, q.After.Digest)) != string(q.New) {
			t.Errorf("%s shall be %q, its object is another", q.Path, q.New)
		}
		return yes(q)
	}
	edits := []workspace.Edit{edit("a", "new"), {Path: "b", Delete: true}}
	end := process{round: applies(edits), set: approve(h, "a", "b")}.end(t, dir)
	wantEnd(t, end, hone.KindDone)
	if len(h.asked) != 2 || h.asked[0].More != 1 || h.asked[1].More != 0 || !h.asked[1].Delete || h.asked[1].New != nil {
		t.Errorf("asked %+v", h.asked)
	}
	if crashtest.ReadFile(dir, "a") != "new" || crashtest.ReadFile(dir, "b") != "no file" {
		t.Error("what was approved was not applied")
	}
}

// An empty file differs from no file.
func TestQuestionAboutAnEmptyFile(t *testing.T) {
	h := &person{answer: yes}
	dir := t.TempDir()
	wantEnd(t, process{round: applies([]workspace.Edit{{Path: "empty"}}), set: approve(h, "empty")}.end(t, dir), hone.KindDone)
	if q := h.asked[0]; q.Old != nil || q.New == nil || crashtest.ReadFile(dir, "empty") != "" {
		t.Errorf("asked %+v, the file is %q", q, crashtest.ReadFile(dir, "empty"))
	}
}

func TestRestIsNotAsked(t *testing.T) {
	dir := t.TempDir()
	h := &person{answer: func(q hone.Question) (hone.Answer, error) {
		return hone.Answer{Approved: true, Rest: q.Path == "b", By: "user"}, nil
	}}
	edits := []workspace.Edit{edit("a", "1"), edit("b", "2"), edit("c", "3"), edit("d", "4")}
	wantEnd(t, process{round: applies(edits), set: approve(h, "*")}.end(t, dir), hone.KindDone)
	if diff := cmp.Diff([]string{"a", "b"}, h.paths()); diff != "" {
		t.Errorf("asked about (-want +got):\n%s", diff)
	}
	if crashtest.ReadFile(dir, "d") != "4" {
		t.Error("the rest was not applied")
	}
	if n := len(of[hone.Answer](t, events(t, dir), "approval", journal.Record)); n != 4 {
		t.Errorf("%d answers are on record, want one a file", n)
	}
}

// A pending question stops the run with nothing applied, and a resumed run asks
// again.
func TestPendingQuestionStops(t *testing.T) {
	dir := t.TempDir()
	h := &person{answer: later}
	p := process{round: applies([]workspace.Edit{edit("plain", "1"), edit("asked", "2")}), set: approve(h, "asked")}
	end := p.end(t, dir)
	wantEnd(t, end, hone.KindBlocked)
	if crashtest.ReadFile(dir, "plain") != "no file" || !strings.Contains(end.Why, "asked") || end.Next.IsZero() {
		t.Errorf("plain is %q, end %+v", crashtest.ReadFile(dir, "plain"), end)
	}
	h.answer = yes
	wantEnd(t, p.end(t, dir), hone.KindDone)
	if crashtest.ReadFile(dir, "plain") != "1" || crashtest.ReadFile(dir, "asked") != "2" || len(h.asked) != 2 {
		t.Errorf("after the answer: %q, %q, asked %d times", crashtest.ReadFile(dir, "plain"), crashtest.ReadFile(dir, "asked"), len(h.asked))
	}
}

// A resumed round does not ask an answered question again.
func TestAnsweredQuestionIsNotAskedAgain(t *testing.T) {
	dir := t.TempDir()
	h := &person{answer: func(q hone.Question) (hone.Answer, error) {
		if q.Path == "b" {
			return later(q)
		}
		return yes(q)
	}}
	p := process{round: applies([]workspace.Edit{edit("a", "1"), edit("b", "2")}), set: approve(h, "*")}
	wantEnd(t, p.end(t, dir), hone.KindBlocked)
	h.answer = yes
	wantEnd(t, p.end(t, dir), hone.KindDone)
	if diff := cmp.Diff([]string{"a", "b", "b"}, h.paths()); diff != "" {
		t.Errorf("asked about (-want +got):\n%s", diff)
	}
}

// If no user can be asked an edit is declined. A resumed run that can ask a
// user asks first, applies the edit, runs the check and decides again.
func TestNobodyThere(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answer  func(hone.Question) (hone.Answer, error)
		own     []check.Finding // the round's own
		check   bool
		kind    hone.Kind
		content string
	}{
		{"approved", yes, nil, false, hone.KindDone, "new"},
		{"approved, and the check is asked again", yes, nil, true, hone.KindDone, "new"},
		{"declined", no, nil, true, hone.KindBlocked, "old"},
		{"still open", later, nil, true, hone.KindBlocked, "old"},
		{"approved, and the round had found more", yes, []check.Finding{wrong("pending")}, false, hone.KindRounds, "new"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := crashtest.Workspace(t, map[string]string{"asked": "old"})
			played, checked := 0, 0
			round := applies([]workspace.Edit{edit("asked", "new"), edit("made", "1")}, tt.own...)
			p := process{round: func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
				played++
				return round(ctx, r, prior)
			}}
			var h *person
			p.set = func(r *hone.Run) {
				r.Limits.Rounds = 1
				r.Rules.Approve = []string{"asked"}
				if h != nil {
					r.Human = h
				}
				if tt.check {
					r.Check = func(context.Context) ([]check.Finding, error) {
						if checked++; crashtest.ReadFile(dir, "asked") == "new" {
							return nil, nil
						}
						return []check.Finding{wrong("asked must be new")}, nil
					}
				}
			}
			end := p.end(t, dir)
			wantEnd(t, end, hone.KindBlocked)
			if a := of[hone.Answer](t, events(t, dir), "approval", journal.Record)[0]; a.Approved || a.By != "none" {
				t.Errorf("the answer on record: %+v", a)
			}
			if crashtest.ReadFile(dir, "made") != "1" || end.Next.IsZero() {
				t.Errorf("the rest of the change was not made, or no hint: %+v", end)
			}
			h = &person{answer: tt.answer}
			end = p.end(t, dir)
			if end.Kind != tt.kind || crashtest.ReadFile(dir, "asked") != tt.content {
				t.Errorf("the resumed run ended %+v, the file is %q; want %s and %q", end, crashtest.ReadFile(dir, "asked"), tt.kind, tt.content)
			}
			if len(h.asked) != 1 || string(h.asked[0].Old) != "old" || string(h.asked[0].New) != "new" {
				t.Errorf("asked %+v", h.asked)
			}
			if want := map[bool]int{false: 1, true: 2}[tt.content == "new"]; tt.check && checked != want {
				t.Errorf("the check ran %d times, want %d", checked, want)
			}
			if played != 1 {
				t.Errorf("%d rounds were played, want 1: nothing but the question was open", played)
			}
			again := p.end(t, dir)
			if open := tt.name == "still open"; again.Kind != tt.kind || (len(h.asked) == 1) == open {
				t.Errorf("resumed once more: %+v, asked %d times in all", again, len(h.asked))
			}
		})
	}
}

// A question about a file that has changed since is not asked again.
func TestChangedFileIsNotAskedAbout(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"asked": "old"})
	p := process{round: applies([]workspace.Edit{edit("asked", "new")}), set: approve(nil, "asked")}
	wantEnd(t, p.end(t, dir), hone.KindBlocked)
	crashtest.WriteFile(dir, "asked", "mine")
	h := &person{answer: yes}
	p.set = approve(h, "asked")
	wantEnd(t, p.end(t, dir), hone.KindBlocked)
	if len(h.asked) != 0 || crashtest.ReadFile(dir, "asked") != "mine" {
		t.Errorf("asked %d times, the file is %q", len(h.asked), crashtest.ReadFile(dir, "asked"))
	}
}

// Wherever a process dies while it asks a question again, the next process
// reaches the same tree and the same end.
func TestKillsWhileAskingAgain(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 5
	}
	for point := 0; ; point += step {
		dir := crashtest.Workspace(t, map[string]string{"asked": "old", "other": "old"})
		checked := 0
		p := process{round: applies([]workspace.Edit{edit("asked", "new"), edit("other", "new")})}
		p.set = func(r *hone.Run) {
			approve(nil, "asked", "other")(r)
			r.Limits.Rounds = 1
			r.Check = func(context.Context) ([]check.Finding, error) {
				if checked++; crashtest.ReadFile(dir, "asked")+crashtest.ReadFile(dir, "other") == "newnew" {
					return nil, nil
				}
				return []check.Finding{wrong("both must be new")}, nil
			}
		}
		wantEnd(t, p.end(t, dir), hone.KindBlocked)
		without := p
		set := p.set
		p.set = func(r *hone.Run) {
			set(r)
			r.Human = &person{answer: yes}
		}
		n, where := point, ""
		dead := p.killedAt(t, dir, func(when string, typ journal.Type, phase journal.Phase) bool {
			n--
			where = when + " " + string(typ) + " " + string(phase)
			return n < 0
		})
		if point%2 == 1 { // now and then nobody is there the next time
			without.end(t, dir)
		}
		end := p.end(t, dir)
		if end.Kind != hone.KindDone || crashtest.ReadFile(dir, "asked")+crashtest.ReadFile(dir, "other") != "newnew" {
			t.Errorf("after a kill %s (point %d): %+v, the files are %q and %q", where, point, end, crashtest.ReadFile(dir, "asked"), crashtest.ReadFile(dir, "other"))
		}
		if !dead {
			if point < 10 {
				t.Errorf("there were only %d points", point)
			}
			return
		}
	}
}

// A file that changes between review and apply is not overwritten: the change is
// reviewed again, and the user is asked about the new contents.
func TestChangeBetweenReviewAndApply(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"asked": "old"})
	h := &person{answer: func(q hone.Question) (hone.Answer, error) {
		if string(q.Old) == "old" {
			crashtest.WriteFile(dir, q.Path, "mine")
			return yes(q)
		}
		if first := crashtest.ReadFile(dir, "first"); first != "no file" {
			t.Errorf("first is %q before the second answer", first)
		}
		return no(q)
	}}
	p := process{round: applies([]workspace.Edit{edit("first", "1"), edit("asked", "new")}), set: approve(h, "asked")}
	end := p.end(t, dir)
	if asked, first := crashtest.ReadFile(dir, "asked"), crashtest.ReadFile(dir, "first"); asked != "mine" || first != "1" || len(h.asked) != 2 {
		t.Errorf("%+v; the files are %q and %q after %d questions", end, asked, first, len(h.asked))
	}
	p.replays(t, dir)
}

// halfApplied is a workspace whose last run died in the middle of an apply.
func halfApplied(t *testing.T) (dir string) {
	dir = crashtest.Workspace(t, map[string]string{"a": "old", "b": "old"})
	edits := []workspace.Edit{edit("a", "new"), edit("b", "new"), edit("c", "new")}
	if !(process{round: applies(edits)}).killedAt(t, dir, on("after", "apply", journal.Begin)) {
		t.Fatal("the run was not killed")
	}
	crashtest.WriteFile(dir, "a", "new")
	if crashtest.ReadFile(dir, "b") != "old" {
		t.Fatal("the apply was made already")
	}
	return dir
}

// Any later run first completes what the last one had started to apply.
func TestSettle(t *testing.T) {
	for _, fresh := range []bool{false, true} {
		dir := halfApplied(t)
		var found []string
		p := process{fresh: fresh, round: func(context.Context, *hone.Run, []check.Finding) ([]check.Finding, error) {
			found = []string{crashtest.ReadFile(dir, "a"), crashtest.ReadFile(dir, "b"), crashtest.ReadFile(dir, "c")}
			return nil, nil
		}}
		wantEnd(t, p.end(t, dir), hone.KindDone)
		if !slices.Equal(found, []string{"new", "new", "new"}) {
			t.Errorf("the next run (a new one: %v) found %q", fresh, found)
		}
	}
}

// Settle does not overwrite a file in an unknown state, even for a new run. It undoes what
// was made of the change.
func TestSettleOverwritesNoThirdState(t *testing.T) {
	dir := halfApplied(t)
	crashtest.WriteFile(dir, "b", "mine")
	wantEnd(t, process{fresh: true, round: finds()}.end(t, dir), hone.KindDone)
	if diff := cmp.Diff(map[string]string{"a": "old", "b": "mine"}, crashtest.Tree(t, dir)); diff != "" {
		t.Errorf("the tree (-want +got):\n%s", diff)
	}
}

// While a user is asked, the run does not work: that time counts neither as active nor
// towards the limit.
func TestTimeOfAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		slow := &person{answer: func(hone.Question) (hone.Answer, error) {
			time.Sleep(3 * time.Hour)
			return hone.Answer{Approved: true, By: "user"}, nil
		}}
		end := process{round: applies([]workspace.Edit{edit("asked", "new")}), set: func(r *hone.Run) {
			approve(slow, "asked")(r)
			r.Limits.Time = time.Hour
		}}.end(t, dir)
		wantEnd(t, end, hone.KindDone)
		all := events(t, dir)
		if last := all[len(all)-1]; last.Active > time.Hour.Milliseconds() {
			t.Errorf("active for %d ms", last.Active)
		}
	})
}
