package workspace

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"hone/internal/lazyregexp"
	"hone/internal/transient"
	"hone/workspace/internal/nofollow"
	"hone/workspace/treepath"
)

// TooLargeError says that a file exceeds the size that the tree reads or
// writes.
type TooLargeError struct {
	Path string
	Size int64 // bytes, as far as known
	Max  int64 // bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s: %d bytes is more than the limit of %d", treepath.Display(e.Path), e.Size, e.Max)
}

// Digest returns the SHA-256 of the contents in lower-case hex. All of hone
// compares and names contents by it.
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Read returns the contents of a regular file and its image. It never follows a
// symlink and never blocks on a FIFO. The error is a [*RefusedError] for paths
// that must not be read (see Clean; also .hone at the root, closed
// paths, symlinks, directories and devices), a [*TooLargeError] for a file above the limit of
// the options, and wraps fs.ErrNotExist if the file does not exist.
func (t *Tree) Read(path string) ([]byte, Image, error) {
	cleaned, err := treepath.Clean(path)
	if err != nil {
		return nil, Image{}, err
	}
	if treepath.Hidden(cleaned) {
		return nil, Image{}, treepath.Refuse(path, "hone's own files may not be read")
	}
	if err := t.Refusal(cleaned); err != nil {
		return nil, Image{}, err
	}
	c := nofollow.Cursor{Root: t.root}
	defer c.Close()
	content, image, err := t.readAt(&c, cleaned)
	t.note(err)
	return content, image, err
}

func (t *Tree) note(err error) {
	if transient.Is(err) {
		t.passing.CompareAndSwap(nil, &err)
	}
}

// CheckNew is [treepath.CheckNew] for a name in this tree, which may also be absolute.
func (t *Tree) CheckNew(name string) error {
	rest := name
	if url, ok := strings.CutPrefix(name, "file:"); ok {
		rest = "/" + strings.TrimLeft(strings.TrimPrefix(url, "//localhost"), "/")
	}
	if below, ok := strings.CutPrefix(filepath.ToSlash(rest), filepath.ToSlash(t.dir)+"/"); ok {
		return treepath.Refuse(name, "paths are relative to the root of the tree; did you mean %s?", treepath.Display(below))
	}
	return treepath.CheckNew(name, t.root.FS())
}

// Holds reports whether a file has the contents of an image. The image of no file also holds
// where there is a directory. Holds is false for a file that cannot be read; see [Tree.Fault].
func (t *Tree) Holds(path string, image Image) bool {
	if image.Exists() {
		_, now, err := t.Read(path)
		return err == nil && now.Digest == image.Digest
	}
	c := nofollow.Cursor{Root: t.root}
	defer c.Close()
	info, err := c.Lstat(path)
	t.note(err)
	return nofollow.IsAbsent(err) || err == nil && info.Mode.IsDir()
}

// Fault returns the first error of a Read that may pass (ruling G22); nil if there was none.
// A caller that treated such an error as a fact about the file must not record anything
// derived from it.
func (t *Tree) Fault() error {
	if first := t.passing.Load(); first != nil {
		return *first
	}
	return nil
}

// readAt reads a regular file. The error wraps fs.ErrNotExist if it does not exist.
func (t *Tree) readAt(c *nofollow.Cursor, path string) ([]byte, Image, error) {
	f, info, err := c.Open(path)
	if err != nil {
		return nil, Image{}, nofollow.ReadError(path, err)
	}
	defer f.Close()
	return t.readFile(f, path, info.Size, info.Mode)
}

// The size may be outdated, or 0 as in /proc.
func (t *Tree) readFile(f io.Reader, path string, size int64, mode fs.FileMode) ([]byte, Image, error) {
	if size > t.maxFile {
		return nil, Image{}, &TooLargeError{Path: path, Size: size, Max: t.maxFile}
	}
	buffer := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	if _, err := buffer.ReadFrom(io.LimitReader(f, t.maxFile+1)); err != nil {
		return nil, Image{}, nofollow.ReadError(path, err)
	}
	content := buffer.Bytes()
	if int64(len(content)) > t.maxFile {
		return nil, Image{}, &TooLargeError{Path: path, Size: int64(len(content)), Max: t.maxFile}
	}
	return content, imageOf(content, mode), nil
}

