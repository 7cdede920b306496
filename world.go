package hone

import (
	"context"
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
	// changedIgnored names what changed among the files that git ignores; see [End].
	changedIgnored() string
}

func (r *Run) world() world {
	if r.replaying == nil {
		return live{r}
	}
	return r.replaying
}

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
	return &Stop{Kind: KindFailed, Why: fmt.Sprintf("only %s are free on the disk of %s, less than [limits] min-free (%s)", render.Bytes(free), dir, render.Bytes(l.r.MinFree)),
		Next: resumeAfter("free some disk space, or delete old runs")}
}

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
// continue. Nothing is recorded that may follow from an error that passes (ruling G22). On a full disk only what has begun is recorded; nothing new begins.
func (l live) append(n journal.Entry) (e journal.Event, err error) {
	// What is already paid for, and the end, are recorded all the same.
	if err := l.r.Tree.Fault(); err != nil && n.Type != history.TypeEnd && n.Type != history.TypeReply && n.Type != history.TypeCommit {
		return e, err
	}
	write := func() error {
		e, err = l.r.Journal.Append(n)
		return err
	}
	if n.Phase == journal.Begin || n.Type == history.TypeReserve {
		err = write()
	} else {
		err = l.r.inHeldSpace(write)
	}
	if err != nil {
		return e, &Stop{Kind: KindFailed, Why: "cannot write the journal", Next: resumeAfter(remedy(err)), Err: unrecorded{err}}
	}
	return e, nil
}

// unrecorded is the error of an event that the journal does not accept.
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
		name, err = r.Journal.Home().Put(b)
		return err
	})
	return name, err
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
		retry := record.Seq < l.r.Past().LastDecision() && onlyBroken(c.Findings)
		if err != nil || c.Tree == now && !retry {
			return c, err
		}
		l.r.identify(name)
	}
	begun := func(context.Context) (any, error) { return history.CheckBegun{Manifest: before}, nil }
	return step(ctx, l.r, effect(history.TypeCheck, name, nil, begun, func(ctx context.Context) (history.Checked, error) {
		began := time.Now()
		if l.r.Printed != nil {
			l.r.Printed() // by what is no check
		}
		c, err := judge(ctx)
		if err == nil && l.r.Printed != nil {
			if text := l.r.Printed(); len(text) > 0 {
				c.Output, err = l.r.putHeld(text)
			}
		}
		if err != nil {
			return c, err
		}
		c.Findings, c.Flaky, c.Took = joinFindings(check.Bound(c.Findings)), check.Bound(c.Flaky), time.Since(began)
		l.r.fresh = false
		c.Manifest, c.Tree, err = l.manifest(ctx)
		return c, err
	}))
}

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

func (l live) changedIgnored() string {
	const most = 3
	paths := l.r.changedIgnored()
	if more := len(paths) - most; more > 0 {
		paths = append(paths[:most:most], fmt.Sprintf("%d more", more))
	}
	last := len(paths) - 1
	if last < 1 {
		return strings.Join(paths, "")
	}
	return strings.Join(paths[:last], ", ") + " and " + paths[last]
}

func (r *Run) changedIgnored() []string {
	runs := func(e history.Event) bool {
		_, check := e.Payload.(history.CheckBegun)
		return check || e.RunsCommand()
	}
	if r.Ignored == nil || !slices.ContainsFunc(r.Past().Events(), runs) {
		return nil
	}
	return r.Ignored()
}

func (l live) put(b []byte) (name string, err error) { return l.r.Journal.Home().Put(b) }
