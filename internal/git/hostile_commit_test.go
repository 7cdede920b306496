//go:build unix

package git

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// commitTrap returns a repository, and a user configuration, that name programs
// wherever git add or git commit could run one.
func commitTrap(t *testing.T) trap {
	t.Helper()
	tr := trap{dir: newDir(t), marks: t.TempDir()}
	write(t, tr.dir, ".gitattributes", "clean filter=clean\nodd filter=a=b.c\nprocess filter=process\nlfs filter=lfs\n* diff=textconv merge=driver\n",
		"clean", "1", "odd", "1", "process", "1", "lfs", "1", "gone", "1", "inner/f", "1", "inner/.gitattributes", "* filter=inner\n")
	git(t, tr.dir, "init", "-q")
	git(t, tr.dir, "add", "gone")
	git(t, tr.dir, "commit", "-q", "-m", "first")
	git(t, filepath.Join(tr.dir, "inner"), "init", "-q")
	tr.arm(t, filepath.Join(tr.dir, "inner"), "inner-")
	tr.arm(t, tr.dir, "")
	for _, pair := range [][2]string{
		{"commit.gpgSign", "true"}, {"gpg.format", "openpgp"}, {"gpg.openpgp.program", tr.script(t, "openpgp")},
		{"log.showSignature", "true"}, {"merge.driver.driver", tr.program("merge")}, {"commit.template", "/none"},
		{"core.worktree", os.Getenv("HOME")}, {"core.attributesFile", filepath.Join(tr.dir, "more")},
		{"include.path", filepath.Join(tr.dir, "included")}, {"core.ignoreStat", "true"}, {"core.splitIndex", "true"},
		{"gc.auto", "1"}, {"maintenance.auto", "true"}, {"filter.inner.clean", tr.program("outer-inner")},
	} {
		git(t, tr.dir, "config", pair[0], pair[1])
	}
	write(t, tr.dir, "more", "* filter=more\n", "included", "[filter \"more\"]\n\tclean = \""+tr.program("included")+"\"\n\trequired\n")
	tr.hooks(t, filepath.Join(tr.dir, ".hooks"), "")
	tr.armUser(t)
	if err := os.Remove(filepath.Join(tr.dir, "gone")); err != nil {
		t.Fatal(err)
	}
	return tr
}

