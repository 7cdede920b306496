package hone

import (
	"context"
	"errors"

	"hone/history"
)

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
