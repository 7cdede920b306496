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
	"strings"
)

// dir is a store in a directory. To write an object, a process makes a hard link to a complete
// file. So no lock survives a killed process, and of all writers exactly one succeeds, also
// over NFS, where the server makes the link.
type dir struct{ root string }

// newPrefix begins the names of files that become an object.
const newPrefix = ".new-"

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

func (d dir) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	err := errors.Join(checkName(name), ctx.Err())
	var f *os.File
	if err == nil {
		f, err = os.Open(d.path(name))
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read %s from the store: %w", name, err)
	}
	return f, nil
}

func (d dir) Create(ctx context.Context, name string, content io.ReadSeeker) error {
	err := errors.Join(checkName(name), ctx.Err())
	if err == nil {
		err = d.link(name, content)
	}
	if errors.Is(err, fs.ErrExist) {
		err = ErrExists
	}
	if err != nil {
		return fmt.Errorf("write %s to the store: %w", name, err)
	}
	return nil
}

func (d dir) link(name string, content io.ReadSeeker) error {
	folder := filepath.Dir(d.path(name))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(folder, newPrefix)
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
	return os.Link(f.Name(), d.path(name))
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
		if err != nil || !e.Type().IsRegular() || strings.HasPrefix(e.Name(), newPrefix) {
			return errors.Join(err, ctx.Err())
		}
		name, err := filepath.Rel(d.root, path)
		if name = filepath.ToSlash(name); strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the store: %w", err)
	}
	slices.Sort(names)
	return names, nil
}
