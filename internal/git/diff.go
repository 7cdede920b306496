package git

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Base is the commit that a work tree is compared with.
type Base struct {
	Name   string // for messages: "main" or "origin/main"
	Commit string // the commit's id when it was read
}

// bases are the references of "main", in order of preference (ruling B3).
var bases = []struct{ ref, name string }{
	{"refs/heads/main", "main"},
	{"refs/remotes/origin/main", "origin/main"},
}

// DiffBase returns the tip of the local branch main, or else of origin/main. It
// returns false if neither exists, as in a repository without commits (ruling
// B3).
func (r *Repo) DiffBase(ctx context.Context) (Base, bool, error) {
	args := []string{"for-each-ref", "--format=%(refname) %(objectname)", "--"}
	for _, b := range bases {
		args = append(args, b.ref)
	}
	out, err := r.run(ctx, call{args: args})
	if err != nil {
		return Base{}, false, err
	}
	for _, b := range bases {
		for line := range strings.Lines(string(out)) {
			ref, commit, ok := strings.Cut(strings.TrimSpace(line), " ")
			if ok && ref == b.ref { // not one such as main/x
				return Base{Name: b.name, Commit: commit}, true, nil
			}
		}
	}
	return Base{}, false, nil
}

// diffArgs make a patch that depends only on the two trees, not on any
// configuration.
var diffArgs = []string{
	"diff-index", "--patch", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--no-relative",
	"--src-prefix=a/", "--dst-prefix=b/", "--unified=3", "--inter-hunk-context=0", "--abbrev=12",
	"--diff-algorithm=myers", "--indent-heuristic", "-O/dev/null",
	// Looking into a submodule would start a git that runs what the submodule's
	// configuration names.
	"--submodule=short", "--ignore-submodules=dirty",
}

// MainDiff is the difference between main and the work tree.
type MainDiff struct {
	Base  Base   // the zero Base when Found is false
	Found bool   // whether main exists
	Patch []byte // empty if nothing differs
}

// DiffMain returns a patch from the tree of [Repo.DiffBase] to the work tree, limited to the
// given paths and everything below them; without paths it covers the complete tree. It
// leaves out those of without, such as files that git would read for hours. Paths are
// literal and relative to the root. Untracked files are not included. Equal trees give
// equal bytes.
func (r *Repo) DiffMain(ctx context.Context, without []string, paths ...string) (MainDiff, error) {
	base, found, err := r.DiffBase(ctx)
	if err != nil || !found {
		return MainDiff{}, err
	}
	filtersOff, err := r.filtersOff(ctx)
	if err != nil {
		return MainDiff{}, err
	}
	args := append(diffArgs[:len(diffArgs):len(diffArgs)], base.Commit, "--")
	for i, path := range slices.Concat(paths, without) {
		rel, err := r.relativePath(path)
		if err != nil {
			return MainDiff{}, err
		}
		if i < len(paths) {
			args = append(args, ":(literal)"+rel)
		} else {
			args = append(args, ":(literal,exclude)"+rel)
		}
	}
	patch, err := r.run(ctx, call{args: args, env: append(filtersOff, "GIT_LITERAL_PATHSPECS=0")})
	if err != nil {
		return MainDiff{}, err
	}
	return MainDiff{Base: base, Found: true, Patch: patch}, nil
}

// probeKey is a setting that shows whether git reads settings from the
// environment, which versions before 2.31 do not.
const probeKey = "hone.probe"

// filterKeys matches the settings that name content filters, and the probe.
const filterKeys = `filter\..*|hone\.probe`

func (r *Repo) filtersOff(ctx context.Context) ([]string, error) {
	out, err := r.run(ctx, call{
		args:      []string{"config", "--null", "--name-only", "--get-regexp", "^(" + filterKeys + ")$"},
		env:       configEnv([]string{probeKey, "1"}),
		emptyExit: 1,
	})
	if err != nil {
		return nil, err
	}
	return filtersOff(strings.Split(string(out), "\x00"))
}

// The variables disable filters in any configuration. They do not use -c, which cuts a filter's name at its first equals sign.
func filtersOff(keys []string) ([]string, error) {
	var pairs []string
	for _, key := range keys {
		if i := strings.LastIndexByte(key, '.'); strings.HasPrefix(key, "filter.") && i >= len("filter.") {
			name := key[:i] // "filter.x" of "filter.x.clean"
			pairs = append(pairs, name+".clean", "", name+".smudge", "", name+".process", "", name+".required", "false")
		}
	}
	if len(pairs) > 0 && !slices.Contains(keys, probeKey) {
		return nil, fmt.Errorf("the repository's configuration names content filters, and git before 2.31 cannot be told to skip them: update git")
	}
	return configEnv(pairs), nil
}

func configEnv(pairs []string) []string {
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(pairs)/2)}
	for i := 0; i+1 < len(pairs); i += 2 {
		n := strconv.Itoa(i / 2)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+pairs[i], "GIT_CONFIG_VALUE_"+n+"="+pairs[i+1])
	}
	return env
}

// CommitID returns the id of the commit that a revision names, such as HEAD~3, a tag or
// the beginning of an id. If it names none, the error wraps [fs.ErrNotExist].
func (r *Repo) CommitID(ctx context.Context, revision string) (string, error) {
	if strings.HasPrefix(revision, "-") {
		return "", fmt.Errorf("%q is not a revision: %w", revision, fs.ErrNotExist)
	}
	out, err := r.run(ctx, call{args: []string{"rev-parse", "--verify", "--quiet", revision + "^{commit}"}, emptyExit: 1})
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(out))
	if id == "" {
		return "", fmt.Errorf("there is no commit %q in %s: %w", revision, r.root, fs.ErrNotExist)
	}
	return id, nil
}

// Dirty reports whether the work tree differs from the last commit, or has files that git
// neither tracks nor ignores.
func (r *Repo) Dirty(ctx context.Context) (bool, error) {
	filtersOff, err := r.filtersOff(ctx)
	if err != nil {
		return false, err
	}
	out, err := r.run(ctx, call{args: []string{"status", "--porcelain", "-z", "--ignore-submodules=all"}, env: filtersOff})
	return len(out) > 0, err
}

// Export writes the files of a commit into an existing empty directory, as a checkout
// would, but without content filters: files of Git LFS stay pointers. It reads the
// repository and changes nothing in it, not even its index. A submodule becomes an empty
// directory.
func (r *Repo) Export(ctx context.Context, commit, dir string) (err error) {
	env, done, err := r.scratchIndex(ctx, commit)
	if err != nil {
		return err
	}
	defer done()
	_, err = r.runOwn(ctx, call{args: []string{"checkout-index", "--all", "--quiet", "--prefix=" + filepath.ToSlash(dir) + "/"}, env: env})
	return err
}

// Patch returns the patch from the directory a to the directory b in dir. It is empty if
// they do not differ. With binary it has the form that "git apply" accepts; without, it
// only names the binary files.
func (g *Git) Patch(ctx context.Context, dir string, binary bool) ([]byte, error) {
	args := []string{"diff", "--no-index", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--no-prefix", "--unified=3"}
	if binary {
		args = append(args, "--binary")
	}
	return g.run(ctx, call{dir: dir, emptyExit: 1, args: append(args, "a", "b")})
}
