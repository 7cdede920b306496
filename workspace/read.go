package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// TooLargeError says that a file is larger than the tree reads or writes.
type TooLargeError struct {
	Path string
	Size int64 // bytes, as far as is known
	Max  int64 // bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s: %d bytes is more than the limit of %d", display(e.Path), e.Size, e.Max)
}

// Digest is the form in which contents are compared and named everywhere:
// SHA-256 in lower case hex.
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Read returns a regular file and its image. It never follows a symlink and
// never blocks on a FIFO. The error is a [*RefusedError] for paths that are not
// to be read (see Clean; .hone at the root, symlinks, directories, devices), a
// [*TooLargeError] past the limit of the options, and fs.ErrNotExist where
// there is nothing.
func (t *Tree) Read(path string) ([]byte, Image, error) {
	cleaned, err := Clean(path)
	if err != nil {
		return nil, Image{}, err
	}
	if hidden(cleaned) {
		return nil, Image{}, refuse(path, "hone's own files are not read")
	}
	c := cursor{root: t.root}
	defer c.close()
	dir, err := c.at(parentOf(cleaned))
	if err != nil {
		return nil, Image{}, readError(cleaned, err)
	}
	content, image, _, err := t.readIn(dir, cleaned)
	return content, image, err
}

// readIn reads a regular file in its parent directory, and returns what was
// seen of it as well. A missing file is fs.ErrNotExist.
func (t *Tree) readIn(dir *os.Root, path string) ([]byte, Image, fs.FileInfo, error) {
	f, info, err := openRegular(dir, path)
	if err != nil {
		return nil, Image{}, nil, readError(path, err)
	}
	defer f.Close()
	if info.Size() > t.maxFile {
		return nil, Image{}, nil, &TooLargeError{Path: path, Size: info.Size(), Max: t.maxFile}
	}
	// The size may be of the past, or no size at all (as in /proc).
	content := make([]byte, 0, info.Size()+1)
	content, err = appendAll(content, io.LimitReader(f, t.maxFile+1))
	if err != nil {
		return nil, Image{}, nil, readError(path, err)
	}
	if int64(len(content)) > t.maxFile {
		return nil, Image{}, nil, &TooLargeError{Path: path, Size: int64(len(content)), Max: t.maxFile}
	}
	return content, imageOf(content, info.Mode()), info, nil
}

// imageOf is the image of a file that exists.
func imageOf(content []byte, mode fs.FileMode) Image {
	return Image{Digest: Digest(content), Size: int64(len(content)), Mode: uint32(mode.Perm())}
}

// appendAll reads to the end into the room that content has, and beyond.
func appendAll(content []byte, r io.Reader) ([]byte, error) {
	for {
		if len(content) == cap(content) {
			content = append(content, 0)[:len(content)]
		}
		n, err := r.Read(content[len(content):cap(content)])
		content = content[:len(content)+n]
		if err == io.EOF {
			return content, nil
		}
		if err != nil {
			return content, err
		}
	}
}

// openRegular opens the regular file at path in its parent directory for
// reading, and nothing else, whatever takes its place meanwhile.
func openRegular(dir *os.Root, path string) (*os.File, fs.FileInfo, error) {
	name := base(path)
	seen, err := dir.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if err := requireRegular(path, seen); err != nil {
		return nil, nil, err
	}
	// Without blocking, because a FIFO may take the file's place.
	f, err := dir.OpenFile(name, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, nil, err
	}
	opened, err := f.Stat()
	if err == nil && !os.SameFile(seen, opened) {
		err = refuse(path, "it was replaced while it was opened")
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, opened, nil
}

// requireRegular refuses what is not a regular file.
func requireRegular(path string, info fs.FileInfo) error {
	switch {
	case info.Mode().IsRegular():
		return nil
	case info.IsDir():
		return refuse(path, "it is a directory")
	case info.Mode()&fs.ModeSymlink != 0:
		return refuse(path, "it is a symlink, which is not followed")
	}
	return refuse(path, "it is not a regular file")
}

// readError words an error for the path as the tree knows it.
func readError(path string, err error) error {
	var refused *RefusedError
	if errors.As(err, &refused) {
		return err
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return fmt.Errorf("read %s: %w", display(path), err)
}
