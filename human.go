package hone

import (
	"context"
	"errors"

	"hone/history"
)

// Human answers questions about changes that need an approval. A Run without
// one denies them.
type Human interface {
	// Ask asks one question. If the error is [ErrPending] the question stays
	// open: the run stops as blocked, and asks again when it is resumed. Any
	// other error stops the run too.
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
