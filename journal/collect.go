package journal

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"hone/journal/objects"
)

// Collector finds the runs and objects that no kept run needs, and deletes them. An object
// is needed if its digest is in the journal of a kept run, or in a needed object. So a text
// that looks like a digest may keep an object that no run needs; no needed object is
// deleted. A kept run keeps its whole pack, and gets what it needs of those that are deleted.
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

// Keep keeps a run, even one whose journal is damaged. It returns the size in bytes of
// its journal and of the objects that no run kept before needs. A run that adds more than
// limit is not kept; a limit less than 0 means no limit.
func (c *Collector) Keep(ctx context.Context, run string, limit int64) (size int64, ok bool, err error) {
	f, err := c.home.in.Open(runFile(run))
	if err != nil {
		return 0, false, fmt.Errorf("read the run's journal: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, false, fmt.Errorf("read the run's journal: %w", err)
	}
	added, err := c.newlyNeeded(f)
	for i := 0; err == nil && i < len(added); i++ {
		var o io.ReadCloser
		if o, err = c.home.OpenObject(added[i]); err == nil {
			var more []string
			more, err = c.newlyNeeded(o)
			added, err = append(added, more...), cmp.Or(err, ctx.Err())
			o.Close()
		}
	}
	if err != nil {
		return 0, false, fmt.Errorf("find the objects of run %s: %w", run, err)
	}
	size = info.Size()
	for _, d := range added {
		size += c.sizes[d]
	}
	if limit >= 0 && size > limit {
		for _, d := range added {
			delete(c.needed, d)
		}
		return 0, false, nil
	}
	c.kept[run] = true
	return size, true, nil
}

// newlyNeeded returns the stored objects that a text names and nothing needed before. It
// names them by their digest: 64 hexadecimal digits between other characters.
func (c *Collector) newlyNeeded(text io.Reader) (more []string, err error) {
	in := bufio.NewReaderSize(text, 1<<16)
	var run [2*sha256.Size + 1]byte // the digits so far; the last one means too many
	n := 0
	for {
		b, err := in.ReadByte()
		if err == nil && (b >= '0' && b <= '9' || b >= 'a' && b <= 'f') {
			if n < len(run) {
				run[n] = b
				n++
			}
			continue
		}
		if n == len(run)-1 {
			name := string(run[:n])
			if _, stored := c.sizes[name]; stored && !c.needed[name] {
				c.needed[name] = true
				more = append(more, name)
			}
		}
		n = 0
		switch {
		case err == io.EOF:
			return more, nil
		case err != nil:
			return more, err
		}
	}
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
