package hone

import (
	"context"
	"fmt"
	"slices"

	"hone/model"
)

// A long conversation outgrows the model's context, or what the budget pays for.
// Then the oldest tool output is replaced by a note: the model can repeat a call.

// The limit is four fifths of the context (ruling G13), at four bytes a token.
func (role Role) crowded(bytes int64) bool {
	return role.Context > 0 && bytes/4 > role.Context*8/10
}

type elided struct {
	Results int   `json:"results"` // number of results, the oldest first
	Bytes   int64 `json:"bytes"`
}

// What is left fills two fifths of the context.
func (t *talk) surplus(size int64) int64 {
	if !t.role.crowded(size) {
		return 0
	}
	return size - t.role.Context*4*4/10
}

// As long as the request fits, a small saving is not worth losing the provider's cache.
func (t *talk) worthEliding(size int64) bool {
	goal := t.surplus(size)
	can := t.elideOutput(goal, false, false)
	return can.Results > 0 && (can.Bytes >= goal/4 || t.role.Fits(size) != nil)
}

// The oldest output goes first, and the last results only if all is set.
func (t *talk) elide(ctx context.Context, goal int64, all bool) error {
	can := t.elideOutput(goal, all, false)
	if can.Results == 0 {
		return nil
	}
	_, err := Step(ctx, t.r, "elide", goal, func(context.Context) (elided, error) { return can, nil })
	if err == nil {
		t.elideOutput(goal, all, true)
		t.lastRequest, t.lastLength = "", 0
		clear(t.times) // the model may repeat calls whose output it no longer has
	}
	return err
}

// Nothing is recorded. If really is not set, it only returns what it would omit.
func (t *talk) elideOutput(goal int64, all, really bool) (done elided) {
	end := t.lastResults()
	if all {
		end++
	}
	for i := 0; i < end && done.Bytes < goal; i++ {
		parts := t.history[i].Parts
		for j, p := range parts {
			if p.Result == nil || done.Bytes >= goal {
				continue
			}
			note := fmt.Sprintf("[%d bytes of output omitted to save space; repeat the call if you still need it]", len(p.Result.Text))
			if len(p.Result.Text) <= 2*len(note) {
				continue
			}
			done.Results++
			done.Bytes += int64(len(p.Result.Text) - len(note))
			if really {
				result := *p.Result
				result.Text = note
				parts = append(parts[:0:0], parts...)
				parts[j].Result = &result
				t.history[i].Parts = parts
			}
		}
	}
	return done
}

func (t *talk) lastResults() int {
	i := len(t.history) - 1
	for i >= 0 && !slices.ContainsFunc(t.history[i].Parts, func(p model.Part) bool { return p.Result != nil }) {
		i--
	}
	return i
}
