package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"hone"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/harness/runs"
	"hone/history"
	"hone/internal/render"
	"hone/workspace"
	"hone/workspace/secret"
)

// undoPlan is what an undo of a run would do.
type undoPlan struct {
	*history.Reversal
	Notes []string // what was done to find it

	run   *runs.Recorded
	named string // the run for a command line
}

// planUndo returns what an undo of a run to the end of a round would restore; round 0 is before
// the first. If the run was imported, round is not 0, and place is true, it first restores the
// files as the run left them.
func planUndo(ctx context.Context, run *runs.Recorded, round int, place bool) (*undoPlan, error) {
	p := &undoPlan{run: run, named: run.Journal.Run() + failure.Elsewhere(run.Dir)}
	rounds := run.Past.State().Round
	var err error
	switch {
	case round > rounds:
		return nil, failure.Usage(fmt.Sprintf("the run has no round %d that ended; it has %s", round, render.Count(rounds, "round")), "hone show "+p.named)
	case round == 0 || !place:
		err = checkPlaced(ctx, run)
	default:
		p.Notes, err = placeRun(ctx, run)
	}
	if err != nil {
		return nil, err
	}
	p.Reversal, err = history.Reverse(ctx, run.Journal, run.Tree, round, kinds.Own(run.Start, run.Past))
	return p, err
}

// undoDone is what an undo did.
type undoDone struct {
	Lines []string // for the user
	Lost  []string // which files cannot be restored, and why
}

func (d *undoDone) say(format string, args ...any) {
	d.Lines = append(d.Lines, fmt.Sprintf(format, args...))
}

// carryOut restores the files. With force it overwrites files that were changed after the run,
// and keeps a copy of them. keys are values of which no file's contents are recorded. With an
// error, done says what was done before it.
func (p *undoPlan) carryOut(ctx context.Context, force bool, keys []string) (done undoDone, err error) {
	before, redo, undone := p.run.Past.Last().Time, redoRound(p.run.Past), undoneRound(p.run.Past, p.Round)
	if len(p.Conflicts) > 0 && !force {
		return done, p.conflictError()
	}
	done.Lost = p.unrestorableLines()
	guard := &secret.Guard{Known: keys}
	p.Unstored = func(e workspace.Entry) bool { // the run leaves out the same: large files, and those with a provider's key (ruling G6)
		if p.run.MaxFile > 0 && e.Size > p.run.MaxFile {
			return true
		}
		content, _, err := p.run.Tree.Read(e.Path)
		return err == nil && guard.HoldsKey(content)
	}
	kept, err := p.Restore(ctx, force)
	if err != nil {
		return done, occupiedError(err, p.named, p.Round)
	}
	for _, path := range p.Restored {
		done.say("  %s", render.Line(path))
		if file, ok := kept[path]; ok {
			done.say("    the overwritten version is in %s", render.Line(file))
		}
	}
	if n := len(p.Restored); n > 0 {
		done.say("undone: %s as %s", render.Count(n, "file")+verbFor(n), itWas(n)+" "+p.when())
	} else {
		done.Lines = append(done.Lines, p.nothing()...)
	}
	if len(p.Restored) == 0 && len(p.Conflicts) == 0 && undone > 0 {
		done.say("to undo the undo: hone undo %s --to-round %d", p.named, undone)
	}
	left, err := p.leftLines(ctx, p.Restored, before)
	done.Lines = append(done.Lines, left...)
	if err != nil || len(p.Restored) == 0 {
		return done, err
	}
	next := "next: git" + failure.Elsewhere(p.run.Dir) + " status"
	if redo >= 0 && redo != p.Round && len(kept) == 0 {
		next += fmt.Sprintf("; to undo this undo: hone undo %s --to-round %d", p.named, redo)
	}
	done.say("%s", next)
	return done, nil
}

// It is -1 if no round ended with the tree before the undo, because the run was interrupted in a round.
func redoRound(past *history.Past) int {
	if restored := past.RestoredTo(); restored != nil {
		return *restored
	}
	round := past.State().Round
	if past.LastRound() > round {
		return -1
	}
	return round
}

// It is 0 if the run was not undone to this round, or if it was interrupted in a later one.
func undoneRound(past *history.Past, to int) int {
	last, restored := past.State().Round, past.RestoredTo()
	if restored == nil || *restored != to || last == to || past.LastRound() > last {
		return 0
	}
	return last
}

// Even force does not replace a directory in place of a file, or a file that was just created. run may be followed by -C.
func occupiedError(err error, run string, round int) error {
	var conflict *workspace.ConflictError
	if !errors.As(err, &conflict) {
		return err
	}
	return &failure.Error{Kind: hone.KindBlocked, Why: "nothing was restored: something else is at " + strings.Join(conflict.Paths, ", "),
		Hint: fmt.Sprintf("move it away, then run: hone undo %s%s", run, toRound(round))}
}

func (p *undoPlan) unrestorableLines() (lines []string) {
	for _, c := range p.Conflicts {
		if c.Lost {
			lines = append(lines, fmt.Sprintf("%s cannot be restored: %s", c.Path, c.Why))
		}
	}
	return lines
}

