package hone

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"hone/check"
	"hone/history"
	"hone/internal/render"
	"hone/internal/transient"
	"hone/journal"
)

// Step does something that looks at the world, or that may be repeated, once in
// a run. It records the result, and a resumed run returns the record. If the
// step was started but not recorded, it is done again.
//
// Step returns the result as decoded from its JSON form. input is what the
// result depends on besides the world. If it differs in a resumed run the error
// is a [*Stop], because a recorded answer is never given to a different
// question. If do fails nothing is recorded; an outcome that must be remembered
// is a value, not an error.
//
// A text in the result is a string, never a []byte: [Run.Redact] replaces a key in
// its JSON form, and base64 with a replaced part cannot be decoded.
func Step[T any](ctx context.Context, r *Run, name string, input any, do func(context.Context) (T, error)) (T, error) {
	return step(ctx, r, &stepSpec{event: history.TypeStep, name: name}, input, nil, do)
}

// Earlier returns what the steps of a name recorded in the rounds before this
// one, in order; nil if there are none.
func Earlier[T any](r *Run, name string) ([]T, error) {
	var earlier []T
	for _, e := range r.Past().Records(name) {
		if e.Step.Round >= r.at.Round {
			continue
		}
		v, err := result[T](r, e.Event)
		if err != nil {
			return nil, err
		}
		earlier = append(earlier, v)
	}
	return earlier, nil
}

// First returns what the first step of a name in the run recorded, in whichever
// round: it serves what a run decides once. ok is false if there is no such
// step yet.
func First[T any](r *Run, name string) (v T, ok bool, err error) {
	records := r.Past().Records(name)
	return resultOf[T](r, records[:min(1, len(records))])
}

// Last returns what the last step of a name in the run recorded, also if it is of
// this round: it serves the summary of a run, or a step while it is done. Between
// steps a resumed run may already have the records of later ones. ok is false if
// there is no such step yet.
func Last[T any](r *Run, name string) (v T, ok bool, err error) {
	records := r.Past().Records(name)
	return resultOf[T](r, records[max(0, len(records)-1):])
}

func resultOf[T any](r *Run, records []history.Event) (v T, ok bool, err error) {
	if len(records) == 0 {
		return v, false, nil
	}
	v, err = result[T](r, records[0].Event)
	return v, true, err
}

// stepSpec is a step: what the journal has of it before it is done and, once it has begun, where.
type stepSpec struct {
	event   journal.Type // of its begin
	name    string
	command bool // is not repeated automatically
	models  bool // a command that a model asked for

	digest string // of the input

	id     journal.Identity
	record *journal.Event // nil if the step must be done
	cutOff bool           // an earlier process started this command and did not record it
}

// hasEffect reports whether the step has an effect or asks the user. Then its begin must be on
// disk before it is done, which makes all earlier events durable too.
// A request to a provider has a [history.Reserve] for that, and an edit by a tool an
// apply.
func (s *stepSpec) hasEffect() bool {
	switch s.event {
	case history.TypeApply, history.TypeApproval, history.TypeCheck:
		return true
	}
	return s.command
}

// opening stores the objects that the begin of a step names, and returns its payload. Nil means
// that there is none.
type opening func(context.Context) (any, error)

// step returns what the step recorded, or does it and records it.
func step[T any](ctx context.Context, r *Run, s *stepSpec, input any, open opening, do func(context.Context) (T, error)) (v T, err error) {
	if err := r.begin(ctx, s, input, open); err != nil {
		return v, err
	}
	if s.record == nil {
		if v, err = do(ctx); err != nil {
			var none T
			return none, err
		}
	}
	return finish(r, s, v)
}

func (r *Run) begin(ctx context.Context, s *stepSpec, input any, open opening) (err error) {
	s.id = r.identify(s.name)
	if s.digest, err = history.DigestOf(input); err != nil {
		return fmt.Errorf("step %s: %w", s.id, err)
	}
	begun, isBegun := r.Past().Begin(s.id)
	record, isRecorded := r.Past().Record(s.id)
	for _, e := range []history.Event{begun, record} {
		if e.Step != nil && e.Input != s.digest {
			return &Stop{Kind: KindFailed, Next: Next{Verb: NewRun},
				Why: fmt.Sprintf("step %s was recorded for input %.12s and is now run with %.12s: hone or its loop has changed since the run began", s.id, e.Input, s.digest)}
		}
	}
	if isRecorded {
		s.record = &record.Event
		if r.replaying != nil {
			r.replaying.use(record.Event)
		}
		return nil
	}
	if r.replaying != nil {
		return r.replaying.missing(s.id)
	}
	if err := cmp.Or(ctx.Err(), r.checkSpace()); err != nil {
		return err
	}
	if s.cutOff = isBegun && s.command; !s.cutOff {
		n := journal.Entry{Type: s.event, Phase: journal.Begin, Step: new(s.id), Input: s.digest, Sync: s.hasEffect()}
		if open != nil {
			n.Payload, err = open(ctx)
		}
		if err == nil {
			_, err = r.append(n)
		}
	}
	switch {
	case s.hasEffect(), s.event == history.TypeAsk:
		r.age, r.ignored = outdated, nil // also because the user has time to change files
	case s.name != history.StepOpen: // which follows the check before the first round at once
		r.age = min(r.age, aged)
	}
	return err
}

