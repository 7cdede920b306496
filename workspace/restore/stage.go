package restore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"hone/workspace"
	"hone/workspace/internal/nofollow"
	"hone/workspace/treepath"
)

// Apply uses the same name for the same contents.
func (it *item) tempName() string {
	if it.Want.Kind == workspace.Symlink {
		return nofollow.TempName(it.Path, "->"+it.Want.Target)
	}
	return nofollow.TempName(it.Path, it.Want.Digest)
}

// graftOf returns the path of the new directory that will be renamed to top.
func graftOf(top string) string {
	return treepath.Join(treepath.Parent(top), nofollow.TempName(top, "/"))
}

func (it *item) stagePath() string {
	if it.missingDir != "" {
		return graftOf(it.missingDir) + it.Path[len(it.missingDir):]
	}
	return treepath.Join(treepath.Parent(it.Path), it.tempName())
}

func (r *restorer) stage(ctx context.Context) error {
	if err := r.removeLeftovers(); err != nil {
		return err
	}
	for _, it := range r.items {
		if it.done || it.isRemoval() || it.modeOnly() {
			continue
		}
		if err := r.step("write %s", it.Path); err != nil {
			return err
		}
		it.staged = true // even a failed write may leave a file
		if err := r.write(ctx, it, it.stagePath(), it.Want); err != nil {
			return err
		}
	}
	return r.step("staged")
}

func (r *restorer) removeLeftovers() error {
	seen := map[string]bool{"": true}
	for _, it := range r.items {
		if err := r.removeLeftover(treepath.Join(treepath.Parent(it.Path), it.tempName()), it.Path); err != nil {
			return err
		}
		for dir := treepath.Parent(it.Path); !seen[dir]; dir = treepath.Parent(dir) {
			seen[dir] = true
			if err := r.removeLeftover(graftOf(dir), dir); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *restorer) removeLeftover(left, path string) error {
	dir, err := r.pins.At(treepath.Parent(left), false)
	if nofollow.IsAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := dir.Root.Lstat(treepath.Base(left)); nofollow.IsNotExist(err) {
		return nil
	}
	dir.Changed = true
	if err := dir.Root.RemoveAll(treepath.Base(left)); err != nil {
		return fmt.Errorf("remove the temporary file of %s: %w", treepath.Display(path), nofollow.WithoutPath(err))
	}
	return nil
}

func (r *restorer) write(ctx context.Context, it *item, path string, want workspace.Entry) error {
	dir, err := r.pins.At(treepath.Parent(path), true)
	if err != nil {
		return err
	}
	dir.Changed = true
	if want.Kind == workspace.Symlink {
		if err := dir.Root.Symlink(want.Target, treepath.Base(path)); err != nil {
			return fmt.Errorf("write %s: %w", treepath.Display(it.Path), nofollow.WithoutPath(err))
		}
		return nil
	}
	content, err := r.open(want.Digest)
	if err != nil {
		return fmt.Errorf("the contents of %s: %w", treepath.Display(it.Path), err)
	}
	t := nofollow.Temp{Name: treepath.Base(path), Path: it.Path, Mode: want.Mode.Perm(), Replaces: it.replacedFile()}
	err = dir.WriteTemp(t, func(w io.Writer) error {
		return r.copyVerified(w, nofollow.UntilDone(ctx, content), want.Digest)
	})
	return errors.Join(err, content.Close())
}

// The new file gets the owner of this one.
func (it *item) replacedFile() fs.FileInfo {
	if it.info != nil && it.info.Mode().IsRegular() {
		return it.info
	}
	return nil
}

func (r *restorer) copyVerified(w io.Writer, from io.Reader, digest string) error {
	sum := sha256.New()
	if _, err := io.CopyBuffer(io.MultiWriter(w, sum), from, r.buf); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != digest {
		return fmt.Errorf("the stored contents have digest %s, not %s", got, digest)
	}
	return nil
}

func (r *restorer) removeTemps() error {
	var errs []error
	for _, it := range r.items {
		if !it.staged || it.placed {
			continue
		}
		dir, err := r.pins.At(treepath.Parent(it.stagePath()), false)
		if err == nil {
			err = dir.RemoveTemp(treepath.Base(it.stagePath()), it.Path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue // its directory was never created
		}
		errs = append(errs, err)
	}
	for _, it := range r.items {
		if it.staged && !it.placed && it.missingDir != "" {
			errs = append(errs, r.removeTempDirs(treepath.Parent(it.stagePath()), treepath.Parent(it.missingDir)))
		}
	}
	return errors.Join(append(errs, r.pins.RemoveCreated())...)
}

func (r *restorer) removeTempDirs(path, end string) error {
	for ; path != end; path = treepath.Parent(path) {
		dir, err := r.pins.At(path, false)
		if nofollow.IsAbsent(err) {
			continue
		}
		if err == nil {
			err = r.pins.RemoveEmpty(dir)
		}
		if err != nil {
			return fmt.Errorf("remove %s: %w", treepath.Display(path), nofollow.WithoutPath(err))
		}
	}
	return nil
}

func (r *restorer) setMode(dir *nofollow.Pin, it *item, mode fs.FileMode) error {
	f, info, err := nofollow.OpenRegular(dir.Root, it.Path)
	if err != nil {
		return nofollow.ReadError(it.Path, err)
	}
	defer f.Close()
	if !os.SameFile(info, it.info) {
		return &workspace.ConflictError{Paths: []string{it.Path}}
	}
	if err := nofollow.ChmodOpen(f, dir.Root, treepath.Base(it.Path), mode); err != nil {
		return fmt.Errorf("change the permissions of %s: %w", treepath.Display(it.Path), nofollow.WithoutPath(err))
	}
	return nil
}
