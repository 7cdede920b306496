package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// tempName returns the name of the temporary file next to the path. Apply uses
// the same name for the same contents.
func (it *restoreItem) tempName() string {
	if it.Want.Kind == Symlink {
		return tempName(it.Path, "->"+it.Want.Target)
	}
	return tempName(it.Path, it.Want.Digest)
}

// graftOf returns the path of the new directory that will be renamed to top.
func graftOf(top string) string {
	return join(parentOf(top), tempName(top, "/"))
}

// stagePath returns the path of the temporary file.
func (it *restoreItem) stagePath() string {
	if it.missingDir != "" {
		return graftOf(it.missingDir) + it.Path[len(it.missingDir):]
	}
	return join(parentOf(it.Path), it.tempName())
}

// stage writes all temporary files, and removes those that a crash left.
func (r *restorer) stage(ctx context.Context) error {
	if err := r.removeLeftovers(); err != nil {
		return err
	}
	for _, it := range r.items {
		if it.done || it.isRemoval() || it.modeOnly() {
			continue
		}
		if err := r.tree.step("write %s", it.Path); err != nil {
			return err
		}
		it.staged = true // even a failed write may leave a file
		if err := r.write(ctx, it, it.stagePath(), it.Want); err != nil {
			return err
		}
	}
	return r.tree.step("staged")
}

// removeLeftovers removes what a crash during the same call left.
func (r *restorer) removeLeftovers() error {
	seen := map[string]bool{"": true}
	for _, it := range r.items {
		if err := r.removeLeftover(join(parentOf(it.Path), it.tempName()), it.Path); err != nil {
			return err
		}
		for dir := parentOf(it.Path); !seen[dir]; dir = parentOf(dir) {
			seen[dir] = true
			if err := r.removeLeftover(graftOf(dir), dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeLeftover removes the temporary file or directory of a path.
func (r *restorer) removeLeftover(left, path string) error {
	dir, err := r.pins.at(parentOf(left), false)
	if isAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := dir.dir.Lstat(base(left)); isNotExist(err) {
		return nil
	}
	dir.changed = true
	if err := dir.dir.RemoveAll(base(left)); err != nil {
		return fmt.Errorf("remove the temporary file of %s: %w", display(path), withoutPath(err))
	}
	return nil
}

// write creates the temporary file or symlink for the wanted state.
func (r *restorer) write(ctx context.Context, it *restoreItem, path string, want Entry) error {
	dir, err := r.pins.at(parentOf(path), true)
	if err != nil {
		return err
	}
	dir.changed = true
	if want.Kind == Symlink {
		if err := dir.dir.Symlink(want.Target, base(path)); err != nil {
			return fmt.Errorf("write %s: %w", display(it.Path), withoutPath(err))
		}
		return nil
	}
	content, err := r.open(want.Digest)
	if err != nil {
		return fmt.Errorf("the contents of %s: %w", display(it.Path), err)
	}
	t := temp{name: base(path), path: it.Path, mode: want.Mode.Perm(), old: it.replacedFile()}
	err = dir.writeTemp(t, func(w io.Writer) error {
		return r.copyVerified(w, contextReader{ctx, content}, want.Digest)
	})
	return errors.Join(err, content.Close())
}

// replacedFile returns the info of the file whose owner the new one gets, or
// nil.
func (it *restoreItem) replacedFile() fs.FileInfo {
	if it.info != nil && it.info.Mode().IsRegular() {
		return it.info
	}
	return nil
}

// copyVerified copies, and returns an error if the contents have another
// digest.
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

// removeTemps removes all temporary files and the directories created for them.
func (r *restorer) removeTemps() error {
	var errs []error
	for _, it := range r.items {
		if !it.staged || it.placed {
			continue
		}
		dir, err := r.pins.at(parentOf(it.stagePath()), false)
		if err == nil {
			err = dir.removeTemp(base(it.stagePath()), it.Path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue // its directory was never created
		}
		errs = append(errs, err)
	}
	for _, it := range r.items {
		if it.staged && !it.placed && it.missingDir != "" {
			errs = append(errs, r.removeTempDirs(parentOf(it.stagePath()), parentOf(it.missingDir)))
		}
	}
	return errors.Join(append(errs, r.pins.removeCreated())...)
}

// removeTempDirs removes empty directories of temporary files, from path up to
// but not including end.
func (r *restorer) removeTempDirs(path, end string) error {
	for ; path != end; path = parentOf(path) {
		dir, err := r.pins.at(path, false)
		if isAbsent(err) {
			continue
		}
		if err == nil {
			err = r.pins.removeEmpty(dir)
		}
		if err != nil {
			return fmt.Errorf("remove %s: %w", display(path), withoutPath(err))
		}
	}
	return nil
}

// setMode changes only the permission bits.
func (r *restorer) setMode(dir *pin, it *restoreItem, mode fs.FileMode) error {
	f, info, err := openRegular(dir.dir, it.Path)
	if err != nil {
		return readError(it.Path, err)
	}
	defer f.Close()
	if !os.SameFile(info, it.info) {
		return &ConflictError{Paths: []string{it.Path}}
	}
	if err := chmodOpen(f, dir.dir, base(it.Path), mode); err != nil {
		return fmt.Errorf("change the permissions of %s: %w", display(it.Path), withoutPath(err))
	}
	return nil
}
