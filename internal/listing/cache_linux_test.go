package listing

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hone/internal/git"
	"hone/workspace"
	"hone/workspace/treepath"
)

// remembering is a large repository whose listing is remembered.
type remembering struct {
	t     *testing.T
	root  string
	repo  *git.Repo
	last  cache
	asked int // how often git was asked for a listing
}

// rememberingAt returns a repository with an index of many files, and a few files.
func rememberingAt(t *testing.T, names ...string) *remembering {
	t.Helper()
	personal(t)
	r := &remembering{t: t, root: planted(t, names...)}
	if !showsChanges(r.root) {
		t.Skip("nothing is remembered on this file system")
	}
	gitAt(t, r.root, "init", "-q")
	var index bytes.Buffer
	for i := range 6000 {
		fmt.Fprintf(&index, "100644 %040x\tonly/in/the/index/of/this/repository/%d\n", 1, i)
	}
	cmd := exec.Command("git", "update-index", "--index-info")
	cmd.Dir, cmd.Stdin = r.root, &index
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var err error
	if r.repo, err = Repository(r.root, r.root); err != nil || r.repo == nil {
		t.Fatal(err)
	}
	return r
}

// ask asks git.
func (r *remembering) ask() (workspace.Listing, error) {
	return listRepository(r.t.Context(), r.repo, ".", inclusion{root: r.root}, "")
}

// compare fails the test if the cache does not return what git does.
func (r *remembering) compare(after string) {
	r.t.Helper()
	got, err := r.last.list(r.t.Context(), r.repo, r.root, func() (workspace.Listing, error) { r.asked++; return r.ask() })
	if err != nil {
		r.t.Fatal(after, err)
	}
	want, err := r.ask()
	if diff := cmp.Diff(visible(want), visible(got)); err != nil || diff != "" {
		r.t.Fatalf("after %s: %v\n%s", after, err, diff)
	}
}

// visible returns what a tree takes of a listing.
func visible(l workspace.Listing) map[string]bool {
	untracked := map[string]bool{}
	for _, p := range l.Paths {
		if !treepath.Hidden(p) {
			untracked[p] = l.Untracked[p]
		}
	}
	return untracked
}

// awaitRemembered lists the repository until the listing is remembered.
func (r *remembering) awaitRemembered() {
	r.t.Helper()
	for r.compare("a pause"); r.last.fingerprint == nil; r.compare("a pause") {
		if r.last.useless {
			r.t.Fatal("the listing is never remembered")
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// The listing that is remembered is always that of git, whatever is edited. Make unit tries
// it: the race detector sees the same code in the tests below.
func TestRemember(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: it is about many edits")
	}
	r := rememberingAt(t, "a", "b.o", "d/a", "d/b.o", "d/e/a", "f/a")
	if err := os.MkdirAll(filepath.Join(os.Getenv("HOME"), ".config/git"), 0o755); err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Log("seed", seed)
	done := map[string]int{}
	for range 15 {
		r.awaitRemembered()
		for range 1 + random.IntN(3) {
			before := r.asked
			what := r.edit(random)
			r.compare(what)
			if r.asked == before {
				done["remembered"]++
			} else {
				done["asked"]++
			}
		}
	}
	if t.Log(done); done["remembered"] == 0 || done["asked"] == 0 {
		t.Error("the listing was always remembered, or never")
	}
}

// edit makes an edit at random, and returns what it was. It may fail, as edits do.
func (r *remembering) edit(random *rand.Rand) string {
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	file := func() string {
		return pick("", "d/", "d/e/", "f/", "build/", "d/new/") + pick("a", "b.o", "c", "build")
	}
	at := func(name string) string { return filepath.Join(r.root, name) }
	rules := func() []byte { return []byte(pick("*.o\n", "!b.o\n", "build\n", "/a\n", "d/*\n", "c\n", "\n", "a/\n")) }
	write := func(name string, text []byte) error {
		return errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, text, 0o644))
	}
	git := func(args ...string) error {
		cmd := exec.Command("git", args...)
		cmd.Dir = r.root
		return cmd.Run()
	}
	one, two, dir, home := file(), file(), pick("d", "d/e", "f", "build", "d/new"), os.Getenv("HOME")
	edits := []struct {
		what string
		do   func() error
	}{
		{"a file " + one, func() error { return write(at(one), []byte("text\n")) }},
		{"another text in " + one, func() error { return os.WriteFile(at(one), []byte(two), 0o644) }},
		{"no " + one, func() error { return os.Remove(at(one)) }},
		{"no directory " + dir, func() error { return os.RemoveAll(at(dir)) }},
		{"a directory " + one, func() error { return os.MkdirAll(at(one), 0o755) }},
		{"a link " + one, func() error { _ = os.Remove(at(one)); return os.Symlink("x", at(one)) }},
		{"a short while with " + one + "x", func() error { return errors.Join(write(at(one+"x"), nil), os.Remove(at(one+"x"))) }},
		{"a move of " + one + " to " + two, func() error { return os.Rename(at(one), at(two)) }},
		{"a move of " + dir, func() error { return os.Rename(at(dir), at(pick("d", "f", "g"))) }},
		{"ignore rules beside " + one, func() error { return write(at(filepath.Join(filepath.Dir(one), ".gitignore")), rules()) }},
		{"no ignore rules beside " + one, func() error { return os.Remove(at(filepath.Join(filepath.Dir(one), ".gitignore"))) }},
		{"rules in info/exclude", func() error { return write(at(".git/info/exclude"), rules()) }},
		{"rules of the user", func() error { return write(filepath.Join(home, ".config/git/ignore"), rules()) }},
		{"other rules of the user", func() error { return write(filepath.Join(home, "rules"), rules()) }},
		{"another file of rules", func() error {
			return git("config", pick("--global", "--local"), "core.excludesFile", pick("~/rules", home+"/rules", ""))
		}},
		{"the usual file of rules", func() error { return git("config", pick("--global", "--local"), "--unset-all", "core.excludesFile") }},
		{"an included file of rules", func() error {
			return errors.Join(write(filepath.Join(home, "included"), []byte("[core]\nexcludesFile = ~/rules\n")), git("config", "include.path", pick("~/included", "~/none")))
		}},
		{"git add " + one, func() error { return git("add", "-f", one) }},
		{"git rm " + one, func() error { return git("rm", "-q", "-r", pick("--cached", "-f"), one) }},
		{"a journal", func() error { return write(at(".hone/runs/"+pick("1", "2", "3")), nil) }},
	}
	e := edits[random.IntN(len(edits))]
	if err := e.do(); err != nil {
		return e.what + " (failed)"
	}
	return e.what
}

