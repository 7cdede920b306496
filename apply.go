package hone

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"hone/history"
	"hone/journal"
	"hone/workspace"
)

// Seen tells which contents of a file the model was shown, by digest; nil
// means that every file counts as seen.
type Seen func(path string) (digest string, ok bool)

// Apply is the one door to the tree: it reviews a change, asks about what has
// to be asked, makes every edit that is allowed or none of them, and returns
// what became of each, in order. A refusal is a verdict, never an error. An
// edit that a person did not approve keeps the others from nothing; a question
// that stays open stops the run with nothing applied.
func (r *Run) Apply(ctx context.Context, ch workspace.Change, seen Seen) ([]workspace.Verdict, error) {
	vs, err := r.Review(ctx, ch, seen)
	if err != nil {
		return nil, err
	}
	if err := r.approve(ctx, ch, vs); err != nil {
		return nil, err
	}
	return vs, r.applyAllowed(ctx, ch, vs)
}

// Review says what Apply would make of a change, and makes nothing: for a loop
// whose changes are made as a whole or not at all, whatever the reason.
func (r *Run) Review(ctx context.Context, ch workspace.Change, seen Seen) ([]workspace.Verdict, error) {
	v, err := step(ctx, r, look("review", ch, func(context.Context) (verdicts, error) {
		rules, err := r.protectingRules(r.Rules)
		if err != nil {
			return verdicts{}, err
		}
		rules.Seen = seen
		v, err := r.Tree.Review(ch, rules)
		return verdicts{v}, err
	}))
	return v.Verdicts, err
}

type verdicts struct {
	Verdicts []workspace.Verdict `json:"verdicts"`
}

// approve puts the questions of a change, one a file, and turns each Ask into
// Allow or Declined.
func (r *Run) approve(ctx context.Context, ch workspace.Change, vs []workspace.Verdict) error {
	more := 0
	for _, v := range vs {
		if v.Ruling == workspace.Ask {
			more++
		}
	}
	rest := false
	for i := range vs {
		if vs[i].Ruling != workspace.Ask {
			continue
		}
		more--
		a, err := r.askAbout(ctx, ch.Edits[i], vs[i], more, rest)
		if err != nil {
			return err
		}
		rest = rest || a.Rest
		vs[i].Ruling, vs[i].Reason = rulingFor(vs[i], a)
	}
	return nil
}

// ruling is what an answer makes of a question's verdict.
func rulingFor(v workspace.Verdict, a Answer) (workspace.Ruling, string) {
	switch {
	case a.Approved:
		return workspace.Allow, "approved by " + a.By
	case a.By == history.Nobody:
		return workspace.Declined, v.Reason + ", and nobody was there to ask"
	}
	return workspace.Declined, v.Reason + ", and a person declined it"
}

// question asks about one edit. The question is on record, with the contents
// that it is about, before anybody sees it.
func (r *Run) askAbout(ctx context.Context, e workspace.Edit, v workspace.Verdict, more int, rest bool) (Answer, error) {
	q := Question{Path: v.Path, Reason: v.Reason, Delete: e.Delete, Before: v.Before, After: v.After, More: more}
	open := func(context.Context) (any, error) { return q, r.storeQuestionImages(&q, e) }
	return step(ctx, r, effect(history.TypeApproval, "approval", q, open, func(ctx context.Context) (Answer, error) {
		switch {
		case rest:
			return Answer{Approved: true, By: "person"}, nil
		case r.Human == nil:
			return Answer{By: history.Nobody}, nil
		}
		a, err := r.Human.Ask(ctx, q)
		if errors.Is(err, ErrPending) {
			return a, &Stop{Kind: KindBlocked, Why: "the question about " + q.Path + " is not answered yet", Next: Next{Verb: Resume}}
		}
		return a, err
	}))
}

// keepImages stores what an edit replaces and what it puts there.
func (r *Run) storeQuestionImages(q *Question, e workspace.Edit) error {
	home := r.Journal.Home()
	if q.Before.Exists() {
		old, image, err := r.Tree.Read(q.Path)
		if err != nil {
			return err
		}
		if image.Digest != q.Before.Digest {
			return conflictStop(home, q.Path, q.Before)
		}
		q.Old = old
		if _, err := home.Put(old); err != nil {
			return err
		}
	}
	if e.Delete {
		return nil
	}
	q.New = e.Content
	if q.New == nil {
		q.New = []byte{}
	}
	_, err := home.Put(q.New)
	return err
}

