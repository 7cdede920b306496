package git

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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
	records, err := r.commitRecords(ctx, commit)
	blobs := map[string]string{}
	for _, of := range records {
		if strings.HasPrefix(of.line, "100") {
			blobs[of.path] = of.id()
		}
	}
	return blobs, err
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

// Comparison is how the files of a directory differ from those of a commit. Paths are from
// the top, with slashes, sorted.
type Comparison struct {
	Changed []string // both have it, with other contents, another type or other permissions
	Missing []string // only the directory has it, and git does not ignore it
	Extra   []string // only the commit has it
	Ignored []string // only the directory has it, and git ignores it
	// Submodules are those of the commit. What the directory has there is in no other list.
	Submodules []string
}

// Compare says how a directory, as if it were the work tree, differs from a commit at or
// below a path; "." is everything. commit is an id. It is what "git status" would say:
// line endings, permissions and links count as the configuration and the attributes in dir
// say, and so do the rules in dir about ignored files. No content filter runs, except that
// the pointer of a file of Git LFS equals the contents that it names. It changes nothing in
// the repository, not even its index.
func (r *Repo) Compare(ctx context.Context, commit, dir, below string) (c Comparison, err error) {
	if below, err = r.relativePath(below); err != nil {
		return c, err
	}
	env, done, err := r.scratchIndex(ctx, commit)
	if err != nil {
		return c, err
	}
	defer done()
	list := func(args ...string) (found map[byte][]string, err error) {
		args = append(append([]string{"ls-files", "-z", "-t", "--exclude-standard"}, args...), "--", below)
		out, err := r.runOwn(ctx, call{args: args, env: append(env[:len(env):len(env)], "GIT_WORK_TREE="+dir)})
		found = map[byte][]string{}
		for record := range strings.SplitSeq(string(out), "\x00") {
			if len(record) > 2 {
				found[record[0]] = append(found[record[0]], record[2:])
			}
		}
		return found, err
	}
	differ, err := list("--modified", "--deleted", "--others")
	if err != nil {
		return c, err
	}
	ignored, err := list("--others", "--ignored")
	if err != nil {
		return c, err
	}
	c = Comparison{Missing: differ['?'], Extra: differ['R'], Ignored: ignored['?']}
	records, err := r.commitRecords(ctx, commit)
	if err != nil {
		return c, err
	}
	blobs := map[string]string{}
	for _, of := range records {
		if blobs[of.path] = of.id(); of.module {
			c.Submodules = append(c.Submodules, of.path)
		}
	}
	for _, path := range differ['C'] {
		if slices.Contains(c.Extra, path) {
			continue
		}
		same, err := r.isPointer(ctx, blobs[path], filepath.Join(dir, filepath.FromSlash(path)))
		if err != nil {
			return c, err
		}
		if !same {
			c.Changed = append(c.Changed, path)
		}
	}
	c.Extra = slices.DeleteFunc(c.Extra, func(path string) bool { return slices.Contains(c.Submodules, path) })
	for _, paths := range []*[]string{&c.Changed, &c.Missing, &c.Extra, &c.Ignored} {
		slices.Sort(*paths)
		*paths = slices.Compact(*paths)
	}
	return c, nil
}

// scratchIndex returns the environment of calls that use an index of a commit's files
// instead of the repository's, and run no content filter. done removes the index.
func (r *Repo) scratchIndex(ctx context.Context, commit string) (env []string, done func(), err error) {
	filtersOff, err := r.filtersOff(ctx)
	if err != nil {
		return nil, nil, err
	}
	scratch, err := os.MkdirTemp("", "hone-index-")
	if err != nil {
		return nil, nil, fmt.Errorf("make an index: %w", err)
	}
	done = func() { _ = os.RemoveAll(scratch) }
	env = append([]string{"GIT_INDEX_FILE=" + filepath.Join(scratch, "index")}, filtersOff...)
	if _, err = r.runOwn(ctx, call{args: []string{"read-tree", commit}, env: env}); err != nil {
		done()
	}
	return env, done, err
}

// maxPointer is the size in bytes of the largest file that may be a pointer of Git LFS.
const maxPointer = 1024

// isPointer reports whether a blob is a pointer of Git LFS to what a file contains; an empty id is of no blob.
func (r *Repo) isPointer(ctx context.Context, id, file string) (bool, error) {
	info, err := os.Lstat(file)
	if err != nil || id == "" || !info.Mode().IsRegular() {
		return false, err
	}
	size, err := r.runLine(ctx, call{args: []string{"cat-file", "-s", id}})
	if n, bad := strconv.Atoi(size); err != nil || bad != nil || n > maxPointer {
		return false, err
	}
	pointer, err := r.runOwn(ctx, call{args: []string{"cat-file", "blob", id}})
	if err != nil || !strings.HasPrefix(string(pointer), "version https://git-lfs.github.com/spec/") {
		return false, err
	}
	f, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return err == nil && strings.Contains(string(pointer), "\noid sha256:"+hex.EncodeToString(sum.Sum(nil))+"\n"), err
}
