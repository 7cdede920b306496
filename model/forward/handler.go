package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"hone/model"
)

const (
	defaultIdle  = 20 * time.Minute
	defaultTotal = time.Hour
)

// ServeHTTP answers one request of an agent.
func (f *Forward) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !f.begin() {
		panic(http.ErrAbortHandler)
	}
	defer f.active.Done()
	c := f.newCall(w, r)
	defer c.close()
	err := c.serve()
	switch {
	case err == nil:
		return
	case c.begun || r.Context().Err() != nil:
		// The agent must see that its answer is not whole.
		panic(http.ErrAbortHandler)
	}
	if r := (*refusal)(nil); errors.As(err, &r) {
		f.refused(err)
	}
	c.last()
	f.tell(w, answerFor(err))
}

func (f *Forward) refused(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.report.Refused++
	var budget *overBudget
	if errors.As(err, &budget) {
		f.report.Why = budget.why
	}
}

// overBudget is a refusal for want of budget, with the ledger's own word.
type overBudget struct{ why error }

func (o *overBudget) Error() string { return errBudget.message }
func (o *overBudget) Unwrap() error { return errBudget }

// call is one request on its way, free ones too.
type call struct {
	f     *Forward
	w     http.ResponseWriter
	r     *http.Request
	rc    *http.ResponseController
	begun bool // an answer was begun

	// ctx is the agent's and the forwarder's, ended by the time-outs too.
	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   time.Duration
	undo   []func() bool // of what waits for the contexts' end
	timers []*time.Timer // the first is the idle one

	mu      sync.Mutex
	over    bool // the connection's deadlines are no longer the call's
	reading bool // the request's body
}

func (f *Forward) newCall(w http.ResponseWriter, r *http.Request) *call {
	c := &call{f: f, w: w, r: r, rc: http.NewResponseController(w), idle: f.config.Timeouts.Idle}
	total := f.config.Timeouts.Total
	if c.idle <= 0 {
		c.idle = defaultIdle
	}
	if total <= 0 {
		total = defaultTotal
	}
	c.ctx, c.cancel = context.WithCancelCause(r.Context())
	silence := &model.Error{Kind: model.Silent, Message: "nothing came for " + c.idle.String()}
	late := &model.Error{Kind: model.Silent, Message: "the response was not complete after " + total.String()}
	c.timers = []*time.Timer{
		time.AfterFunc(c.idle, func() { c.cancel(silence) }),
		time.AfterFunc(total, func() { c.cancel(late) }),
	}
	c.undo = []func() bool{
		context.AfterFunc(f.ctx, func() { c.cancel(ErrClosed) }),
		context.AfterFunc(c.ctx, c.expire),
	}
	return c
}

func (c *call) close() {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	for _, undo := range c.undo {
		undo()
	}
	for _, t := range c.timers {
		t.Stop()
	}
	c.cancel(nil)
}

// expire ends reads from the agent and writes to it, so that whatever waits
// for the agent is woken when the call ends. A writer without deadlines is none
// that waits.
func (c *call) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	if c.reading {
		// At any other time the server would take it for an agent that left.
		_ = c.rc.SetReadDeadline(time.Unix(1, 0))
	}
	_ = c.rc.SetWriteDeadline(time.Unix(1, 0))
}

// read says that the body is being read, or no longer.
func (c *call) read(now bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = now
}

// last gives the agent time to take the forwarder's own answer.
func (c *call) last() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	_ = c.rc.SetWriteDeadline(time.Now().Add(headerTime))
	if c.ctx.Err() == nil {
		_ = c.rc.SetReadDeadline(time.Now().Add(drainTime))
	}
}

// alive starts the idle time afresh; the error is why the call is over.
func (c *call) alive() error {
	c.timers[0].Reset(c.idle)
	return context.Cause(c.ctx)
}

