package git

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A command can leave an index that git cannot read. What is tracked is then what the commit that is checked out has, as it
// would be with a new index.
func (r *Repo) listWithoutIndex(ctx context.Context, c call, cause error) ([]byte, error) {
	failure, ok := errors.AsType[*Error](cause)
	if !ok || !isAboutIndex(failure.Message) {
		return nil, cause
	}
	head, err := r.HeadCommit(ctx)
	if err != nil {
		return nil, cause
	}
	failure.Hint = newIndex(r.root)
	if head == "" {
		failure.Hint = "rm " + quote(filepath.Join(r.root, ".git", "index"))
	}
	dir, err := os.MkdirTemp("", "hone-index-")
	if err != nil {
		return nil, cause
	}
	defer os.RemoveAll(dir)
	c.env = append(c.env, "GIT_INDEX_FILE="+filepath.Join(dir, "index"))
	if head != "" {
		if _, err := r.git.run(ctx, call{dir: c.dir, env: c.env, args: []string{"read-tree", head}}); err != nil {
			return nil, cause
		}
	}
	out, err := r.git.run(ctx, c)
	if err == nil {
		r.indexFault.Store(failure)
	}
	return out, err
}

func newIndex(root string) string { return "git -C " + quote(root) + " read-tree HEAD" }

// IndexRemedy returns what makes the index of a work tree anew, if a look at its first bytes shows that it is none; empty if it
// does not. dir is the top of the work tree.
func IndexRemedy(dir string) string {
	f, err := os.Open(filepath.Join(dir, ".git", "index"))
	if err != nil {
		return ""
	}
	defer f.Close()
	var header [32]byte // and the checksum of an empty one
	switch _, err := io.ReadFull(f, header[:]); {
	case err != nil && err != io.EOF && err != io.ErrUnexpectedEOF:
		return ""
	case err == nil && string(header[:4]) == "DIRC" && slices.Contains([]byte{2, 3, 4}, header[7]):
		return ""
	}
	return newIndex(dir)
}

func isAboutIndex(message string) bool {
	for _, part := range []string{"index file corrupt", "index file smaller", "bad index", "bad signature", "unordered stage entries", "index file version"} {
		if strings.Contains(message, part) {
			return true
		}
	}
	return false
}

// IndexFault returns why git cannot read its index, with a hint that repairs it; nil if no listing of r has failed to read it.
// The listings did not need it.
func (r *Repo) IndexFault() *Error { return r.indexFault.Load() }
