package restore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"hone/workspace"
	"hone/workspace/internal/nofollow"
	"hone/workspace/treepath"
)

func (r *restorer) inspectAll(ctx context.Context) error {
	for _, it := range r.items {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.inspect(ctx, it); err != nil {
			return err
		}
	}
	var conflicts []string
	for _, it := range r.items {
		ok, err := r.decide(it)
		if err != nil {
			return err
		}
		if !ok {
			conflicts = append(conflicts, it.Path)
		}
	}
	if len(conflicts) > 0 {
		return &workspace.ConflictError{Paths: conflicts}
	}
	return r.checkWritable()
}

func (r *restorer) inspect(ctx context.Context, it *item) error {
	it.found, it.info, it.dirsToClear = workspace.Entry{}, nil, nil
	dir, err := r.parentDir(it)
	if err != nil || dir == nil {
		return err
	}
	it.info, err = dir.Root.Lstat(treepath.Base(it.Path))
	if nofollow.IsNotExist(err) {
		it.info = nil
		return nil
	}
	switch {
	case err != nil:
		return nofollow.ReadError(it.Path, err)
	case it.info.IsDir():
		it.dirsToClear = []clearing{{it.Path, it.info.Mode().Perm()}}
		return nil
	case it.info.Mode().IsRegular():
		return r.inspectFile(ctx, it, dir)
	case it.info.Mode()&fs.ModeSymlink != 0:
		target, err := dir.Root.Readlink(treepath.Base(it.Path))
		if err != nil {
			return nofollow.ReadError(it.Path, err)
		}
		it.found = workspace.Entry{Kind: workspace.Symlink, Target: target}
		return nil
	}
	it.found = workspace.Entry{Kind: workspace.Other}
	return nil
}

// It returns nil and sets missingDir if a parent is not a directory.
func (r *restorer) parentDir(it *item) (*nofollow.Pin, error) {
	it.missingDir, it.blocked = "", false
	dir, err := r.pins.At(treepath.Parent(it.Path), false)
	if err == nil {
		return dir, nil
	}
	for i := range len(it.Path) {
		if it.Path[i] != '/' {
			continue
		}
		it.missingDir = it.Path[:i]
		if _, err := r.pins.At(it.missingDir, false); err != nil {
			return nil, r.checkBlocked(it, err)
		}
	}
	return nil, err // another process is changing the tree right now
}

func (r *restorer) checkBlocked(it *item, cause error) error {
	if errors.Is(cause, fs.ErrNotExist) {
		return nil
	}
	var refused *treepath.RefusedError
	if !errors.As(cause, &refused) {
		return cause
	}
	dir, err := r.pins.At(treepath.Parent(it.missingDir), false)
	if err != nil {
		return err
	}
	info, err := dir.Root.Lstat(treepath.Base(it.missingDir))
	if err != nil || info.IsDir() {
		return cause
	}
	it.blocked = true
	return nil
}

// An unreadable file has no digest.
func (r *restorer) inspectFile(ctx context.Context, it *item, dir *nofollow.Pin) error {
	it.found = workspace.Entry{Kind: workspace.Regular, Mode: it.info.Mode().Perm(), Size: it.info.Size()}
	if it.found.Digest = r.tree.Unread(it.found.Size, it.info.ModTime().UnixNano()); it.found.Digest != "" {
		return nil
	}
	f, info, err := nofollow.OpenRegular(dir.Root, it.Path)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return nofollow.ReadError(it.Path, err)
	}
	defer f.Close()
	sum := sha256.New()
	if it.found.Size, err = io.CopyBuffer(sum, r.tree.UpToLimit(ctx, f, 0), r.buf); err != nil {
		return nofollow.ReadError(it.Path, err)
	}
	it.info = info
	it.found.Mode = info.Mode().Perm()
	if it.found.Digest = r.tree.Unread(it.found.Size, info.ModTime().UnixNano()); it.found.Digest == "" {
		it.found.Digest = hex.EncodeToString(sum.Sum(nil))
	}
	return nil
}

