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

// temporary is the name of the temporary file beside the path, the same that
// Apply takes for the same contents.
func (it *restored) temporary() string {
	if it.Want.Kind == Symlink {
		return tempName(it.Path, "->"+it.Want.Target)
	}
	return tempName(it.Path, it.Want.Digest)
}

// graftOf is where the directory is made that will be renamed to top.
func graftOf(top string) string {
	return join(parentOf(top), tempName(top, "/"))
}

// stage returns the path of the temporary file.
func (it *restored) stage() string {
	if it.top != "" {
		return graftOf(it.top) + it.Path[len(it.top):]
	}
	return join(parentOf(it.Path), it.temporary())
}

// stage writes all temporary files, and removes those that a crash has left.
func (r *restorer) stage(ctx context.Context) error {
	if err := r.removeLeftovers(); err != nil {
		return err
	}
	for _, it := range r.items {
		if it.done || it.removal() || it.bitsOnly() {
			continue
		}
		if err := r.step("write %s", it.Path); err != nil {
			return err
		}
		it.staged = true // even a write that fails may leave a file
		if err := r.write(ctx, it, it.stage(), it.Want); err != nil {
			return err
		}
	}
	return r.step("staged")
}

// removeLeftovers removes what a crash of the same call has left.
func (r *restorer) removeLeftovers() error {
	seen := map[string]bool{"": true}
	for _, it := range r.items {
		if err := r.removeLeftover(join(parentOf(it.Path), it.temporary()), it.Path); err != nil {
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

// removeLeftover removes a temporary file or directory that stands for path.
func (r *restorer) removeLeftover(left, path string) error {
	dir, err := r.pins.at(parentOf(left), false)
	if absent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := dir.dir.Lstat(base(left)); missing(err) {
		return nil
	}
	dir.changed = true
	if err := dir.dir.RemoveAll(base(left)); err != nil {
		return fmt.Errorf("remove the temporary file of %s: %w", display(path), withoutPath(err))
	}
	return nil
}

// write makes a temporary file or symlink that is as wanted.
func (r *restorer) write(ctx context.Context, it *restored, path string, want Entry) error {
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
	t := temp{name: base(path), path: it.Path, mode: want.Mode.Perm(), old: it.replaces()}
	err = dir.writeTemp(t, func(w io.Writer) error {
		return r.verified(w, contextReader{ctx, content}, want.Digest)
	})
	return errors.Join(err, content.Close())
}

// replaces is the file whose owner the new one gets.
func (it *restored) replaces() fs.FileInfo {
	if it.info != nil && it.info.Mode().IsRegular() {
		return it.info
	}
	return nil
}

// verified copies, and is an error if the digest is another.
func (r *restorer) verified(w io.Writer, from io.Reader, digest string) error {
	sum := sha256.New()
	if _, err := io.CopyBuffer(io.MultiWriter(w, sum), from, r.buf); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != digest {
		return fmt.Errorf("the contents have the digest %s, not %s", got, digest)
	}
	return nil
}

// takeBack removes all temporary files and the directories that were made for
// them.
func (r *restorer) takeBack() error {
	var errs []error
	for _, it := range r.items {
		if !it.staged || it.placed {
			continue
		}
		dir, err := r.pins.at(parentOf(it.stage()), false)
		if err == nil {
			err = dir.removeTemp(base(it.stage()), it.Path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue // its directory was not even made
		}
		errs = append(errs, err)
	}
	for _, it := range r.items {
		if it.staged && !it.placed && it.top != "" {
			errs = append(errs, r.takeBackDirs(parentOf(it.stage()), parentOf(it.top)))
		}
	}
	return errors.Join(append(errs, r.pins.removeMade())...)
}

// takeBackDirs removes directories of temporary files, up to but without end.
// One that still holds something stays.
func (r *restorer) takeBackDirs(path, end string) error {
	for ; path != end; path = parentOf(path) {
		dir, err := r.pins.at(path, false)
		if absent(err) {
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

// setMode changes permission bits and nothing else.
func (r *restorer) setMode(dir *pin, it *restored, mode fs.FileMode) error {
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
