// Package workspace reads and changes the files of a project tree on behalf of
// a model.
//
// Open a [Tree], list it with [Tree.Files] and read it with [Tree.Read]. To
// change it, call [Tree.Review] and then [Tree.Apply]. Review decides for each
// edit whether it is allowed, needs approval, has no effect or is denied, and
// gives the reason. Apply makes all changes of a list or none, and never overwrites
// contents that the caller did not see. It also takes changes back.
//
// A [Manifest] is the state of all files that git does not ignore; compare two
// with [Manifest.Diff], and go from one to the other with Apply. [Tree.Store] stores the
// contents of a manifest.
//
// [hone/workspace/treepath] cleans and matches paths. [hone/workspace/secret]
// finds secrets, which no model may see. [hone/workspace/clone] copies a tree.
//
// A Tree opens regular files only and never follows a symlink. This holds even
// while another process replaces directories with symlinks: nothing is written
// outside the tree.
//
// The package does not restrict what commands do; package sandbox does. It
// treats bind mounts like any other directory.
package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"hone/workspace/secret"
	"hone/workspace/treepath"
)

// Change is a set of edits that a model or the user wants to make together.
type Change struct {
	Edits []Edit `json:"edits"`
}

// Edit is the wanted state of one file. Path is relative to the tree's root,
// with slashes, as the model wrote it; Review cleans it.
type Edit struct {
	Path    string `json:"path"`
	Content []byte `json:"content,omitempty"` // complete contents; nil means an empty file
	Delete  bool   `json:"delete,omitempty"`  // delete the file; Content is ignored
}

// Ruling is the decision on one edit.
type Ruling string

// The rulings. Review never returns Declined and Pending; callers set them.
const (
	Allow    Ruling = "allow"
	Ask      Ruling = "ask"      // the user must approve it
	Drop     Ruling = "drop"     // it has no effect: same contents, or no such file to delete
	Deny     Ruling = "deny"     // a rule forbids it; the user is not asked
	Unread   Ruling = "unread"   // the model must read the file first; the user is not asked
	Declined Ruling = "declined" // the user refused it
	Pending  Ruling = "pending"  // the user must approve it, and could not be asked yet
)

// Verdict is the decision on one edit. Verdicts are in the order of the
// change's edits.
type Verdict struct {
	Path   string `json:"path"` // cleaned if possible, else as written
	Ruling Ruling `json:"verdict"`
	Reason string `json:"reason,omitempty"` // for the user and the model; empty for Allow
	Before Image  `json:"before"`
	After  Image  `json:"after"`
	Edited bool   `json:"edited,omitempty"` // the user edited the contents before approving them
	Linked bool   `json:"linked,omitempty"` // the file has other names (hard links), which keep the contents before the edit
	Tool   bool   `json:"tool,omitempty"`   // one of the user's own tools runs or believes it, see [Tree.ToolReason]
}

// Image is the state of a file at one moment. The zero Image means that the
// file does not exist.
type Image struct {
	Digest string `json:"digest,omitempty"` // SHA-256 of the contents in hex; empty if there is no file
	Size   int64  `json:"bytes"`
	Mode   uint32 `json:"mode,omitempty"` // permission bits
}

// Exists reports whether the file exists.
func (i Image) Exists() bool { return i.Digest != "" }

// Entry returns the state as that of a path in a manifest; zero if the file does not exist.
func (i Image) Entry(path string) Entry {
	if !i.Exists() {
		return Entry{}
	}
	return Entry{Path: path, Kind: Regular, Mode: fs.FileMode(i.Mode).Perm(), Size: i.Size, Digest: i.Digest}
}

// ChangesMode reports whether the file gets other permission bits. A model's edit keeps
// them; what its command did to them can be asked about.
func (v Verdict) ChangesMode() bool {
	return v.Before.Exists() && v.After.Exists() && v.Before.Mode != v.After.Mode
}

// Delta returns the edit that a verdict is about, for [Tree.Apply].
func (v Verdict) Delta() Delta {
	return Delta{Path: v.Path, Before: v.Before.Entry(v.Path), After: v.After.Entry(v.Path), Edit: !v.ChangesMode()}
}

// Rules are the rules that a loop adds to those of every tree (ruling G5). All
// paths are relative to the tree's root. Patterns are doublestar globs; a plain
// path is a pattern that matches itself. The zero Rules add nothing.
type Rules struct {
	// Immutable patterns are denied without asking.
	Immutable []string
	// Denied are paths that the user may not change, and why ([DeniedError]).
	Denied map[string]string
	// NotSent patterns are denied because the model never sees the contents.
	NotSent []string
	// Approve patterns need the user's approval.
	Approve []string
	// Protected reports whether a path needs approval because it is part of
	// what checks the work. Nil means that no path does.
	Protected func(path string) bool
	// Tools asks before a change to a file that the user's own tools run or believe;
	// see [treepath.ToolReason] (ruling G26).
	Tools bool
	// Scope limits changes to these patterns; nil means the complete tree.
	Scope []string
	// Seen returns the digest of the contents of a file that the model was
	// shown. An edit of an existing file whose current contents were not shown
	// needs approval (ruling G4). Nil means that every file counts as shown.
	Seen func(path string) (digest string, ok bool)
	// ReadFirst rules such an edit Unread instead, because the model can read the
	// file.
	ReadFirst bool
	// Typed means that the new contents are text that a model wrote, in UTF-8. A change that
	// would spoil a file in another encoding is denied.
	Typed bool
	// Guard finds secrets; a file that it withholds is denied. Nil withholds
	// nothing.
	Guard *secret.Guard
}

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
