package listing

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"hone/internal/transient"
	"hone/workspace/treepath"
)

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