func (r *restorer) decide(it *item) (ok bool, err error) {
	if it.Want.Kind == workspace.Other || it.found.Kind == workspace.Other {
		return false, nil
	}
	if sameState(it.found, it.Want) { // includes a directory where nothing is wanted
		it.done, it.dirsToClear = true, nil
		return true, nil
	}
	if ok, err := r.replaceable(it); !ok || err != nil {
		return false, err
	}
	if it.blocked {
		above := r.byPath[it.missingDir]
		return above != nil && above.isRemoval(), nil
	}
	if len(it.dirsToClear) > 0 {
		return r.canClear(it)
	}
	return true, nil
}

func (r *restorer) replaceable(it *item) (bool, error) {
	for _, from := range it.From {
		if sameState(it.found, from) {
			return true, nil
		}
	}
	if it.From != nil {
		return false, nil
	}
	if it.found.Kind != workspace.Regular || it.modeOnly() {
		return true, nil
	}
	if it.found.Digest == "" {
		return false, nil
	}
	content, err := r.open(it.found.Digest)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("the current contents of %s: %w", treepath.Display(it.Path), err)
	}
	return true, content.Close()
}

// canClear reports whether a directory contains only paths to remove and other
// such directories, which it adds to dirsToClear.
func (r *restorer) canClear(it *item) (bool, error) {
	for i := 0; i < len(it.dirsToClear); i++ {
		dir, err := r.pins.At(it.dirsToClear[i].path, false)
		if err != nil {
			return false, err
		}
		names, err := nofollow.DirNames(dir.Root)
		if err != nil {
			return false, nofollow.ReadError(dir.Path, err)
		}
		for _, name := range names {
			path := treepath.Join(dir.Path, name)
			info, err := dir.Root.Lstat(name)
			if err != nil {
				return false, nofollow.ReadError(path, err)
			}
			switch {
			case info.IsDir() && !treepath.Hidden(path):
				it.dirsToClear = append(it.dirsToClear, clearing{path, info.Mode().Perm()})
			case !r.isRemoved(path):
				return false, nil
			}
		}
	}
	return true, nil
}

// isRemoved reports whether this call removes a path: the list asks for it, or
// it is a leftover of a crash.
func (r *restorer) isRemoved(path string) bool {
	if it := r.byPath[path]; it != nil {
		return it.isRemoval()
	}
	if !treepath.Hidden(path) {
		return false
	}
	for _, it := range r.items {
		if treepath.Parent(it.Path) == treepath.Parent(path) && it.tempName() == treepath.Base(path) {
			return true
		}
	}
	return false
}

func (r *restorer) checkWritable() error {
	asked := map[string]bool{}
	for _, it := range r.items {
		if it.done || it.modeOnly() {
			continue
		}
		dirs := []string{treepath.Parent(it.Path)}
		if it.missingDir != "" {
			dirs[0] = treepath.Parent(it.missingDir)
		}
		for _, c := range it.dirsToClear {
			dirs = append(dirs, treepath.Parent(c.path))
		}
		for _, dir := range dirs {
			if asked[dir] {
				continue
			}
			asked[dir] = true
			if err := r.checkDirWritable(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *restorer) checkDirWritable(path string) error {
	dir, err := r.pins.At(path, false)
	if err != nil {
		return err
	}
	if err := nofollow.CheckDirWritable(dir.Root); err != nil {
		if path == "" {
			path = r.tree.Dir()
		}
		return fmt.Errorf("write to directory %s: %w", treepath.Display(path), err)
	}
	return nil
}

// Directories and files may have changed while the temporary files were being written.
func (r *restorer) recheck() error {
	if err := r.pins.CheckAll(); err != nil {
		return err
	}
	var conflicts []string
	for _, it := range r.items {
		if it.done {
			continue
		}
		same, err := r.unchanged(it)
		if err != nil {
			return err
		}
		if !same {
			conflicts = append(conflicts, it.Path)
		}
	}
	if len(conflicts) > 0 {
		return &workspace.ConflictError{Paths: conflicts}
	}
	return nil
}

func (r *restorer) unchanged(it *item) (bool, error) {
	path := it.Path
	if it.missingDir != "" {
		if it.blocked {
			return true, nil // missingDir is itself an item and is checked as such
		}
		path = it.missingDir
	}
	return r.pins.Unchanged(path, it.info)
}
