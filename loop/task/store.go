package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"hone"
	"hone/workspace"
)

// Where the loop's own files are, relative to the tree's root.
const (
	artifactsHome   = ".codescribe"
	artifactsFolder = artifactsHome + "/loop"
)

// inTree is a step below the tree's root.
func inTree[T any](ctx context.Context, r *hone.Run, name string, input any, do func(*os.Root) (T, error)) (T, error) {
	return hone.Step(ctx, r, name, input, func(context.Context) (T, error) {
		root, err := os.OpenRoot(r.Tree.Dir())
		if err != nil {
			return *new(T), err
		}
		defer root.Close()
		return do(root)
	})
}

// straight is an error where the way to a file leads through a link, which a
// root follows to anywhere below it.
func straight(root *os.Root, name string) error {
	for at := path.Dir(name); at != "." && at != "/"; at = path.Dir(at) {
		info, err := root.Lstat(at)
		if err == nil && !info.IsDir() {
			return fmt.Errorf("%s is no folder: move it away", at)
		}
	}
	return nil
}

// writeFile puts a file in place of what is there, whole or not at all. It can
// be done twice.
func writeFile(root *os.Root, name string, content []byte) error {
	if err := straight(root, name); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	temp := name + ".hone-tmp"
	if err := remove(root, temp); err != nil {
		return err
	}
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, errors.Join(err, remove(root, temp)))
	}
	return nil
}

// remove removes what is at a name, be it a folder; nothing there is fine.
func remove(root *os.Root, name string) error {
	if err := straight(root, name); err != nil {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	if err := root.RemoveAll(name); err != nil {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return nil
}

// readFile reads a regular file of so many bytes at most. A link is not
// followed.
func readFile(root *os.Root, name string, most int64) ([]byte, error) {
	if err := straight(root, name); err != nil {
		return nil, err
	}
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", name)
	case info.Size() > most:
		return nil, fmt.Errorf("%s is longer than %d bytes", name, most)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// prefix is what of a file stood there before a run, while it still does.
type prefix struct {
	Bytes  int64  `json:"bytes"`
	Digest string `json:"digest"`
}

// mostKept is how much of a log is kept that was there before, in bytes.
const mostKept = 64 << 20

// kept is the text of a file that a prefix means; nil where it is gone.
func kept(root *os.Root, name string, p prefix) ([]byte, error) {
	text, err := readFile(root, name, 4*mostKept)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case int64(len(text)) < p.Bytes || workspace.Digest(text[:p.Bytes]) != p.Digest:
		return nil, nil
	}
	return bytes.TrimRight(text[:p.Bytes], "\n"), nil
}

// measure is the prefix that a file is now.
func measure(root *os.Root, name string) (prefix, error) {
	text, err := readFile(root, name, mostKept)
	if errors.Is(err, fs.ErrNotExist) {
		return prefix{}, nil
	}
	if err != nil {
		return prefix{}, fmt.Errorf("%w: move it away", err)
	}
	return prefix{int64(len(text)), workspace.Digest(text)}, nil
}
