package git

import "context"

// Patch returns the patch from the directory a to the directory b in dir. It is empty if
// they do not differ. With binary it has the form that "git apply" accepts; without, it
// only names the binary files.
func (g *Git) Patch(ctx context.Context, dir string, binary bool) ([]byte, error) {
	args := []string{"diff", "--no-index", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--no-prefix", "--unified=3"}
	if binary {
		args = append(args, "--binary")
	}
	return g.run(ctx, call{dir: dir, emptyExit: 1, args: append(args, "a", "b")})
}
