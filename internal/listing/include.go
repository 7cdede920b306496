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

// inclusion is what a workspace keeps although git ignores it: the files that
// [undo] include means. Its globs are read as the rules' are, and relative to
// the workspace's root in nested repositories too.
type inclusion struct {
	root  string
	globs []string
}

// in lists the ignored files that are kept, of a repository that lies at a path
// of the workspace, relative to that path. The workspace begins at a folder
// below that repository's top, or at "." of it.
func (i inclusion) in(ctx context.Context, repo *git.Repo, below, at string) ([]string, error) {
	var ask []string
	for _, p := range i.asked(at) {
		ask = append(ask, path.Join(below, p))
	}
	ignored, err := repo.IgnoredFiles(ctx, ask...)
	if err != nil {
		return nil, err
	}
	var kept []string
	for _, p := range ignored {
		p, ok := trimFolder(p, below)
		switch {
		case !ok:
		case strings.HasSuffix(p, "/"):
			inner, err := i.inIgnored(ctx, path.Join(at, p))
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

// inIgnored lists what is kept of a repository in an ignored folder: there, all
// files are ignored ones.
func (i inclusion) inIgnored(ctx context.Context, at string) ([]string, error) {
	repo, err := Repository(filepath.Join(i.root, filepath.FromSlash(at)))
	if err != nil || repo == nil || len(i.asked(at)) == 0 {
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
			inner, err := i.inIgnored(ctx, path.Join(at, e.Path))
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
	ignored, err := i.in(ctx, repo, ".", at)
	return append(kept, ignored...), err
}

// trimFolder is a path relative to a folder that it lies in; "." is the top.
func trimFolder(p, folder string) (string, bool) {
	if folder == "." {
		return p, true
	}
	return strings.CutPrefix(p, folder+"/")
}

// asked are the paths that git has to look at below a path of the workspace,
// so that no folder is looked into for nothing.
func (i inclusion) asked(at string) []string {
	var paths []string
	for _, g := range i.globs {
		if rest, ok := restOf(g, at); ok && filepath.IsLocal(filepath.FromSlash(rest)) {
			paths = append(paths, firstStep(filepath.Join(i.root, filepath.FromSlash(at)), rest)...)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// globChars are what makes a glob of a path.
const globChars = `*?[{\`

// deep reports whether a glob's component can stand for several of a path.
func deep(component string) bool {
	return strings.Contains(component, "**") || strings.Contains(component, "{")
}

// restOf is what a glob means below a folder; "." is all of it. It is false if
// the glob means nothing there.
func restOf(glob, folder string) (string, bool) {
	all := !strings.ContainsAny(glob, globChars) || strings.HasSuffix(glob, "/")
	rest := path.Clean(glob)
	for folder != "" {
		name, inner, _ := strings.Cut(folder, "/")
		component, tail, more := strings.Cut(rest, "/")
		switch {
		case rest == "." || deep(component):
			return ".", true
		case !treepath.Match([]string{component}, name):
			return "", false
		case !more:
			return ".", all
		}
		folder, rest = inner, tail
	}
	return rest, true
}

// firstStep replaces a glob by paths that have all that it means at or below
// them: it is followed as far as it is literal, and one component further where
// that leads to a few names.
func firstStep(dir, glob string) []string {
	components := strings.Split(glob, "/")
	n := slices.IndexFunc(components, func(c string) bool { return strings.ContainsAny(c, globChars) })
	if n < 0 {
		return []string{glob}
	}
	base := path.Join(append([]string{"."}, components[:n]...)...)
	info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(base)))
	if deep(components[n]) || err != nil || !info.IsDir() {
		return []string{base}
	}
	names, err := namesIn(filepath.Join(dir, filepath.FromSlash(base)))
	names = slices.DeleteFunc(names, func(name string) bool { return !treepath.Match(components[n:n+1], name) })
	const few = 64 // a command line has its limits
	if err != nil || len(names) > few {
		return []string{base}
	}
	for i, name := range names {
		names[i] = path.Join(base, name)
	}
	return names
}
