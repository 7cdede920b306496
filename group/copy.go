package group

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"hone/harness/runs"
	"hone/workspace"
	"hone/workspace/clone"
)

// Cache returns the directory in the user's cache for the copies of groups of a kind. It need not
// exist.
func Cache(kind string) (string, error) {
	cache, err := os.UserCacheDir()
	if err == nil {
		cache, err = filepath.Abs(cache)
	}
	if err != nil {
		return "", fmt.Errorf("there is no cache directory for copies: %w; set XDG_CACHE_HOME to a writable directory", err)
	}
	return filepath.Join(cache, "hone", kind), nil
}

// Copy copies a directory into a new one, except hone's own home at its top and outputs, which are paths
// below from. It returns what cannot be copied; see [clone.Tree].
func Copy(ctx context.Context, from, to string, outputs ...string) (skipped []string, err error) {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return nil, fmt.Errorf("copy %s: %w", from, err)
	}
	tree, err := workspace.Open(from, workspace.Options{})
	if err != nil {
		return nil, err
	}
	defer tree.Close()
	runs.ShutOutputs(tree, outputs)
	return clone.Tree(ctx, tree, to)
}

// Remove removes a directory with copies below dir/*/, and what was recorded of their runs outside
// of them.
func Remove(dir string) error {
	groups, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, copies := range groups {
		_ = RemoveCopy(copies)
	}
	return clone.Remove(dir)
}

// RemoveCopy removes a directory with a copy in it, and what was recorded of its run elsewhere.
func RemoveCopy(dir string) error {
	homes, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, home := range homes {
		runs.RemoveHome(home)
	}
	return clone.Remove(dir)
}
