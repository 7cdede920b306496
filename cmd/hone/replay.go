package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"hone"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/cmd/hone/recorded"
	"hone/cmd/hone/screen"
	"hone/harness/runs"
	"hone/history"
	"hone/internal/render"
	"hone/journal"
	"hone/journal/objects"
	"hone/loop"
	"hone/story"
	"hone/workspace"
)

type replayFlags struct {
	dir     string
	into    string
	verbose bool
}

func (a *app) replayCommand() *cobra.Command {
	var f replayFlags
	c := &cobra.Command{
		Use:   "replay [RUN]",
		Short: "replay a run offline, in a scratch directory, and compare",
		Long: `replay repeats a run from its record, in a scratch copy of the project. It uses the recorded replies, makes
the edits again, and restores the recorded changes by commands. It calls no model, runs no command, and
writes neither to the project nor to the record.

replay fails unless every prompt, decision and snapshot is identical. It also detects lines of the record
that were edited, removed or swapped. RUN is an id from hone runs, a unique prefix of one, or "last", the
default.`,
		Example: `  hone replay last
  hone replay last --into /tmp/again`,
		Args: oneRun,
		RunE: func(c *cobra.Command, args []string) error {
			return a.replay(c.Context(), f, runArg(args))
		},
	}
	registerDir(c, &f.dir)
	c.Flags().StringVar(&f.into, "into", "", "keep the scratch copy in `DIR`, which must be new or empty")
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "show the run while it is replayed")
	return c
}

func (a *app) replay(ctx context.Context, f replayFlags, ref string) (err error) {
	home, run, err := recorded.Find(f.dir, ref)
	if err != nil {
		return err
	}
	defer home.Close()
	j, start, err := playback(home, run)
	if err != nil {
		return err
	}
	scratch, remove, err := scratchFolder(f.into)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	tree, err := workspace.Open(scratch, workspace.Options{Scratch: true})
	if err != nil {
		return err
	}
	defer tree.Close()
	k, err := kinds.Of(start)
	if err != nil {
		return err
	}
	done, err := a.replayIn(ctx, &runs.Workspace{Dir: home.Workspace(), Home: home, Tree: tree}, j, start, k, f.verbose)
	if err != nil {
		return replayMismatch(err, j)
	}
	a.tellReplayed(done, j, failure.Elsewhere(home.Workspace()), f.into)
	return nil
}

// Only a verbose replay is shown.
func (a *app) replayIn(ctx context.Context, w *runs.Workspace, j *journal.Journal, start hone.Start, k loop.Kind, verbose bool) (done hone.Replayed, err error) {
	h, err := a.host().Replay(ctx, w, j, start, k)
	if err != nil {
		return done, err
	}
	defer h.Close()
	built, err := h.Build()
	if err != nil {
		return done, err
	}
	r := built.Run
	s := screen.New(a.err, screen.Options{Options: story.Options{Whole: true, Get: w.Home.Get, Own: r.Own, Rounds: r.Limits.Rounds, Turns: built.Turns}, Colour: a.errColour, At: failure.Elsewhere(w.Home.Workspace())})
	defer s.Close()
	if verbose {
		r.Journal.Observe(history.Observer(s.Show))
	}
	return r.Replay(ctx, built.Round)
}

func playback(home *journal.Home, run string) (*journal.Journal, hone.Start, error) {
	j, err := home.OpenReplay(run)
	if err != nil {
		return nil, hone.Start{}, failure.Of(err, cmp.Or(runs.OtherVersion(err), "do not trust this journal from that line on: hone did not write it"))
	}
	start, err := runs.Started(j.Remaining())
	if err != nil {
		return nil, start, &hone.UsageError{Why: fmt.Sprintf("run %s: %v", run, err), Next: hone.Next{Verb: hone.Runs}}
	}
	return j, start, runs.CheckWhole(run, start)
}

// It is into, or if that is empty a temporary one. remove removes only the temporary one.
func scratchFolder(into string) (dir string, remove func() error, err error) {
	if into == "" {
		dir, err = os.MkdirTemp("", "hone-replay-")
		return dir, func() error { return os.RemoveAll(dir) }, err
	}
	err = os.Mkdir(into, 0o755)
	if errors.Is(err, fs.ErrExist) {
		var there []os.DirEntry
		if there, err = os.ReadDir(into); len(there) > 0 {
			return "", nil, failure.Usage(into+" is not empty", "name a new or empty directory with --into")
		}
	}
	if err != nil {
		return "", nil, failure.Usage("--into: "+err.Error(), "name a new or empty directory")
	}
	dir, err = filepath.Abs(into)
	return dir, func() error { return nil }, err
}

func replayMismatch(err error, j *journal.Journal) error {
	var missing *objects.MissingError
	run := j.Run() + failure.Elsewhere(j.Home().Workspace())
	if errors.As(err, &missing) {
		return failure.Of(fmt.Errorf("cannot read what the run recorded: %w", err), "restore .hone from a backup; hone show "+run+" shows what is left")
	}
	if _, ok := failure.Explain(err, ""); ok || errors.Is(err, context.Canceled) {
		return err
	}
	at := "before its first event"
	if events := j.Events(); len(events) > 0 {
		last := events[len(events)-1]
		at = fmt.Sprintf("after event %d (%s)", last.Seq, last.Type)
	}
	return &failure.Error{Kind: failure.Differs, Why: fmt.Sprintf("the replay does not match the journal, %s: %v", at, err),
		Hint: "another version of hone or of its loop recorded the run, or the journal was changed; hone show " + run + " --json shows it"}
}

// at is empty, or the flag -C with the directory.
func (a *app) tellReplayed(r hone.Replayed, j *journal.Journal, at, into string) {
	for _, p := range r.Unexplained {
		fmt.Fprintf(a.out, "changed outside the run: %s\n", render.Line(p))
	}
	for _, p := range r.Lost {
		fmt.Fprintf(a.out, "not compared (contents were not stored): %s\n", render.Line(p))
	}
	if r.Open {
		fmt.Fprintln(a.out, "the journal ends within a round: the run was stopped there, or died")
	}
	fmt.Fprintf(a.out, "replay matches: %s, %s, %s and %s; hash of the journal: %s\n",
		render.Count(r.Rounds, "decision"), render.Count(r.Requests, "request"), render.Count(r.Edits, "edit"), render.Count(r.Trees, "snapshot"), j.Head())
	next := "hone show " + j.Run() + at
	if into != "" {
		next = "git diff --no-index " + strings.TrimSpace(into) + " ."
	}
	fmt.Fprintf(a.out, "next: %s\n", render.Line(next))
}
