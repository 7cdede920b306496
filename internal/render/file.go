package render

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"hone/workspace"
)

// File is one file of a tree as a model is shown it: with its contents, or
// with the reason why they are left out (rulings G4, G8).
type File struct {
	Path string `json:"path"`
	// Digest is that of the contents that are shown whole; empty where
	// something else is said of the file, in Note.
	Digest string `json:"digest,omitempty"`
	Note   string `json:"note,omitempty"`
	Link   bool   `json:"link,omitempty"` // it is a symbolic link
	Size   int64  `json:"size"`           // bytes

	Content []byte `json:"-"` // nil where they are left out
}

// Reader reads files for models.
type Reader struct {
	Tree *workspace.Tree
	// Guard finds secrets; nil finds none.
	Guard *workspace.Guard
	// NotSent are patterns of files that are listed and not shown.
	NotSent []string
}

// Unsent says why a file's contents are left out without being read; empty
// where they are not.
func (r Reader) Unsent(e workspace.Entry) string {
	if reason, secret := r.Guard.WithheldName(e.Path); secret {
		return Withheld + reason
	}
	switch {
	case e.Kind == workspace.Symlink:
		return "symbolic link to " + Path(e.Target)
	case e.Kind != workspace.Regular && e.Note != "":
		return "contents omitted: " + e.Note
	case e.Kind != workspace.Regular:
		return "contents omitted: not a regular file"
	case workspace.Match(r.NotSent, e.Path):
		return "contents omitted: not sent"
	}
	return ""
}

// Withheld begins the note of a file that holds a secret.
const Withheld = "contents withheld: "

// File reads one file. ok is false where it is gone by now. What cannot be
// read is said in its note: nothing is left out silently.
func (r Reader) File(e workspace.Entry) (f File, ok bool) {
	f = File{Path: e.Path, Size: e.Size, Link: e.Kind == workspace.Symlink}
	if f.Note = r.Unsent(e); f.Note != "" {
		return f, true
	}
	content, image, err := r.Tree.Read(e.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, false
	}
	if err != nil {
		f.Note = "contents omitted: " + unread(err)
		return f, true
	}
	f.Size = int64(len(content))
	switch reason, secret := r.Guard.Withheld(e.Path, content); {
	case secret:
		f.Note = Withheld + reason
	case !text(content):
		f.Note = "contents omitted: binary"
	default:
		f.Digest, f.Content = image.Digest, content
	}
	return f, true
}

// unread is why a file could not be read, without its path.
func unread(err error) string {
	var refused *workspace.RefusedError
	var large *workspace.TooLargeError
	switch {
	case errors.As(err, &refused):
		return refused.Reason
	case errors.As(err, &large):
		return fmt.Sprintf("%d bytes are more than is read", large.Size)
	case errors.Is(err, fs.ErrPermission):
		return "hone may not read it"
	}
	return "it cannot be read"
}

// text follows git: what holds a NUL is no text, nor is what is not UTF-8
// (ruling G4).
func text(b []byte) bool { return bytes.IndexByte(b, 0) < 0 && utf8.Valid(b) }

// Path is a path as a prompt writes it: as it is, or quoted where it holds
// what would break a line or is no UTF-8.
func Path(path string) string {
	if utf8.ValidString(path) && strings.IndexFunc(path, unicode.IsControl) < 0 {
		return path
	}
	return strconv.QuoteToASCII(path)
}
