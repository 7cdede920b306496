package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"hone"
	"hone/history"
	"hone/internal/config"
	"hone/journal"
	"hone/loop"
)

// Recorded is a recorded run with its workspace, which is locked and settled
// and includes the ignored files that the run includes.
type Recorded struct {
	*Workspace
	Journal *journal.Journal
	Past    *history.Past
	Start   hone.Start
	// MaxFile is the size in bytes above which contents are not stored; 0 means no limit.
	MaxFile int64
}

// Find opens a run of the workspace that a directory belongs to. ref is an id,
// a unique prefix of one, or "last". The error is a [*hone.UsageError] if the run
// is neither the user's nor accepted ([Inspection.Accept]). The caller closes the
// run.
func Find(ctx context.Context, dir, ref string) (*Recorded, error) {
	root, err := FindRoot(dir)
	if err != nil {
		return nil, err
	}
	r := &Recorded{}
	if r.Workspace, err = Enter(ctx, root, false); err != nil {
		return nil, err
	}
	if err = r.checkUntracked(ctx); err == nil {
		err = r.open(ref)
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Recorded) open(ref string) error {
	run, err := r.Home.FindRun(ref)
	if err != nil {
		return &hone.UsageError{Why: err.Error(), Err: err, Next: hone.Next{Verb: hone.Runs}}
	}
	if r.Journal, err = r.Home.Open(run); err != nil {
		return explainDamaged(r.explainForeign(err))
	}
	r.Past = history.Follow(r.Journal)
	if r.Start, err = Started(run, r.Journal.Events()); err != nil {
		return err
	}
	if err := CheckWhole(run, r.Start); err != nil {
		return err
	}
	var shared loop.Settings
	_ = json.Unmarshal(r.Start.Settings, &shared) // unreadable settings include no files
	r.MaxFile = config.MaxFile.In(shared.Values)
	if err := r.Use(shared.Values); err != nil {
		return err
	}
	ShutOutputs(r.Tree, slices.Concat(r.Past.Facts().Outputs, OutputsIn(r.Dir, []*os.File{os.Stdout, os.Stderr})))
	return nil
}

// Close closes the journal and unlocks the workspace.
func (r *Recorded) Close() {
	if r.Journal != nil {
		r.Journal.Close()
	}
	r.Workspace.Close()
}

// Started returns the start of a run, which is its first event. The error is a [*hone.UsageError].
func Started(run string, events []journal.Event) (hone.Start, error) {
	why := "it has no recorded start, because its process died too early; start a new run"
	if len(events) > 0 {
		switch p := history.Decode(events[0]).Payload.(type) {
		case hone.Start:
			return p, nil
		case history.Unreadable:
			why = p.Err.Error()
		}
	}
	return hone.Start{}, &hone.UsageError{Why: "run " + run + ": " + why, Next: hone.Next{Verb: hone.Runs}}
}

// CheckWhole returns an error if a run was redacted, so that it can only be shown.
func CheckWhole(run string, start hone.Start) error {
	if !start.Redacted {
		return nil
	}
	return &hone.UsageError{Why: "run " + run + " was exported without its texts, so it can only be shown", Next: hone.Next{Verb: hone.Show, Run: run}}
}

// Settings decodes the settings of a recorded run for its loop.
func Settings(k loop.Kind, start hone.Start) (loop.Loop, error) {
	l := k.New()
	if err := json.Unmarshal(start.Settings, l); err != nil {
		return nil, fmt.Errorf("read the settings of the run: %w", err)
	}
	return l, nil
}
