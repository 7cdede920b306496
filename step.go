package hone

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"hone/history"
	"hone/journal"
)

// Step does what looks at the world, or changes it in a way that may be done
// twice, once per run: its result is recorded under the step's identity, and
// a resumed run is given the record. A step that was begun and not recorded is
// done again.
//
// T's JSON form must be all there is to it: what Step returns has been through
// it. input is what the result depends on besides the world;
// if a resumed run comes with another one, the run stops, because a recorded
// answer is never given to a different question. An error of do means that
// there is nothing to remember; every outcome that should stick is a value.
func Step[T any](ctx context.Context, r *Run, name string, input any, do func(context.Context) (T, error)) (T, error) {
	return step(ctx, r, work[T]{event: history.TypeStep, name: name, input: input, do: do})
}

// Once does what must not be repeated on its own, such as a command that a
// model asked for. A resumed run that finds it begun and not recorded calls
// interrupted instead of do, with the files that changed since it began, and
// records what that makes of it. The tree is looked at before and afterwards,
// so that what was changed by this is not taken for somebody else's doing.
func Once[T any](ctx context.Context, r *Run, name string, input any, do func(context.Context) (T, error), interrupted Interrupted[T]) (T, error) {
	begun := func(manifest string) (any, error) { return history.CommandBegun{Manifest: manifest}, nil }
	v, _, err := once(ctx, r, work[T]{event: history.TypeCommand, name: name, input: input, do: do}, begun, interrupted)
	return v, err
}

// Interrupted is what becomes of something that was begun and never recorded.
type Interrupted[T any] func(ctx context.Context, changed []string) (T, error)

// once fills in a piece of work what all commands need, and does it. begun
// makes the begin's payload, which holds the manifest before. back are protected
// files that it changed.
func once[T any](ctx context.Context, r *Run, w work[T], begun func(manifest string) (any, error), interrupted Interrupted[T]) (v T, back []string, err error) {
	w.open = func() (any, error) {
		manifest, err := r.before(ctx)
		if err != nil {
			return nil, err
		}
		return begun(manifest)
	}
	w.again = func(ctx context.Context) (T, error) {
		changed, err := r.changedSince(ctx, w.name)
		if err != nil {
			var none T
			return none, err
		}
		return interrupted(ctx, changed)
	}
	if v, err = step(ctx, r, w); err != nil {
		return v, nil, err
	}
	o, err := step(ctx, r, work[history.Snapshot]{event: history.TypeStep, name: history.StepAfterwards, inline: true, do: r.afterwards})
	if err == nil && len(o.Restored) > 0 {
		_, err = step(ctx, r, work[history.Snapshot]{event: history.TypeStep, name: history.StepPutBack, inline: true, do: r.putRight})
	}
	return v, o.Restored, err
}

// afterwards looks at the tree when a command has ended, and at what it was not
// to change. That is on record before it is put back: whatever kills this
// process, the model and a person hear of it.
func (r *Run) afterwards(ctx context.Context) (history.Snapshot, error) {
	if err := r.snapshot(ctx); err != nil {
		return history.Snapshot{}, err
	}
	list, err := r.protectedChanges()
	if err != nil {
		return history.Snapshot{}, err
	}
	var back []string
	for _, p := range list {
		back = append(back, p.Path)
	}
	object, err := r.storeManifest()
	return history.Snapshot{Manifest: object, Tree: r.last.Digest(), Restored: back, Report: history.Report{Said: restoredNote(back)}}, err
}

// putRight puts back what a command was not to change.
func (r *Run) putRight(ctx context.Context) (history.Snapshot, error) {
	if _, err := r.Manifest(ctx); err != nil {
		return history.Snapshot{}, err
	}
	if _, err := r.restoreProtected(ctx); err != nil {
		return history.Snapshot{}, err
	}
	object, err := r.storeManifest()
	return history.Snapshot{Manifest: object, Tree: r.last.Digest()}, err
}

