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

	"github.com/aymanbagabas/go-udiff"
	"github.com/rogpeppe/go-internal/diff"

	"hone/internal/lazyregexp"
	"hone/workspace"
	"hone/workspace/secret"
	"hone/workspace/treepath"
)

// mostExact is up to how many changed lines udiff finds the smallest change. Beyond, it takes
// what lies between two changes for changed.
const mostExact = 100

var hunk = lazyregexp.New(`(?m)^@@ -(\d+),(\d+) \+(\d+),(\d+) @@$`)

// edits returns what changes a text to another one, by whole lines. A large change is cut at
// the lines that occur once in both texts, and each part of it is compared by itself.
func edits(before, after string) []udiff.Edit {
	all := udiff.Lines(before, after)
	if added, removed := count(before, all); added+removed <= mostExact {
		return all
	}
	was, is := lineStarts(before), lineStarts(after)
	all = nil
	for _, m := range hunk.FindAllStringSubmatch(string(diff.Diff("", []byte(before), "", []byte(after))), -1) {
		from, to := bounds(was, m[1], m[2])
		newFrom, newTo := bounds(is, m[3], m[4])
		for _, e := range udiff.Lines(before[from:to], after[newFrom:newTo]) {
			all = append(all, udiff.Edit{Start: from + e.Start, End: from + e.End, New: e.New})
		}
	}
	return all
}

// bounds returns where the lines of a hunk begin and end. A hunk without lines names the line before it.
func bounds(starts []int, first, count string) (from, to int) {
	i, _ := strconv.Atoi(first)
	n, _ := strconv.Atoi(count)
	if n > 0 {
		i--
	}
	return starts[i], starts[i+n]
}

// lineStarts returns where each line begins, and the end of the text.
func lineStarts(text string) []int {
	starts := []int{0}
	for line := range strings.Lines(text) {
		starts = append(starts, starts[len(starts)-1]+len(line))
	}
	return starts
}

func count(before string, all []udiff.Edit) (added, removed int) {
	for _, e := range all {
		added += lineCount(e.New)
		removed += lineCount(before[e.Start:e.End])
	}
	return added, removed
}

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
