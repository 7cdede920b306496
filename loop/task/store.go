package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"hone"
	"hone/internal/artifact"
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

// prefix is what of a file stood there before a run, while it still does.
type prefix struct {
	Bytes  int64  `json:"bytes"`
	Digest string `json:"digest"`
}

// mostKept is how much of a log is kept that was there before, in bytes.
const mostKept = 64 << 20

// kept is the text of a file that a prefix means; nil where it is gone.
func kept(root *os.Root, name string, p prefix) ([]byte, error) {
	text, err := artifact.Read(root, name, 4*mostKept)
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
	text, err := artifact.Read(root, name, mostKept)
	if errors.Is(err, fs.ErrNotExist) {
		return prefix{}, nil
	}
	if err != nil {
		return prefix{}, fmt.Errorf("%w: move it away", err)
	}
	return prefix{int64(len(text)), workspace.Digest(text)}, nil
}
