package listing

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"hone/internal/git"
	"hone/workspace/treepath"
)

// inclusion selects the ignored files that [undo] include adds to a workspace.
// Its globs follow the syntax of the rules, and are relative to the workspace's
// root even in nested repositories.
type inclusion struct {
	root  string
	tree  string // see [Of]
	globs []string
}

// listIgnored returns the included ignored files of a repository, relative to
// the workspace's path at. The workspace starts at the directory below of that
// repository; "." is its top.
func (i inclusion) listIgnored(ctx context.Context, repo *git.Repo, below, at string) ([]string, error) {
	var ask []string
	for _, p := range i.queryPaths(at) {
		ask = append(ask, path.Join(below, p))
	}
	ignored, err := repo.IgnoredFiles(ctx, ask...)
	if err != nil {
		return nil, err
	}
	var kept []string
	for _, p := range ignored {
		p, ok := trimDir(p, below)
		switch {
		case !ok:
		case strings.HasSuffix(p, "/"):
			inner, err := i.listIgnoredRepo(ctx, path.Join(at, p))
			if err != nil {
				return nil, err
			}
			for _, file := range inner {
				kept = append(kept, p+file)
			}
		case treepath.Match(i.globs, path.Join(at, p)):
			kept = append(kept, p)
		}
	}
	return kept, nil
}

// All files of a repository in an ignored directory are ignored.
func (i inclusion) listIgnoredRepo(ctx context.Context, at string) ([]string, error) {
	repo, err := Repository(filepath.Join(i.root, filepath.FromSlash(at)), i.tree)
	if err != nil || repo == nil || len(i.queryPaths(at)) == 0 {
		return nil, err
	}
	entries, err := repo.List(ctx, ".")
	if err != nil {
		return nil, err
	}
	var kept []string
	for _, e := range entries {
		switch {
		case e.Nested:
			inner, err := i.listIgnoredRepo(ctx, path.Join(at, e.Path))
			if err != nil {
				return nil, err
			}
			for _, file := range inner {
				kept = append(kept, e.Path+"/"+file)
			}
		case treepath.Match(i.globs, path.Join(at, e.Path)):
			kept = append(kept, e.Path)
		}
	}
	ignored, err := i.listIgnored(ctx, repo, ".", at)
	return append(kept, ignored...), err
}

// "." is the top.
func trimDir(p, dir string) (string, bool) {
	if dir == "." {
		return p, true
	}
	return strings.CutPrefix(p, dir+"/")
}

// git is asked about these paths, so that it does not search other directories.
func (i inclusion) queryPaths(at string) []string {
	var paths []string
	for _, g := range i.globs {
		if rest, ok := globBelow(g, at); ok && filepath.IsLocal(filepath.FromSlash(rest)) {
			paths = append(paths, literalPrefixes(filepath.Join(i.root, filepath.FromSlash(at)), rest)...)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

const globChars = `*?[{\`

// A deep component can match several components of a path.
func isDeep(component string) bool {
	return strings.Contains(component, "**") || strings.Contains(component, "{")
}

// rest is "." for everything below dir. ok is false if the glob matches nothing there.
func globBelow(glob, dir string) (rest string, ok bool) {
	all := !strings.ContainsAny(glob, globChars) || strings.HasSuffix(glob, "/")
	rest = path.Clean(glob)
	for dir != "" {
		name, inner, _ := strings.Cut(dir, "/")
		component, tail, more := strings.Cut(rest, "/")
		switch {
		case rest == "." || isDeep(component):
			return ".", true
		case !treepath.Match([]string{component}, name):
			return "", false
		case !more:
			return ".", all
		}
		dir, rest = inner, tail
	}
	return rest, true
}

// literalPrefixes returns paths such that a glob matches only these and paths
// below them. It follows the glob as far as it is literal, and expands the next
// component if that matches few names.
func literalPrefixes(dir, glob string) []string {
	components := strings.Split(glob, "/")
	n := slices.IndexFunc(components, func(c string) bool { return strings.ContainsAny(c, globChars) })
	if n < 0 {
		return []string{glob}
	}
	base := path.Join(append([]string{"."}, components[:n]...)...)
	info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(base)))
	if isDeep(components[n]) || err != nil || !info.IsDir() {
		return []string{base}
	}
	entries, err := os.ReadDir(filepath.Join(dir, filepath.FromSlash(base)))
	var paths []string
	for _, e := range entries {
		if treepath.Match(components[n:n+1], e.Name()) {
			paths = append(paths, path.Join(base, e.Name()))
		}
	}
	const few = 64 // the length of a command line is limited
	if err != nil || len(paths) > few {
		return []string{base}
	}
	return paths
}