// carryOut applies what is allowed, and tells what became of every edit. It can be
// done twice: what a crash left half done is rolled forward.
func (r *Run) applyAllowed(ctx context.Context, ch workspace.Change, vs []workspace.Verdict) error {
	todo, allowed := allowedEdits(ch, vs)
	if len(allowed) == 0 {
		return r.recordVerdicts(ch, vs)
	}
	open := func(context.Context) (any, error) {
		return history.ApplyBegun{Verdicts: allowed}, r.storeImages(todo, allowed)
	}
	_, err := step(ctx, r, effect(history.TypeApply, "apply", allowed, open, func(ctx context.Context) (history.Applied, error) {
		r.stale = true
		return history.Applied{Verdicts: allowed}, applyAll(context.WithoutCancel(ctx), r.Tree, r.Journal.Home(), todo, allowed)
	}))
	if err != nil {
		return err
	}
	return r.recordVerdicts(ch, vs)
}

// permitted is the part of a change that is allowed, by cleaned paths.
func allowedEdits(ch workspace.Change, vs []workspace.Verdict) (workspace.Change, []workspace.Verdict) {
	var todo workspace.Change
	var allowed []workspace.Verdict
	for i, v := range vs {
		if v.Ruling == workspace.Allow {
			e := ch.Edits[i]
			e.Path = v.Path
			todo.Edits = append(todo.Edits, e)
			allowed = append(allowed, v)
		}
	}
	return todo, allowed
}

// keepAll stores the images of every edit that is about to be made.
func (r *Run) storeImages(ch workspace.Change, vs []workspace.Verdict) error {
	for i, v := range vs {
		q := Question{Path: v.Path, Before: v.Before, After: v.After}
		if err := r.storeQuestionImages(&q, ch.Edits[i]); err != nil {
			return err
		}
	}
	return nil
}

// applyAll makes the edits. A file in an unknown state is a [*Stop].
func applyAll(ctx context.Context, tree *workspace.Tree, home *journal.Home, ch workspace.Change, vs []workspace.Verdict) error {
	return stopAtConflict(home, history.Apply(ctx, tree, ch, vs))
}

// stopAtConflict turns the error about a file in an unknown state into a
// [*Stop], and leaves all others.
func stopAtConflict(home *journal.Home, err error) error {
	var unknown *history.UnknownStateError
	if errors.As(err, &unknown) {
		return conflictStop(home, unknown.Path, unknown.Before)
	}
	return err
}

// conflict says that a file is in a state that hone will not overwrite, and
// how the user can restore one that it knows.
func conflictStop(home *journal.Home, path string, before workspace.Image) error {
	file := shellQuote(filepath.Join(filepath.Dir(home.Dir()), filepath.FromSlash(path)))
	back := "rm " + file
	if before.Exists() {
		back = fmt.Sprintf("cp %s %s", shellQuote(home.ObjectPath(before.Digest)), file)
	}
	return &Stop{Kind: KindBlocked,
		Why:  path + " was changed outside of the run in the meantime, and hone does not overwrite unknown contents",
		Next: Next{First: "save your version elsewhere", Shell: back, Verb: Resume}}
}

// quote makes a path one word of a shell's command line.
func shellQuote(path string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:+,@%="
	if path != "" && !strings.HasPrefix(path, "-") && strings.Trim(path, plain) == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// tell appends a change event for each edit, once, and keeps what was
// attempted where it was not made.
func (r *Run) recordVerdicts(ch workspace.Change, vs []workspace.Verdict) error {
	for i, v := range vs {
		id := r.identify("change")
		if _, told := r.Journal.Lookup(id); told != nil {
			continue
		}
		e := ch.Edits[i]
		c := history.Changed{Verdict: v, Delete: e.Delete}
		if !e.Delete {
			c.Bytes = int64(len(e.Content))
		}
		if !e.Delete && (v.Ruling == workspace.Deny || v.Ruling == workspace.Declined) {
			var err error
			if c.Attempted, err = r.world().put(e.Content); err != nil {
				return err
			}
		}
		if _, err := r.append(journal.Entry{Type: history.TypeChange, Phase: journal.Record, Step: &id, Payload: c}); err != nil {
			return err
		}
	}
	return nil
}

// Settle completes what an earlier process had begun to apply; see
// [history.Settle]. A file in an unknown state is a [*Stop].
func Settle(ctx context.Context, home *journal.Home, tree *workspace.Tree, last string) error {
	return stopAtConflict(home, history.Settle(ctx, home, tree, last))
}
