package harness

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"hone/harness/internal/state"
	"hone/internal/git"
	"hone/internal/gitdir"
	"hone/sandbox"
)

// watches are the watches over the repositories of a session's trees, by root: all walls
// around a tree share one, so that each repository is told once. Nil keeps none.
type watches struct {
	mu     sync.Mutex
	byRoot map[string]*gitdir.Watch
	made   []string // absolute paths of repositories that commands of this run made before
}

func (w *watches) of(ctx context.Context, home, root string) (*gitdir.Watch, error) {
	home, root = state.RealPath(home), state.RealPath(root)
	if !sandbox.Within(home, root) {
		home = root
	}
	if w == nil {
		w = &watches{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if found := w.byRoot[root]; found != nil {
		return found, nil
	}
	watch, err := gitdir.NewWatch(ctx, home, root, func(plain []string) []string {
		return append(ignoredAmong(ctx, root, plain), slices.DeleteFunc(slices.Clone(plain), func(p string) bool { return !slices.Contains(w.made, filepath.Join(root, p)) })...)
	}, git.Unlink)
	if err != nil {
		return nil, err
	}
	if w.byRoot == nil {
		w.byRoot = map[string]*gitdir.Watch{}
	}
	w.byRoot[root] = watch
	return watch, nil
}

// The next build may remove such repositories. Paths are relative to root.
func ignoredAmong(ctx context.Context, root string, paths []string) []string {
	paths = slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return strings.HasPrefix(p, ".git"+string(filepath.Separator)) })
	if len(paths) == 0 {
		return nil
	}
	repo, err := git.OpenAt(root)
	if err != nil {
		return nil
	}
	top, err := git.Top(root)
	below, err2 := filepath.Rel(top, root)
	if errors.Join(err, err2) != nil {
		return nil
	}
	ignored, err := repo.IgnoredPaths(ctx, filepath.ToSlash(below))
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(paths, func(p string) bool {
		full := filepath.ToSlash(filepath.Join(below, p))
		return !slices.ContainsFunc(ignored, func(dir string) bool { return strings.HasSuffix(dir, "/") && strings.HasPrefix(full, dir) })
	})
}