// Each part of the fingerprint counts alone: no edit changes the names in a directory.
func TestFingerprint(t *testing.T) {
	r := rememberingAt(t, "a", "b", "c", "d/e/a", "d/e/.gitignore", "g", "h")
	home, usual := os.Getenv("HOME"), filepath.Join(os.Getenv("HOME"), ".config/git/ignore")
	if err := os.MkdirAll(filepath.Dir(usual), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(home, "rules"), "c\n")
	for _, c := range []struct {
		what string
		edit func()
	}{
		{"an ignore file", func() { write(filepath.Join(r.root, "d/e/.gitignore"), "a\n") }},
		{"info/exclude", func() { write(filepath.Join(r.root, ".git/info/exclude"), "a\nH\n") }},
		{"the user's ignore file", func() { write(usual, "b\n") }},
		{"a setting", func() { gitAt(t, r.root, "config", "--global", "core.excludesFile", "~/rules") }},
		{"the rules of the setting", func() { write(filepath.Join(home, "rules"), "b\n") }},
		{"another setting", func() { gitAt(t, r.root, "config", "core.ignoreCase", "true") }},
		{"the index", func() { gitAt(t, r.root, "add", "g") }},
	} {
		r.awaitRemembered()
		c.edit()
		asked := r.asked
		if r.compare(c.what); r.asked == asked {
			t.Errorf("git was not asked after an edit of %s", c.what)
		}
	}
}

// A change does not hide in the same step of the file system's clock as one before it.
func TestRememberSameStep(t *testing.T) {
	r := rememberingAt(t, "a")
	r.awaitRemembered()
	addTo(t, r.root, "b")
	changed, _ := stampOf(r.root)
	r.compare("a change")
	if g := r.last.fingerprint; g != nil && g.taken.UnixNano()-changed.changed < int64(100*time.Millisecond) {
		t.Error("the listing is remembered though git may have read another one of the same step")
	}
	r.awaitRemembered()
	if err := errors.Join(os.WriteFile(filepath.Join(r.root, "c"), nil, 0o644), os.Remove(filepath.Join(r.root, "c"))); err != nil {
		t.Fatal(err)
	}
	asked := r.asked
	if r.compare("a short while with a file"); r.asked != asked {
		t.Fatal("the listing is forgotten though the names are the same")
	}
	addTo(t, r.root, "d")
	now, _ := stampOf(r.root)
	top := r.last.fingerprint.dirs[""]
	top.stamp = now // as if the clock had made no step since the last look
	r.last.fingerprint.dirs[""] = top
	r.compare("a change in the same step")
}

// What a listing depends on cannot always be stated: then git is always asked.
func TestRememberNothing(t *testing.T) {
	for name, do := range map[string]func(t *testing.T, root string) error{
		"a repository in it": func(t *testing.T, root string) error { gitAt(t, root, "init", "-q", "inner"); return nil },
		"an empty one":       func(_ *testing.T, root string) error { return os.MkdirAll(filepath.Join(root, "d/.git"), 0o755) },
		"a sparse work tree": func(t *testing.T, root string) error {
			gitAt(t, root, "config", "core.sparseCheckout", "true")
			return nil
		},
		"a linked ignore file": func(_ *testing.T, root string) error { return os.Symlink("a", filepath.Join(root, "d/.gitignore")) },
		"another user's rules": func(t *testing.T, root string) error {
			gitAt(t, root, "config", "core.excludesFile", "~root/x")
			return nil
		},
		"many directories": func(_ *testing.T, root string) (err error) {
			for i := range 2000 {
				err = errors.Join(err, os.Mkdir(filepath.Join(root, fmt.Sprint("d/", i)), 0o755))
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := rememberingAt(t, "a", "d/a")
			if err := do(t, r.root); err != nil {
				t.Fatal(err)
			}
			if r.compare(name); !r.last.useless {
				t.Error("the repository has a fingerprint")
			}
			addTo(t, r.root, "d/e/b")
			r.compare("an edit")
		})
	}
}

// A small repository is listed by git alone: its settings would take as long to read.
func TestRememberSmall(t *testing.T) {
	personal(t)
	root := planted(t, "a")
	gitAt(t, root, "init", "-q")
	gitAt(t, root, "add", ".")
	repo, err := Repository(root, root)
	if err != nil {
		t.Fatal(err)
	}
	var last cache
	for range 2 {
		l, err := last.list(t.Context(), repo, root, func() (workspace.Listing, error) { return workspace.Listing{Paths: []string{"asked"}}, nil })
		if err != nil || strings.Join(l.Paths, " ") != "asked" || last.fingerprint != nil {
			t.Errorf("%q, %v", l.Paths, err)
		}
	}
}
