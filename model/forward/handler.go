package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"hone/model"
)

// serve answers one request from an agent.
func (f *Forward) serve(w http.ResponseWriter, r *http.Request) {
	if !f.addRequest() {
		panic(http.ErrAbortHandler)
	}
	defer f.active.Done()
	c, done := f.newCall(w, r)
	defer done()
	if err := c.serve(); err != nil {
		c.refuse(err)
	}
}

// refuse sends the response for an error, unless the agent has left.
func (c *call) refuse(err error) {
	if c.r.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
	if r := (*refusal)(nil); errors.As(err, &r) {
		c.f.recordRefusal(err)
	}
	_ = c.rc.SetWriteDeadline(time.Now().Add(headerTime))
	if c.ctx.Err() == nil {
		_ = c.rc.SetReadDeadline(time.Now().Add(drainTime))
	}
	c.f.writeRefusal(c.w, refusalFor(err))
}

func (f *Forward) recordRefusal(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.report.Refused++
	var budget *budgetError
	if errors.As(err, &budget) {
		f.report.LedgerErr = budget.why
	}
}

// budgetError is a refusal because of the budget, with the ledger's error.
type budgetError struct{ why error }

func (o *budgetError) Error() string { return errBudget.message }
func (o *budgetError) Unwrap() error { return errBudget }

// call is one forwarded request, with or without cost.
type call struct {
	f  *Forward
	w  http.ResponseWriter
	r  *http.Request
	rc *http.ResponseController

	// ctx ends with the agent's request, with the forwarder, or at a timeout.
	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   *time.Timer // cancels ctx
	end    time.Time   // of the total time

	target    target
	connected atomic.Bool

	// The provider's side of a call that generates; only the call's goroutine uses it.
	reserved *Reservation // nil for a free request
	settled  bool
	model    string
	allowed  int64 // output tokens, for all answers together
}

// newCall starts a call, and returns the function that ends it.
func (f *Forward) newCall(w http.ResponseWriter, r *http.Request) (*call, func()) {
	limits := f.config.Timeouts
	c := &call{f: f, w: w, r: r, rc: http.NewResponseController(w), end: time.Now().Add(limits.Total)}
	late := &model.Error{Kind: model.Silent, Message: "the response was not complete after " + limits.Total.String()}
	ctx, stop := context.WithDeadlineCause(r.Context(), c.end, late)
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	c.idle = time.AfterFunc(limits.Idle, func() { c.cancel(f.idleError()) })
	_ = c.rc.SetWriteDeadline(c.deadline())
	return c, func() {
		c.idle.Stop()
		c.cancel(nil)
		stop()
	}
}

// idleError is the error after the idle time.
func (f *Forward) idleError() error {
	return &model.Error{Kind: model.Silent, Message: "nothing arrived for " + f.config.Timeouts.Idle.String()}
}

// deadline returns until when the agent must have read or written, from now.
func (c *call) deadline() time.Time {
	if t := time.Now().Add(c.f.config.Timeouts.Idle); t.Before(c.end) {
		return t
	}
	return c.end
}

// restartIdle restarts the idle time of both sides. Its error is the reason why
// the call has ended.
func (c *call) restartIdle() error {
	c.idle.Reset(c.f.config.Timeouts.Idle)
	_ = c.rc.SetWriteDeadline(c.deadline())
	return context.Cause(c.ctx)
}

func (c *call) serve() error {
	if !c.f.hasSecret(c.r) {
		return errNoSecret
	}
	var err error
	if c.target, err = c.f.target(c.r); err != nil {
		return err
	}
	// Waiting before reading the body limits the number of bodies in memory.
	if err := c.f.acquireSlot(c.ctx); err != nil {
		return err
	}
	defer func() { <-c.f.slots }()
	if err := c.restartIdle(); err != nil {
		return err
	}
	var body []byte
	if c.r.Method == http.MethodPost {
		if body, err = c.body(); err != nil {
			return err
		}
	}
	// The agent's time does not count as the provider's.
	if err := c.restartIdle(); err != nil {
		return err
	}
	if c.target.kind == free {
		return c.forwardFree(body)
	}
	return c.forwardPaid(body)
}

// body reads the entire request body.
func (c *call) body() ([]byte, error) {
	if e := c.r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return nil, errEncoded
	}
	most := c.f.config.MaxBody
	if c.r.ContentLength > most {
		return nil, errBody
	}
	_ = c.rc.SetReadDeadline(c.deadline())
	body, err := io.ReadAll(io.LimitReader(c.r.Body, most+1))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.cancel(c.f.idleError())
		return nil, context.Cause(c.ctx)
	case err != nil:
		return nil, malformedError("its body is incomplete")
	case int64(len(body)) > most:
		return nil, errBody
	}
	// If it expired later, the server would conclude that the agent has left.
	_ = c.rc.SetReadDeadline(time.Time{})
	return body, nil
}

// forwardFree forwards a request that costs nothing.
func (c *call) forwardFree(body []byte) error {
	if c.r.Method == http.MethodPost {
		if _, err := c.f.parseBody(body); err != nil {
			return err
		}
	}
	if err := c.f.countCall(true); err != nil {
		return &budgetError{err}
	}
	return c.run(body)
}

// forwardPaid reserves, forwards and settles a call that generates.
func (c *call) forwardPaid(body []byte) error {
	q, err := c.f.parseRequest(c.target, body)
	if err != nil {
		return err
	}
	if err := c.f.countCall(false); err != nil {
		return &budgetError{err}
	}
	reserved, err := c.reserve(q, int64(len(body)))
	if err != nil {
		c.f.uncountCall()
		return err
	}
	limit := reserved.MaxOutput / q.answers
	if q.limit > 0 {
		limit = min(limit, q.limit)
	}
	c.reserved, c.model, c.allowed = &reserved, q.model, limit*q.answers
	// This settles the reservation if the code below panics.
	defer func() { c.commitUsage(nil, errors.New("the call was aborted")) }()
	if limit < 1 || limit <= q.minimum {
		why := fmt.Errorf("only %d output tokens are left, too few for the call", max(0, limit))
		c.commitUsage(&model.Usage{}, why)
		return &budgetError{why}
	}
	return c.run(q.withLimit(limit))
}

func (c *call) reserve(q request, bytes int64) (Reservation, error) {
	reserved, err := c.f.config.Ledger.Reserve(c.ctx, Call{Model: q.model, RequestBytes: bytes, MaxOutput: q.maxOutput()})
	if err != nil {
		if c.ctx.Err() != nil {
			return Reservation{}, context.Cause(c.ctx)
		}
		return Reservation{}, &budgetError{err}
	}
	return reserved, nil
}

// uncountCall undoes countCall for a call that the ledger refused.
func (f *Forward) uncountCall() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.report.Calls--
}

func (f *Forward) recordUsage(used *model.Usage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if used == nil {
		f.report.ChargedInFull++
		return
	}
	f.report.Usage = f.report.Usage.Add(*used)
}
