package hone

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"hone/history"
	"hone/journal"
	"hone/workspace"
	"hone/workspace/restore"
	"hone/workspace/treepath"
)

// A replay runs the loop again over a recorded journal ([journal.Home.Playback]).
// No model is asked and no command runs: each step returns its record, which is
// valid only for the same input, so every request must match byte for byte. An
// event that the engine itself writes must match the next line of the journal. The
// edits are made again in a scratch tree, and what commands changed is restored
// there. Wherever the journal names a tree, the scratch tree must match it.

// Replayed is the result of a replay.
type Replayed struct {
	Rounds   int // number of decisions that match
	Requests int // number of requests that match byte for byte
	Edits    int // number of edits that were made again
	Trees    int // number of trees that match
	// Unexplained are files that changed while no command ran, for example
	// because the user edited them during the run; sorted.
	Unexplained []string
	// Lost are files whose contents were not stored; sorted.
	Lost []string
	// Open means that the journal ends within a round: the run was stopped or
	// killed there.
	Open bool
}

// errJournalEnds means that the journal ends within a round.
var errJournalEnds = errors.New("the journal ends here")

// played is the world of a run that is replayed.
type played struct {
	r *Run
	Replayed
	tree     workspace.Series          // at the newest recorded manifest
	commands bool                      // a command may have changed the tree since it was compared
	written  map[string]bool           // files that edits wrote and no later manifest has; false if the user changed one since
	ignored  map[string]bool           // files of the scratch tree that git ignores, and a manifest does not have
	unpaid   map[journal.Identity]bool // steps that the budget did not pay for
}

// Replay replays the run. Its journal must come from [journal.Home.Playback],
// and its tree must be empty. The error says what differs; a difference in the
// tree is in the result instead. Replay must be the only call on the Run.
func (r *Run) Replay(ctx context.Context, round Round) (Replayed, error) {
	p := &played{r: r, tree: workspace.Series{Get: r.Journal.Home().Get}, written: map[string]bool{}, ignored: map[string]bool{}, unpaid: map[journal.Identity]bool{}}
	r.replaying = p
	err := p.drive(ctx, round)
	if errors.Is(err, errJournalEnds) {
		err = nil
		for len(r.Journal.Remaining()) > 0 && err == nil {
			err = p.pass(ctx)
		}
		p.Open = true
	}
	if err == nil {
		err = p.matchAll(ctx)
	}
	slices.Sort(p.Lost)
	p.Lost = slices.Compact(p.Lost)
	return p.Replayed, err
}

func (p *played) drive(ctx context.Context, round Round) error {
	if len(p.r.Journal.Remaining()) == 0 {
		return errors.New("the journal of the run is empty")
	}
	if err := p.passStart(); err != nil {
		return err
	}
	for {
		if err := p.catchUp(ctx); err != nil || len(p.r.Journal.Remaining()) == 0 {
			return err
		}
		s := p.r.Past().State()
		p.r.startRound(s.Round)
		var err error
		if p.r.decidesAgain(s) {
			_, err = p.r.decide(ctx, s, s.RoundFindings(), nil)
		} else {
			_, err = p.r.play(ctx, s, round)
		}
		if err != nil {
			err = p.passStop(ctx, err)
		}
		if err != nil {
			return err
		}
	}
}

func (p *played) passStart() error {
	e := history.Decode(p.r.Journal.Skip())
	start, ok := e.Payload.(Start)
	if !ok {
		return fmt.Errorf("the journal begins with an event of the type %q, not with a start", e.Type)
	}
	p.r.Limits = start.Limits
	p.r.Limits.Time = 0
	return nil
}

// The recorded run must have ended with the error too.
func (p *played) passStop(ctx context.Context, err error) error {
	var diverged *journal.DivergedError
	if ctx.Err() != nil || errors.Is(err, errJournalEnds) || errors.As(err, &diverged) {
		return err
	}
	if err := p.catchUp(ctx, history.TypeEnd); err != nil {
		return err
	}
	if _, ending := p.r.recordEnd(p.r.stoppedState(ctx, err)); ending != nil {
		return err // the recorded run continued
	}
	return nil
}