func imageOf(content []byte, mode fs.FileMode) Image {
	return Image{Digest: Digest(content), Size: int64(len(content)), Mode: uint32(mode.Perm())}
}

// legacy matches the declaration of an encoding that lacks most of Unicode's characters: of Python, Emacs, Vim, XML, HTML or CSS.
var legacy = lazyregexp.New(`(?i)\b(?:(?:file)?en)?(?:coding|charset)\s*[:=]?\s*["']?(latin-?\d+|iso-?8859-?\d+|(?:windows-?|cp)125\d|cp\d{3,4}|koi8-[ru]|shift[-_]?jis|sjis|euc-?(?:jp|kr|cn|tw)|iso-2022-\w+|gb(?:k|2312|18030)|big5(?:-\w+)?|mac-?roman)\b`)

// encodingDenial returns why the new contents would spoil a file that is not UTF-8, or an
// empty string. A model's text is UTF-8: in such a file it would be other characters, and a
// text that a model takes for a character may be half of another one.
//
// The encoding of a file is not recorded anywhere. So a change may leave out what is not
// ASCII, with the byte after it, and may bring nothing such, in any encoding.
func encodingDenial(old, content []byte) string {
	name := ""
	if m := legacy.FindStringSubmatch(string(old[:min(len(old), 256)])); m != nil {
		name = " but " + m[1]
	}
	switch {
	case bytes.HasPrefix(old, []byte{0xff, 0xfe}) || bytes.HasPrefix(old, []byte{0xfe, 0xff}):
		if !bytes.Equal(old, content) {
			return "the file is in UTF-16, in which hone cannot write text. Only the user can convert the file to UTF-8"
		}
		return ""
	case utf8.Valid(old) && name == "":
		return ""
	}
	had := map[string]int{}
	for _, word := range otherThanASCII(old) {
		had[word]++
	}
	for _, word := range otherThanASCII(content) {
		if had[word]--; had[word] >= 0 {
			continue
		}
		why := "the change would cut a character of several bytes in two, or make another one of its bytes"
		for _, r := range word {
			if r >= utf8.RuneSelf && bytes.Contains(content, []byte(string(r))) {
				why = fmt.Sprintf("%q (%U) would be written as UTF-8", string(r), r)
			}
		}
		return fmt.Sprintf("the file is not UTF-8%s, and %s; write ASCII only, with escapes if the language has them, and change whole words. Only the user can convert the file to UTF-8", name, why)
	}
	return ""
}

// Each is a run of bytes that are not ASCII, with the next byte if that may be the end of a character, as in Shift JIS, Big5 and
// GB 18030.
func otherThanASCII(text []byte) (words []string) {
	for i := 0; i < len(text); i++ {
		from := i
		for i < len(text) && text[i] >= utf8.RuneSelf {
			i++
		}
		if i > from {
			end := i
			if end < len(text) && text[end] >= '0' {
				end++
			}
			words = append(words, string(text[from:end]))
		}
	}
	return words
}

// EndsInCRLF reports whether git's attributes in the tree want the lines of a file to end in
// CRLF (eol=crlf). The innermost .gitattributes with a matching line decides, and in it the
// last such line.
func (t *Tree) EndsInCRLF(path string) bool {
	crlf := false
	dir := ""
	for {
		content, _, _ := t.Read(treepath.Join(dir, ".gitattributes"))
		rest := strings.TrimPrefix(path[len(dir):], "/")
		for line := range strings.Lines(string(content)) {
			words := strings.Fields(line)
			if len(words) < 2 || words[0][0] == '#' || !attributed(words[0], rest) {
				continue
			}
			for _, attribute := range words[1:] {
				switch attribute {
				case "eol=crlf":
					crlf = true
				case "eol=lf", "-eol", "!eol", "-text", "binary":
					crlf = false
				}
			}
		}
		name, _, below := strings.Cut(rest, "/")
		if !below {
			return crlf
		}
		dir = treepath.Join(dir, name)
	}
}

// attributed reports whether a pattern of .gitattributes matches a path below its directory.
func attributed(pattern, path string) bool {
	pattern = strings.Trim(pattern, `"`)
	if strings.Contains(pattern, "/") {
		pattern = strings.TrimPrefix(pattern, "/")
	} else {
		path = treepath.Base(path)
	}
	return treepath.Match([]string{pattern}, path)
}
