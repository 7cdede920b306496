package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"hone/workspace/treepath"
)

// ErrNoRepository is returned by a [Lister] for a directory outside any git
// repository. The tree then lists every file of the directory.
var ErrNoRepository = errors.New("not a git repository")

// Lister lists the files of one git repository: tracked files, untracked files
// that are not ignored, and ignored files that the user included.
//
// Contract: dir is absolute and is the root of a repository or a directory
// below it. The listing covers everything below dir. It names the directory of
// a nested repository but does not enter it. The error is or wraps
// ErrNoRepository if there is no repository; any other error makes the listing
// fail. Callers must not change a Listing, because a Lister may return it again. They may
// call a Lister from several goroutines at once.
type Lister func(ctx context.Context, dir string) (Listing, error)

// Listing holds the files of one repository. The zero Listing is empty.
type Listing struct {
	// Paths are relative to the directory, with slashes, in the bytes that git
	// returns. Order and duplicates do not matter. A directory, with or without
	// a trailing slash, is a nested repository or a submodule, and is entered.
	Paths []string
	// Untracked are those of Paths that git does not track yet.
	Untracked map[string]bool
	// Ignored are those of Paths that git ignores but the user included.
	// Manifests include them, prompts do not. An ignored directory stands for
	// everything below it.
	Ignored map[string]bool
}

// DefaultMaxFile is the default of Options.MaxFile: 64 MiB.
const DefaultMaxFile = 64 << 20

// Options configure Open. The zero Options list every file of the tree.
type Options struct {
	// List asks git which files to list. Nil means that every file is listed.
	List Lister
	// MaxFile is the size in bytes of the largest file that may be read or
	// written, and that manifests read; 0 means DefaultMaxFile. See ReadUpTo.
	MaxFile int64
	// Scratch means that no change has to survive a crash, because the tree can
	// be made again: changes are not synced to the disk.
	Scratch bool
	// Whole is the tree that this one is a part or a view of; nil if there is none. The two
	// have one [Tree.Fault].
	Whole *Tree
}

// Tree is a directory whose regular files can be listed, read and changed. It
// never follows a symlink. Several goroutines may use a Tree at once, except
// for Close. Two concurrent calls of Apply may each report a conflict with the
// other.
type Tree struct {
	root    *os.Root
	dir     string
	list    Lister
	maxFile int64             // that models may read and write
	maxHash int64             // that manifests read; not less than maxFile
	closed  map[string]string // paths, and why they are closed
	scratch bool
	extra   sync.Map               // of Keep: paths
	passing *atomic.Pointer[error] // of Fault
	links   atomic.Pointer[[]toolLink]

	// fault is called before every step of Apply. An error from it counts as
	// the failure of that step. Only tests set it.
	fault func(step string) error
}

// Open opens the tree below dir, which must be a directory. It follows symlinks
// in dir itself. The caller must close the tree.
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
	t := &Tree{root: root, dir: real, list: o.List, maxFile: cmp.Or(o.MaxFile, DefaultMaxFile), maxHash: cmp.Or(o.MaxFile, DefaultMaxFile), closed: map[string]string{}, scratch: o.Scratch, passing: new(atomic.Pointer[error])}
	if o.Whole != nil {
		t.passing = o.Whole.passing
	}
	return t, nil
}

// Shut closes paths: the tree neither lists, reads nor changes them and what is below them.
// why is what the model is told. Call it before the tree is used.
func (t *Tree) Shut(why string, paths ...string) {
	for _, p := range paths {
		t.closed[p] = why
	}
}

// OpenCopy opens a copy of the tree in another directory, such as that of package
// clone. It lists the files that t lists, as far as the copy has them. The caller
// must close it.
func (t *Tree) OpenCopy(dir string) (*Tree, error) {
	c, err := Open(dir, Options{MaxFile: t.maxFile, Whole: t})
	if err != nil {
		return nil, err
	}
	maps.Copy(c.closed, t.closed)
	t.extra.Range(func(path, _ any) bool { c.Keep(path.(string)); return true })
	if c.maxHash = t.maxHash; t.list == nil {
		return c, nil
	}
	c.list = func(ctx context.Context, at string) (Listing, error) {
		rel, err := filepath.Rel(c.dir, at)
		if err != nil {
			return Listing{}, err
		}
		return t.list(ctx, filepath.Join(t.dir, rel))
	}
	return c, nil
}

// Keep adds files to the tree even if git ignores them: manifests have them, prompts do not.
// A run keeps what its edits wrote, so that it can be followed, applied elsewhere and undone.
func (t *Tree) Keep(paths ...string) {
	for _, p := range paths {
		t.extra.Store(p, nil)
	}
}

// ReadUpTo sets the size in bytes of the largest file that manifests read; 0 means no
// limit. It is never less than Options.MaxFile, because the contents of what a model may
// change must be known. Call it before the tree is used.
func (t *Tree) ReadUpTo(size int64) {
	if t.maxHash = max(size, t.maxFile); size == 0 {
		t.maxHash = math.MaxInt64 - 1
	}
}

// MaxRead returns the size in bytes of the largest file that manifests read.
func (t *Tree) MaxRead() int64 { return t.maxHash }

// Close releases the directory. The tree must not be used afterwards.
func (t *Tree) Close() error { return t.root.Close() }

// Dir returns the absolute path of the tree's root, without symlinks.
func (t *Tree) Dir() string { return t.dir }

// Root returns the open directory, which is valid until Close. It is for the
// packages below workspace only, because it bypasses Review and Apply.
func (t *Tree) Root() *os.Root { return t.root }

// Refusal returns a [*treepath.RefusedError] for a closed path, and nil for all other
// paths. The path must be cleaned. Read and Review call it themselves.
func (t *Tree) Refusal(path string) error {
	for closed, why := range t.closed {
		if treepath.IsBelow(path, closed) {
			return treepath.Refuse(path, "%s", why)
		}
	}
	return nil
}

func (t *Tree) step(format string, args ...any) error {
	if t.fault == nil {
		return nil
	}
	return t.fault(fmt.Sprintf(format, args...))
}