// catchUp passes events that the loop does not make, up to the next one that it
// makes or that has one of the given types.
func (p *played) catchUp(ctx context.Context, until ...journal.Type) error {
	for {
		ahead := p.r.Journal.Remaining()
		if len(ahead) == 0 || !p.isSkipped(ahead[0]) || slices.Contains(until, ahead[0].Type) {
			return nil
		}
		if err := p.pass(ctx); err != nil {
			return err
		}
	}
}

// Such an event comes from the loop's surroundings, from the end of a process, or from a question that was answered later.
func isOutsideLoop(e journal.Event) bool {
	switch e.Type {
	case history.TypeWalls, history.TypeNotice, history.TypeServer, history.TypeAttempt, history.TypeReserve, history.TypeCommit, history.TypeUsage,
		history.TypeRetry, history.TypeFailover, history.TypeEscalate, history.TypeResume, history.TypeOutside, history.TypeUndo, history.TypeEnd:
		return true
	}
	return e.Step != nil && e.Step.Session < 0
}

func (p *played) pass(ctx context.Context) error {
	e := history.Decode(p.r.Journal.Skip())
	switch payload := e.Payload.(type) {
	case history.Unreadable:
		return payload.Err
	case history.State:
		return nil
	case history.Resumed:
		p.r.Limits = payload.Limits
		p.r.Limits.Time = 0
	case history.Applied:
		return p.reapply(ctx, payload.Verdicts)
	case history.Outside:
		for _, path := range payload.Paths {
			if p.written[path] {
				p.written[path] = false // no longer as the edit left it; the user may have removed it
			}
		}
		p.commands = true
	case history.Undone, history.Checked, history.Served, history.Snapshot:
		p.commands = true
	}
	if e.Manifest() == "" {
		return nil
	}
	return p.matchTree(ctx, e.Manifest())
}

func (p *played) reapply(ctx context.Context, vs []workspace.Verdict) error {
	ch, err := history.RecordedChange(p.r.Journal.Home(), vs)
	if err != nil {
		return err
	}
	for _, v := range vs {
		p.written[v.Path] = true
		if v.Before.Exists() && !p.r.Tree.Holds(v.Path, v.Before) {
			if err := p.writeIgnored(ctx, v); err != nil {
				return err
			}
		}
	}
	p.Edits += len(vs)
	differ, err := history.Apply(ctx, p.r.Tree, p.r.Journal.Home(), ch, vs)
	if err == nil && len(differ) > 0 {
		err = fmt.Errorf("other contents than recorded: %s", listed(differ))
	}
	if err != nil {
		return fmt.Errorf("make the edits of event %d again: %w", p.r.Journal.Events()[len(p.r.Journal.Events())-1].Seq, err)
	}
	return nil
}

// No manifest has the file, because git ignores it.
func (p *played) writeIgnored(ctx context.Context, v workspace.Verdict) error {
	if _, listed := p.r.last.Entry(v.Path); listed {
		return nil // Apply reports that it differs
	}
	_, err := restore.Paths(ctx, p.r.Tree, []restore.Target{{Path: v.Path, Want: history.EntryOf(v.Path, v.Before)}}, p.r.openContents)
	return err
}

// Only replay writes in the scratch tree, so matchTree compares only the paths that changed since the previous manifest or that
// edits wrote. [played.matchAll] compares the complete tree at the end.
func (p *played) matchTree(ctx context.Context, object string) error {
	first := p.tree.Name() == ""
	deltas, err := p.tree.MoveTo(object)
	if err != nil {
		return err
	}
	all := p.tree.Manifest()
	paths, want := pathsOf(all), all
	if !first {
		paths = p.touchedPaths(deltas)
		want = subset(all, paths)
	}
	now, err := p.r.Tree.ManifestOf(ctx, paths, nil)
	if err != nil {
		return err
	}
	list, same := p.differences(now, want, deltas)
	if _, err := restore.Paths(ctx, p.r.Tree, list, p.r.openContents); err != nil {
		return err
	}
	if same {
		p.Trees++
	}
	maps.DeleteFunc(p.written, func(path string, _ bool) bool { _, listed := all.Entry(path); return listed })
	p.commands, p.r.last, p.r.stale = p.r.Past().Serving(), all, false
	return nil
}

