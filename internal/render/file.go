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
	"hone/workspace/secret"
	"hone/workspace/treepath"
)

// File is one file of a tree as shown to a model: with its contents, or with
// the reason for omitting them (rulings G4, G8).
type File struct {
	// Path is redacted if it contains a secret. The contents are then omitted.
	Path string `json:"path"`
	// Digest is the digest of the contents if they are shown, which is always
	// complete. It is empty if Note gives a reason instead.
	Digest string `json:"digest,omitempty"`
	Note   string `json:"note,omitempty"`
	Link   bool   `json:"link,omitempty"` // it is a symbolic link
	Size   int64  `json:"size"`           // in bytes

	Content []byte `json:"-"` // nil if omitted
}

// Reader reads files of a manifest, such as that of hone.Run.Manifest, for models.
type Reader struct {
	Tree *workspace.Tree
	// Guard finds secrets; nil finds none.
	Guard *secret.Guard
	// NotSent are patterns of files that are listed without their contents.
	NotSent []string
}

// OmitReason returns why a file's contents are omitted without reading the file, or
// an empty string if it must be read.
func (r Reader) OmitReason(e workspace.Entry) string {
	if reason, secret := r.Guard.WithheldName(e.Path); secret {
		return Withheld + reason
	}
	switch {
	case e.Kind == workspace.Symlink:
		return "symbolic link to " + Path(r.Guard.Redact(e.Target))
	case e.Kind != workspace.Regular && e.Note != "":
		return "contents omitted: " + e.Note
	case e.Kind != workspace.Regular:
		return "contents omitted: not a regular file"
	case treepath.Match(r.NotSent, e.Path):
		return "contents omitted: not sent"
	}
	return ""
}

// Withheld starts the note of a file that contains a secret.
const Withheld = "contents withheld: "

// File reads one file. ok is false if it no longer exists. If a file cannot be
// read its note says so: nothing is omitted silently.
func (r Reader) File(e workspace.Entry) (f File, ok bool) {
	f = File{Path: r.Guard.Redact(e.Path), Size: e.Size, Link: e.Kind == workspace.Symlink}
	if f.Note = r.OmitReason(e); f.Note != "" {
		return f, true
	}
	content, image, err := r.Tree.Read(e.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, false
	}
	if err != nil {
		f.Note = "contents omitted: " + readReason(err)
		return f, true
	}
	f.Size = int64(len(content))
	switch reason, secret := r.Guard.Withheld(e.Path, content); {
	case secret:
		f.Note = Withheld + reason
	case !isText(content):
		f.Note = "contents omitted: binary"
	default:
		f.Digest, f.Content = image.Digest, content
	}
	return f, true
}

func readReason(err error) string {
	var refused *treepath.RefusedError
	var large *workspace.TooLargeError
	switch {
	case errors.As(err, &refused):
		return refused.Reason
	case errors.As(err, &large):
		return fmt.Sprintf("its %d bytes exceed the limit", large.Size)
	case errors.Is(err, fs.ErrPermission):
		return "hone has no permission to read it"
	}
	return "it cannot be read"
}

// Like git, it treats contents with a NUL as binary, and also those that are not UTF-8 (ruling G4).
func isText(b []byte) bool { return bytes.IndexByte(b, 0) < 0 && utf8.Valid(b) }

// Path returns a path as a prompt writes it, quoted if it contains control
// characters or is not UTF-8.
func Path(path string) string {
	if utf8.ValidString(path) && strings.IndexFunc(path, unicode.IsControl) < 0 {
		return path
	}
	return strconv.QuoteToASCII(path)
}
