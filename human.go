package hone

import (
	"context"
	"errors"

	"hone/workspace"
)

// Human is whoever can be asked. A Run without one denies what would have to
// be asked.
type Human interface {
	// Ask puts one question. [ErrPending] leaves it open: the run stops as
	// blocked, and asks again when it is resumed.
	Ask(ctx context.Context, q Question) (Answer, error)
}

// ErrPending says that there is no answer now.
var ErrPending = errors.New("the question stays open")

// Question asks whether one edit may be made.
type Question struct {
	Path   string          `json:"path"`
	Reason string          `json:"reason"` // why it is asked at all
	Delete bool            `json:"delete,omitempty"`
	Before workspace.Image `json:"before"`
	After  workspace.Image `json:"after"`
	// Old and New are the file's contents before and after; nil where there is
	// no file.
	Old []byte `json:"-"`
	New []byte `json:"-"`
	// More is how many questions of the same change are still to come.
	More int `json:"-"`
}

// Answer is what a person, or whoever stands in, said.
type Answer struct {
	Approved bool `json:"approved"`
	// Rest approves what is still to be asked about the same change.
	Rest bool `json:"rest,omitempty"`
	// By says who answered: "person", "flag", or "nobody" where there was
	// none to ask; such a denial is asked again when somebody is there.
	By string `json:"by"`
}

// Always approves everything, for whoever said so beforehand.
type Always struct{}

// Ask approves.
func (Always) Ask(context.Context, Question) (Answer, error) {
	return Answer{Approved: true, By: "flag"}, nil
}
