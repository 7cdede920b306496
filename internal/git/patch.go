package git

import "context"

// Patch returns the patch from the directory a to the directory b in dir, in the form
// that "git apply" accepts. It is empty if they do not differ.
func (g *Git) Patch(ctx context.Context, dir string) ([]byte, error) {
	return g.run(ctx, call{dir: dir, emptyExit: 1, args: []string{"diff", "--no-index", "--no-ext-diff", "--no-textconv", "--no-color",
		"--no-renames", "--no-prefix", "--binary", "--unified=3", "a", "b"}})
}
