package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hone"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/harness"
	"hone/harness/runs"
	"hone/history"
	"hone/internal/config"
	"hone/internal/listing"
	"hone/internal/render"
	"hone/workspace"
	"hone/workspace/secret"
)

type undoFlags struct {
	dir          string
	round        int
	force        bool
	plan         *string // nil if it is not given
	dryRun, json bool
}

func (a *app) undoCommand() *cobra.Command {
	var f undoFlags
	var plan string
	c := helped("undo", &cobra.Command{
		Args: oneRun,
		RunE: func(c *cobra.Command, args []string) error {
			if f.json && !f.dryRun {
				return failure.Usage("--json needs --dry-run", helpFor(c))
			}
			if c.Flags().Changed("plan") {
				f.plan = &plan
			}
			return a.undo(c.Context(), f, runArg(args))
		},
	})
	registerDir(c, &f.dir)
	c.Flags().IntVar(&f.round, "to-round", 0, "restore the state at the end of this round; 0 is before the first round")
	config.SetRule(c.Flags(), "natural", "to-round")
	c.Flags().BoolVar(&f.force, "force", false, "also overwrite files that were changed after the run; their contents are kept")
	c.Flags().StringVar(&plan, "plan", "", "restore only if the plan still has this `DIGEST`, which --dry-run prints")
	c.Flags().BoolVarP(&f.dryRun, "dry-run", "n", false, "print what would be restored, and restore nothing")
	c.Flags().BoolVar(&f.json, "json", false, "with --dry-run, print one JSON object")
	return c
}

func (a *app) undo(ctx context.Context, f undoFlags, ref string) error {
	run, err := openForChange(ctx, f.dir, ref, "undo")
	if err != nil {
		return err
	}
	defer run.Close()
	for _, n := range run.Notes {
		a.say("note", failure.NoticeText(n))
	}
	run.Journal.Observe(a.observer)
	plan, err := planUndo(ctx, run, f.round)
	if err != nil {
		return err
	}
	if f.plan != nil && *f.plan != plan.digest() {
		return failure.Usage("nothing was undone, because the files or the run have changed since the preview",
			fmt.Sprintf("preview it again: hone undo %s%s --dry-run", plan.named, toRound(plan.Round)))
	}
	if f.dryRun {
		preview, err := plan.preview(ctx)
		if err != nil {
			return err
		}
		if f.json {
			return json.NewEncoder(a.out).Encode(preview)
		}
		plan.print(a.out, preview, map[bool]string{true: " --force"}[f.force])
		return nil
	}
	done, err := plan.carryOut(ctx, f.force, harness.KnownKeys(a.env))
	for _, lost := range done.Lost {
		a.say("error", lost)
		a.exit = failure.ExitStatus(hone.KindBlocked) // if anything, not all files were restored
	}
	for _, line := range done.Lines {
		fmt.Fprintln(a.out, line)
	}
	return err
}

// undoPlan is what an undo of a run would do.
type undoPlan struct {
	*history.Reversal

	run   *runs.Recorded
	named string // the run for a command line
}

// planUndo returns what an undo of a run to the end of a round would restore; round 0 is before
// the first. It refuses a run that was imported and whose files are not restored here yet.
func planUndo(ctx context.Context, run *runs.Recorded, round int) (*undoPlan, error) {
	p := &undoPlan{run: run, named: run.Journal.Run() + failure.Elsewhere(run.Dir)}
	if rounds := run.Past.Facts().State.Round; round > rounds {
		return nil, failure.Usage(fmt.Sprintf("the run has no round %d that ended; it has %s", round, render.Count(rounds, "round")), "hone show "+p.named)
	}
	own := kinds.Own(run.Start, run.Past)
	place, err := run.Placement(ctx, own)
	switch {
	case err != nil || place == nil:
	case len(place.Changes)+len(place.Conflicts) > 0: // the undo would be recorded, and keep resume from restoring them
		err = failure.Usage("nothing was undone: the run was imported, and its files are not restored here yet", "hone resume "+p.named+" restores them, and continues")
	default:
		err = run.Place(ctx, place)
	}
	if err != nil {
		return nil, err
	}
	p.Reversal, err = history.Reverse(ctx, run.Journal, run.Tree, round, own)
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
	before := p.run.Past.Last().Time
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
		done.say("undone: %s%s %s", render.Count(n, "file"), plural(n, " is as it was", " are as they were"), p.when())
	} else {
		done.say("%s", p.nothing())
	}
	left, err := p.leftLines(ctx, p.Restored, before)
	done.Lines = append(done.Lines, left...)
	if err != nil || len(p.Restored) == 0 {
		return done, err
	}
	next := "next: git" + failure.Elsewhere(p.run.Dir) + " status"
	if last := p.run.Past.Facts().State.Round; last > p.Round && last == p.run.Past.Facts().LastRound { // else no round ended with these files
		next += fmt.Sprintf("; to redo it: hone undo %s --to-round %d", p.named, last)
	}
	done.say("%s", next)
	return done, nil
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
		Why: fmt.Sprintf("nothing was restored: %s in the way", render.Count(len(p.Conflicts), "file")+plural(len(p.Conflicts), " is", " are"))}
	advice := " restores the others"
	for _, c := range p.Conflicts {
		if !c.Lost {
			f.Each, advice = append(f.Each, c.Path+": "+c.Why), " overwrites them and keeps a copy of their contents; or move your version away"
		}
	}
	f.Hint += advice
	return f
}

