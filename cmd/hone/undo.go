package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hone"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/cmd/hone/recorded"
	"hone/harness"
	"hone/harness/runs"
	"hone/history"
	"hone/internal/listing"
	"hone/internal/render"
	"hone/workspace"
	"hone/workspace/secret"
)

// undoFlags select the state to restore.
type undoFlags struct {
	dir   string
	round int
	force bool
}

func (a *app) undoCommand() *cobra.Command {
	var f undoFlags
	c := &cobra.Command{
		Use:   "undo [RUN]",
		Short: "restore the files that a run changed",
		Long: `undo restores every file that a run changed to its state before the run, or with --to-round to its state
at the end of a round. It undoes the model's edits and the changes by commands and agents. In a git
repository it restores the files that git tracks or would track, in nested repositories as well; elsewhere,
all files. RUN is an id from hone runs, a unique prefix of one, or "last", the default.

If a file was changed after the run, undo restores nothing. With --force it overwrites such files and keeps
a copy of their contents. undo does not change git's index, HEAD, stash and hooks, or the run's logs. It
restores files that git ignores only if hone wrote them or [undo] include names them. It lists what it does
not restore.

To redo a run that you undid: hone undo RUN --to-round LAST, where LAST is the number of its last round.
After undo --to-round, hone resume RUN continues from that round.`,
		Example: `  hone undo last
  hone undo last --to-round 2`,
		Args: oneRun,
		RunE: func(c *cobra.Command, args []string) error {
			if f.round < 0 {
				return failure.Usage("--to-round must be 0 or greater", helpFor(c))
			}
			return a.undo(c.Context(), f, runArg(args))
		},
	}
	registerDir(c, &f.dir)
	c.Flags().IntVar(&f.round, "to-round", 0, "restore the state at the end of this round; 0 is before the first round")
	c.Flags().BoolVar(&f.force, "force", false, "also overwrite files that were changed after the run; their contents are kept")
	return c
}

// undo restores the files that a run changed.
func (a *app) undo(ctx context.Context, f undoFlags, ref string) error {
	run, err := recorded.ForChange(ctx, f.dir, ref, "undo")
	if err != nil {
		return err
	}
	defer run.Close()
	a.sayNotes(run.Notes)
	run.Journal.Observe(a.observer)
	v, err := a.planUndo(ctx, run, f.round)
	if err != nil {
		return err
	}
	return a.carryOut(ctx, run, v, f)
}

// planUndo returns what an undo of a run would restore. If the run was imported and round is
// not 0, it first restores the files as the run left them.
func (a *app) planUndo(ctx context.Context, run *runs.Recorded, round int) (v *history.Reversal, err error) {
	if rounds := run.Past.State().Round; round > rounds {
		return nil, failure.Usage(fmt.Sprintf("the run has no round %d that ended; it has %s", round, render.Count(rounds, "round")), "hone show "+run.Journal.Run()+failure.Elsewhere(run.Dir))
	}
	if round == 0 {
		err = checkPlaced(ctx, run)
	} else {
		err = a.placeRun(ctx, run)
	}
	if err != nil {
		return nil, err
	}
	return history.Reverse(ctx, run.Journal, run.Tree, round, kinds.Own(run.Start))
}

// carryOut restores the files of a run as planned, and prints what it restored.
func (a *app) carryOut(ctx context.Context, run *runs.Recorded, v *history.Reversal, f undoFlags) error {
	j, at := run.Journal, failure.Elsewhere(run.Dir)
	named := j.Run() + at
	before, redo, undone := run.Past.Events(), redoRound(run.Past), undoneRound(run.Past, f.round)
	if len(v.Conflicts) > 0 && (!f.force || slices.ContainsFunc(v.Conflicts, func(c history.Conflict) bool { return c.Lost })) {
		if err := a.refuseUndo(v, named, f); err != nil {
			return err
		}
	}
	v.Unstored = a.unstored(run)
	kept, err := v.Restore(ctx, f.force)
	if err != nil {
		return conflictFailure(err, named, f.round)
	}
	if slices.ContainsFunc(v.Conflicts, func(c history.Conflict) bool { return c.Lost }) {
		a.exit = failure.ExitStatus(hone.KindBlocked) // some files were restored, but not all
	}
	a.printRestored(v, j.Run(), kept)
	if f.round == 0 {
		if err := a.takeBack(ctx, run); err != nil {
			return err
		}
	}
	if len(v.Restored) == 0 && len(v.Conflicts) == 0 && undone > 0 {
		fmt.Fprintf(a.out, "to undo the undo: hone undo %s --to-round %d\n", named, undone)
	}
	left, err := notUndone(ctx, run, v, v.Restored, before)
	for _, line := range left {
		fmt.Fprintln(a.out, line)
	}
	if err != nil || len(v.Restored) == 0 {
		return err
	}
	next := "next: git" + at + " status"
	if redo >= 0 && redo != f.round && len(kept) == 0 {
		next += fmt.Sprintf("; to undo this undo: hone undo %s --to-round %d", named, redo)
	}
	_, err = fmt.Fprintln(a.out, next)
	return err
}

// unstored returns which files of the user's the record of an undo leaves out, as the run
// does: large ones, and those with a provider's key (ruling G6).
func (a *app) unstored(run *runs.Recorded) func(workspace.Entry) bool {
	guard := &secret.Guard{Known: harness.KnownKeys(a.env)}
	return func(e workspace.Entry) bool {
		if run.MaxFile > 0 && e.Size > run.MaxFile {
			return true
		}
		content, _, err := run.Tree.Read(e.Path)
		return err == nil && guard.HoldsKey(content)
	}
}

