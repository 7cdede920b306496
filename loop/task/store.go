package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"hone"
	"hone/internal/artifact"
	"hone/loop"
	"hone/workspace"
)

// The directories of the loop's own files, relative to the tree's root.
const (
	artifactsHome   = ".codescribe"
	artifactsFolder = artifactsHome + "/loop"
)

// Git ignores what is in a new directory, so that the user does not commit it by accident. A directory that exists stays as it
// is: CodeScribe's users may have theirs in git.
func makeHome(dir string) error {
	_, err := os.Lstat(filepath.Join(dir, artifactsHome))
	if !errors.Is(err, fs.ErrNotExist) {
		return loop.MakeDir(dir, artifactsHome)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return artifact.Create(root, artifactsHome+"/.gitignore", []byte("*\n"), 0o644)
}

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

// prefix identifies the contents that a file had before a run.
type prefix struct {
	Bytes  int64  `json:"bytes"`
	Digest string `json:"digest"`
}

// maxLog limits the size of a log from before a run, in bytes.
const maxLog = 64 << 20

// It is nil if the file no longer starts with them.
func readPrefix(root *os.Root, name string, p prefix) ([]byte, error) {
	text, err := artifact.Read(root, name, 4*maxLog)
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

func measure(root *os.Root, name string) (prefix, error) {
	text, err := artifact.Read(root, name, maxLog)
	if errors.Is(err, fs.ErrNotExist) {
		return prefix{}, nil
	}
	if err != nil {
		return prefix{}, fmt.Errorf("%w: move it away", err)
	}
	return prefix{int64(len(text)), workspace.Digest(text)}, nil
}
