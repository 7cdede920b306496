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

// Step does something once per run that looks at the world, or changes it in a way
// that may be repeated. It records the result, and a resumed run returns the record.
// If the step was begun and not recorded, it is done again.
//
// Step returns the result as its JSON form has it. input is what the result depends
// on besides the world: if a resumed run comes with another input, the run stops,
// because a recorded answer is never given to a different question. If do fails,
// nothing is recorded; an outcome that has to be remembered is a value.
func Step[T any](ctx context.Context, r *Run, name string, input any, do func(context.Context) (T, error)) (T, error) {
	return step(ctx, r, look(name, input, do))
}

// Earlier returns what steps of a name recorded in the rounds before this one,
// in order.
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

// First returns what the run's first step of a name recorded, in whichever
// round: for what a run decides once. ok is false if there is no such step yet.
func First[T any](r *Run, name string) (v T, ok bool, err error) {
	records := r.Past().Records(name)
	if len(records) == 0 {
		return v, false, nil
	}
	v, err = result[T](r, records[0].Event)
	return v, true, err
}

// work is what a step does. There are three kinds, made by [look], [effect] and
// [command].
type stepWork[T any] struct {
	stepEntry
	do    func(context.Context) (T, error)
	again func(context.Context) (T, error) // in place of do, if a command was cut off
}

// entry is what the journal holds about a step before it is done.
type stepEntry struct {
	event journal.Type // of its begin
	name  string
	input any
	// open stores what the begin names, and returns the begin's payload, which is
	// durable before anything is done. Nil means that there is none.
	open    func(context.Context) (any, error)
	command bool // it is not repeated on its own
}

// look looks at the world, or changes it in a way that may be repeated.
func look[T any](name string, input any, do func(context.Context) (T, error)) stepWork[T] {
	return stepWork[T]{stepEntry: stepEntry{event: history.TypeStep, name: name, input: input}, do: do}
}

// effect has events of its own type, and a begin that says what is about to be
// done. It may be repeated as well.
func effect[T any](event journal.Type, name string, input any, open func(context.Context) (any, error), do func(context.Context) (T, error)) stepWork[T] {
	return stepWork[T]{stepEntry: stepEntry{event: event, name: name, input: input, open: open}, do: do}
}

// recordType is the type of the record.
func (e stepEntry) recordType() journal.Type {
	if e.event == history.TypeAsk {
		return history.TypeReply
	}
	return e.event
}

// durable reports whether the record has to be on the disk before anything follows:
// without it the user or a provider would be asked again.
func (e stepEntry) durable() bool {
	switch e.event {
	case history.TypeApply, history.TypeApproval, history.TypeAsk:
		return true
	}
	return false
}

// inLine reports whether the record is in the event's line whatever its size,
// because package history reads it there.
func (e stepEntry) inLine() bool {
	switch e.event {
	case history.TypeCommand, history.TypeTool:
		return false
	case history.TypeStep:
		return e.name == history.StepOpen || e.name == history.StepAfterwards || e.name == history.StepPutBack
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

// place is where a step is in the journal.
type stepPlace struct {
	stepEntry
	id     journal.Identity
	digest string         // of the input
	record *journal.Event // nil: the step is to be done
	cutOff bool           // it is a command that an earlier process began and did not record
}

// begin gives a step its place, and records its begin unless it is recorded.
func (r *Run) begin(ctx context.Context, e stepEntry) (stepPlace, error) {
	p := stepPlace{stepEntry: e, id: r.identify(e.name)}
	var err error
	if p.digest, err = digestOf(e.input); err != nil {
		return p, fmt.Errorf("step %s: %w", p.id, err)
	}
	return p, r.world().begin(ctx, &p)
}

// finish records what came of a step, unless it is recorded, and returns what a
// resumed run would read.
func finish[T any](r *Run, p stepPlace, v T) (T, error) {
	if p.record != nil {
		return result[T](r, *p.record)
	}
	payload, err := r.pack(v, p.inLine())
	if err != nil {
		return v, fmt.Errorf("record %s: %w", p.id, err)
	}
	id := p.id // an event that held on to the place would hold on to its input
	e, err := r.append(journal.Entry{Type: p.recordType(), Phase: journal.Record, Step: &id, Input: p.digest, Payload: payload, Sync: p.durable()})
	if err != nil {
		return v, err
	}
	return result[T](r, e)
}

// inlineLimit is how many bytes of a result stand in the line itself.
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
	var told history.Report
	_ = json.Unmarshal(b, &told) // what is no object says nothing
	name, err := r.Journal.Home().Put(b)
	return history.StoredResult{Object: name, Said: told.Said}, err
}

// fitsLine reports whether a result is an object that can stand in an event's
// line: none of its keys is one of the event's own.
func fitsLine(b []byte) bool {
	var keys map[string]json.RawMessage
	if json.Unmarshal(b, &keys) != nil || keys == nil {
		return false
	}
	for key := range keys {
		switch strings.ToLower(key) {
		case "v", "seq", "time", "run", "type", "phase", "step", "input", "active_ms", "prev", "result_object":
			return false
		}
	}
	return true
}

// result reads a record back.
func result[T any](r *Run, e journal.Event) (T, error) {
	return history.ReadResult[T](e, r.Journal.Home().Get)
}

// sameInput refuses to give a recorded answer to a different question.
func (p *stepPlace) sameInput(events ...*journal.Event) error {
	for _, e := range events {
		if e != nil && e.Input != p.digest {
			return &Stop{Kind: KindFailed, Next: Next{Verb: NewRun},
				Why: fmt.Sprintf("step %s was recorded for input %.12s and is now asked with %.12s: hone or its loop has changed since the run began", p.id, e.Input, p.digest)}
		}
	}
	return nil
}

// named is a name's identity, without its index, where the run is.
func (r *Run) named(name string) journal.Identity {
	id := r.at
	id.Name = name
	return id
}

// next is the identity of the next step of a name.
func (r *Run) next(name string) journal.Identity {
	id := r.named(name)
	id.Index = r.count[id]
	return id
}

// identify gives the next step of a name its identity.
func (r *Run) identify(name string) journal.Identity {
	if r.count == nil {
		r.count = map[journal.Identity]int{}
	}
	id := r.next(name)
	r.count[r.named(name)]++
	return id
}

func digestOf(v any) (string, error) {
	b, err := marshal(v)
	if err != nil {
		return "", err
	}
	return sum(b), nil
}

// sum is the SHA-256 of some bytes in hex, which is also an object's name.
func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}
