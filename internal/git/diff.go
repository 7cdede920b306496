package git

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// Base is the tip that a work tree is compared with.
type Base struct {
	Name   string // as people say it: "main" or "origin/main"
	Commit string // the object it pointed to when it was asked for
}

// bases are where "main" is looked for, best first (ruling B3).
var bases = []struct{ ref, name string }{
	{"refs/heads/main", "main"},
	{"refs/remotes/origin/main", "origin/main"},
}

// DiffBase is the tip of the local branch main, else of origin/main; false
// means that there is neither, as in a repository without commits (ruling B3).
func (r *Repo) DiffBase(ctx context.Context) (Base, bool, error) {
	args := []string{"for-each-ref", "--format=%(refname) %(objectname)", "--"}
	for _, b := range bases {
		args = append(args, b.ref)
	}
	out, err := r.run(ctx, call{args: args})
	if err != nil {
		return Base{}, false, err
	}
	base, ok := pickBase(string(out))
	return base, ok, nil
}

// pickBase chooses from lines of a reference and its object. A reference that
// only begins with the name of a base, such as main/x, is none.
func pickBase(lines string) (Base, bool) {
	for _, b := range bases {
		for line := range strings.Lines(lines) {
			ref, commit, ok := strings.Cut(strings.TrimSpace(line), " ")
			if ok && ref == b.ref {
				return Base{Name: b.name, Commit: commit}, true
			}
		}
	}
	return Base{}, false
}

// plain is a patch that depends on the two sides alone, whatever anyone has
// configured.
var plain = []string{
	"diff-index", "--patch", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--no-relative",
	"--src-prefix=a/", "--dst-prefix=b/", "--unified=3", "--inter-hunk-context=0", "--abbrev=12",
	"--diff-algorithm=myers", "--indent-heuristic", "-O/dev/null",
	// A submodule whose contents were asked for would be asked by a git that
	// runs what its configuration names.
	"--submodule=short", "--ignore-submodules=dirty",
}

// Diff is a patch from the base's tree to the work tree, of the given paths
// and what lies below them; without a path, of everything. A path is taken
// literally, relative to the root. Files that git does not track are not in
// it. The same trees give the same bytes.
func (r *Repo) Diff(ctx context.Context, base Base, paths ...string) ([]byte, error) {
	off, err := r.filtersOff(ctx)
	if err != nil {
		return nil, err
	}
	return r.diff(ctx, base, off, paths)
}

// MainDiff is how the work tree differs from main.
type MainDiff struct {
	Base  Base   // the zero Base when Found is false
	Found bool   // there is a main to compare with
	Patch []byte // empty when nothing differs
}

// DiffMain is [Repo.DiffBase] and [Repo.Diff] at once, in the time of two calls
// of git one after the other rather than three, and of one after [Repo.Prepare].
func (r *Repo) DiffMain(ctx context.Context, paths ...string) (MainDiff, error) {
	var p preparation
	if ready := r.ready.Swap(nil); ready != nil {
		p = <-*ready
	} else {
		p = r.prepare(ctx)
	}
	if p.err != nil || !p.found {
		return MainDiff{}, p.err
	}
	patch, err := r.diff(ctx, p.base, p.filtersOff, paths)
	if err != nil {
		return MainDiff{}, err
	}
	return MainDiff{Base: p.base, Found: true, Patch: patch}, nil
}

// preparation is what has to be known before the work tree can be compared.
type preparation struct {
	base       Base
	found      bool
	filtersOff []string
	err        error
}

// Prepare asks in the background what the next [Repo.DiffMain] needs to know
// first. It is for a program's start, where nothing that could change the
// answers runs in between.
func (r *Repo) Prepare(ctx context.Context) {
	ready := make(chan preparation, 1)
	r.ready.Store(&ready)
	go func() { ready <- r.prepare(ctx) }()
}

// prepare asks both questions at once.
func (r *Repo) prepare(ctx context.Context) preparation {
	var off []string
	var offErr error
	var wait sync.WaitGroup
	wait.Go(func() { off, offErr = r.filtersOff(ctx) })
	base, found, err := r.DiffBase(ctx)
	wait.Wait()
	return preparation{base, found, off, cmp.Or(err, offErr)}
}

func (r *Repo) diff(ctx context.Context, base Base, filtersOff, paths []string) ([]byte, error) {
	args := append(plain[:len(plain):len(plain)], base.Commit, "--")
	for _, p := range paths {
		rel, err := r.relative(p)
		if err != nil {
			return nil, err
		}
		args = append(args, rel)
	}
	return r.run(ctx, call{args: args, env: filtersOff})
}

// probe is a setting that only shows that git reads settings from the
// environment, which versions before 2.31 do not.
const probe = "hone.probe"

// filtersOff is the part of an environment that switches off every content
// filter that any configuration names. It is not done with -c, which takes a
// filter's name only as far as its first equals sign.
func (r *Repo) filtersOff(ctx context.Context) ([]string, error) {
	out, err := r.run(ctx, call{
		args: []string{"config", "--null", "--name-only", "--get-regexp", `^(filter\..*|hone\.probe)$`},
		env:  settings([]string{probe, "1"}),
		none: 1,
	})
	if err != nil {
		return nil, err
	}
	var pairs []string
	probed := false
	for key := range bytes.SplitSeq(out, []byte{0}) {
		name, ok := filterName(string(key))
		if ok {
			pairs = append(pairs, name+".clean", "", name+".smudge", "", name+".process", "", name+".required", "false")
		}
		probed = probed || string(key) == probe
	}
	if len(pairs) > 0 && !probed {
		return nil, fmt.Errorf("the repository's configuration names content filters, and only git 2.31 or newer can be kept from running them: update git")
	}
	return settings(pairs), nil
}

// filterName is the part of a key that names a filter: "filter.x" of
// "filter.x.clean".
func filterName(key string) (string, bool) {
	i := strings.LastIndexByte(key, '.')
	if !strings.HasPrefix(key, "filter.") || i < len("filter.") {
		return "", false
	}
	return key[:i], true
}

// settings is an environment that gives git keys and values in turn.
func settings(pairs []string) []string {
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(pairs)/2)}
	for i := 0; i+1 < len(pairs); i += 2 {
		n := strconv.Itoa(i / 2)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+pairs[i], "GIT_CONFIG_VALUE_"+n+"="+pairs[i+1])
	}
	return env
}
