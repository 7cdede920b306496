package git

import (
	"context"
	"slices"
	"strings"
)

// IgnoredPaths is what git ignores below dir: files, and folders in which
// everything is ignored, each as one path with a slash at its end that stands
// for all below it. Paths are relative to the root, with slashes, byte for byte
// as git has them, in the order of their bytes. What is tracked is not among
// them, whatever the lists say. dir is relative to the root; "." or the empty
// one is all of it.
func (r *Repo) IgnoredPaths(ctx context.Context, dir string) ([]string, error) {
	rel, err := r.relative(dir)
	if err != nil {
		return nil, err
	}
	paths, err := r.lsIgnored(ctx, nil, "--directory", "--", rel)
	if err != nil {
		return nil, err
	}
	return outermost(paths), nil
}

// outermost leaves out what lies below a folder of the same list, where git
// names such paths once more. The paths are sorted.
func outermost(paths []string) []string {
	kept := paths[:0]
	for _, p := range paths {
		if n := len(kept); n > 0 && strings.HasSuffix(kept[n-1], "/") && strings.HasPrefix(p, kept[n-1]) {
			continue
		}
		kept = append(kept, p)
	}
	return kept
}

// ListIgnored is every file that git ignores at the given paths and below them,
// one by one; no other folder is looked into. A repository inside an ignored
// folder is not looked into either: it is one path with a slash at its end, and
// may stand in the answer though it lies only near the given paths. A path is
// taken literally but for the case of its letters, and is relative to the root;
// "." is all of it. Without a path the answer is empty. It is otherwise as that
// of [Repo.IgnoredPaths].
func (r *Repo) ListIgnored(ctx context.Context, paths ...string) ([]string, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	args := []string{"--"}
	for _, p := range paths {
		rel, err := r.relative(p)
		if err != nil {
			return nil, err
		}
		args = append(args, ":(icase,literal)"+rel)
	}
	return r.lsIgnored(ctx, []string{"GIT_LITERAL_PATHSPECS=0"}, args...)
}

// lsIgnored asks for what is ignored and not tracked.
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