func (p *played) touchedPaths(deltas []workspace.Delta) []string {
	paths := slices.Collect(maps.Keys(p.written))
	for _, d := range deltas {
		paths = append(paths, d.Path)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

func pathsOf(m workspace.Manifest) []string {
	paths := make([]string, len(m))
	for i, e := range m {
		paths[i] = e.Path
	}
	return paths
}

func subset(m workspace.Manifest, paths []string) workspace.Manifest {
	var some workspace.Manifest
	for _, path := range paths {
		if e, listed := m.Entry(path); listed {
			some = append(some, e)
		}
	}
	return some
}

// deltas are the differences between want and the previous manifest. same reports whether only commands and the loop's own
// files explain the differences.
func (p *played) differences(now, want workspace.Manifest, deltas []workspace.Delta) (list []restore.Target, same bool) {
	same = true
	rulesChanged := slices.ContainsFunc(deltas, func(d workspace.Delta) bool { return path.Base(d.Path) == ".gitignore" })
	for _, d := range now.Diff(want) {
		switch {
		case d.Before.SameState(d.After):
			continue
		case d.Op == workspace.Removed && (p.written[d.Path] || rulesChanged && !p.commands):
			p.ignored[d.Path] = true // by git, and by the manifest
			continue
		case d.Op != workspace.Removed && p.r.isOwn(d.Path) && !p.r.Journal.Home().Has(d.After.Digest):
			p.ignored[d.Path] = true // the loop's own files are not stored
			continue
		case d.After.Note != "", d.After.Kind == workspace.Other, d.After.Kind == workspace.Regular && !p.r.Journal.Home().Has(d.After.Digest):
			p.Lost = append(p.Lost, d.Path)
			continue
		case rulesChanged && d.Op == workspace.Added:
		case !p.commands && p.r.last != nil && !p.r.isOwn(d.Path):
			same = false
			p.Unexplained = append(p.Unexplained, d.Path)
		}
		list = append(list, restore.Target{Path: d.Path, Want: d.After})
	}
	return list, same
}

// It leaves out what edits wrote later, what git ignores, and what was not stored. A difference means that an edit changed
// other files than its record says.
func (p *played) matchAll(ctx context.Context) error {
	if p.tree.Name() == "" {
		return nil
	}
	now, err := p.r.Tree.Manifest(ctx, nil)
	if err != nil {
		return err
	}
	for _, d := range now.Diff(p.tree.Manifest()) {
		explained := p.written[d.Path] || p.ignored[d.Path] || slices.Contains(p.Lost, d.Path)
		if !explained && d.Before.Note == "" && !d.Before.SameState(d.After) {
			return fmt.Errorf("the edits that were made again also changed %s", treepath.Display(d.Path))
		}
	}
	return nil
}

func (p *played) begin(ctx context.Context, at *stepPlace) error {
	begun, record := p.lookUp(at.id)
	if err := at.sameInput(begun, record); err != nil {
		return errors.New(err.Error()) // not a Stop: the recorded run did not end with it
	}
	at.record = record
	if record != nil && record.Seq <= p.lastPassed() {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if record == nil {
		if err := p.unpaidStep(ctx, at.id); err != nil {
			return err
		}
		return p.missingRecord(at.id, begun)
	}
	inside := begun != nil && begun.Seq <= p.lastPassed()
	for p.lastPassed() < record.Seq {
		next := p.r.Journal.Remaining()[0]
		inside = inside || next.Step != nil && *next.Step == at.id
		if !inside && !p.isSkipped(next) {
			return &journal.DivergedError{Recorded: next.Line(), Replayed: []byte("the step " + at.id.String())}
		}
		if next.Seq == record.Seq && at.event == history.TypeAsk {
			p.Requests++
		}
		if next.Phase == journal.Begin && (at.command || at.event == history.TypeCheck) {
			p.commands = true
		}
		if err := p.pass(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p *played) lookUp(id journal.Identity) (begun, record *journal.Event) {
	begun, record = p.r.Journal.Lookup(id)
	for _, e := range p.r.Journal.Remaining() {
		switch {
		case record != nil:
			return begun, record
		case e.Step == nil || *e.Step != id:
		case e.Phase == journal.Record:
			record = &e
		case begun == nil:
			begun = &e
		}
	}
	return begun, record
}

func (p *played) lastPassed() int64 { return int64(len(p.r.Journal.Events())) }

// Such a step has no record because the budget did not pay for it, and its round ended without it. Its begins are passed
// wherever they are, because each process started it again.
func (p *played) unpaidStep(ctx context.Context, id journal.Identity) error {
	ended, session := false, false
	for _, e := range p.r.Journal.Remaining() {
		if e.Type == history.TypeRound {
			break
		}
		if e.Step != nil {
			ended = ended || e.Step.Name == history.StepUnpaid && e.Step.Round == id.Round && e.Phase == journal.Record
			session = session || *e.Step == id && history.Decode(e).RunsCommand()
		}
	}
	if !ended {
		return nil
	}
	p.unpaid[id] = true
	if err := p.catchUp(ctx); err != nil {
		return err
	}
	p.commands = p.commands || session
	return &Stop{Kind: KindBudget}
}

func (p *played) isSkipped(e journal.Event) bool {
	return isOutsideLoop(e) || e.Step != nil && p.unpaid[*e.Step]
}

func (p *played) missingRecord(id journal.Identity, begin *journal.Event) error {
	for _, e := range p.r.Journal.Remaining() {
		if p.isSkipped(e) || begin != nil && e.Step != nil && within(*e.Step, id) {
			continue
		}
		return &journal.DivergedError{Recorded: e.Line(), Replayed: []byte("the step " + id.String())}
	}
	return errJournalEnds
}

func within(step, of journal.Identity) bool {
	return step.Round == of.Round && step.Session == of.Session && step.Turn == of.Turn && step.Call == of.Call
}

// Each process judges the tree again if it has changed, so the last record before the next decision counts. The tree is then
// the one that this record names, which no later event need name.
func (p *played) inspect(ctx context.Context, name string, _ func(context.Context) (history.Checked, error)) (c history.Checked, err error) {
	for {
		id := p.r.next(name)
		if id.Index > 0 && !p.recorded(id) {
			if p.r.last.Digest() != c.Tree {
				err = p.matchTree(ctx, c.Manifest)
			}
			return c, err
		}
		if c, err = step(ctx, p.r, effect[history.Checked](history.TypeCheck, name, nil, nil, nil)); err != nil {
			return c, err
		}
	}
}

func (p *played) recorded(id journal.Identity) bool {
	if _, record := p.r.Journal.Lookup(id); record != nil {
		return true
	}
	for _, e := range p.r.Journal.Remaining() {
		switch {
		case e.Type == history.TypeRound:
			return false
		case e.Step != nil && *e.Step == id && e.Phase == journal.Record:
			return true
		}
	}
	return false
}

func (p *played) append(n journal.Entry) (journal.Event, error) {
	for {
		e, err := p.r.Journal.Append(n)
		var diverged *journal.DivergedError
		ahead := p.r.Journal.Remaining()
		if errors.As(err, &diverged) && len(ahead) == 0 {
			return e, errJournalEnds
		}
		if !errors.As(err, &diverged) || !p.isSkipped(ahead[0]) {
			if err == nil && n.Type == history.TypeRound {
				p.Rounds++
			}
			return e, err
		}
		if err := p.pass(context.Background()); err != nil {
			return e, err
		}
	}
}

// The scratch tree must match it.
func (p *played) manifest(ctx context.Context) (object, tree string, err error) {
	if err := p.catchUp(ctx); err != nil {
		return "", "", err
	}
	for _, e := range p.r.Journal.Remaining() {
		object := history.Decode(e).Manifest()
		if p.isSkipped(e) || object == "" {
			continue
		}
		err := p.matchTree(ctx, object)
		return object, p.r.last.Digest(), err
	}
	return "", "", errJournalEnds
}

func (p *played) changedIgnored() string {
	for _, e := range p.r.Journal.Remaining() {
		if end, ok := history.Decode(e).Payload.(history.End); ok {
			return end.Ignored
		}
	}
	return ""
}

// The recorded run has stored the object.
func (p *played) put(b []byte) (name string, err error) { return sum(b), nil }