// before keeps the tree as it is before a command.
func (r *Run) before(ctx context.Context) (object string, err error) {
	if _, err := r.Manifest(ctx); err != nil {
		return "", err
	}
	return r.storeManifest()
}

// changedSince are the files that differ from what they were when the command
// began that was begun last and never recorded.
func (r *Run) changedSince(ctx context.Context, name string) ([]string, error) {
	id := r.at
	id.Name, id.Index = name, r.count[r.named(name)]-1
	begin, _ := r.Journal.Lookup(id)
	if begin == nil {
		return nil, nil
	}
	object := history.Decode(*begin).Manifest()
	if object == "" {
		return nil, nil
	}
	was, err := r.readManifest(object)
	if err != nil {
		return nil, err
	}
	r.stale = true
	now, err := r.Manifest(ctx)
	if err != nil {
		return nil, err
	}
	var changed []string
	for _, d := range was.Diff(now) {
		if r.Own == nil || !r.Own(d.Path) {
			changed = append(changed, d.Path)
		}
	}
	return changed, nil
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

// work is a step as the engine sees it.
type work[T any] struct {
	event  journal.Type // the type of its begin
	record journal.Type // the type of its record; empty: the same
	name   string
	input  any
	// open stores what the begin names and returns the begin's payload; nil
	// begins without one. A begin with a payload is durable before do.
	open   func() (any, error)
	do     func(context.Context) (T, error)
	again  func(context.Context) (T, error) // nil: do
	inline bool                             // never as an object: the event is read by others
	sync   bool                             // the record is durable before anything follows
}

func step[T any](ctx context.Context, r *Run, w work[T]) (T, error) {
	var none T
	id := r.identify(w.name)
	input, err := digest(w.input)
	if err != nil {
		return none, fmt.Errorf("step %s: %w", id, err)
	}
	begin, record := r.Journal.Lookup(id)
	if err := sameInput(id, input, begin, record); err != nil {
		return none, err
	}
	if record != nil {
		return result[T](r, *record)
	}
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if r.played != nil {
		return playStep(ctx, r, id, input, w)
	}
	do := w.do
	if begin != nil && w.again != nil {
		do = w.again
	} else if err := r.begin(id, input, w.event, w.open); err != nil {
		return none, err
	}
	r.stale = r.stale || w.again != nil
	v, err := do(ctx)
	if err != nil {
		return none, err
	}
	return recordStep(r, id, input, w, v)
}

// begin writes a step's first event.
func (r *Run) begin(id journal.Identity, input string, event journal.Type, open func() (any, error)) error {
	var payload any
	if open != nil {
		var err error
		if payload, err = open(); err != nil {
			return err
		}
	}
	_, err := r.append(journal.Entry{Type: event, Phase: journal.Begin, Step: &id, Input: input, Payload: payload, Sync: open != nil})
	return err
}

// recordStep writes a step's second event and returns what a resumed run
// would read from it.
func recordStep[T any](r *Run, id journal.Identity, input string, w work[T], v T) (T, error) {
	payload, err := r.pack(v, w.inline)
	if err != nil {
		return v, fmt.Errorf("record %s: %w", id, err)
	}
	e, err := r.append(journal.Entry{Type: cmp.Or(w.record, w.event), Phase: journal.Record, Step: &id, Input: input, Payload: payload, Sync: w.sync})
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
func sameInput(id journal.Identity, input string, events ...*journal.Event) error {
	for _, e := range events {
		if e != nil && e.Input != input {
			return &Stop{Kind: KindFailed, Next: Next{Verb: NewRun},
				Why: fmt.Sprintf("step %s was recorded for input %.12s and is now asked with %.12s: hone or its loop has changed since the run began", id, e.Input, input)}
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

// identify gives the next step of a name its identity.
func (r *Run) identify(name string) journal.Identity {
	id := r.named(name)
	if r.count == nil {
		r.count = map[journal.Identity]int{}
	}
	r.count[id]++
	id.Index = r.count[id] - 1
	return id
}

func digest(v any) (string, error) {
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