func (p *undoPlan) conflictError() error {
	f := &failure.Error{Kind: hone.KindBlocked, Each: p.unrestorableLines(), Hint: fmt.Sprintf("hone undo %s%s --force", p.named, toRound(p.Round)),
		Why: fmt.Sprintf("nothing was restored: %s in the way", render.Count(len(p.Conflicts), "file")+verbFor(len(p.Conflicts)))}
	advice := " restores the others"
	for _, c := range p.Conflicts {
		if !c.Lost {
			f.Each, advice = append(f.Each, c.Path+": "+c.Why), " overwrites them and keeps a copy of their contents; or move your version away"
		}
	}
	f.Hint += advice
	return f
}

func verbFor(n int) string {
	if n == 1 {
		return " is"
	}
	return " are"
}

func toRound(round int) string {
	if round == 0 {
		return ""
	}
	return fmt.Sprintf(" --to-round %d", round)
}

func (p *undoPlan) when() string {
	if p.Round > 0 {
		return fmt.Sprintf("at the end of round %d", p.Round)
	}
	return "before the run"
}

func (p *undoPlan) nothing() []string {
	run := p.run.Journal.Run()
	switch {
	case len(p.Conflicts) > 0:
		return []string{"nothing was restored"}
	case p.Changed:
		return []string{"nothing to undo: the files are already as they were " + strings.Replace(p.when(), "the run", "run "+run, 1)}
	}
	lines := []string{fmt.Sprintf("nothing to undo: run %s changed no files", run)}
	if earlier := p.earlier(); earlier != "" {
		lines = append(lines, fmt.Sprintf("to undo the last run that did: hone undo %s%s", earlier, failure.Elsewhere(p.run.Dir)))
	}
	return lines
}

// It is the last run before this one that changed files and was not undone; empty if none did, or if that cannot be known
// because a run cannot be read.
func (p *undoPlan) earlier() string {
	home := p.run.Home
	all, _ := home.Runs()
	for _, id := range slices.Backward(all) {
		if id >= p.run.Journal.Run() {
			continue
		}
		events, err := home.Read(id)
		if err != nil {
			return ""
		}
		start, err := runs.Started(id, events)
		if err != nil {
			return ""
		}
		past := history.Read(events)
		own := kinds.Own(start, past)
		changes, err := past.AllChanges(home.Get)
		if err != nil {
			return ""
		}
		if slices.ContainsFunc(changes, func(d workspace.Delta) bool { return own == nil || !own(d.Path) }) {
			return id
		}
	}
	return ""
}

func itWas(n int) string {
	if n == 1 {
		return "it was"
	}
	return "they were"
}

// undoPreview is what an undo would do.
type undoPreview struct {
	Run       string             `json:"run"`
	Round     int                `json:"round"`
	Plan      string             `json:"plan"` // its digest
	Restored  []string           `json:"restored"`
	Conflicts []history.Conflict `json:"conflicts"` // in the way of all of it, without force
	Left      []string           `json:"left"`      // a line for each change that it leaves alone
}

func (p *undoPlan) preview(ctx context.Context) (undoPreview, error) {
	left, err := p.leftLines(ctx, p.Restorable, p.run.Past.Last().Time)
	return undoPreview{p.run.Journal.Run(), p.Round, p.digest(), notNull(p.Restorable), notNull(p.Conflicts), notNull(left)}, err
}

// JSON does not write it as null.
func notNull[T any](list []T) []T { return append([]T{}, list...) }

// It identifies what the undo would do.
func (p *undoPlan) digest() string {
	b, _ := json.Marshal([]any{p.run.Journal.Run(), p.run.Journal.Head(), p.Round, p.Restorable, p.Conflicts, p.Outside, p.Doubtful, p.Own}) // texts and numbers only
	return fmt.Sprintf("%x", sha256.Sum256(b))
}

// previewLines returns a preview for the terminal. The error is that of [undoPlan.carryOut] if files are
// in the way.
func (p *undoPlan) previewLines(v undoPreview, force bool) (lines []string, err error) {
	forced, files := "", map[string]string{}
	for _, path := range v.Restored {
		files[path] = ""
	}
	if len(p.Conflicts) > 0 {
		if !force {
			return nil, p.conflictError()
		}
		forced = " --force"
	}
	for _, c := range p.Conflicts {
		if !c.Lost {
			files[c.Path] = fmt.Sprintf(" (overwritten: %s; a copy is kept)", c.Why)
		}
	}
	n := len(files)
	if n == 0 {
		return slices.Concat(p.nothing(), p.unrestorableLines(), v.Left), nil
	}
	lines = append(lines, fmt.Sprintf("would restore %s as %s %s:", render.Count(n, "file"), itWas(n), p.when()))
	for _, path := range slices.Sorted(maps.Keys(files)) {
		lines = append(lines, "  "+render.Line(path)+files[path])
	}
	return slices.Concat(lines, p.unrestorableLines(), v.Left,
		[]string{fmt.Sprintf("to undo exactly this: hone undo %s%s%s --plan %s", p.named, toRound(p.Round), forced, v.Plan)}), nil
}
