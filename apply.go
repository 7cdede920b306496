package hone

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"hone/history"
	"hone/internal/reply"
	"hone/workspace"
	"hone/workspace/treepath"
)

// Seen returns the digest of the contents of a file that the model was shown;
// ok is false if it was not shown the file. A nil Seen means that every file
// counts as seen.
type Seen = func(path string) (digest string, ok bool)

// Apply changes the tree: it reviews the change, asks for the approvals that are needed,
// makes the edits that are allowed, all of them or none, and returns a verdict for each
// edit, in order. A refusal is a verdict, not an error. An edit that is declined or
// pending does not block the others; nor does one of a file that the user may not change. If the user leaves a question open ([ErrPending]),
// the error is a [*Stop] and nothing is changed. If the user changes a file after
// the review, Apply reviews the change again; an edit that still waited for an answer is declined. Only Apply and [Run.ApplyAll] change
// the tree.
func (r *Run) Apply(ctx context.Context, ch workspace.Change, seen Seen) ([]workspace.Verdict, error) {
	vs, _, err := r.apply(ctx, ch, seen, true)
	return vs, err
}

// ApplyAll is Apply for loops that make all edits of a change or none, and never ask. If
// an edit is refused or needs an approval, ok is false and nothing is changed.
func (r *Run) ApplyAll(ctx context.Context, ch workspace.Change, seen Seen) (vs []workspace.Verdict, ok bool, err error) {
	return r.apply(ctx, ch, seen, false)
}

func (r *Run) apply(ctx context.Context, ch workspace.Change, seen Seen, some bool) ([]workspace.Verdict, bool, error) {
	denied := map[string]string{} // files of which an earlier try has shown that the user may not change them
	for {
		reviewed, err := Step(ctx, r, history.StepReview, ch, func(ctx context.Context) (history.Reviewed, error) {
			rules := r.Rules
			// In a tool call a file that the session has not seen is Unread, and the user is not asked (ruling G4).
			rules.Seen, rules.ReadFirst, rules.Typed, rules.Denied = seen, r.at.Call > 0, true, denied
			rules.Tools = rules.Tools || r.Trust.Tools
			if r.Trust.keepsAny() {
				rules.Protected = r.keeps
			}
			v, err := r.Tree.Review(ch, rules)
			if err == nil {
				err = r.denyBeyond(ctx, ch, v)
			}
			if err == nil && r.unexpected(v) {
				err = r.snapshot(ctx)
			}
			return history.Reviewed{Verdicts: v}, err
		})
		vs := reviewed.Verdicts
		if err != nil {
			return nil, false, err
		}
		if !some && slices.ContainsFunc(vs, func(v workspace.Verdict) bool { return v.Ruling != workspace.Allow && v.Ruling != workspace.Drop }) {
			return vs, false, nil
		}
		if made, err := r.carryOut(ctx, ch, vs, denied); err != nil {
			return nil, false, err
		} else if made {
			return vs, true, nil
		}
	}
}

// carryOut asks about each file whose verdict is Ask, and replaces that ruling with Allow, Declined or Pending. Then it makes the
// allowed edits, with the contents as the user edited them, and records all verdicts. made is false if it made none of them: the
// user changed a file after the review, or may not change one; the latter are added to denied.
func (r *Run) carryOut(ctx context.Context, ch workspace.Change, vs []workspace.Verdict, denied map[string]string) (made bool, err error) {
	edits := slices.Clone(ch.Edits)
	more, rest := 0, false
	for _, v := range vs {
		if v.Ruling == workspace.Ask {
			more++
		}
	}
	var allowed []int
	for i := range vs {
		if vs[i].Ruling == workspace.Ask {
			more--
			if err := r.approve(ctx, &edits[i], &vs[i], more, &rest); err != nil {
				return false, err
			}
		}
		if vs[i].Ruling == workspace.Allow {
			allowed = append(allowed, i)
		}
	}
	if len(allowed) > 0 {
		var begun history.ApplyBegun
		for _, i := range allowed {
			begun.Verdicts = append(begun.Verdicts, vs[i])
		}
		wanted := begun.Verdicts
		open := func(context.Context) (any, error) {
			for _, i := range allowed {
				same, err := r.storeImages(&Question{Path: vs[i].Path, Before: vs[i].Before}, edits[i])
				if err != nil {
					return nil, err
				}
				if !same {
					begun.Verdicts, begun.Outdated = []workspace.Verdict{}, append(begun.Outdated, vs[i].Path)
				}
			}
			return begun, nil
		}
		done, err := step(ctx, r, &stepSpec{event: history.TypeApply, name: "apply"}, wanted, open, func(ctx context.Context) (history.Applied, error) {
			return history.Apply(context.WithoutCancel(ctx), r.Tree, r.Journal.Home(), begun)
		})
		maps.Copy(denied, done.Denied)
		if err != nil || len(done.Outdated)+len(done.Denied) > 0 {
			return false, err
		}
	}
	for i, v := range vs {
		if err := r.recordVerdict(edits[i], v); err != nil {
			return false, err
		}
	}
	return true, nil
}

