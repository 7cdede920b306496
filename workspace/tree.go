package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrNoRepository is what a [Lister] answers for a directory that no git
// repository holds; the directory is then walked.
var ErrNoRepository = errors.New("not a git repository")

// Lister says which files of one git repository are kept: tracked, or
// untracked and not ignored, and what the user wants kept besides.
//
// Contract: dir is absolute and is the root of a repository or a directory
// below one; the answer covers what lies below dir and does not enter
// repositories nested in it, whose directories it names instead. It returns
// ErrNoRepository (wrapped or not) where there is none, and any other error
// fails the listing. It keeps no reference to what it returns and may be
// called from several goroutines.
type Lister func(ctx context.Context, dir string) (Listing, error)

// Listing is what one repository keeps. The zero Listing keeps nothing.
type Listing struct {
	// Kept are paths relative to the directory, with slashes, in the raw
	// bytes that git gives; order and repetition do not matter. A directory,
	// with or without a slash at its end, is a nested repository or a
	// submodule, and is entered.
	Kept []string
	// Untracked are those of Kept that the repository does not track yet.
	Untracked map[string]bool
	// Ignored are those of Kept that git ignores, and that are kept all the
	// same because the user asked for it. Manifests have them, prompts do not.
	// An ignored directory stands for all that lies below it.
	Ignored map[string]bool
}

// DefaultMaxFile is the size in bytes of the largest file that a Tree reads
// whole, where Options do not say.
const DefaultMaxFile = 64 << 20

// Options are what Open can be told. The zero Options walk the tree.
type Options struct {
	// List asks git what is kept. Nil means that every tree is walked.
	List Lister
	// MaxFile is the size in bytes of the largest file that is read or
	// written whole; 0 means DefaultMaxFile. Manifests have no limit.
	MaxFile int64
}

// Tree is a directory whose regular files are listed, read and changed
// without following a symlink. It is safe for use by several goroutines,
// apart from Close; two calls of Apply or Restore at the same time may each
// report a conflict with the other.
type Tree struct {
	root    *os.Root
	dir     string
	list    Lister
	maxFile int64

	// fault is called at every step of Apply and Restore; an error is treated as the
	// failure of that step. Only tests set it.
	fault func(step string) error
}

// Open opens the tree below dir, which has to be a directory; symlinks on the
// way to it are followed. Close it after use.
func Open(dir string, o Options) (*Tree, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open tree: %w", err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return nil, fmt.Errorf("open tree: %w", err)
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, fmt.Errorf("open tree: %w", err)
	}
	return &Tree{
		root:    root,
		dir:     real,
		list:    o.List,
		maxFile: cmp.Or(o.MaxFile, DefaultMaxFile),
	}, nil
}

// Close releases the directory. The tree cannot be used afterwards.
func (t *Tree) Close() error { return t.root.Close() }

// Dir returns the absolute path of the tree's root, without symlinks.
func (t *Tree) Dir() string { return t.dir }
