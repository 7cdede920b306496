package git

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"
)

// HeadCommit returns the id of the commit that is checked out; empty if there is none.
// Unlike [Repo.Head] it also works in a linked work tree.
func (r *Repo) HeadCommit(ctx context.Context) (string, error) {
	out, err := r.run(ctx, call{args: []string{"rev-parse", "--verify", "--quiet", "HEAD^{commit}"}, emptyExit: 1})
	return strings.TrimSpace(string(out)), err
}

// Blobs returns the ids of the contents of a commit's files, by path. Links and
// submodules are left out. commit is an id.
func (r *Repo) Blobs(ctx context.Context, commit string) (map[string]string, error) {
	if commit == "" || strings.Trim(commit, "0123456789abcdef") != "" {
		return nil, fmt.Errorf("%q is not the id of a commit", commit)
	}
	out, err := r.run(ctx, call{args: []string{"ls-tree", "-r", "-z", "--full-tree", commit}})
	if err != nil {
		return nil, err
	}
	blobs := map[string]string{}
	for line := range strings.SplitSeq(string(out), "\x00") {
		about, path, ok := strings.Cut(line, "\t")
		if fields := strings.Fields(about); ok && len(fields) == 3 && strings.HasPrefix(fields[0], "100") {
			blobs[path] = fields[2]
		}
	}
	return blobs, nil
}

// IsBlob reports whether an id of [Repo.Blobs] is that of the contents, unfiltered.
func IsBlob(id string, content []byte) bool { return isObject(id, "blob", content) }

func isObject(id, kind string, content []byte) bool {
	var sum hash.Hash = sha1.New()
	if len(id) == 2*sha256.Size {
		sum = sha256.New()
	}
	fmt.Fprintf(sum, "%s %d\x00", kind, len(content))
	sum.Write(content)
	return hex.EncodeToString(sum.Sum(nil)) == id
}