func (c *call) serve() error {
	if !c.f.admits(c.r) {
		return errStranger
	}
	t, err := c.f.target(c.r)
	if err != nil {
		return err
	}
	// Before the body is read, so that no more of them are held at once.
	if err := c.f.turn(c.ctx); err != nil {
		return err
	}
	defer func() { <-c.f.turns }()
	if err := c.alive(); err != nil {
		return err
	}
	var body []byte
	if c.r.Method == http.MethodPost {
		if body, err = c.body(); err != nil {
			return err
		}
	}
	// The time that the agent took is not the provider's.
	if err := c.alive(); err != nil {
		return err
	}
	if t.kind == free {
		return c.free(t, body)
	}
	return c.paid(t, body)
}

// body reads the whole of what the agent sends.
func (c *call) body() ([]byte, error) {
	if e := c.r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return nil, errEncoded
	}
	most := c.f.config.MaxBody
	if c.r.ContentLength > most {
		return nil, errBody
	}
	c.read(true)
	body, err := io.ReadAll(io.LimitReader(c.r.Body, most+1))
	c.read(false)
	switch {
	case err != nil && c.ctx.Err() != nil:
		return nil, context.Cause(c.ctx)
	case err != nil:
		return nil, malformed("its body did not come whole")
	case int64(len(body)) > most:
		return nil, errBody
	}
	return body, nil
}

// free passes on what costs nothing.
func (c *call) free(t target, body []byte) error {
	if c.r.Method == http.MethodPost {
		if _, err := c.f.parseBody(body); err != nil {
			return err
		}
	}
	if err := c.f.count(true); err != nil {
		return &overBudget{err}
	}
	x := &exchange{call: c, target: t}
	return x.run(body)
}

// paid passes on a call that generates, between its reserve and its commit.
func (c *call) paid(t target, body []byte) error {
	q, err := c.f.parseRequest(t, body)
	if err != nil {
		return err
	}
	if err := c.f.count(false); err != nil {
		return &overBudget{err}
	}
	g, err := c.reserve(q, int64(len(body)))
	if err != nil {
		c.f.uncount()
		return err
	}
	limit := g.MaxOutput / q.answers
	if q.limit > 0 {
		limit = min(limit, q.limit)
	}
	x := &exchange{call: c, target: t, reserved: &reserved{f: c.f, grant: g, model: q.model, allowed: limit * q.answers}}
	// Nobody else settles it if this code fails.
	defer func() { x.reserved.settle(nil, errors.New("the call came to no end")) }()
	if limit < 1 || limit <= q.needs {
		why := fmt.Errorf("%d tokens of output are left, which is too few for the call", max(0, limit))
		x.reserved.settle(&model.Usage{}, why)
		return &overBudget{why}
	}
	return x.run(q.limited(limit))
}

func (c *call) reserve(q request, bytes int64) (Grant, error) {
	g, err := c.f.config.Ledger.Reserve(c.ctx, Call{Model: q.model, RequestBytes: bytes, MaxOutput: q.wants()})
	if err != nil {
		if c.ctx.Err() != nil {
			return Grant{}, context.Cause(c.ctx)
		}
		return Grant{}, &overBudget{err}
	}
	return g, nil
}

// uncount takes a call back that the ledger did not let pass.
func (f *Forward) uncount() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.report.Calls--
}

// reserved is a reserve until it is settled. It belongs to one goroutine.
type reserved struct {
	f       *Forward
	grant   Grant
	model   string
	allowed int64 // tokens that the answers may have together
	done    bool
}

// settle commits what was used, the first time that it is called. An error
// is why nothing more passes.
func (s *reserved) settle(used *model.Usage, fault error) {
	if s.done {
		return
	}
	s.done = true
	var over *Overrun
	if used != nil && used.Output > s.allowed {
		over = &Overrun{Model: model.OneLine(s.model), Wrote: used.Output, Allowed: s.allowed}
		fault = over
	}
	s.f.settled(used)
	if over != nil {
		s.f.stop(over)
	}
	if s.grant.Commit == nil {
		return
	}
	if err := s.grant.Commit(used, fault); err != nil {
		s.f.stop(err)
	}
}

func (f *Forward) settled(used *model.Usage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if used == nil {
		f.report.Lost++
		return
	}
	f.report.Usage = f.report.Usage.Add(*used)
}
