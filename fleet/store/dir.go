package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// dir is a store in a directory. An object is a directory with one file, its newest version,
// named by a number. To write the next version, a process makes a hard link that must be
// new. So no lock survives a killed process, and of all processes that write version N
// exactly one succeeds, also over NFS, where the server makes the link. Readers read the
// file with the largest number.
type dir struct{ root string }

// versionPrefix begins the names of versions, and newPrefix those of files that become one.
const (
	versionPrefix = ".v"
	newPrefix     = ".new-"
)

func openDir(root string) (Store, error) {
	if root == "" {
		return nil, errors.New("the name of the store is empty: name a directory, or s3://BUCKET/PREFIX")
	}
	root, err := filepath.Abs(root)
	if err == nil {
		err = os.MkdirAll(root, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	return dir{root}, nil
}

func (d dir) path(name string) string { return filepath.Join(d.root, filepath.FromSlash(name)) }

func (d dir) newest(name string) (int64, error) {
	if err := checkName(name); err != nil {
		return 0, err
	}
	entries, err := os.ReadDir(d.path(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	newest := int64(0)
	for _, e := range entries {
		newest = max(newest, versionOf(e.Name()))
	}
	return newest, nil
}

func versionOf(file string) int64 {
	number, ok := strings.CutPrefix(file, versionPrefix)
	n, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil {
		return 0
	}
	return n
}

func (d dir) version(name string, n int64) string {
	return filepath.Join(d.path(name), versionPrefix+strconv.FormatInt(n, 10))
}

func (d dir) Get(ctx context.Context, name string) (io.ReadCloser, string, error) {
	for {
		n, err := d.newest(name)
		if err == nil && n == 0 {
			err = ErrNotFound
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, "", fmt.Errorf("read %s from the store: %w", name, err)
		}
		f, err := os.Open(d.version(name, n))
		if errors.Is(err, fs.ErrNotExist) {
			continue // a newer version replaced it
		}
		if err != nil {
			return nil, "", err
		}
		return f, strconv.FormatInt(n, 10), nil
	}
}

func (d dir) Put(ctx context.Context, name string, content io.ReadSeeker, match string) (string, error) {
	now, err := d.newest(name)
	if err = errors.Join(err, ctx.Err()); err != nil {
		return "", fmt.Errorf("write %s to the store: %w", name, err)
	}
	if match != "" && match != strconv.FormatInt(now, 10) || match == "" && now != 0 {
		return written(ctx, d, name, content)
	}
	err = d.link(name, content, now+1)
	if err == nil {
		err = d.confirm(name, now+1)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return written(ctx, d, name, content)
	case err != nil:
		return "", fmt.Errorf("write %s to the store: %w", name, err)
	}
	return strconv.FormatInt(now+1, 10), nil
}

// The version must be new.
func (d dir) link(name string, content io.ReadSeeker, n int64) error {
	if err := os.MkdirAll(d.path(name), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(d.path(name), newPrefix)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err = content.Seek(0, io.SeekStart); err == nil {
		_, err = io.Copy(f, content)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), d.version(name, n))
}

// If a newer version than the new one exists, another process had already replaced and removed this number: then confirm
// removes the new version.
func (d dir) confirm(name string, n int64) error {
	newest, err := d.newest(name)
	if err != nil {
		return err
	}
	if newest > n {
		return errors.Join(fs.ErrExist, os.Remove(d.version(name, n)))
	}
	entries, err := os.ReadDir(d.path(name))
	for _, e := range entries {
		if old := versionOf(e.Name()); old > 0 && old < n {
			_ = os.Remove(d.version(name, old)) // another writer may have done it
		}
	}
	return err
}

func (d dir) List(ctx context.Context, prefix string) ([]string, error) {
	var names []string
	top := d.root
	if i := strings.LastIndexByte(prefix, '/'); i >= 0 {
		if err := checkName(prefix[:i]); err != nil {
			return nil, err
		}
		top = d.path(prefix[:i])
	}
	err := filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // deleted meanwhile, or never written
		}
		if err != nil || e.IsDir() || versionOf(e.Name()) == 0 {
			return errors.Join(err, ctx.Err())
		}
		name, err := filepath.Rel(d.root, filepath.Dir(path))
		if name = filepath.ToSlash(name); strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the store: %w", err)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func (d dir) Delete(_ context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	entries, err := os.ReadDir(d.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.Type().IsRegular() {
			err = errors.Join(err, os.Remove(filepath.Join(d.path(name), e.Name())))
		}
	}
	for at := d.path(name); at != d.root && os.Remove(at) == nil; at = filepath.Dir(at) {
	} // up to the first directory that has something else
	if err != nil {
		return fmt.Errorf("delete %s from the store: %w", name, err)
	}
	return nil
}