func plural(n int, one, several string) string {
	if n == 1 {
		return one
	}
	return several
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

func (p *undoPlan) nothing() string {
	run := p.run.Journal.Run()
	switch {
	case len(p.Conflicts) > 0:
		return "nothing was restored"
	case p.Changed:
		return "nothing to undo: the files are already as they were " + strings.Replace(p.when(), "the run", "run "+run, 1)
	}
	return fmt.Sprintf("nothing to undo: run %s changed no files", run)
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

// print prints the preview for people. forced is empty or the flag --force.
func (p *undoPlan) print(out io.Writer, v undoPreview, forced string) {
	for _, path := range v.Restored {
		fmt.Fprintln(out, "would restore "+render.Line(path))
	}
	for _, c := range v.Conflicts {
		fmt.Fprintf(out, "in the way: %s: %s\n", render.Line(c.Path), c.Why)
	}
	for _, line := range v.Left {
		fmt.Fprintln(out, line)
	}
	switch {
	case len(v.Conflicts) > 0 && forced == "":
		fmt.Fprintf(out, "undo would restore nothing; hone undo %s%s --force overwrites these files, and keeps a copy\n", p.named, toRound(p.Round))
	case len(v.Restored)+len(v.Conflicts) > 0:
		fmt.Fprintf(out, "to undo exactly this: hone undo %s%s%s --plan %s\n", p.named, toRound(p.Round), forced, v.Plan)
	default:
		fmt.Fprintln(out, p.nothing())
	}
}

// JSON does not write it as null.
func notNull[T any](list []T) []T { return append([]T{}, list...) }

// It identifies what the undo would do.
func (p *undoPlan) digest() string {
	b, _ := json.Marshal([]any{p.run.Journal.Run(), p.run.Journal.Head(), p.Round, p.Restorable, p.Conflicts, p.Outside, p.Doubtful, p.Own}) // texts and numbers only
	return fmt.Sprintf("%x", sha256.Sum256(b))
}

// restored are the paths that the undo restores; end is the time of the run's last event.
func (p *undoPlan) leftLines(ctx context.Context, restored []string, end time.Time) (lines []string, err error) {
	left, err := listing.Leftovers(ctx, p.run.Dir, slices.Concat(restored, p.Doubtful), p.run.Past.First().Time, end, listing.Refs(p.run.Start.Git))
	add := func(why string, names []string) {
		for _, name := range names {
			lines = append(lines, fmt.Sprintf("not undone (%s): %s", why, render.Line(name)))
		}
	}
	logs := slices.Clone(p.Own) // git may ignore them
	if own := kinds.Own(p.run.Start, p.run.Past); own != nil {
		left.Ignored = slices.DeleteFunc(left.Ignored, func(path string) bool {
			if own(path) {
				logs = append(logs, path)
			}
			return own(path)
		})
	}
	add("changed outside the run", p.Outside)
	for i, name := range logs { // the directory at the top stands for all that is in it
		if top, _, inside := strings.Cut(name, "/"); inside {
			logs[i] = top + "/"
		}
	}
	slices.Sort(logs)
	add("run log", slices.Compact(logs))
	add("may be older than the run", p.Doubtful)
	add("ignored by git, changed after the run started", left.Ignored)
	add("commit", left.Commits)
	lines = append(lines, p.repositoryLines()...)
	if left.More {
		lines = append(lines, "not all files that git ignores could be inspected: more of them may have changed")
	}
	return lines, err
}

// A repository may have the user's commits by now.
func (p *undoPlan) repositoryLines() (lines []string) {
	round := 0
	for _, e := range p.run.Past.Events() {
		switch event := e.Payload.(type) {
		case history.State:
			round = event.Round
		case history.Notice:
			path := filepath.Join(p.run.Dir, filepath.FromSlash(cmp.Or(event.Aside, event.Repository)))
			if _, err := os.Lstat(path); event.Repository != "" && round >= p.Round && err == nil {
				lines = append(lines, fmt.Sprintf("not undone (git repository): %s; to remove it: rm -r %s", render.Line(event.Repository), failure.Quoted(path)))
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// placeRun brings the tree into the state in which a run left its own, if it was imported
// and nothing has done so yet. It refuses to overwrite files of the user's. notes say what it
// did.
func placeRun(ctx context.Context, run *runs.Recorded) (notes []string, err error) {
	p, err := run.Placement(ctx, kinds.Own(run.Start, run.Past))
	if p == nil || err != nil {
		return nil, err
	}
	id, at := run.Journal.Run(), failure.Elsewhere(run.Dir)
	if len(p.Conflicts) > 0 {
		hint := "move your versions away"
		if base := run.Home.Imported(id).Base; base != "" {
			hint += fmt.Sprintf(", or check out %.12s, on which the run was exported", base)
		}
		f := &failure.Error{Kind: hone.KindBlocked, Hint: hint + "; then: hone resume " + id + at,
			Why: fmt.Sprintf("nothing was changed: the run was imported, and to restore its files would overwrite %s", render.Count(len(p.Conflicts), "file"))}
		for _, path := range p.Conflicts {
			f.Each = append(f.Each, render.Line(path)+": the run does not know this version")
		}
		return nil, f
	}
	if err := run.Place(ctx, p); err != nil {
		return nil, occupiedError(err, id+at, 0)
	}
	if len(p.Changes) > 0 {
		notes = append(notes, fmt.Sprintf("the run was imported: restored %s to its state: %s", render.Count(len(p.Changes), "file"), render.Names(p.Changes)))
	}
	if len(p.Missing) > 0 {
		notes = append(notes, "not restored, because the run has no contents of them: "+render.Names(p.Missing))
	}
	return notes, nil
}
