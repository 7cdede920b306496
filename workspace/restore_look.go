package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// lookAtAll finds out what stands at every path, reports all conflicts at
// once, and makes sure that the directories can be written to.
func (r *restorer) lookAtAll(ctx context.Context) error {
	for _, it := range r.items {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.lookAt(ctx, it); err != nil {
			return err
		}
	}
	var conflict ConflictError
	for _, it := range r.items {
		ok, err := r.settle(it)
		if err != nil {
			return err
		}
		if !ok {
			conflict.Paths = append(conflict.Paths, it.Path)
		}
	}
	if len(conflict.Paths) > 0 {
		return &conflict
	}
	return r.writable()
}

// lookAt finds out what stands at a path.
func (r *restorer) lookAt(ctx context.Context, it *restored) error {
	it.found, it.info, it.way = Entry{}, nil, nil
	dir, err := r.parent(it)
	if err != nil || dir == nil {
		return err
	}
	it.info, err = dir.dir.Lstat(base(it.Path))
	if missing(err) {
		it.info = nil
		return nil
	}
	switch {
	case err != nil:
		return readError(it.Path, err)
	case it.info.IsDir():
		it.way = []clearing{{it.Path, it.info.Mode().Perm()}}
		return nil
	case it.info.Mode().IsRegular():
		return r.digest(ctx, it, dir)
	case it.info.Mode()&fs.ModeSymlink != 0:
		target, err := dir.dir.Readlink(base(it.Path))
		if err != nil {
			return readError(it.Path, err)
		}
		it.found = Entry{Kind: Symlink, Target: target}
		return nil
	}
	it.found = Entry{Kind: Other}
	return nil
}

// parent returns the directory of a path, or nil where the way to it ends
// before, which is then noted.
func (r *restorer) parent(it *restored) (*pin, error) {
	it.top, it.stop = "", false
	dir, err := r.pins.at(parentOf(it.Path), false)
	if err == nil {
		return dir, nil
	}
	for i := range len(it.Path) {
		if it.Path[i] != '/' {
			continue
		}
		it.top = it.Path[:i]
		if _, err := r.pins.at(it.top, false); err != nil {
			return nil, r.ends(it, err)
		}
	}
	return nil, err // somebody changes the tree at this moment
}

// ends finds out why the way to a path ends.
func (r *restorer) ends(it *restored, cause error) error {
	if errors.Is(cause, fs.ErrNotExist) {
		return nil
	}
	var refused *RefusedError
	if !errors.As(cause, &refused) {
		return cause
	}
	dir, err := r.pins.at(parentOf(it.top), false)
	if err != nil {
		return err
	}
	info, err := dir.dir.Lstat(base(it.top))
	if err != nil || info.IsDir() {
		return cause
	}
	it.stop = true
	return nil
}

// digest reads a regular file. One that may not be read has no digest.
func (r *restorer) digest(ctx context.Context, it *restored, dir *pin) error {
	it.found = Entry{Kind: Regular, Mode: it.info.Mode().Perm(), Size: it.info.Size()}
	f, info, err := openRegular(dir.dir, it.Path)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return readError(it.Path, err)
	}
	defer f.Close()
	sum := sha256.New()
	if it.found.Size, err = io.CopyBuffer(sum, contextReader{ctx, f}, r.buf); err != nil {
		return readError(it.Path, err)
	}
	it.info = info
	it.found.Mode, it.found.Digest = info.Mode().Perm(), hex.EncodeToString(sum.Sum(nil))
	return nil
}

// settle decides what is to be done about a path that was looked at, and
// reports whether it may be.
func (r *restorer) settle(it *restored) (ok bool, err error) {
	if it.Want.Kind == Other || it.found.Kind == Other {
		return false, nil
	}
	if it.found.is(it.Want) { // also where a directory stands, and nothing is wanted
		it.done, it.way = true, nil
		return true, nil
	}
	if ok, err := r.replaceable(it); !ok || err != nil {
		return false, err
	}
	if it.stop {
		above := r.byPath[it.top]
		return above != nil && above.removal(), nil
	}
	if len(it.way) > 0 {
		return r.makesWay(it)
	}
	return true, nil
}

// replaceable reports whether what was found is a state that may be replaced.
func (r *restorer) replaceable(it *restored) (bool, error) {
	for _, from := range it.From {
		if it.found.is(from) {
			return true, nil
		}
	}
	if it.From != nil {
		return false, nil
	}
	if it.found.Kind != Regular || it.bitsOnly() {
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
		return false, fmt.Errorf("what %s holds now: %w", display(it.Path), err)
	}
	return true, content.Close()
}

// makesWay reports whether a directory holds nothing but what goes and other
// such directories, and notes them.
func (r *restorer) makesWay(it *restored) (bool, error) {
	for i := 0; i < len(it.way); i++ {
		dir, err := r.pins.at(it.way[i].path, false)
		if err != nil {
			return false, err
		}
		names, err := namesIn(dir.dir)
		if err != nil {
			return false, readError(dir.path, err)
		}
		for _, name := range names {
			path := join(dir.path, name)
			info, err := dir.dir.Lstat(name)
			if err != nil {
				return false, readError(path, err)
			}
			switch {
			case info.IsDir() && !hidden(path):
				it.way = append(it.way, clearing{path, info.Mode().Perm()})
			case !r.goes(path):
				return false, nil
			}
		}
	}
	return true, nil
}

// goes reports whether this run removes what stands at a path: it is asked
// to, or it is what a crash has left.
func (r *restorer) goes(path string) bool {
	if it := r.byPath[path]; it != nil {
		return it.removal()
	}
	if !hidden(path) {
		return false
	}
	for _, it := range r.items {
		if parentOf(it.Path) == parentOf(path) && it.temporary() == base(path) {
			return true
		}
	}
	return false
}

// writable finds a directory whose names have to change and cannot.
func (r *restorer) writable() error {
	asked := map[string]bool{}
	for _, it := range r.items {
		if it.done || it.bitsOnly() {
			continue
		}
		dirs := []string{parentOf(it.Path)}
		if it.top != "" {
			dirs[0] = parentOf(it.top)
		}
		for _, c := range it.way {
			dirs = append(dirs, parentOf(c.path))
		}
		for _, dir := range dirs {
			if asked[dir] {
				continue
			}
			asked[dir] = true
			if err := r.mayWrite(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *restorer) mayWrite(path string) error {
	dir, err := r.pins.at(path, false)
	if err != nil {
		return err
	}
	if err := mayWrite(dir.dir); err != nil {
		if path == "" {
			path = r.tree.dir
		}
		return fmt.Errorf("write to directory %s: %w", display(path), err)
	}
	return nil
}

// lookAgain finds directories and files that changed while the temporary
// files were written.
func (r *restorer) lookAgain() error {
	if err := r.pins.check(); err != nil {
		return err
	}
	var conflict ConflictError
	for _, it := range r.items {
		if !it.done && !r.unchanged(it) {
			conflict.Paths = append(conflict.Paths, it.Path)
		}
	}
	if len(conflict.Paths) > 0 {
		return &conflict
	}
	return nil
}

// unchanged reports whether a path still has what was found there.
func (r *restorer) unchanged(it *restored) bool {
	path := it.Path
	if it.top != "" {
		if it.stop {
			return true // the path at which the way ends answers for itself
		}
		path = it.top
	}
	dir, err := r.pins.at(parentOf(path), false)
	return err == nil && dir.still(base(path), it.info)
}
