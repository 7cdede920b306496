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
	paths, err := r.lsIgnored(ctx, nil, "--directory", "--", rel)
	if err != nil {
		return nil, err
	}
	kept := paths[:0]
	for _, p := range paths { // sorted; git lists a directory and the paths below it
		if n := len(kept); n > 0 && strings.HasSuffix(kept[n-1], "/") && strings.HasPrefix(p, kept[n-1]) {
			continue
		}
		kept = append(kept, p)
	}
	return kept, nil
}

// IgnoredFiles returns every single file that git ignores at or below the given
// paths. It looks into no other directory. A repository inside an ignored
// directory is one path with a trailing slash, and may be included even if it
// is only near the given paths. Paths are literal except for case, and relative
// to the root; "." means the root. Without paths the result is empty. In other
// respects it is like [Repo.IgnoredPaths].
func (r *Repo) IgnoredFiles(ctx context.Context, paths ...string) ([]string, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	args := []string{"--"}
	for _, p := range paths {
		rel, err := r.relativePath(p)
		if err != nil {
			return nil, err
		}
		args = append(args, ":(icase,literal)"+rel)
	}
	return r.lsIgnored(ctx, []string{"GIT_LITERAL_PATHSPECS=0"}, args...)
}

func (r *Repo) lsIgnored(ctx context.Context, env []string, args ...string) ([]string, error) {
	args = append([]string{"ls-files", "-z", "--others", "--ignored", "--exclude-standard"}, args...)
	out, err := r.run(ctx, call{args: args, env: env})
	if err != nil {
		return nil, err
	}
	paths := strings.Split(string(out), "\x00")
	paths = slices.DeleteFunc(paths, func(p string) bool { return p == "" })
	slices.Sort(paths)
	return slices.Compact(paths), nil
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
