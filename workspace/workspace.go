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
	"io/fs"

	"hone/workspace/secret"
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
