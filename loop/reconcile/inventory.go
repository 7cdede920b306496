package reconcile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"

	"hone/workspace"
)

// item is one file as a prompt shows it.
type item struct {
	Path string `json:"path"`
	// Digest is that of the contents that are shown whole; empty where
	// something else is said of the file, in Note.
	Digest string `json:"digest,omitempty"`
	Note   string `json:"note,omitempty"`
	Added  bool   `json:"added,omitempty"` // a specification that git does not track yet (ruling B4)
	Link   bool   `json:"link,omitempty"`
	Size   int64  `json:"size"`

	content []byte
}

// same reports whether a model that was shown a still knows b.
func (a item) same(b item) bool {
	return a.Digest == b.Digest && a.Note == b.Note && a.Added == b.Added
}

func isSpec(path string) bool { return strings.HasPrefix(path, "specs/") }

// inventory lists what belongs into the prompt, specifications first, each
// file with its contents or with the reason why they are left out.
func (l Loop) inventory(tree *workspace.Tree, files workspace.Manifest) ([]item, error) {
	if err := l.tooMuch(files); err != nil {
		return nil, err
	}
	var specs, rest []item
	for _, f := range files {
		if !l.within(f.Path) {
			continue
		}
		it, ok, err := l.item(tree, f)
		switch {
		case err != nil:
			return nil, err
		case !ok:
		case isSpec(f.Path):
			specs = append(specs, it)
		default:
			rest = append(rest, it)
		}
	}
	return append(specs, rest...), nil
}

func (l Loop) within(path string) bool {
	return l.Scope == "" || isSpec(path) || strings.HasPrefix(path, l.Scope+"/")
}

// item reads one file. ok is false where it is gone by now.
func (l Loop) item(tree *workspace.Tree, f workspace.Entry) (it item, ok bool, err error) {
	it = item{Path: f.Path, Size: f.Size, Added: isSpec(f.Path) && f.Untracked, Link: f.Kind == workspace.Symlink}
	if it.Note = l.unsent(f); it.Note != "" {
		return it, true, nil
	}
	content, image, err := tree.Read(f.Path)
	var refused *workspace.RefusedError
	var large *workspace.TooLargeError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return it, false, nil
	case errors.As(err, &refused):
		it.Note = "contents omitted: " + refused.Reason
		return it, true, nil
	case errors.As(err, &large):
		it.Note = fmt.Sprintf("contents omitted: %d bytes are more than is read", large.Size)
		return it, true, nil
	case err != nil:
		return it, false, fmt.Errorf("read the tree: %w", err)
	}
	switch reason, secret := l.Guard.Withheld(f.Path, content); {
	case secret:
		it.Note = "contents withheld: " + reason
	case !isText(content):
		it.Note = "contents omitted: binary"
	default:
		it.Digest, it.content = image.Digest, content
	}
	it.Size = int64(len(content))
	return it, true, nil
}

// unsent says why a file is not even read; empty where it is.
func (l Loop) unsent(f workspace.Entry) string {
	if reason, secret := l.Guard.WithheldName(f.Path); secret {
		return "contents withheld: " + reason
	}
	switch {
	case f.Kind == workspace.Symlink:
		return fmt.Sprintf("symbolic link to %s", shown(f.Target))
	case f.Kind != workspace.Regular:
		return "contents omitted: not a regular file"
	case f.Path == l.Checker:
		return "contents omitted: this is the correctness checker"
	case workspace.Match(l.NotSent, f.Path):
		return "contents omitted: not sent"
	}
	return ""
}

// isText follows git: what holds a NUL is no text, nor is what is not UTF-8
// (ruling G4).
func isText(b []byte) bool { return bytes.IndexByte(b, 0) < 0 && utf8.Valid(b) }

// tooMuch refuses a tree whose files alone pass the model's context several
// times over, before all of it is read.
func (l Loop) tooMuch(files workspace.Manifest) error {
	var total int64
	var big []item
	for _, f := range files {
		if l.within(f.Path) && l.unsent(f) == "" && f.Size <= workspace.DefaultMaxFile {
			total += f.Size
			big = append(big, item{Path: f.Path, Digest: "unread", Size: f.Size})
		}
	}
	if l.Editor.Context == 0 || total/16 < l.Editor.Context {
		return nil
	}
	return l.explain(l.Editor.Fits(total), prompt{Items: big})
}
