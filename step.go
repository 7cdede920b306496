package hone

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"hone/history"
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
	return step(ctx, r, lookStep(name, input, do))
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

// stepWork is what a step does. [look], [effect] and [command] make the three
// kinds.
type stepWork[T any] struct {
	stepEntry
	do    func(context.Context) (T, error)
	again func(context.Context) (T, error) // replaces do if a command was interrupted
}

// stepEntry is what the journal has of a step before it is done.
type stepEntry struct {
	event journal.Type // of its begin
	name  string
	input any
	// open stores the objects that the begin names, and returns the begin's
	// payload. Nil means that there is no payload.
	open    func(context.Context) (any, error)
	command bool // is not repeated automatically
	models  bool // a command that a model asked for
}

// lookStep returns a step that looks at the world, or that may be repeated.
func lookStep[T any](name string, input any, do func(context.Context) (T, error)) stepWork[T] {
	return stepWork[T]{stepEntry: stepEntry{event: history.TypeStep, name: name, input: input}, do: do}
}

// effect returns a step with events of its own type, whose begin says what is
// about to be done. It may be repeated too.
func effect[T any](event journal.Type, name string, input any, open func(context.Context) (any, error), do func(context.Context) (T, error)) stepWork[T] {
	return stepWork[T]{stepEntry: stepEntry{event: event, name: name, input: input, open: open}, do: do}
}

func (e stepEntry) recordType() journal.Type {
	if e.event == history.TypeAsk {
		return history.TypeReply
	}
	return e.event
}

// beginDurable reports whether the begin must be on disk before the step is done,
// because it has an effect or asks the user. That makes all earlier events durable too.
// A request to a provider has a [history.Reserve] for that, and an edit by a tool an
// apply.
func (e stepEntry) beginDurable() bool {
	switch e.event {
	case history.TypeApply, history.TypeApproval, history.TypeCheck:
		return true
	}
	return e.command
}

// recordDurable reports whether the record must be on disk before anything follows.
// Without it the user would be asked again, or an agent's session repeated. Any other
// record is durable before the next effect, request or question, and at the end of the
// run. Before that a power failure can take it: then an apply is rolled forward, and
// a reply is paid for twice.
func (e stepEntry) recordDurable() bool {
	return e.event == history.TypeApproval || e.event == history.TypeAsk && e.command
}

// inLine reports whether the record is in the event's line whatever its size,
// because package history reads it there.
func (e stepEntry) inLine() bool {
	switch e.event {
	case history.TypeCommand, history.TypeTool:
		return false
	case history.TypeStep:
		return e.name == history.StepOpen || e.name == history.StepSnapshot || e.name == history.StepRestore
	}
	return true
}

// step returns what the step recorded, or does it and records it.
func step[T any](ctx context.Context, r *Run, w stepWork[T]) (v T, err error) {
	p, err := r.begin(ctx, w.stepEntry)
	if err != nil {
		return v, err
	}
	if p.record == nil {
		do := w.do
		if p.cutOff {
			do = w.again
		}
		if v, err = do(ctx); err != nil {
			var none T
			return none, err
		}
	}
	return finish(r, p, v)
}

// stepPlace is where a step is in the journal.
type stepPlace struct {
	stepEntry
	id     journal.Identity
	digest string         // of the input
	record *journal.Event // nil if the step must be done
	cutOff bool           // an earlier process started this command and did not record it
}

func (r *Run) begin(ctx context.Context, e stepEntry) (stepPlace, error) {
	p := stepPlace{stepEntry: e, id: r.identify(e.name)}
	var err error
	if p.digest, err = digestOf(e.input); err != nil {
		return p, fmt.Errorf("step %s: %w", p.id, err)
	}
	return p, r.world().begin(ctx, &p)
}

// It returns what a resumed run would read.
func finish[T any](r *Run, p stepPlace, v T) (T, error) {
	if p.record != nil {
		return result[T](r, *p.record)
	}
	payload, err := r.pack(v, p.inLine())
	if err != nil {
		return v, fmt.Errorf("record %s: %w", p.id, err)
	}
	id := p.id // a copy: a pointer into p would keep the input in memory
	e, err := r.append(journal.Entry{Type: p.recordType(), Phase: journal.Record, Step: &id, Input: p.digest, Payload: payload, Sync: p.recordDurable()})
	if err != nil {
		return v, err
	}
	return result[T](r, e)
}

// inlineLimit is the maximum number of bytes of a result that is in the event's
// line.
const inlineLimit = 16 << 10

func (r *Run) pack(v any, inline bool) (any, error) {
	b, err := marshal(v)
	if err != nil {
		return nil, err
	}
	b = r.redact(b)
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
	return history.ReadResult[T](e, r.Journal.Home().Get)
}

func (p *stepPlace) sameInput(events ...*journal.Event) error {
	for _, e := range events {
		if e != nil && e.Input != p.digest {
			return &Stop{Kind: KindFailed, Next: Next{Verb: NewRun},
				Why: fmt.Sprintf("step %s was recorded for input %.12s and is now run with %.12s: hone or its loop has changed since the run began", p.id, e.Input, p.digest)}
		}
	}
	return nil
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

func (r *Run) identify(name string) journal.Identity {
	if r.count == nil {
		r.count = map[journal.Identity]int{}
	}
	id := r.next(name)
	r.count[r.firstIdentity(name)]++
	return id
}

func digestOf(v any) (string, error) {
	b, err := marshal(v)
	if err != nil {
		return "", err
	}
	return sum(b), nil
}

// It is also the name of the object with these bytes.
func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}