// It returns what a resumed run would read. Without the record of an answer the user would be asked again, and without that of
// an agent its session repeated; these are on disk before anything follows. Any other record is durable before the next effect,
// request or question, and at the end of the run. Before that a power failure can take it: then an apply is rolled forward, and
// a reply is paid for twice.
func finish[T any](r *Run, s *stepSpec, v T) (T, error) {
	if s.record != nil {
		return result[T](r, *s.record)
	}
	inLine := true // package history reads the record there
	switch s.event {
	case history.TypeCommand, history.TypeTool:
		inLine = false
	case history.TypeStep:
		inLine = slices.Contains([]string{history.StepOpen, history.StepSnapshot, history.StepRestore}, s.name)
	}
	payload, err := r.pack(v, inLine)
	if err != nil {
		return v, fmt.Errorf("record %s: %w", s.id, err)
	}
	n := journal.Entry{Type: s.event, Phase: journal.Record, Step: new(s.id), Input: s.digest, Payload: payload}
	n.Sync = n.Type == history.TypeApproval || n.Type == history.TypeAsk && s.command
	if n.Type == history.TypeAsk {
		n.Type = history.TypeReply
	}
	e, err := r.append(n)
	if err != nil {
		return v, err
	}
	return result[T](r, e)
}

// inlineLimit is the maximum number of bytes of a result that is in the event's
// line.
const inlineLimit = 16 << 10

func (r *Run) pack(v any, inline bool) (any, error) {
	b, err := r.encoded(v)
	if err != nil {
		return nil, err
	}
	if inline || len(b) <= inlineLimit && fitsLine(b) {
		return json.RawMessage(b), nil
	}
	var report history.Report
	_ = json.Unmarshal(b, &report) // a result that is not an object has none
	name, err := r.putHeld(b)
	return history.StoredResult{Object: name, Said: report.Said}, err
}

// It must be an object without any of the event's own keys.
func fitsLine(b []byte) bool {
	var keys map[string]json.RawMessage
	if json.Unmarshal(b, &keys) != nil || keys == nil {
		return false
	}
	for key := range keys {
		switch strings.ToLower(key) {
		case "v", "seq", "time", "run", "type", "phase", "step", "input", "active_ms", "prev", "mac", "result_object":
			return false
		}
	}
	return true
}

func result[T any](r *Run, e journal.Event) (T, error) {
	if r.replaying != nil {
		r.replaying.use(e)
	}
	return history.ReadResult[T](e, r.Journal.Home().Get)
}

func (r *Run) note(typ journal.Type, name string, payload any) error {
	id := r.identify(name)
	if record, ok := r.Past().Record(id); !ok {
		_, err := r.append(journal.Entry{Type: typ, Phase: journal.Record, Step: &id, Payload: payload})
		return err
	} else if r.replaying != nil {
		return r.replaying.same(record.Event, payload)
	}
	return nil
}

// recordedStep takes the next step of a name if it is recorded already; ok is false if not.
func recordedStep[T any](r *Run, name string) (v T, ok bool, err error) {
	record, ok := r.Past().Record(r.next(name))
	if !ok {
		return v, false, nil
	}
	r.identify(name)
	v, err = result[T](r, record.Event)
	return v, err == nil, err
}

func (r *Run) firstIdentity(name string) journal.Identity {
	id := r.at
	id.Name = name
	return id
}

func (r *Run) next(name string) journal.Identity {
	id := r.firstIdentity(name)
	id.Index = r.count[id]
	return id
}

// Taken returns the step of a name that the run took last at this place of its round; ok is
// false if it took none.
func (r *Run) Taken(name string) (step journal.Identity, ok bool) {
	step = r.next(name)
	step.Index--
	return step, step.Index >= 0
}

func (r *Run) identify(name string) journal.Identity {
	id := r.next(name)
	r.count[r.firstIdentity(name)]++
	return id
}

func (r *Run) append(n journal.Entry) (journal.Event, error) {
	r.starting.Do(func() {
		if r.OnStart != nil {
			r.startErr = r.OnStart()
		}
	})
	if r.startErr != nil {
		return journal.Event{}, r.startErr
	}
	return r.write(n)
}

