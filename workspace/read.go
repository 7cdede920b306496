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
