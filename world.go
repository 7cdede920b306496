package hone

import (
	"context"
	"fmt"
	"time"

	"hone/check"
	"hone/history"
	"hone/journal"
)

// world is where a run takes its steps. In the [live] world models are asked,
// commands run and events are appended. In the [played] world each step returns
// its record, and nothing else happens. The engine is the same in both.
type world interface {
	// begin finds the record of a step, or records that the step starts.
	begin(ctx context.Context, p *stepPlace) error
	// append adds an event to the journal.
	append(n journal.Entry) (journal.Event, error)
	// inspect calls judge on the tree, unless a step of that name has judged
	// the same tree in the same round. A decision that the check could not run
	// does not count.
	inspect(ctx context.Context, name string, judge func(context.Context) (history.Checked, error)) (history.Checked, error)
	// manifest takes a snapshot: it returns the object with the manifest of
	// the tree, and the manifest's digest.
	manifest(ctx context.Context) (object, tree string, err error)
	// put stores an object.
	put(b []byte) (name string, err error)
}

// world returns the run's world: the live one, unless the run is replayed.
func (r *Run) world() world {
	if r.replaying == nil {
		return live{r}
	}
	return r.replaying
}

// live is the real world.
type live struct{ r *Run }

func (l live) begin(ctx context.Context, p *stepPlace) error {
	begun, record := l.r.Journal.Lookup(p.id)
	if err := p.sameInput(begun, record); err != nil {
		return err
	}
	if p.record = record; record != nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := l.checkSpace(); err != nil {
		return err
	}
	p.cutOff = begun != nil && p.command
	if !p.cutOff {
		if err := l.recordBegin(ctx, p); err != nil {
			return err
		}
	}
	l.r.stale = l.r.stale || p.command
	return nil
}

// checkSpace stops the run while a few more events can still be recorded. Nothing is lost,
// because no step is under way.
func (l live) checkSpace() error {
	dir := l.r.Journal.Home().Dir()
	free, ok := journal.FreeSpace(dir)
	if !ok || free >= l.r.MinFree {
		return nil
	}
	return &Stop{Kind: KindFailed, Why: fmt.Sprintf("only %s are free on the disk of %s, less than [limits] min-free (%s)", sizeText(free), dir, sizeText(l.r.MinFree)),
		Next: resumeAfter("free some disk space, for example with hone gc")}
}

// recordBegin records that a step starts.
func (l live) recordBegin(ctx context.Context, p *stepPlace) (err error) {
	id := p.id
	n := journal.Entry{Type: p.event, Phase: journal.Begin, Step: &id, Input: p.digest, Sync: p.beginDurable()}
	if p.open != nil {
		if n.Payload, err = p.open(ctx); err != nil {
			return err
		}
	}
	_, err = l.r.append(n)
	return err
}

// append fails with a [*Stop], because without its journal a run cannot
// continue.
func (l live) append(n journal.Entry) (journal.Event, error) {
	e, err := l.r.Journal.Append(n)
	if err != nil {
		return e, &Stop{Kind: KindFailed, Why: "cannot write the journal", Next: resumeAfter("free some disk space"), Err: err}
	}
	return e, nil
}

func (l live) inspect(ctx context.Context, name string, judge func(context.Context) (history.Checked, error)) (history.Checked, error) {
	before, now, err := l.manifest(ctx)
	if err != nil {
		return history.Checked{}, err
	}
	for {
		_, record := l.r.Journal.Lookup(l.r.next(name))
		if record == nil {
			break
		}
		c, err := result[history.Checked](l.r, *record)
		retry := record.Seq < l.r.Past().Decided() && onlyBroken(c.Findings)
		if err != nil || c.Tree == now && !retry {
			return c, err
		}
		l.r.identify(name)
	}
	begun := func(context.Context) (any, error) { return history.CheckBegun{Manifest: before}, nil }
	return step(ctx, l.r, effect(history.TypeCheck, name, nil, begun, func(ctx context.Context) (history.Checked, error) {
		began := time.Now()
		c, err := judge(ctx)
		if err != nil {
			return c, err
		}
		c.Findings, c.Flaky, c.Took = joinFindings(check.Bound(c.Findings)), check.Bound(c.Flaky), time.Since(began)
		l.r.fresh = false
		c.Manifest, c.Tree, err = l.manifest(ctx)
		return c, err
	}))
}

// manifest reads the tree, unless it was read just now.
func (l live) manifest(ctx context.Context) (object, tree string, err error) {
	if !l.r.fresh {
		if err := l.r.snapshot(ctx); err != nil {
			return "", "", err
		}
		l.r.fresh = true
	}
	object, err = l.r.storeManifest()
	return object, l.r.last.Digest(), err
}

func (l live) put(b []byte) (name string, err error) { return l.r.Journal.Home().Put(b) }
