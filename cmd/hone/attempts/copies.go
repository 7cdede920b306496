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
	"strings"

	"hone"
	"hone/group"
	"hone/internal/git"
	"hone/internal/gitdir"
	"hone/internal/render"
	"hone/journal"
	"hone/sandbox"
	"hone/workspace/clone"
)

// The copies of a run are in the user's cache: attempts/RUN/N/NAME, where NAME is that of
// the original, because some build tools use it. Beside them is the file "workspace" with
// the path of the directory whose run it is. All are for the user only.

const cacheKind, ownerFile = "attempts", "workspace"

type place struct {
	top  string // of what is copied: the repository, or the workspace outside of one
	rel  string // the workspace below top; "." if it is the top
	root string // of the run's copies
}

func placeOf(workspace, run string) (place, error) {
	all, err := group.Cache(cacheKind)
	if err != nil {
		return place{}, err
	}
	top, err := Top(workspace)
	if errors.Is(err, git.ErrNotRepository) {
		top, err = workspace, nil
	}
	if err != nil {
		return place{}, err
	}
	rel, err := filepath.Rel(top, workspace)
	return place{top: top, rel: rel, root: filepath.Join(all, run)}, err
}

// Top returns what is copied of a repository: its work tree, or for a submodule, whose repository is in that of the project
// around it, the work tree of that.
func Top(workspace string) (string, error) {
	top, err := git.Root(workspace)
	for err == nil {
		outer, none := git.Root(filepath.Dir(top))
		if link := gitdir.Link(filepath.Join(top, ".git")); link == "" || none != nil || !sandbox.Within(outer, link) {
			break
		}
		top = outer
	}
	return top, err
}

// own gives a copy a repository of its own, if the .git file of the original names one elsewhere, as in a linked worktree: that one
// is of the original alone.
func (p place) own(ctx context.Context, n int) error {
	link := gitdir.Link(filepath.Join(p.top, ".git"))
	if link == "" {
		return nil
	}
	at, common := filepath.Join(p.copy(n), ".git"), gitdir.Common(link)
	err := os.Remove(at)
	if err == nil {
		_, err = group.Copy(ctx, common, at)
	}
	if err == nil && common != link { // a linked worktree
		err = errors.Join(clone.Remove(filepath.Join(at, "worktrees")), clone.Remove(filepath.Join(at, "config.worktree")))
		for _, name := range []string{"HEAD", "index"} {
			text, readErr := os.ReadFile(filepath.Join(link, name))
			err = errors.Join(err, readErr, os.WriteFile(filepath.Join(at, name), text, 0o600))
		}
	}
	if err != nil {
		return fmt.Errorf("copy the repository: %w", err)
	}
	config, err := os.OpenFile(filepath.Join(at, "config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	tree := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(filepath.ToSlash(p.copy(n)))
	_, err = fmt.Fprintf(config, "\n[core]\n\tbare = false\n\tworktree = \"%s\"\n", tree)
	return errors.Join(err, config.Close())
}

func (p place) copy(n int) string {
	return filepath.Join(p.root, strconv.Itoa(n), filepath.Base(p.top))
}

func (p place) dir(n int) string { return filepath.Join(p.copy(n), p.rel) }

// All copies are complete, or none is made; what an earlier process left of them is removed. hone's own outputs in the
// workspace are left out, and minFree bytes of the disk stay free.
func (p place) make(ctx context.Context, workspace string, outputs []string, count int, minFree int64) (skipped []string, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, clone.Remove(p.root))
		}
	}()
	err = clone.Remove(p.root)
	if err == nil {
		err = os.MkdirAll(p.root, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(p.root, ownerFile), []byte(workspace), 0o600)
	}
	outputs = slices.Clone(outputs)
	for i := range outputs {
		outputs[i] = path.Join(filepath.ToSlash(p.rel), outputs[i])
	}
	for n := 1; n <= count && err == nil; n++ {
		var not []string
		not, err = group.Copy(ctx, p.top, p.copy(n), outputs...)
		skipped = append(skipped, not...)
		if err == nil {
			err = p.own(ctx, n)
		}
		if err == nil {
			err = clone.Remove(filepath.Join(p.dir(n), journal.HomeName)) // that of the original
		}
		if free, ok := journal.FreeSpace(p.root); err == nil && ok && free < minFree {
			err = &hone.Stop{Kind: hone.KindFailed, Why: fmt.Sprintf("only %s would be free on the disk of %s with the copies of the attempts, less than [limits] min-free (%s)", render.Bytes(free), p.root, render.Bytes(minFree)),
				Next: hone.Next{First: "free some disk space, for example with hone gc, or set XDG_CACHE_HOME", Verb: hone.Resume}}
		}
	}
	slices.Sort(skipped)
	return slices.Compact(skipped), err
}

// Collect removes the copies of runs that are no longer recorded in a home, and returns
// whose copies these were. deleted are recorded runs that count as removed, for a dry run.
func Collect(home *journal.Home, deleted []string, dryRun bool) (removed []string, err error) {
	all, err := group.Cache(cacheKind)
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
			err = errors.Join(err, group.Remove(filepath.Join(all, e.Name())))
		}
	}
	return removed, err
}
