package journal

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
)

// Collector finds the objects that no kept run needs, and deletes them. An object is
// needed if its digest is in the journal of a kept run, or in a needed object. So a text
// that looks like a digest may keep an object that no run needs; no needed object is
// deleted.
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
		var more []string
		if more, err = c.namedBy(added[i]); err == nil {
			added, err = append(added, more...), ctx.Err()
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

func (c *Collector) namedBy(name string) ([]string, error) {
	o, err := c.home.OpenObject(name)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	return c.newlyNeeded(o)
}

func (c *Collector) newlyNeeded(text io.Reader) (more []string, err error) {
	err = eachDigest(text, func(name string) {
		if _, stored := c.sizes[name]; stored && !c.needed[name] {
			c.needed[name] = true
			more = append(more, name)
		}
	})
	return more, err
}

// eachDigest calls visit for each digest in a text: 64 hexadecimal digits between
// other characters.
func eachDigest(text io.Reader, visit func(name string)) error {
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
			visit(string(run[:n]))
		}
		n = 0
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// Unneeded returns the size in bytes of the journals and objects that are not kept.
func (c *Collector) Unneeded() (int64, error) {
	total := int64(0)
	for d, size := range c.sizes {
		if !c.needed[d] {
			total += size
		}
	}
	runs, err := c.deletedRuns()
	for _, run := range runs {
		info, statErr := c.home.in.Root.Lstat(runFile(run))
		if statErr != nil {
			return 0, statErr
		}
		total += info.Size()
	}
	return total, err
}

func (c *Collector) deletedRuns() ([]string, error) {
	runs, err := c.home.Runs()
	return slices.DeleteFunc(runs, func(run string) bool { return c.kept[run] }), err
}

// Delete deletes the journals of the runs that are not kept, the objects that none
// needs, and what killed processes left.
func (c *Collector) Delete(ctx context.Context) error {
	err := errors.Join(c.deleteJournals(), c.home.dropBallast())
	if err == nil {
		err = c.home.Retain(ctx, func(object string) bool { return c.needed[object] })
	}
	if err != nil {
		return fmt.Errorf("delete what no run needs: %w", err)
	}
	return nil
}

// deleteJournals comes first, and is durable before an object is deleted: a run
// without its objects could not be undone.
func (c *Collector) deleteJournals() error {
	runs, err := c.deletedRuns()
	for _, run := range runs {
		err = errors.Join(err, c.home.in.Root.Remove(runFile(run)))
		if removed := c.home.in.Root.Remove(importedFile(run)); !errors.Is(removed, fs.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}
	return errors.Join(err, c.home.in.Sync(runsDir))
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
