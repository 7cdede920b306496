// Package workspace is the tree that a loop works on, and the guard on what
// hone itself writes into it on a model's word.
//
// A [Tree] reads regular files below one directory and never follows a
// symlink. Changes go through two doors in a row: [Tree.Review] says of every
// edit whether it is allowed, has to be asked about, has no effect or is
// denied, and why; [Tree.Apply] then makes every allowed edit or none, and
// overwrites no state that Review did not see. Both hold against a process
// that swaps directories for symlinks meanwhile: nothing lands outside.
//
// A [Manifest] is the state of all files that git would keep, to compare
// states by. [Tree.Keep] hands out the contents of one for storing, and
// [Tree.Restore] puts paths back into such a state, all of them or none,
// whoever changed them; [Tree.Copy] copies all that there is. A [Guard] finds
// the secrets that no model may see.
//
// It does not guard against what commands do (that is package sandbox), nor
// against bind mounts, which are directories like any other.
package workspace

// Change is what a model, or a person, wants done to the tree as a whole.
type Change struct {
	Edits []Edit `json:"edits"`
}

// Edit says what one file shall be. Path is relative to the tree's root, with
// slashes, as the model wrote it; Review cleans it.
type Edit struct {
	Path    string `json:"path"`
	Content []byte `json:"content,omitempty"` // the whole file; nil is an empty one
	Delete  bool   `json:"delete,omitempty"`  // Content is ignored
}

// Ruling is what becomes of one edit.
type Ruling string

// What Review answers; Declined is left to those who ask a person.
const (
	Allow    Ruling = "allow"
	Ask      Ruling = "ask"      // a person has to approve it
	Drop     Ruling = "drop"     // it has no effect: the same contents, or nothing there to delete
	Deny     Ruling = "deny"     // a rule forbids it, and nobody is asked
	Declined Ruling = "declined" // a person said no, or there was none to ask
)

// Verdict is what was decided about one edit, in the order of the change.
type Verdict struct {
	Path   string `json:"path"` // cleaned where that was possible, else as written
	Ruling Ruling `json:"verdict"`
	Reason string `json:"reason,omitempty"` // for people and for the model; empty for a plain Allow
	Before Image  `json:"before"`
	After  Image  `json:"after"`
}

// Image is what a file is at one moment. The zero Image means that there is
// none.
type Image struct {
	Digest string `json:"digest,omitempty"` // SHA-256 of the contents, hex; empty: no such file
	Size   int64  `json:"bytes"`
	Mode   uint32 `json:"mode,omitempty"` // permission bits
}

// Exists reports whether there is a file.
func (i Image) Exists() bool { return i.Digest != "" }

// Rules are what a loop adds to the tree's own (ruling G5): all paths are
// relative to the tree's root; patterns are doublestar globs, and a plain
// path is a pattern of itself.
type Rules struct {
	// Immutable patterns are denied without asking.
	Immutable []string
	// NotSent patterns are denied, because the model never sees the contents.
	NotSent []string
	// Approve patterns are asked about.
	Approve []string
	// Protected tells paths that are asked about as well, because they are part
	// of what judges the change; nil: there are none.
	Protected func(path string) bool
	// Scope limits changes to patterns; nil means the whole tree.
	Scope []string
	// Seen tells which contents of a file the model was shown, by digest. A
	// file that exists and was not seen as it is has to be asked about
	// (ruling G4). Nil means that everything counts as seen.
	Seen func(path string) (digest string, ok bool)
	// Guard finds secrets; a file that it withholds is denied. Nil withholds
	// nothing.
	Guard *Guard
}
