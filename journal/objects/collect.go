package objects

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// Sizes returns how many bytes of disk space each stored object needs, by name. If a
// pack is damaged, that is an error: nothing is known of what is in it.
func (s *Store) Sizes() (map[string]int64, error) {
	if err := s.refreshPacks(true); err != nil {
		return nil, fmt.Errorf("list the objects: %w", err)
	}
	if errs := s.packs.damageErrors(false); len(errs) > 0 {
		return nil, errs[0]
	}
	sizes := map[string]int64{}
	for _, places := range s.packs.byFile() {
		for _, p := range places {
			sizes[p.digest.String()] += p.stored
		}
	}
	err := s.eachLoose(func(_ string, d digest, size int64) error {
		if d != (digest{}) {
			sizes[d.String()] += size
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the objects: %w", err)
	}
	return sizes, nil
}

// Retain deletes all objects but those that are needed, and what killed processes left.
// A pack that is needed in part is written again if that frees at least half of it. The
// caller holds the workspace's lock, and no other call uses the store meanwhile. A
// process that is killed at any point leaves every object that is needed.
func (s *Store) Retain(ctx context.Context, needed func(name string) bool) error {
	if err := errors.Join(s.Sync(), s.Close()); err != nil {
		return err
	}
	c := collection{store: s, needed: func(d digest) bool { return needed(d.String()) }}
	if err := c.deleteLoose(ctx); err != nil {
		return err
	}
	return c.deletePacked(ctx)
}

type collection struct {
	store  *Store
	needed func(digest) bool
}

// eachLoose calls visit for each file of a single object, whatever follows the digest in
// its name. The digest is zero for one that a killed process left incomplete.
func (s *Store) eachLoose(visit func(file string, d digest, size int64) error) error {
	return fs.WalkDir(s.in.Root.FS(), objectsDir, func(file string, e fs.DirEntry, err error) error {
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

func (c collection) deleteLoose(ctx context.Context) error {
	return c.store.eachLoose(func(file string, d digest, _ int64) error {
		if c.needed(d) {
			return ctx.Err()
		}
		return errors.Join(ctx.Err(), c.store.in.Root.Remove(file))
	})
}

func (c collection) deletePacked(ctx context.Context) error {
	if err := c.store.removeStalePacks(); err != nil {
		return err
	}
	byPack := c.store.packs.byFile()
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

// neededShare returns the needed part of a pack's contents, in percent, rounded up.
func (c collection) neededShare(places []place) int64 {
	needed, all := int64(0), int64(0)
	for _, p := range places {
		all += p.stored
		if c.needed(p.digest) {
			needed += p.stored
		}
	}
	if needed == 0 {
		return 0
	}
	return (100*needed + all - 1) / all
}

func (c collection) shrink(name string, places []place) error {
	if c.neededShare(places) > 50 {
		return nil
	}
	c.store.packs.forget(name)
	pack, err := c.store.NewPack()
	if err != nil {
		return err
	}
	defer pack.Discard()
	for _, p := range places {
		if !c.needed(p.digest) {
			continue
		}
		if err := c.copyPlace(pack, p); err != nil {
			return err
		}
	}
	if err := errors.Join(pack.Close(), c.store.Sync()); err != nil {
		return err
	}
	if err := errors.Join(c.store.in.Root.Remove(packsDir+"/"+name), c.store.in.Sync(packsDir)); err != nil {
		return err
	}
	c.store.packs.noteDeleted(name)
	return nil
}

func (c collection) copyPlace(to *Pack, p place) error {
	o, err := c.store.openPlace(p)
	if err != nil {
		return err
	}
	defer o.Close()
	_, _, err = to.Add(o)
	return err
}