// script returns a program in a file, for what git runs without a shell.
func (tr trap) script(t *testing.T, mark string) string {
	t.Helper()
	file := filepath.Join(os.Getenv("HOME"), mark)
	write(t, filepath.Dir(file), mark, "#!/bin/sh\n"+tr.program(mark)+"\n")
	if err := os.Chmod(file, 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

// hooks puts a program behind every hook that a commit could run.
func (tr trap) hooks(t *testing.T, dir, prefix string) {
	t.Helper()
	for _, hook := range []string{"pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "post-index-change",
		"reference-transaction", "pre-auto-gc", "fsmonitor-watchman", "post-checkout", "post-rewrite"} {
		write(t, dir, hook, "#!/bin/sh\n"+tr.program(prefix+"hook-"+hook)+"\n")
		if err := os.Chmod(filepath.Join(dir, hook), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// armUser writes the configuration of a user who signs, has hooks and uses
// filters, each of which leaves a mark.
func (tr trap) armUser(t *testing.T) {
	t.Helper()
	home := os.Getenv("HOME")
	tr.hooks(t, filepath.Join(home, "hooks"), "person-")
	tr.hooks(t, filepath.Join(home, "template", "hooks"), "template-")
	for _, pair := range [][2]string{
		{"commit.gpgSign", "true"}, {"gpg.program", tr.script(t, "person-gpg")}, {"core.hooksPath", filepath.Join(home, "hooks")},
		{"init.templateDir", filepath.Join(home, "template")}, {"filter.lfs.clean", tr.program("person-lfs")},
		{"filter.lfs.process", tr.program("person-lfs")}, {"filter.lfs.required", "true"}, {"core.editor", tr.program("person-editor")},
		{"core.fsmonitor", tr.program("person-fsmonitor")},
	} {
		git(t, "", "config", "--global", pair[0], pair[1])
	}
}

func TestCommitRunsNothing(t *testing.T) {
	g := isolatedGit(t)
	tr := commitTrap(t)
	home := listing(t, os.Getenv("HOME"))
	tr.newMarks(t)
	ctx := context.Background()
	r, err := g.Init(ctx, tr.dir, "/.hooks/")
	if err != nil {
		t.Fatal(err)
	}
	made, err := r.Commit(ctx, Commit{Subject: "s", Trailers: []string{"Hone-Run: 1"}})
	id := made.ID
	if err != nil || !made.Made {
		t.Fatalf("Commit() = %v, %v", made, err)
	}
	if head, _, err := r.Head(ctx); head != id || err != nil {
		t.Errorf("Head() = %s, %v", head, err)
	}
	if found, _, err := r.FindCommit(ctx, "s"); found != id || err != nil {
		t.Errorf("Find() = %s, %v", found, err)
	}
	if _, err := g.Init(ctx, newDir(t)); err != nil {
		t.Error(err)
	}
	if marks := tr.newMarks(t); len(marks) > 0 {
		t.Errorf("these ran: %v", marks)
	}
	if listing(t, os.Getenv("HOME")) != home {
		t.Error("something was written outside the tree")
	}
	want := "100644 .gitattributes\n100644 clean\n100644 included\n100644 inner/.gitattributes\n100644 inner/f\n100644 lfs\n100644 more\n100644 odd\n100644 process\n"
	got := headTree(t, tr.dir)
	if got = dropHooks(got); got != want {
		t.Errorf("the commit has\n%s", got)
	}
	if raw := git(t, tr.dir, "cat-file", "commit", "HEAD"); strings.Contains(raw, "gpgsig") {
		t.Errorf("the commit is signed:\n%s", raw)
	}
}

// dropHooks removes the nested repository's hooks from a listing.
func dropHooks(tree string) string {
	var b strings.Builder
	for line := range strings.Lines(tree) {
		if !strings.Contains(line, ".hooks/") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// The traps work: plain git triggers them.
func TestCommitIsArmed(t *testing.T) {
	isolatedGit(t)
	tr := commitTrap(t)
	git(t, tr.dir, "config", "--unset", "core.worktree")
	for _, c := range []struct {
		args, want string
	}{
		{"add clean", "clean"},
		{"add odd", "odd"},
		{"add process", "process"},
		{"add lfs", "person-lfs"},
		{"add included", "included"},
		{"add clean", "fsmonitor"},
		{"add clean", "hook-post-index-change"},
		{"commit -m x --allow-empty", "hook-pre-commit"},
		{"-c core.hooksPath=/dev/null commit -m x --allow-empty", "openpgp"},
		{"update-ref refs/heads/x HEAD", "hook-reference-transaction"},
	} {
		tr.newMarks(t)
		out, _ := tryGit(tr.dir, strings.Fields(c.args)...)
		if marks := " " + strings.Join(tr.newMarks(t), " ") + " "; !strings.Contains(marks, " "+c.want+" ") {
			t.Errorf("git %s left %q, not %s:\n%s", c.args, marks, c.want, out)
		}
	}
}

func TestOddNames(t *testing.T) {
	g := isolatedGit(t)
	dir := newDir(t)
	r := initialize(t, g, dir)
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, filepath.Dir(secret), "secret", "secret")
	names := []string{"-n", "--all", ":(top)x", "*", "[a]", " ", "a b", "a\nb", "\"q\"", "back\\slash", "bad\xff", "é", "tab\t", "!x", "#x", ":x"}
	for _, name := range names {
		write(t, dir, name, "", "dir"+name+"/f", "x")
	}
	write(t, dir, ".gitignore", "ignored*\n", "ignored\n\xff", "1", "run.sh", "#!/bin/sh\n")
	if err := os.Chmod(filepath.Join(dir, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	replace(t, filepath.Join(dir, "link"), secret)
	replace(t, filepath.Join(dir, "folder"), filepath.Dir(secret))
	replace(t, filepath.Join(dir, "loop"), "loop")
	commit(t, r, Commit{Subject: "s"})
	checkClean(t, dir)
	got := headTree(t, dir)
	for _, name := range names {
		for _, want := range []string{"100644 " + name + "\n", "100644 dir" + name + "/f\n"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is not in the commit", want)
			}
		}
	}
	for _, want := range []string{"120000 link\n", "120000 folder\n", "120000 loop\n", "100755 run.sh\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in the commit:\n%s", want, got)
		}
	}
	if n := strings.Count(got, "\n100"); strings.Contains(got, "ignored") || strings.Contains(got, "secret") || n < 2*len(names) {
		t.Errorf("the commit has\n%s", got)
	}
	if got := git(t, dir, "show", "HEAD:link"); got != secret {
		t.Errorf("the link points to %q", got)
	}
}

func TestPipesAndSockets(t *testing.T) {
	g := isolatedGit(t)
	dir := repository(t, "f", "1", "g", "1")
	r := open(t, g, dir)
	if err := os.Remove(filepath.Join(dir, "f")); err != nil {
		t.Fatal(err)
	}
	pipe := func(name string) {
		t.Helper()
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	pipe("f")
	commit(t, r, Commit{Subject: "s"})
	checkTree(t, dir, "100644 g\n")
	for _, name := range []string{".gitignore", ".git/index"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		pipe(name)
		if made, err := r.Commit(context.Background(), Commit{Subject: name}); err == nil || made.Made || !strings.Contains(err.Error(), name) {
			t.Errorf("with the pipe %s: %v, %v", name, made, err)
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// Nested repositories are ordinary directories, even if their git directories
// lead elsewhere.
func TestNested(t *testing.T) {
	g := isolatedGit(t)
	dir := newDir(t)
	r := initialize(t, g, dir)
	elsewhere := repository(t, "secret", "1")
	write(t, dir, ".gitignore", "*.log\n", "fresh/f", "1", "fresh/.gitignore", "/out\n", "fresh/out", "1", "fresh/a.log", "1",
		"born/f", "1", "away/f", "1", "away/.git", "gitdir: "+filepath.Join(elsewhere, ".git")+"\n", "linked/f", "1")
	replace(t, filepath.Join(dir, "linked", ".git"), filepath.Join(elsewhere, ".git"))
	git(t, filepath.Join(dir, "fresh"), "init", "-q")
	born := filepath.Join(dir, "born")
	git(t, born, "init", "-q")
	git(t, born, "add", "-A")
	git(t, born, "commit", "-q", "-m", "inner")
	before := listing(t, elsewhere)
	commit(t, r, Commit{Subject: "s"})
	checkClean(t, dir)
	want := "100644 .gitignore\n100644 away/f\n100644 born/f\n100644 fresh/.gitignore\n100644 fresh/f\n100644 linked/f\n"
	checkTree(t, dir, want)
	if git(t, born, "log", "--format=%s") != "inner\n" || listing(t, elsewhere) != before {
		t.Error("another repository changed")
	}

	// Plain git would store the nested repository as a submodule.
	head := strings.TrimSpace(git(t, born, "rev-parse", "HEAD"))
	git(t, dir, "rm", "-q", "-r", "--cached", "born")
	git(t, dir, "update-index", "--add", "--cacheinfo", "160000,"+head+",born", "--add", "--cacheinfo", "160000,"+head+",empty",
		"--add", "--cacheinfo", "160000,"+head+",gone")
	git(t, dir, "commit", "-q", "-m", "theirs")
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "born/f", "2")
	commit(t, r, Commit{Subject: "t"})
	checkClean(t, dir)
	checkTree(t, dir, strings.Replace(want, "100644 fresh/.", "160000 empty\n100644 fresh/.", 1))
}

// A submodule that is not checked out stays, even if nothing is ignored: only its empty
// directory tells that the last commit matters.
func TestSubmoduleStays(t *testing.T) {
	g := isolatedGit(t)
	dir := repository(t, "f", "1")
	head := strings.TrimSpace(git(t, dir, "rev-parse", "HEAD"))
	git(t, dir, "update-index", "--add", "--cacheinfo", "160000,"+head+",a/module")
	git(t, dir, "commit", "-q", "-m", "theirs")
	if err := os.MkdirAll(filepath.Join(dir, "a", "module"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "f", "2", "a/g", "1")
	commit(t, open(t, g, dir), Commit{Subject: "s"})
	checkTree(t, dir, "100644 a/g\n160000 a/module\n100644 f\n")
}

// A manipulated or broken index hides no change.
func TestIndexIsNotTrusted(t *testing.T) {
	g := isolatedGit(t)
	for name, prepare := range map[string]func(t *testing.T, dir string){
		"broken":           func(t *testing.T, dir string) { write(t, dir, ".git/index", "nonsense") },
		"empty":            func(t *testing.T, dir string) { write(t, dir, ".git/index", "") },
		"gone":             func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, ".git", "index")) },
		"skip-worktree":    func(t *testing.T, dir string) { git(t, dir, "update-index", "--skip-worktree", "f", "g") },
		"assume-unchanged": func(t *testing.T, dir string) { git(t, dir, "update-index", "--assume-unchanged", "f", "g") },
		"added by name":    func(t *testing.T, dir string) { git(t, dir, "add", "-N", "new") },
		"removed":          func(t *testing.T, dir string) { git(t, dir, "rm", "-q", "--cached", "f", "g") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := repository(t, "f", "1", "g", "1")
			write(t, dir, "new", "1")
			prepare(t, dir)
			write(t, dir, "f", "2")
			if err := os.Remove(filepath.Join(dir, "g")); err != nil {
				t.Fatal(err)
			}
			commit(t, open(t, g, dir), Commit{Subject: "s"})
			checkClean(t, dir)
			checkTree(t, dir, "100644 f\n100644 new\n")
			if got := git(t, dir, "show", "HEAD:f"); got != "2" {
				t.Errorf("the commit has %q", got)
			}
			write(t, dir, "f", "3")
			if got := git(t, dir, "status", "--porcelain"); got != " M f\n" {
				t.Errorf("a later change shows as %q", got)
			}
		})
	}
}

func TestOddHeads(t *testing.T) {
	g := isolatedGit(t)
	ctx := context.Background()
	for name, c := range map[string]struct {
		head  string // empty: detached
		fails bool
	}{
		"detached":        {"", false},
		"no branch":       {"ref: refs/remotes/x/-n", false},
		"an unborn one":   {"ref: refs/heads/-d", false},
		"below a branch":  {"ref: refs/heads/main/x", true},
		"out of the refs": {"ref: refs/../config", true},
		"out of the tree": {"ref: refs/../../../victim", true},
		"nonsense":        {"nonsense", true},
	} {
		t.Run(name, func(t *testing.T) {
			outer := newDir(t)
			dir := filepath.Join(outer, "src")
			write(t, outer, "victim", "x", "victim.lock", "x")
			write(t, dir, "f", "1")
			r := initialize(t, g, dir)
			commit(t, r, Commit{Subject: "first"})
			write(t, dir, "f", "2")
			head := c.head
			if head == "" {
				head = strings.TrimSpace(git(t, dir, "rev-parse", "HEAD"))
			}
			write(t, dir, ".git/HEAD", head+"\n")
			if !c.fails {
				commit(t, r, Commit{Subject: "s"})
				checkClean(t, dir)
				return
			}
			if made, err := r.Commit(ctx, Commit{Subject: "s"}); err == nil || made.Made {
				t.Errorf("Commit() = %v, %v", made, err)
			}
			if got := read(t, filepath.Join(outer, "victim")) + read(t, filepath.Join(outer, "victim.lock")); got != "xx" {
				t.Errorf("outside there is %q", got)
			}
		})
	}
}

// Replacements and grafts do not change what the last commit is.
func TestReplacedHistory(t *testing.T) {
	g := isolatedGit(t)
	dir := repository(t, "f", "1")
	r := open(t, g, dir)
	id := commit(t, r, Commit{Subject: "s"})
	first := strings.TrimSpace(git(t, dir, "rev-parse", "HEAD~"))
	git(t, dir, "replace", id, first)
	write(t, dir, ".git/info/grafts", id+"\n")
	ctx := context.Background()
	if head, message, err := r.Head(ctx); head != id || message != "s\n" || err != nil {
		t.Errorf("Head() = %s, %q, %v", head, message, err)
	}
	if found, _, err := r.FindCommit(ctx, "first"); found != first || err != nil {
		t.Errorf("Find() = %s, %v", found, err)
	}
	if made, err := r.Commit(ctx, Commit{Subject: "s"}); made.Made || err != nil {
		t.Errorf("Commit() = %v, %v", made, err)
	}
}

// A large file is stored completely and without filters.
func TestHugeFile(t *testing.T) {
	g := isolatedGit(t)
	dir := newDir(t)
	r := initialize(t, g, dir)
	git(t, dir, "config", "core.bigFileThreshold", "1m")
	f, err := os.Create(filepath.Join(dir, "huge"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(64 << 20); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	commit(t, r, Commit{Subject: "s"})
	checkClean(t, dir)
	if got := git(t, dir, "cat-file", "-s", "HEAD:huge"); got != "67108864\n" {
		t.Errorf("the file in the commit has %s bytes", got)
	}
}

// killVariable is the environment variable that makes a test act as the hone
// process to kill.
const killVariable = "HONE_TEST_COMMIT_IN"

// TestCommitKilled kills hone before and after every call that writes, with a
// signal that cannot be caught. The next hone makes the commit, once.
func TestCommitKilled(t *testing.T) {
	want := Commit{Subject: "s", Trailers: []string{"Hone-Run: 1"}}
	if dir := os.Getenv(killVariable); dir != "" {
		g, err := Find("")
		if err != nil {
			t.Fatal(err)
		}
		_, err = open(t, g, dir).Commit(context.Background(), want)
		t.Fatalf("hone was not killed: %v", err)
	}
	for _, step := range []string{"read-tree", "update-index", "write-tree", "commit-tree", "update-ref"} {
		for _, when := range []string{"before", "after"} {
			t.Run(when+" "+step, func(t *testing.T) {
				g := isolatedGit(t)
				dir := repository(t, "f", "1")
				tree := "100644 f\n100644 new\n"
				write(t, dir, "f", "2", "new", "1")
				if step == "read-tree" { // only where there is no file
					tree = ""
					for _, name := range []string{"f", "new"} {
						if err := os.Remove(filepath.Join(dir, name)); err != nil {
							t.Fatal(err)
						}
					}
				}
				killAt(t, g, dir, step, when)
				r := open(t, g, dir)
				made, err := r.Commit(context.Background(), want)
				if err != nil || made.Made == (step == "update-ref" && when == "after") {
					t.Errorf("Commit() = %v, %v", made, err)
				}
				if got := git(t, dir, "log", "--format=%s"); got != "s\nfirst\n" {
					t.Errorf("git log:\n%s", got)
				}
				checkClean(t, dir)
				checkTree(t, dir, tree)
			})
		}
	}
}

// killAt runs this test as a hone that its git kills.
func killAt(t *testing.T, g *Git, dir, step, when string) {
	t.Helper()
	bin := t.TempDir()
	run := "'" + g.path + "' \"$@\""
	act := "kill -9 $PPID"
	if when == "after" {
		act = run + "; " + act
	}
	write(t, bin, "git", "#!/bin/sh\ncase \" $* \" in *' "+step+" '*) "+act+"; exit 1;; esac\nexec "+run+"\n")
	if err := os.Chmod(filepath.Join(bin, "git"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestCommitKilled$")
	cmd.Env = append(os.Environ(), killVariable+"="+dir, "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("hone was not killed: %v\n%s", err, out)
	}
}
