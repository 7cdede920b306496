package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"hone/journal/objects"
)

// Collector deletes runs, and the objects that no kept run needs. A kept run keeps its whole
// pack, and gets what it needs of those that are deleted.
//
// The caller holds the workspace's lock. A process that is killed at any point leaves
// every object that a kept run needs.
type Collector struct {
	home   *Home
	sizes  map[string]int64 // of all stored objects
	needed map[string]bool
	kept   map[string]bool // runs
}

// NewCollector returns a collector that knows which objects are stored, and keeps
// nothing yet.
func (h *Home) NewCollector() (*Collector, error) {
	sizes, err := h.Sizes()
	return &Collector{home: h, sizes: sizes, needed: map[string]bool{}, kept: map[string]bool{}}, err
}

// Keep keeps a run and the objects that it needs; those that are not stored are left out. It
// returns the size in bytes of its journal and of the objects that no run kept before needs. A
// run that adds more than limit is not kept; a limit less than 0 means no limit.
func (c *Collector) Keep(run string, objects []string, limit int64) (size int64, ok bool, err error) {
	if size, err = c.home.Size(run); err != nil {
		return 0, false, err
	}
	var added []string
	for _, name := range objects {
		if of, stored := c.sizes[name]; stored && !c.needed[name] {
			c.needed[name] = true
			added, size = append(added, name), size+of
		}
	}
	if limit >= 0 && size > limit {
		for _, name := range added {
			delete(c.needed, name)
		}
		return 0, false, nil
	}
	c.kept[run] = true
	return size, true, nil
}

// Unneeded returns the size in bytes of the files that are deleted, without the objects
// that kept runs get.
func (c *Collector) Unneeded() (total int64, err error) {
	journals, others, err := c.unneeded()
	for _, name := range slices.Concat(journals, others) {
		info, statErr := c.home.in.Root.Lstat(name)
		if statErr != nil {
			return 0, statErr
		}
		total += info.Size()
	}
	for _, object := range c.moving(c.keptPacks()) {
		total -= c.sizes[object]
	}
	return total, err
}

// A temporary file, which a killed process left, is the name of no kept run either.
func (c *Collector) unneeded() (journals, others []string, err error) {
	for _, folder := range []string{runsDir, keptDir} {
		entries, readErr := fs.ReadDir(c.home.in.Root.FS(), folder)
		if readErr != nil && !errors.Is(readErr, fs.ErrNotExist) {
			err = errors.Join(err, readErr)
		}
		for _, e := range entries {
			name, file := e.Name(), folder+"/"+e.Name()
			run, suffix, _ := strings.Cut(name, ".")
			switch {
			case strings.HasSuffix(name, tempSuffix), folder == keptDir && !c.needed[name]:
				others = append(others, file)
			case folder == keptDir || c.kept[run]:
			case suffix == "jsonl":
				journals = append(journals, file)
			default:
				others = append(others, file)
			}
		}
	}
	return journals, others, err
}

func (c *Collector) keptPacks() *objects.Store {
	return c.home.Of(func(run string) bool { return c.kept[run] })
}

// moving returns the needed objects that no pack of a kept run certainly has.
func (c *Collector) moving(kept *objects.Store) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c.needed)), kept.Idle("").Has)
}

// Delete deletes the journals and packs of the runs that are not kept, and what killed
// processes left. Before, the oldest kept run gets what kept runs need of them.
func (c *Collector) Delete(ctx context.Context) error {
	journals, others, err := c.unneeded()
	if err == nil {
		err = c.move(ctx)
	}
	if err == nil {
		// The journals come first, durably: a run without its objects could not be undone.
		if err = c.remove(ctx, journals); err == nil {
			err = c.remove(ctx, others)
		}
		c.home.Reset()
	}
	if _, held := c.home.in.Root.Lstat(ballastFile); err == nil && held == nil { // by a killed process: this one has the lock
		err = c.home.in.Root.Remove(ballastFile)
	}
	if err != nil {
		return fmt.Errorf("delete what no run needs: %w", err)
	}
	return nil
}

func (c *Collector) move(ctx context.Context) error {
	kept := c.keptPacks()
	moving := c.moving(kept)
	if len(moving) == 0 {
		return nil
	}
	to := kept.Pack(slices.Min(slices.Collect(maps.Keys(c.kept))))
	for _, object := range moving {
		if err := ctx.Err(); err != nil {
			return errors.Join(err, to.Close())
		}
		o, err := c.home.OpenObject(object)
		if err == nil {
			_, _, err = to.Add(o)
			err = errors.Join(err, o.Close())
		}
		if err != nil {
			return errors.Join(err, to.Close())
		}
	}
	return errors.Join(to.Sync(), to.Close())
}

func (c *Collector) remove(ctx context.Context, names []string) error {
	for _, name := range names {
		if err := cmp.Or(ctx.Err(), c.home.in.Root.Remove(name)); err != nil {
			return err
		}
	}
	return c.home.in.Sync(runsDir)
}

// TotalSize returns the size in bytes of all files of the home.
func (h *Home) TotalSize() (total int64, err error) {
	err = fs.WalkDir(h.in.Root.FS(), ".", func(_ string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was deleted since it was listed
		}
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			total += info.Size()
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("measure %s: %w", h.in.Path, err)
	}
	return total, nil
}