// write fails with a [*Stop], because without its journal a run cannot
// continue. Nothing is recorded that may follow from an error that passes (ruling G22). On a full disk only what has begun is recorded; nothing new begins.
func (r *Run) write(n journal.Entry) (e journal.Event, err error) {
	if r.replaying != nil {
		return r.replaying.decide(n)
	}
	if n.Payload != nil && r.Redact != nil {
		b, err := r.encoded(n.Payload)
		if err != nil {
			return e, err
		}
		n.Payload = json.RawMessage(b)
	}
	switch n.Type {
	case history.TypeEnd, history.TypeReply, history.TypeReserve, history.TypeCommit, history.TypeUsage, history.TypeRetry, history.TypeFailover:
		// What is already paid for, and the end, are recorded whatever the tree's errors; before a request holdSpace looks at these.
	default:
		if err := r.Tree.Fault(); err != nil {
			return e, err
		}
	}
	record := func() error {
		e, err = r.Journal.Append(n)
		return err
	}
	if n.Phase == journal.Begin || n.Type == history.TypeReserve {
		err = record()
	} else {
		err = r.inHeldSpace(record)
	}
	if err != nil {
		return e, &Stop{Kind: KindFailed, Why: "cannot write the journal", Next: history.ResumeAfter(remedy(err)), Err: unrecorded{err}}
	}
	return e, nil
}

func (r *Run) encoded(v any) ([]byte, error) {
	b, err := journal.Encode(v)
	return r.redact(b), err
}

func (r *Run) redact(b []byte) []byte {
	if r.Redact == nil {
		return b
	}
	return []byte(r.Redact(string(b)))
}

func (r *Run) cleanText(s string) string { return string(r.redact([]byte(s))) }

// checkSpace stops the run while a few more events can still be recorded. Nothing is lost,
// because no step is under way.
func (r *Run) checkSpace() error {
	dir := r.Journal.Home().Dir()
	free, ok := journal.FreeSpace(dir)
	if !ok || free >= r.MinFree {
		return nil
	}
	return &Stop{Kind: KindFailed, Why: fmt.Sprintf("only %s are free on the disk of %s, less than [limits] min-free (%s)", render.Bytes(free), dir, render.Bytes(r.MinFree)),
		Next: history.ResumeAfter("free some disk space, or delete old runs")}
}

type unrecorded struct{ error }

func (u unrecorded) Unwrap() error { return u.error }

func isUnrecorded(err error) bool { return errors.As(err, new(unrecorded)) }

const (
	// heldForEvents is how many bytes are held for the events of a reply, and for the
	// results of the calls in it.
	heldForEvents = 64 << 10
	// heldPerToken is how many bytes are held for each token that a reply may have, more
	// than any provider's tokens need: stored replies are compressed.
	heldPerToken = 16
	// maxHeldTokens is for how many tokens space is held, more than any model can write.
	maxHeldTokens = 256 << 10
)

// holdSpace holds the disk space that a reply of at most so many tokens needs, before it
// is asked for and paid. [Run.inHeldSpace] uses it.
func (r *Run) holdSpace(tokens int64) error {
	if err := r.Tree.Fault(); err != nil {
		return err
	}
	return r.Journal.Home().HoldSpace(heldForEvents + heldPerToken*min(tokens, maxHeldTokens))
}

func (r *Run) inHeldSpace(record func() error) error {
	err := record()
	if transient.OfDisk(err) {
		_ = r.Journal.Home().ReleaseSpace() // another goroutine may have released it
		err = record()
	}
	return err
}

func (r *Run) putHeld(b []byte) (name string, err error) {
	err = r.inHeldSpace(func() error {
		name, err = r.Journal.Put(b)
		return err
	})
	return name, err
}

// inspect calls judge on the tree, unless the last step of that name in the round has
// judged the same tree. A decision that the check could not run does not count.
func (r *Run) inspect(ctx context.Context, name string, judge func(context.Context) (history.Checked, error)) (history.Checked, error) {
	before, now, err := r.manifest(ctx)
	if err != nil {
		return history.Checked{}, err
	}
	for _, record := range slices.Backward(r.Past().Records(name)) {
		at := *record.Step
		if record.Type != history.TypeCheck || at.Round != r.at.Round {
			continue
		}
		if at.Part == r.at.Part {
			r.count[r.firstIdentity(name)] = at.Index + 1
		}
		c, err := result[history.Checked](r, record.Event)
		retry := at.Part < r.at.Part && onlyBroken(c.Findings)
		if err != nil || (c.Tree == now || r.replaying != nil) && !retry {
			return c, err
		}
		break
	}
	begun := func(context.Context) (any, error) { return history.CheckBegun{Manifest: before}, nil }
	return step(ctx, r, &stepSpec{event: history.TypeCheck, name: name}, nil, begun, func(ctx context.Context) (history.Checked, error) {
		began := time.Now()
		if r.Printed != nil {
			r.Printed() // by what is no check
		}
		c, err := judge(ctx)
		if err == nil && r.Printed != nil {
			if text := r.Printed(); len(text) > 0 {
				c.Output, err = r.putHeld(text)
			}
		}
		if err != nil {
			return c, err
		}
		c.Findings, c.Flaky, c.Took = joinFindings(check.Bound(c.Findings)), check.Bound(c.Flaky), time.Since(began)
		c.Manifest, c.Tree, err = r.manifest(ctx)
		return c, err
	})
}
