package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// Collector finds what no kept run needs, and deletes it. Every digest in a kept
// journal counts as needed if an object has that name, and so does every digest in such
// an object: a file whose text looks like a digest keeps an object too many, never
// one too few.
//
// The caller holds the workspace's lock. A process that is killed at any point leaves
// every object that a kept run needs.
type Collector struct {
	home   *Home
	sizes  map[digest]int64 // of all stored objects
	needed map[digest]bool
	kept   map[string]bool // runs
}

// NewCollector returns a collector that knows which objects are stored, and keeps
// nothing yet.
func (h *Home) NewCollector() (*Collector, error) {
	if err := h.refreshPacks(true); err != nil {
		return nil, fmt.Errorf("list the objects: %w", err)
	}
	if errs := h.packs.damageErrors(); len(errs) > 0 {
		return nil, errs[0] // nothing is known of what is in it
	}
	c := &Collector{home: h, sizes: map[digest]int64{}, needed: map[digest]bool{}, kept: map[string]bool{}}
	for _, p := range h.packs.places {
		c.sizes[p.digest] += p.onDisk()
	}
	err := h.eachLoose(func(file string, d digest, size int64) error {
		if d != (digest{}) {
			c.sizes[d] += size
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the objects: %w", err)
	}
	return c, nil
}

// onDisk returns how many bytes of its pack an object needs.
func (p place) onDisk() int64 { return p.stored }

// eachLoose calls visit for each file of a single object, whatever follows the digest in
// its name. The digest is zero for one that a killed process left incomplete.
func (h *Home) eachLoose(visit func(file string, d digest, size int64) error) error {
	return fs.WalkDir(h.root.FS(), objectsDir, func(file string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		name := strings.ReplaceAll(strings.TrimPrefix(file, objectsDir), "/", "")
		d, err := parseDigest(name[:min(len(name), 2*len(digest{}))])
		if err != nil {
			return nil // hone did not write it
		}
		if strings.HasSuffix(name, tempSuffix) {
			d = digest{}
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		return visit(file, d, info.Size())
	})
}

// Keep keeps a run, even one whose journal is damaged. It returns the size in bytes of
// its journal and of the objects that no run needed that was kept before. A run that
// adds more than limit is not kept; a limit less than 0 is none.
func (c *Collector) Keep(ctx context.Context, run string, limit int64) (size int64, ok bool, err error) {
	f, err := c.home.openRegular(runFile(run))
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
		var more []digest
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

// namedBy returns the objects that an object needs and that were not needed before.
func (c *Collector) namedBy(d digest) ([]digest, error) {
	o, err := c.home.OpenObject(d.String())
	if err != nil {
		return nil, err
	}
	defer o.Close()
	return c.newlyNeeded(o)
}

// newlyNeeded returns the objects that a text names and that were not needed before.
func (c *Collector) newlyNeeded(text io.Reader) (more []digest, err error) {
	err = eachDigest(text, func(d digest) {
		if _, stored := c.sizes[d]; stored && !c.needed[d] {
			c.needed[d] = true
			more = append(more, d)
		}
	})
	return more, err
}

// eachDigest calls visit for each digest in a text: 64 hexadecimal digits between
// other characters.
func eachDigest(text io.Reader, visit func(digest)) error {
	in := bufio.NewReaderSize(text, 1<<16)
	var run [2*len(digest{}) + 1]byte // the digits so far; the last one means too many
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
			if d, err := parseDigest(string(run[:n])); err == nil {
				visit(d)
			}
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

// Unneeded returns how many bytes the journals and objects have that are not kept.
func (c *Collector) Unneeded() (int64, error) {
	total := int64(0)
	for d, size := range c.sizes {
		if !c.needed[d] {
			total += size
		}
	}
	runs, err := c.deletedRuns()
	for _, run := range runs {
		info, statErr := c.home.root.Lstat(runFile(run))
		if statErr != nil {
			return 0, statErr
		}
		total += info.Size()
	}
	return total, err
}

// deletedRuns returns the runs that are not kept, oldest first.
func (c *Collector) deletedRuns() ([]string, error) {
	runs, err := c.home.Runs()
	return slices.DeleteFunc(runs, func(run string) bool { return c.kept[run] }), err
}

// Delete deletes the journals of the runs that are not kept, the objects that none
// needs, and what killed processes left. A pack that is needed in part is written again
// if that frees at least half of it.
func (c *Collector) Delete(ctx context.Context) error {
	err := c.deleteJournals()
	if err == nil {
		err = c.deleteLoose(ctx)
	}
	if err == nil {
		err = c.deletePacked(ctx)
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
		err = errors.Join(err, c.home.root.Remove(runFile(run)))
	}
	return errors.Join(err, c.home.syncDir(runsDir))
}

func (c *Collector) deleteLoose(ctx context.Context) error {
	return c.home.eachLoose(func(file string, d digest, _ int64) error {
		if c.needed[d] {
			return ctx.Err()
		}
		return errors.Join(ctx.Err(), c.home.root.Remove(file))
	})
}

func (c *Collector) deletePacked(ctx context.Context) error {
	if err := c.home.removeStalePacks(); err != nil {
		return err
	}
	byPack := map[string][]place{}
	for _, p := range c.home.packs.places {
		byPack[p.pack] = append(byPack[p.pack], p)
	}
	// Packs that are deleted without being written again make room for the others.
	names := slices.Collect(maps.Keys(byPack))
	slices.SortFunc(names, func(a, b string) int { return int(c.neededShare(byPack[a]) - c.neededShare(byPack[b])) })
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.shrink(name, byPack[name]); err != nil {
			return err
		}
	}
	return nil
}

// neededShare returns how much of a pack's contents is needed, in percent, rounded up.
func (c *Collector) neededShare(places []place) int64 {
	needed, all := int64(0), int64(0)
	for _, p := range places {
		all += p.onDisk()
		if c.needed[p.digest] {
			needed += p.onDisk()
		}
	}
	if needed == 0 {
		return 0
	}
	return (100*needed + all - 1) / all
}

// shrink deletes a pack of which at most half is needed, after storing that half.
func (c *Collector) shrink(name string, places []place) error {
	if c.neededShare(places) > 50 {
		return nil
	}
	c.home.packs.forget(name)
	pack, err := c.home.NewPack()
	if err != nil {
		return err
	}
	defer pack.Discard()
	for _, p := range places {
		if !c.needed[p.digest] {
			continue
		}
		if err := c.copyPlace(pack, p); err != nil {
			return err
		}
	}
	if err := pack.Close(); err != nil {
		return err
	}
	return errors.Join(c.home.root.Remove(packsDir+"/"+name), c.home.syncDir(packsDir))
}

// copyPlace adds a packed object to another pack.
func (c *Collector) copyPlace(to *Pack, p place) error {
	o, err := c.home.openPlace(p)
	if err != nil {
		return err
	}
	defer o.Close()
	_, _, err = to.Add(o)
	return err
}

// TotalSize returns how many bytes the files of the home have.
func (h *Home) TotalSize() (total int64, err error) {
	err = fs.WalkDir(h.root.FS(), ".", func(_ string, e fs.DirEntry, err error) error {
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
		return 0, fmt.Errorf("measure %s: %w", h.dir, err)
	}
	return total, nil
}
