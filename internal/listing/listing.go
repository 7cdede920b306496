// Package listing finds files of a directory: those that belong to its workspace
// ([Of]), those that contain secrets ([FindSecrets]), and those that changed but
// that undoing a run does not restore ([Leftovers]).
//
// The workspace consists of the files that git does not ignore, in the directory's
// repository and in the repositories nested in it, and of the ignored files that
// the configuration includes. Without a repository nothing is ignored. The package
// only reads.
package listing

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"hone/internal/git"
	"hone/internal/transient"
	"hone/workspace"
	"hone/workspace/treepath"
)

// Repository opens the repository whose top is root; nil if there is none. root
// must be absolute, without symbolic links. tree is what commands may write, see [git.Find].
func Repository(root, tree string) (*git.Repo, error) {
	top, err := git.Top(root)
	if errors.Is(err, git.ErrNotRepository) || err == nil && top != root {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	g, err := git.Find(tree)
	if err != nil {
		return nil, missing{err}
	}
	return g.Open(root)
}

// Of returns a lister that asks git for the files of a directory, and of the
// repositories nested in it. It also lists the ignored files that match an
// include glob. The lister is nil if the directory is not in a repository: then
// the tree is walked, and nothing is ignored. tree is what commands may write, see
// [git.Find]; root may lie in it.
func Of(root, tree string, include ...string) (workspace.Lister, error) {
	top, err := git.Top(root)
	if errors.Is(err, git.ErrNotRepository) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	outer, err := Repository(top, tree)
	if err != nil {
		return nil, err
	}
	below, err := filepath.Rel(top, root)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, dir string) (workspace.Listing, error) {
		if dir == root {
			l, err := listTop(ctx, outer, filepath.ToSlash(below), root, tree)
			if err != nil {
				return l, err
			}
			listed := map[string]bool{}
			also, err := matching(ctx, root, include)
			if len(also) > 0 {
				for _, p := range l.Paths {
					listed[p] = true
				}
			}
			// A nested repository is listed before the files in it, so what it says of them counts.
			for _, p := range also {
				if !listed[p] {
					l.Paths = append(l.Paths, p)
					l.Untracked[p], l.Ignored[p] = true, true
				}
			}
			return l, err
		}
		inner, err := Repository(dir, tree)
		if err != nil || inner == nil {
			return workspace.Listing{}, errors.Join(err, workspace.ErrNoRepository)
		}
		return listRepository(ctx, inner, ".")
	}, nil
}

func listTop(ctx context.Context, outer *git.Repo, below, root, tree string) (workspace.Listing, error) {
	if below != "." {
		own, err := Repository(root, tree) // a role's directory may become one after the tree was opened
		if err != nil {
			return workspace.Listing{}, err
		}
		if own != nil {
			return listRepository(ctx, own, ".")
		}
	}
	return listRepository(ctx, outer, below)
}

func listRepository(ctx context.Context, repo *git.Repo, below string) (workspace.Listing, error) {
	entries, err := repo.List(ctx, below)
	if err != nil {
		return workspace.Listing{}, err
	}
	l := workspace.Listing{Paths: make([]string, len(entries)), Untracked: map[string]bool{}, Ignored: map[string]bool{}}
	for i, e := range entries {
		l.Paths[i], _ = trimDir(e.Path, below)
		if e.Untracked {
			l.Untracked[l.Paths[i]] = true
		}
	}
	return l, nil
}

// missing means that git is needed but not installed.
type missing struct{ error }

// Hint returns what the user can do about it.
func (missing) Hint() string { return "install git" }

// matching returns the files and links below root that match a glob, whether or not git
// ignores them. The syntax of the globs is that of the rules. It enters only directories in
// which something may match.
func matching(ctx context.Context, root string, globs []string) ([]string, error) {
	if len(globs) == 0 {
		return nil, nil
	}
	patterns := treepath.CompileValid(globs, true)
	var found []string
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil || transient.Is(err) {
			return errors.Join(context.Cause(ctx), err)
		}
		rel, relErr := filepath.Rel(root, file)
		at := filepath.ToSlash(rel)
		switch {
		case err != nil || relErr != nil || at == ".":
			return relErr
		case d.IsDir():
			if treepath.Hidden(at) || !slices.ContainsFunc(globs, func(glob string) bool { return mayMatchIn(glob, at) }) {
				return fs.SkipDir
			}
		case patterns.Match(at):
			found = append(found, at)
		}
		return nil
	})
	return found, err
}

// mayMatchIn reports whether a glob may match something in a directory.
func mayMatchIn(glob, dir string) bool {
	const meta = `*?[{\`
	below := !strings.ContainsAny(glob, meta) || strings.HasSuffix(glob, "/")
	glob = path.Clean(glob)
	if glob == "." {
		return true
	}
	wanted, names := strings.Split(glob, "/"), strings.Split(dir, "/")
	deep := slices.IndexFunc(wanted, func(c string) bool { return strings.Contains(c, "**") || strings.Contains(c, "{") })
	if deep >= 0 { // from there on it may match several components
		wanted, below = wanted[:deep], true
	}
	n := min(len(wanted), len(names))
	return n == 0 || (below || n < len(wanted)) && treepath.Match([]string{strings.Join(wanted[:n], "/")}, strings.Join(names[:n], "/"))
}

// "." is the top.
func trimDir(p, dir string) (string, bool) {
	if dir == "." {
		return p, true
	}
	return strings.CutPrefix(p, dir+"/")
}
