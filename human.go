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
	// next question asks about these contents.
	Ask(ctx context.Context, q Question) (Answer, error)
}

// ErrPending means that there is no answer yet.
var ErrPending = errors.New("the question stays open")

// The questions to a [Human], and its answers.
type (
	Question = history.Question
	Answer   = history.Answer
)

// Always is a Human that approves everything, for a user who has said so in
// advance.
type Always struct{}

// Ask approves.
func (Always) Ask(context.Context, Question) (Answer, error) {
	return Answer{Approved: true, By: "flag"}, nil
}

// Never is a Human that declines everything, for a user who has said so in
// advance.
type Never struct{}

// Ask declines.
func (Never) Ask(context.Context, Question) (Answer, error) {
	return Answer{By: "flag"}, nil
}
