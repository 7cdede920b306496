package harness

import (
	"context"
	"errors"
	"path/filepath"

	"hone/harness/internal/state"
	"hone/internal/config"
	"hone/journal"
	"hone/sandbox"
)

// Measuring waits until no other run of the user measures on this machine; see [loop.Session].
func (s *Session) Measuring(ctx context.Context, waiting func() error) (done func(), err error) {
	dir, err := state.Make("measuring")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "lock")
	if journal.IsLocked(path) {
		if err := waiting(); err != nil {
			return nil, err
		}
	}
	f, err := journal.LockFile(ctx, path)
	if err != nil {
		return nil, err
	}
	return func() { f.Close() }, nil
}

// InCopy returns a runner for a clean copy of the tree; see [loop.Session].
func (s *Session) InCopy(dir string) (r sandbox.Runner, remove func() error, err error) {
	tree, err := s.Tree.OpenCopy(dir)
	if err != nil {
		return nil, nil, err
	}
	w := s.commandWalls().(*Walls).forCopy(tree.Dir())
	return w.With(config.CheckEnv.In(s.loop.Shared().Values)), func() error { return errors.Join(w.Close(), tree.Close()) }, nil
}