// approve records the question about an edit, and stores the contents that it is about, before the user sees it. The same question
// is not asked again: an answer is final. If the file has changed since the review, the question is outdated. If the user edits the
// contents, the next question is about these. more are the questions that follow; rest is whether the user has approved them.
func (r *Run) approve(ctx context.Context, edit *workspace.Edit, verdict *workspace.Verdict, more int, rest *bool) error {
	e, v := *edit, *verdict
	for {
		q := Question{Path: v.Path, Reason: v.Reason, Delete: e.Delete, Edited: v.Edited, Before: v.Before, After: v.After, More: more}
		same := true
		open := func(context.Context) (_ any, err error) {
			same, err = r.storeImages(&q, e)
			return q, err
		}
		a, err := step(ctx, r, &stepSpec{event: history.TypeApproval, name: "approval"}, q, open, func(ctx context.Context) (Answer, error) {
			a, ok := r.Past().AnswerTo(q)
			switch {
			case !same:
				return Answer{By: history.Outdated}, nil
			case ok && (a.Approved || !q.Edited): // the user may write what was declined when a model did
				return a, nil
			case *rest:
				return Answer{Approved: true, By: "user"}, nil
			}
			if records := r.Past().Records(askName); q.AboutJudges() && len(records) > 0 {
				asked, err := result[judgesAsked](r, records[len(records)-1].Event)
				if err != nil {
					return Answer{}, err
				}
				q.Said = asked.Words
			}
			return r.askUser(ctx, q)
		})
		if err != nil {
			return err
		}
		if a.Edited.Exists() {
			v.After, v.Edited = a.Edited, true
			if e.Content, err = r.Journal.Home().Get(a.Edited.Digest); err != nil {
				return fmt.Errorf("read what the user made of %s: %w", v.Path, err)
			}
			continue
		}
		if a.Approved || a.By == history.NoUser {
			*edit, *verdict = e, v
		}
		*rest = *rest || a.Rest
		verdict.Ruling, verdict.Reason = rulingFor(*verdict, a)
		return nil
	}
}

func rulingFor(v workspace.Verdict, a Answer) (workspace.Ruling, string) {
	switch {
	case a.Approved && v.Edited:
		return workspace.Allow, "edited and approved by the " + a.By
	case a.Approved:
		return workspace.Allow, "approved by the " + a.By
	case a.By == history.NoUser:
		return workspace.Pending, v.Reason + ", and no user could be asked"
	case a.By == history.Outdated:
		return workspace.Declined, v.Reason + ", and the file changed before a user could be asked"
	case a.By == byFlag:
		return workspace.Declined, v.Reason + ", and this run declines such changes"
	}
	return workspace.Declined, v.Reason + ", and the user declined it"
}

// AskUser asks the user what the model asks (ruling B15), and records the answer, which
// [history.Past.AnswerTo] returns. The same question is asked once; without a user it is open,
// and asked when the run is resumed.
func (r *Run) AskUser(ctx context.Context, asks string) error {
	q := Question{Asks: asks}
	open := func(context.Context) (any, error) { return q, nil }
	_, err := step(ctx, r, &stepSpec{event: history.TypeApproval, name: "approval"}, q, open, func(ctx context.Context) (Answer, error) {
		if a, ok := r.Past().AnswerTo(q); ok {
			return a, nil
		}
		return r.askUser(ctx, q)
	})
	return err
}

// It asks again if the contents that the user wrote cannot be used.
func (r *Run) askUser(ctx context.Context, q Question) (Answer, error) {
	if r.Human == nil {
		return Answer{By: history.NoUser}, nil
	}
	for {
		asked := r.Journal.Wait()
		a, err := r.Human.Ask(ctx, q)
		asked()
		if errors.Is(err, ErrPending) {
			return a, &Stop{Kind: KindBlocked, Why: "the question about " + q.About() + " is not answered yet", Next: Next{Verb: Resume}}
		}
		if err != nil || a.Contents == nil {
			return a, err
		}
		vs, err := r.Tree.Review(workspace.Change{Edits: []workspace.Edit{{Path: q.Path, Content: a.Contents}}}, r.Rules)
		if err != nil {
			return a, err
		}
		reason, withheld := r.Rules.Guard.Withheld(q.Path, a.Contents)
		switch v := vs[0]; {
		case v.Ruling == workspace.Deny, v.Ruling == workspace.Drop:
			q.Problem = v.Reason
		case withheld:
			q.Problem = "hone would withhold it from the model: " + reason
		default:
			a.Approved, a.Rest, a.Edited = false, false, v.After
			_, err := r.Journal.Put(a.Contents)
			return a, err
		}
		q.Refused = a.Contents
	}
}

