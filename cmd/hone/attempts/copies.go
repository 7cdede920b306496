package attempts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"hone"
	"hone/harness/runs"
	"hone/internal/git"
	"hone/internal/render"
	"hone/journal"
	"hone/loop"
	"hone/workspace"
	"hone/workspace/clone"
)

// The copies of a run are in the user's cache: attempts/RUN/N/NAME, where NAME is that of
// the original, because some build tools use it. Beside them is the file "workspace" with
// the path of the directory whose run it is. All are for the user only.

// ownerFile is the file with the path of the directory whose run was copied.
const ownerFile = "workspace"

// copiesDir returns the directory of all copies; it need not exist.
func copiesDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", loop.Usage("attempts need a cache folder: "+err.Error(), "set XDG_CACHE_HOME")
	}
	return filepath.Join(cache, "hone", "attempts"), nil
}

// place is where the copies of a run are.
type place struct {
	top  string // of what is copied: the repository, or the workspace outside of one
	rel  string // the workspace below top; "." if it is the top
	root string // of the run's copies
}

// placeOf returns where the copies of a run in a workspace are.
func placeOf(workspace, run string) (place, error) {
	all, err := copiesDir()
	if err != nil {
		return place{}, err
	}
	top, err := git.Root(workspace)
	if errors.Is(err, git.ErrNotRepository) {
		top, err = workspace, nil
	}
	if err != nil {
		return place{}, err
	}
	rel, err := filepath.Rel(top, workspace)
	return place{top: top, rel: rel, root: filepath.Join(all, run)}, err
}

// copy returns the path of a copy of the top.
func (p place) copy(n int) string {
	return filepath.Join(p.root, strconv.Itoa(n), filepath.Base(p.top))
}

// dir returns the workspace in a copy.
func (p place) dir(n int) string { return filepath.Join(p.copy(n), p.rel) }

// make makes the copies, each complete, and removes what an earlier process left
// of them. It leaves out hone's own outputs in the workspace, and keeps minFree bytes of the
// disk free.
func (p place) make(ctx context.Context, workspaceDir string, outputs []string, count int, minFree int64) (skipped []string, err error) {
	if err := clone.Remove(p.root); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(p.root, 0o700); err != nil {
		return nil, fmt.Errorf("make the copies: %w", err)
	}
	if err := os.WriteFile(filepath.Join(p.root, ownerFile), []byte(workspaceDir), 0o600); err != nil {
		return nil, fmt.Errorf("make the copies: %w", err)
	}
	tree, err := workspace.Open(p.top, workspace.Options{})
	if err != nil {
		return nil, err
	}
	defer tree.Close()
	for _, o := range outputs {
		runs.ShutOutputs(tree, []string{path.Join(filepath.ToSlash(p.rel), o)})
	}
	for n := 1; n <= count; n++ {
		if err = p.makeOne(ctx, tree, n, &skipped); err == nil {
			err = checkSpace(p.root, minFree)
		}
		if err != nil {
			return nil, errors.Join(err, clone.Remove(p.root))
		}
	}
	slices.Sort(skipped)
	return slices.Compact(skipped), nil
}

// makeOne makes one copy. A home in it is that of the original.
func (p place) makeOne(ctx context.Context, tree *workspace.Tree, n int, skipped *[]string) error {
	if err := os.MkdirAll(p.copy(n), 0o700); err != nil {
		return fmt.Errorf("make a copy: %w", err)
	}
	not, err := clone.Tree(ctx, tree, p.copy(n))
	*skipped = append(*skipped, not...)
	if err != nil {
		return err
	}
	return clone.Remove(filepath.Join(p.dir(n), journal.HomeName))
}

// checkSpace returns a [*hone.Stop] if less of the disk of a directory is free.
func checkSpace(dir string, least int64) error {
	free, ok := journal.FreeSpace(dir)
	if !ok || free >= least {
		return nil
	}
	return &hone.Stop{Kind: hone.KindFailed, Why: fmt.Sprintf("only %s would be free on the disk of %s with the copies of the attempts, less than [limits] min-free (%s)", render.Bytes(free), dir, render.Bytes(least)),
		Next: hone.Next{First: "free some disk space, for example with hone gc, or set XDG_CACHE_HOME", Verb: hone.Resume}}
}

// Collect removes the copies of runs that are no longer recorded in a home, and returns
// whose copies these were. deleted are recorded runs that count as removed, for a dry run.
func Collect(home *journal.Home, deleted []string, dryRun bool) (removed []string, err error) {
	all, err := copiesDir()
	if err != nil {
		return nil, nil // there are none
	}
	entries, err := os.ReadDir(all)
	if err != nil {
		return nil, nil // or none of this user
	}
	recorded, err := home.Runs() // after that: a run is recorded before it has copies
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		owner, ownerErr := os.ReadFile(filepath.Join(all, e.Name(), ownerFile))
		kept := slices.Contains(recorded, e.Name()) && !slices.Contains(deleted, e.Name())
		if ownerErr != nil || string(owner) != home.Workspace() || kept {
			continue
		}
		removed = append(removed, e.Name())
		if !dryRun {
			err = errors.Join(err, removeCopies(filepath.Join(all, e.Name())))
		}
	}
	return removed, err
}

// removeCopies removes the copies of a run, and what is recorded of their runs outside of
// them.
func removeCopies(root string) error {
	homes, _ := filepath.Glob(filepath.Join(root, "*", "*"))
	for _, dir := range homes {
		runs.RemoveHome(dir)
	}
	return clone.Remove(root)
}
