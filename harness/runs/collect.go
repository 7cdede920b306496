package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"hone"
	"hone/history"
	"hone/internal/transient"
	"hone/journal"
)

// Collection selects the runs to delete. It keeps the newest run unless Keep is 0, and
// open runs unless Unfinished is set. A run is open if it died, was interrupted, waits for
// an answer, used up its budget, failed, or cannot be read.
type Collection struct {
	Keep       int           // number of runs to keep; less than 0 means no limit
	OlderThan  time.Duration // delete runs whose last event is older; less than 0 means no limit
	MaxSize    int64         // delete the oldest until the rest needs no more bytes; less than 0 means no limit
	Unfinished bool
	DryRun     bool // delete nothing
}

// Collected is what a collection deleted, or would delete.
type Collected struct {
	Deleted []string `json:"deleted"` // runs, oldest first
	Kept    int      `json:"kept"`    // number of other runs
	Open    int      `json:"open"`    // how many of these would be deleted with Unfinished
	Freed   int64    `json:"freed"`   // bytes
	Size    int64    `json:"size"`    // bytes of the home afterwards
	Home    string   `json:"home"`    // its path

	Workspace string `json:"-"` // whose home it is
}

// Collect deletes runs of the workspace that a directory belongs to, and what no other
// run needs. It locks the workspace, and changes nothing outside hone's own directory.
func Collect(ctx context.Context, dir string, o Collection) (Collected, error) {
	root, err := FindRoot(dir)
	if err != nil {
		return Collected{}, err
	}
	w := &Workspace{Dir: root}
	defer w.Close()
	if err := w.lockHome(ctx, false); err != nil {
		return Collected{}, explainLocked(err)
	}
	if err := w.checkUntracked(ctx); err != nil {
		return Collected{}, err
	}
	home, done := w.Home, Collected{}
	c, err := home.NewCollector()
	if err != nil {
		return done, err
	}
	done.Home, done.Workspace = home.Dir(), home.Workspace()
	if err := o.choose(ctx, home, c, &done); err != nil {
		return done, err
	}
	if done.Size, err = home.TotalSize(); err != nil {
		return done, err
	}
	if done.Freed, err = c.Unneeded(); err != nil || o.DryRun {
		done.Size -= done.Freed
		return done, err
	}
	before := done.Size
	if err := c.Delete(ctx); err != nil {
		return done, err
	}
	done.Size, err = home.TotalSize()
	done.Freed = before - done.Size
	return done, err
}

// The runs that no limit deletes are kept first, so that they count towards the size, then the others, newest first.
func (o Collection) choose(ctx context.Context, home *journal.Home, collector *journal.Collector, done *Collected) error {
	all, err := home.Runs()
	kept, size, full := map[string]bool{}, int64(0), false
	for _, others := range []bool{false, true} {
		for i, run := range slices.Backward(all) {
			if kept[run] {
				continue
			}
			newer := len(all) - 1 - i
			at, open := time.Time{}, true // what cannot be read may be resumed
			events, unread := home.Read(run)
			if unread == nil && len(events) > 0 {
				past := history.Read(events)
				end := past.Facts().End
				over := []hone.Kind{hone.KindDone, hone.KindRounds, hone.KindStuck, hone.KindUnreadable}
				at, open = events[len(events)-1].Time, !past.Finished() || !slices.Contains(over, end.Kind)
			}
			limited := o.Keep >= 0 && newer >= o.Keep || o.OlderThan >= 0 && time.Since(at) >= o.OlderThan
			newest, open := newer == 0 && o.Keep != 0, open && !o.Unfinished
			if others && (limited || full) || !others && !newest && !open {
				continue
			}
			limit := int64(-1)
			if others && o.MaxSize >= 0 {
				limit = max(0, o.MaxSize-size)
			}
			if transient.Is(unread) {
				return unread
			}
			needed, err := neededBy(home, run, events)
			if err != nil {
				return err
			}
			more, ok, err := collector.Keep(run, needed, limit)
			if err := cmp.Or(err, ctx.Err()); err != nil {
				return err
			}
			if kept[run], size, full = ok, size+more, !ok; open && !newest && limited {
				done.Open++
			}
		}
	}
	done.Deleted = slices.DeleteFunc(slices.Clone(all), func(run string) bool { return kept[run] })
	done.Kept = len(all) - len(done.Deleted)
	return err
}

// neededBy returns the objects that a run with these events needs. A run that cannot be read has no events and needs only
// the objects of its own pack.
func neededBy(home *journal.Home, run string, events []journal.Event) (names []string, err error) {
	needs := history.NeededObjects
	if start, err := Started(run, events); err == nil && start.Redacted {
		needs = history.Manifests
	}
	all, err := needs(home, events)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("find the objects of run %s: %w", run, err)
	}
	for _, n := range all {
		names = append(names, n.Name)
	}
	return names, nil
}
