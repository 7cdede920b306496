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
	"hone/workspace"
	"hone/workspace/secret"
)

// Contents that the user edits are recorded and asked about before they are applied.
func TestEditedContentsAreAskedAbout(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"asked": "old", "run.sh": "#!/bin/sh\n"})
	h := &person{answer: func(q hone.Question) (hone.Answer, error) { return edits("edited " + string(q.New))(q) }}
	var got []workspace.Verdict
	proposed := []workspace.Edit{edit("asked", "new"), edit("new.sh", "#!/bin/sh\n"), edit("plain", "1")}
	end := process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) (_ []check.Finding, err error) {
		got, err = r.Apply(ctx, workspace.Change{Edits: proposed}, nil)
		return nil, err
	}, set: approve(h, "asked", "new.sh")}.end(t, dir)
	wantEnd(t, end, hone.KindDone)
	for name, content := range map[string]string{"asked": "edited new", "new.sh": "edited #!/bin/sh\n", "plain": "1"} {
		if s := crashtest.ReadFile(dir, name); s != content {
			t.Errorf("%s is %q, want %q", name, s, content)
		}
	}
	if string(proposed[0].Content) != "new" {
		t.Errorf("the caller's change became %q", proposed[0].Content)
	}
	after := workspace.Digest([]byte("edited new"))
	if v := got[0]; !v.Edited || v.Ruling != workspace.Allow || v.After.Digest != after || got[2].Edited {
		t.Errorf("verdicts %+v", got)
	}
	if mode := got[1].After.Mode; mode != 0o644 {
		t.Errorf("the mode of a file that no longer starts with #! is %o", mode)
	}
	var asked []string
	for _, q := range h.asked {
		asked = append(asked, map[bool]string{true: "edited: "}[q.Edited]+string(q.New))
	}
	if diff := cmp.Diff([]string{"new", "edited: edited new", "#!/bin/sh\n", "edited: edited #!/bin/sh\n"}, asked); diff != "" {
		t.Errorf("asked about (-want +got):\n%s", diff)
	}
	answers := of[hone.Answer](t, events(t, dir), "approval", journal.Record)
	if a := answers[0]; a.Approved || a.Edited.Digest != after || string(object(t, dir, after)) != "edited new" {
		t.Errorf("the recorded answer: %+v", a)
	}
	changed := of[history.Changed](t, events(t, dir), "change", journal.Record)
	if diff := cmp.Diff(got[0], changed[0].Verdict); diff != "" || changed[0].Bytes != int64(len("edited new")) {
		t.Errorf("the recorded change: %+v", changed[0])
	}
}

// An edit that is declined after the user edited it is the model's, and the answer to
// it is final.
func TestEditedAndDeclined(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"asked": "old"})
	h := &person{answer: func(q hone.Question) (hone.Answer, error) {
		if q.Edited {
			return no(q)
		}
		return edits("mine")(q)
	}}
	p := process{round: applies([]workspace.Edit{edit("asked", "new")}, wrong("again"))}
	p.set = func(r *hone.Run) {
		approve(h, "asked")(r)
		r.Limits.Rounds = 2
	}
	p.end(t, dir)
	changed := of[history.Changed](t, events(t, dir), "change", journal.Record)
	if len(changed) != 2 || changed[0].Edited || string(object(t, dir, changed[0].Attempted)) != "new" || crashtest.ReadFile(dir, "asked") != "old" {
		t.Errorf("the recorded changes: %+v", changed)
	}
	if len(h.asked) != 2 {
		t.Errorf("asked %d times, want 2: about the edit of the model, and about that of the user", len(h.asked))
	}
}

// Contents that the rules forbid are not recorded, and the question is asked again.
func TestEditedContentsThatCannotBeUsed(t *testing.T) {
	guard := secret.NewGuard(nil)
	guard.Known = []string{"correct-horse-battery"}
	for contents, want := range map[string]string{
		"old":                         "the file already has these contents",
		"key = correct-horse-battery": "hone would withhold it from the model: ",
	} {
		dir := crashtest.Workspace(t, map[string]string{"asked": "old"})
		h := &person{}
		h.answer = func(q hone.Question) (hone.Answer, error) {
			if q.Problem == "" {
				return edits(contents)(q)
			}
			return yes(q)
		}
		end := process{round: applies([]workspace.Edit{edit("asked", "new")}), set: func(r *hone.Run) {
			approve(h, "asked")(r)
			r.Rules.Guard = guard
		}}.end(t, dir)
		wantEnd(t, end, hone.KindDone)
		if len(h.asked) != 2 || !strings.Contains(h.asked[1].Problem, want) || string(h.asked[1].New) != "new" || len(h.asked[1].Refused) == 0 || h.asked[1].Edited {
			t.Errorf("%q: asked %+v", contents, h.asked)
		}
		if s := crashtest.ReadFile(dir, "asked"); s != "new" {
			t.Errorf("%q: the file is %q", contents, s)
		}
		home := must(journal.FindHome(dir))
		if contents != "old" && home.Has(workspace.Digest([]byte(contents))) {
			t.Errorf("%q is recorded", contents)
		}
		home.Close()
	}
}

// The user may write what was declined when the model did.
func TestEditedToDeclinedContents(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"asked": "old"})
	h := &person{answer: func(q hone.Question) (hone.Answer, error) {
		if string(q.New) == "first" && !q.Edited {
			return no(q)
		}
		return edits("first")(q)
	}}
	end := process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		for _, contents := range []string{"first", "second"} {
			if _, err := r.Apply(ctx, workspace.Change{Edits: []workspace.Edit{edit("asked", contents)}}, nil); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}, set: approve(h, "asked")}.end(t, dir)
	wantEnd(t, end, hone.KindDone)
	if s := crashtest.ReadFile(dir, "asked"); s != "first" || len(h.asked) != 3 || len(end.Notes) != 0 {
		t.Errorf("the file is %q, asked %d times, notes %q", s, len(h.asked), end.Notes)
	}
}

// Wherever a process dies while the user edits what a pending question is about, what
// the user wrote is not lost once it is recorded, and the end is the same.
func TestKillsWhileEditingAPendingQuestion(t *testing.T) {
	for point := 0; ; point++ {
		dir := crashtest.Workspace(t, map[string]string{"asked": "old", "other": "old"})
		p := process{round: applies([]workspace.Edit{edit("asked", "new"), edit("other", "new")})}
		p.set = approve(nil, "asked", "other")
		wantEnd(t, p.end(t, dir), hone.KindBlocked)
		h := &person{answer: func(q hone.Question) (hone.Answer, error) {
			if q.Path == "other" {
				return yes(q)
			}
			return edits("mine")(q)
		}}
		p.set = approve(h, "asked", "other")
		n := point
		dead := p.killedAt(t, dir, func(string, journal.Type, journal.Phase) bool {
			n--
			return n < 0
		})
		edited := 0
		for _, a := range of[hone.Answer](t, events(t, dir), "approval", journal.Record) {
			if a.Edited.Exists() {
				edited++
			}
		}
		if edited > 0 { // what the user made is the pending question now
			h.answer = yes
		}
		end := p.end(t, dir)
		if end.Kind != hone.KindDone || crashtest.ReadFile(dir, "asked")+crashtest.ReadFile(dir, "other") != "minenew" || len(end.Notes) != 0 {
			t.Errorf("after a kill at point %d: %+v, the files are %q and %q", point, end, crashtest.ReadFile(dir, "asked"), crashtest.ReadFile(dir, "other"))
		}
		if !dead {
			if point < 10 {
				t.Errorf("there were only %d points", point)
			}
			return
		}
	}
}