// redoRound returns the round whose tree the workspace has before an undo; -1
// if no round ended with that tree, because the run was interrupted in a round.
func redoRound(past *history.Past) int {
	if restored := past.RestoredTo(); restored != nil {
		return *restored
	}
	round := past.State().Round
	if slices.ContainsFunc(past.Events(), func(e history.Event) bool { return e.Round() > round }) {
		return -1
	}
	return round
}

// undoneRound returns the last round of a run that was undone to a round; 0 if it was
// not, or if it was interrupted in a later round.
func undoneRound(past *history.Past, to int) int {
	last, restored := past.State().Round, past.RestoredTo()
	later := func(e history.Event) bool { return e.Round() > last }
	if restored == nil || *restored != to || last == to || slices.ContainsFunc(past.Events(), later) {
		return 0
	}
	return last
}

// conflictFailure adds what to do about a path that even --force does not
// replace: a directory in place of a file, or a file that was just created. run may be
// followed by -C.
func conflictFailure(err error, run string, round int) error {
	var conflict *workspace.ConflictError
	if !errors.As(err, &conflict) {
		return err
	}
	return &failure.Error{Kind: hone.KindBlocked, Why: "nothing was restored: something else is at " + strings.Join(conflict.Paths, ", "),
		Hint: fmt.Sprintf("move it away, then run: hone undo %s%s", run, toRound(round))}
}

// refuseUndo names the files that prevent the undo. With force it names only
// files whose contents are lost, and returns nil. run may be followed by -C.
func (a *app) refuseUndo(v *history.Reversal, run string, f undoFlags) error {
	forced := 0
	for _, c := range v.Conflicts {
		switch {
		case c.Lost:
			a.say("error", fmt.Sprintf("%s cannot be restored: %s", c.Path, c.Why))
		case !f.force:
			forced++
			a.say("error", c.Path+": "+c.Why)
		}
	}
	if f.force {
		return nil
	}
	hint := fmt.Sprintf("hone undo %s%s --force", run, toRound(f.round))
	if forced > 0 {
		hint += " overwrites them and keeps a copy of their contents; or move your version away"
	} else {
		hint += " restores the others"
	}
	return &failure.Error{Kind: hone.KindBlocked, Hint: hint,
		Why: fmt.Sprintf("nothing was restored: %s in the way", render.Count(len(v.Conflicts), "file")+verbFor(len(v.Conflicts)))}
}

func verbFor(n int) string {
	if n == 1 {
		return " is"
	}
	return " are"
}

// toRound returns the flag for a round; empty for the default, 0.
func toRound(round int) string {
	if round == 0 {
		return ""
	}
	return fmt.Sprintf(" --to-round %d", round)
}

// printRestored lists the restored files, and where each overwritten version is
// kept.
func (a *app) printRestored(v *history.Reversal, run string, kept map[string]string) {
	for _, p := range v.Restored {
		fmt.Fprintf(a.out, "  %s\n", render.Line(p))
		if file, ok := kept[p]; ok {
			fmt.Fprintf(a.out, "    the overwritten version is in %s\n", render.Line(file))
		}
	}
	when := "before the run"
	if v.Round > 0 {
		when = fmt.Sprintf("at the end of round %d", v.Round)
	}
	switch {
	case len(v.Restored) == 0 && len(v.Conflicts) > 0:
		fmt.Fprintln(a.out, "nothing was restored")
		return
	case len(v.Restored) == 0 && !v.Changed:
		fmt.Fprintf(a.out, "nothing to undo: run %s changed no files\n", run)
		return
	case len(v.Restored) == 0:
		fmt.Fprintf(a.out, "nothing to undo: the files are already as they were %s\n", strings.Replace(when, "the run", "run "+run, 1))
		return
	}
	fmt.Fprintf(a.out, "undone: %s as %s\n", render.Count(len(v.Restored), "file")+verbFor(len(v.Restored)), itWas(len(v.Restored))+" "+when)
}

func itWas(n int) string {
	if n == 1 {
		return "it was"
	}
	return "they were"
}

// topLevel returns the top-level directories of paths, and the paths without
// one, sorted.
func topLevel(paths []string) []string {
	var names []string
	for _, p := range paths {
		if top, _, inside := strings.Cut(p, "/"); inside {
			p = top + "/"
		}
		names = append(names, p)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// notUndone returns a line for each change that an undo leaves alone. restored are the paths
// that it restores, events the events of the run.
func notUndone(ctx context.Context, run *runs.Recorded, v *history.Reversal, restored []string, events []history.Event) (lines []string, err error) {
	left, err := listing.Leftovers(ctx, run.Dir, slices.Concat(restored, v.Doubtful), events[0].Time, events[len(events)-1].Time)
	add := func(why string, names []string) {
		for _, name := range names {
			lines = append(lines, fmt.Sprintf("not undone (%s): %s", why, render.Line(name)))
		}
	}
	logs := v.Own // git may ignore them
	if own := kinds.Own(run.Start); own != nil {
		left.Ignored = slices.DeleteFunc(left.Ignored, func(p string) bool {
			if own(p) {
				logs = append(logs, p)
			}
			return own(p)
		})
	}
	add("changed outside the run", v.Outside)
	add("run log", topLevel(logs))
	add("may be older than the run", v.Doubtful)
	add("ignored by git, changed after the run started", left.Ignored)
	add("commit", left.Commits)
	if left.More {
		lines = append(lines, "not all files that git ignores could be inspected: more of them may have changed")
	}
	return lines, err
}