// same is false if the file has changed since the review.
func (r *Run) storeImages(q *Question, e workspace.Edit) (same bool, err error) {
	if q.Before.Exists() {
		old, image, err := r.Tree.Read(q.Path)
		var refused *treepath.RefusedError
		if errors.Is(err, fs.ErrNotExist) || errors.As(err, &refused) {
			return false, nil // it was removed, or is a directory or a link now
		}
		if err != nil || image.Digest != q.Before.Digest {
			return false, err
		}
		q.Old = old
		if _, err := r.Journal.Put(old); err != nil {
			return false, err
		}
	} else if !r.Tree.Holds(q.Path, q.Before) {
		return false, r.Tree.Fault()
	}
	if e.Delete {
		return true, nil
	}
	q.New = e.Content
	if q.New == nil {
		q.New = []byte{}
	}
	_, err = r.Journal.Put(q.New)
	return true, err
}

// The contents of an edit that was not made are stored too.
func (r *Run) recordVerdict(e workspace.Edit, v workspace.Verdict) (err error) {
	c := history.Changed{Verdict: v, Delete: e.Delete}
	if !e.Delete {
		c.Bytes = int64(len(e.Content))
		if v.Ruling != workspace.Allow && v.Ruling != workspace.Drop {
			if c.Attempted, err = r.Journal.Put(e.Content); err != nil {
				return err
			}
		}
	}
	return r.note(history.TypeChange, "change", c)
}

// Human answers questions about changes that need an approval. In a Run without
// one, questions are pending (ruling G2).
type Human interface {
	// Ask asks one question. If no user can be asked now, the answer is By
	// [history.NoUser], and the question is pending. If the error is
	// [ErrPending] the user leaves the question open: the run stops as blocked,
	// and asks again when it is resumed. Any other error stops the run too.
	//
	// If the answer has Contents, the user has edited the proposed file, and the
	// next question asks about these contents. If the question Asks, the answer's Text counts.
	Ask(ctx context.Context, q Question) (Answer, error)
}

// ErrPending means that there is no answer yet.
var ErrPending = errors.New("the question stays open")

// The questions to a [Human], and its answers.
type (
	Question = history.Question
	Answer   = history.Answer
)

// byFlag is who answers for a user who has said in advance what to do with all changes.
const byFlag = "flag"

// Always is a Human that approves everything, for a user who has said so in
// advance.
type Always struct {
	// Others answers the questions for which nothing can be said in advance: about what
	// judges the work, and what the model asks; nil leaves them open.
	Others Human
}

// Ask approves.
func (a Always) Ask(ctx context.Context, q Question) (Answer, error) {
	if !q.InAdvance() {
		return askOther(ctx, a.Others, q)
	}
	return Answer{Approved: true, By: byFlag}, nil
}

// Never is a Human that declines everything, for a user who has said so in
// advance.
type Never struct {
	Others Human // as in Always
}

// Ask declines.
func (n Never) Ask(ctx context.Context, q Question) (Answer, error) {
	if !q.InAdvance() {
		return askOther(ctx, n.Others, q)
	}
	return Answer{By: byFlag}, nil
}

func askOther(ctx context.Context, h Human, q Question) (Answer, error) {
	if h == nil {
		return Answer{By: history.NoUser}, nil
	}
	return h.Ask(ctx, q)
}

// Interpret returns a change as the model plainly meant it (ruling G15): with the line
// ends that the files have. If there are faults, the change must not be applied, and
// the round returns [check.Unusable] of them: they tell the model which contents or
// paths cannot be meant, such as a file that is wholly a fence or a diff, and what to
// send instead. A document, such as .md or .txt, may be wholly a fence, and test data
// may be anything.
func (r *Run) Interpret(ctx context.Context, ch workspace.Change) (workspace.Change, []string, error) {
	meant := workspace.Change{Edits: slices.Clone(ch.Edits)}
	judged, err := Step(ctx, r, "judge", ch, func(context.Context) (judgement, error) {
		j := judgement{Styles: make([]reply.Style, len(ch.Edits))}
		for i, e := range ch.Edits {
			style, err := r.judgeEdit(e)
			if j.Styles[i] = style; err != nil {
				j.Faults = append(j.Faults, err.Error())
			}
		}
		return j, nil
	})
	for i := range judged.Styles {
		if e := &meant.Edits[i]; !e.Delete {
			e.Content = judged.Styles[i].Apply(e.Content)
		}
	}
	return meant, judged.Faults, err
}

type judgement struct {
	Faults []string      `json:"faults,omitempty"`
	Styles []reply.Style `json:"styles,omitempty"` // of the files before the change
}

// The rules decide about paths that cannot be read.
func (r *Run) judgeEdit(e workspace.Edit) (reply.Style, error) {
	old, _, err := r.Tree.Read(path.Clean(e.Path))
	if err != nil {
		old = nil
		if err := r.Tree.CheckNew(e.Path); err != nil {
			return reply.Style{}, err
		}
	}
	if e.Delete {
		return reply.Style{}, nil
	}
	if err := reply.CheckContent(e.Path, old, e.Content); err != nil {
		return reply.Style{}, fmt.Errorf("%s: %w", e.Path, err)
	}
	style := reply.StyleOf(old)
	style.CRLF = style.CRLF || old == nil && r.Tree.EndsInCRLF(path.Clean(e.Path))
	return style, nil
}
