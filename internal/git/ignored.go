package git

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
)

// IgnoredPaths returns what git ignores below dir: files, and directories that
// are ignored completely, each with a trailing slash and without its contents.
// Paths are relative to the root, with slashes, in the bytes that git stores,
// sorted by bytes. Tracked files are never included. dir is relative to the
// root; "." or "" means the root.
func (r *Repo) IgnoredPaths(ctx context.Context, dir string) ([]string, error) {
	rel, err := r.relativePath(dir)
	if err != nil {
		return nil, err
	}
	out, err := r.run(ctx, call{args: []string{"ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory", "--", rel}})
	if err != nil {
		return nil, err
	}
	paths := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	slices.Sort(paths)
	paths = slices.DeleteFunc(slices.Compact(paths), func(p string) bool { return p == "" })
	kept := paths[:0]
	for _, p := range paths { // sorted; git lists a directory and the paths below it
		if n := len(kept); n > 0 && strings.HasSuffix(kept[n-1], "/") && strings.HasPrefix(p, kept[n-1]) {
			continue
		}
		kept = append(kept, p)
	}
	return kept, nil
}

// Ignores reports whether git ignores a path, which is absolute and has no symbolic
// links. It never ignores what it tracks.
func (r *Repo) Ignores(ctx context.Context, path string) (bool, error) {
	rel, err := filepath.Rel(r.root, path)
	if err == nil {
		rel, err = r.relativePath(filepath.ToSlash(rel))
	}
	if err != nil {
		return false, err
	}
	const here = "./" // see ignoredAmong
	out, err := r.run(ctx, call{args: []string{"check-ignore", "-z", "--stdin"}, env: []string{"GIT_LITERAL_PATHSPECS=0"},
		stdin: nulTerminated(here, []string{rel}), emptyExit: 1})
	return len(out) > 0, err
}
