//go:build unix

package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// trap is a repository that names programs wherever git would run one. Each
// program leaves a file with its name in marks.
type trap struct {
	dir, marks string
}

// program returns a shell command that leaves a mark.
func (tr trap) program(mark string) string {
	return "touch '" + filepath.Join(tr.marks, mark) + "'; cat"
}

// newMarks returns the marks left since the last call.
func (tr trap) newMarks(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(tr.marks)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
		if err := os.Remove(filepath.Join(tr.marks, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return names
}

// attributes give every file below specs a filter, a converter or a diff.
const attributes = `specs/clean filter=clean
specs/odd filter=a=b.c
specs/process filter=process
specs/textconv diff=textconv
specs/command diff=command
`

// newTrap returns an armed repository: every file below specs differs from main
// and was touched, so that git must read it.
func newTrap(t *testing.T) trap {
	t.Helper()
	tr := trap{marks: t.TempDir()}
	files := []string{".gitattributes", attributes, "sub/f", "1\n"}
	changed := []string{}
	for _, name := range []string{"clean", "odd", "process", "textconv", "command"} {
		files = append(files, "specs/"+name, "one\n")
		changed = append(changed, "specs/"+name, "two\n")
	}
	tr.dir = repository(t, files...)
	write(t, tr.dir, changed...)
	tr.armModule(t)
	tr.armCommit(t)
	tr.arm(t, tr.dir, "")
	return tr
}

// armCommit makes the last commit a signed one: verifying it runs the program
// that checks signatures.
func (tr trap) armCommit(t *testing.T) {
	t.Helper()
	head := strings.TrimSpace(git(t, tr.dir, "rev-parse", "HEAD"))
	tree := strings.TrimSpace(git(t, tr.dir, "rev-parse", "HEAD^{tree}"))
	who := "a <a@example.com> 1 +0000\n"
	write(t, tr.marks, "signed", "tree "+tree+"\nparent "+head+"\nauthor "+who+"committer "+who+
		"gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nsigned\n")
	signed := strings.TrimSpace(git(t, tr.dir, "hash-object", "-w", "-t", "commit", filepath.Join(tr.marks, "signed")))
	git(t, tr.dir, "update-ref", "-m", "commit: signed", "HEAD", signed)
}

// arm writes a hostile configuration and hooks.
func (tr trap) arm(t *testing.T, dir, prefix string) {
	t.Helper()
	mark := func(name string) string { return tr.program(prefix + name) }
	for key, value := range map[string]string{
		"core.fsmonitor": mark("fsmonitor"), "core.pager": mark("pager"), "core.editor": mark("editor"),
		"core.sshCommand": mark("ssh"), "core.askPass": mark("askpass"), "core.alternateRefsCommand": mark("alternates"),
		"core.hooksPath": ".hooks", "credential.helper": "!" + mark("credential"), "gpg.program": filepath.Join(dir, ".hooks", "gpg"),
		"diff.external": mark("external"), "diff.textconv.textconv": mark("textconv"), "diff.command.command": mark("driver"),
		"filter.clean.clean": mark("clean"), "filter.clean.smudge": mark("smudge"), "filter.clean.required": "true",
		"filter.a=b.c.clean": mark("odd"), "filter.process.process": mark("process"), "filter.process.required": "true",
		"alias.ls-files": "!" + mark("alias"), "alias.diff-index": "!" + mark("alias"), "alias.for-each-ref": "!" + mark("alias"),
		"pager.ls-files": mark("pager"), "pager.diff-index": mark("pager"), "interactive.diffFilter": mark("interactive"),
		"log.showSignature": "true", "log.diffMerges": "on", "format.pretty": "%GG",
		"diff.submodule": "diff", "diff.ignoreSubmodules": "none", "submodule.recurse": "true", "status.submoduleSummary": "true",
	} {
		git(t, dir, "config", key, value)
	}
	for name, hook := range map[string]string{"post-index-change": "hook-post-index-change", "fsmonitor-watchman": "hook-fsmonitor-watchman",
		"reference-transaction": "hook-reference-transaction", "gpg": "gpg"} {
		file := filepath.Join(dir, ".hooks", name)
		write(t, dir, ".hooks/"+name, "#!/bin/sh\n"+mark(hook)+"\n")
		if err := os.Chmod(file, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// armModule adds a submodule below specs whose own configuration is hostile and
// whose files differ.
func (tr trap) armModule(t *testing.T) {
	t.Helper()
	module := filepath.Join(tr.dir, "specs", "module")
	write(t, module, "f", "1\n", ".gitattributes", "* filter=inner\n")
	git(t, module, "init", "-q")
	git(t, module, "add", "-A")
	git(t, module, "commit", "-q", "-m", "first")
	head := strings.TrimSpace(git(t, module, "rev-parse", "HEAD"))
	git(t, tr.dir, "update-index", "--add", "--cacheinfo", "160000,"+head+",specs/module")
	tr.arm(t, module, "module-")
	// A filter name that the outer configuration does not have.
	git(t, module, "config", "filter.inner.clean", tr.program("module-inner"))
	write(t, module, "f", "2\n")
}

func TestHostileRepositoryRunsNothing(t *testing.T) {
	g := isolatedGit(t)
	tr := newTrap(t)
	r := open(t, g, filepath.Join(tr.dir, "sub"))
	ctx := context.Background()
	tr.newMarks(t)

	entries, err := r.List(ctx, "")
	if err != nil || len(entries) < 6 {
		t.Errorf("List() = %v, %v", entries, err)
	}
	d, err := r.DiffMain(ctx, nil, "specs/")
	if err != nil || strings.Count(string(d.Patch), "-one\n+two\n") != 5 {
		t.Errorf("DiffMain() = %v\n%s", err, d.Patch)
	}
	if _, err := r.DiffMain(ctx, nil); err != nil {
		t.Error(err)
	}
	if _, err := g.Version(ctx); err != nil {
		t.Error(err)
	}
	if _, err := r.IgnoredPaths(ctx, ""); err != nil {
		t.Error(err)
	}
	if list, err := r.Commits(ctx, Refs{}, time.Time{}, time.Now()); err != nil || len(list) != 2 {
		t.Errorf("Commits() = %v, %v", list, err)
	}
	if marks := tr.newMarks(t); len(marks) > 0 {
		t.Errorf("the repository ran: %v", marks)
	}
}

// The traps work: plain git triggers them.
func TestHostileRepositoryIsArmed(t *testing.T) {
	isolatedGit(t)
	tr := newTrap(t)
	for _, c := range []struct {
		args, want string
	}{
		{"ls-files -co --exclude-standard", "fsmonitor"},
		{"diff -- specs/textconv", "external"},
		{"diff --no-ext-diff -- specs/textconv", "textconv"},
		{"diff -- specs/command", "driver"},
		{"diff --no-ext-diff -- specs/clean", "clean"},
		{"diff --no-ext-diff -- specs/odd", "odd"},
		{"diff --no-ext-diff -- specs/process", "process"},
		{"-c core.fsmonitor=false diff --no-ext-diff main -- specs/module", "module-inner"},
		{"log --walk-reflogs --no-patch --format=%H", "gpg"},
		{"-c core.fsmonitor=false update-index --chmod=+x sub/f", "hook-post-index-change"},
	} {
		tr.newMarks(t)
		out, _ := tryGit(tr.dir, strings.Fields(c.args)...)
		if marks := strings.Join(tr.newMarks(t), " "); !strings.Contains(marks, c.want) {
			t.Errorf("git %s left %q, not %s:\n%s", c.args, marks, c.want, out)
		}
	}
}

// A partial clone does not fetch missing objects, whatever transport its
// configuration names.
func TestPartialCloneFetchesNothing(t *testing.T) {
	g := isolatedGit(t)
	dir := repository(t, "specs/a", "one\n")
	tr := trap{dir: dir, marks: t.TempDir()}
	blob := strings.TrimSpace(git(t, dir, "rev-parse", "HEAD:specs/a"))
	if err := os.Remove(filepath.Join(dir, ".git", "objects", blob[:2], blob[2:])); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "specs/a", "two\n")
	for _, pair := range [][2]string{
		{"core.repositoryFormatVersion", "1"}, {"extensions.partialClone", "origin"}, {"remote.origin.promisor", "true"},
		{"remote.origin.url", "ext::sh -c touch% " + filepath.Join(tr.marks, "ext")}, {"protocol.ext.allow", "always"},
		{"protocol.allow", "always"},
	} {
		git(t, dir, "config", pair[0], pair[1])
	}
	r := open(t, g, dir)
	ways := map[string]string{
		"ext":        "ext::sh -c touch% " + filepath.Join(tr.marks, "ext"),
		"uploadpack": dir,
		"ssh":        "ssh://localhost/x",
	}
	git(t, dir, "config", "remote.origin.uploadpack", "touch "+filepath.Join(tr.marks, "uploadpack")+"; false")
	git(t, dir, "config", "core.sshCommand", "touch "+filepath.Join(tr.marks, "ssh")+"; false")
	for name, url := range ways {
		git(t, dir, "config", "remote.origin.url", url)
		if _, err := r.DiffMain(context.Background(), nil, "specs"); err == nil {
			t.Errorf("%s: Diff succeeded without the missing objects", name)
		}
		// Versions of git that cannot disable lazy fetching use the list of
		// allowed transports.
		old := *g
		old.env = nil
		for _, kv := range g.env {
			if !strings.HasPrefix(kv, "GIT_NO_LAZY_FETCH=") {
				old.env = append(old.env, kv)
			}
		}
		if _, err := open(t, &old, dir).DiffMain(context.Background(), nil, "specs"); err == nil {
			t.Errorf("%s: Diff succeeded without the missing objects", name)
		}
		if marks := tr.newMarks(t); len(marks) > 0 {
			t.Errorf("%s: the repository ran %v", name, marks)
		}
		if out, _ := tryGit(dir, "diff-index", "-p", "main"); strings.Join(tr.newMarks(t), " ") != name {
			t.Errorf("%s: plain git did not fetch, so the test proves nothing:\n%s", name, out)
		}
	}
}

// The repository's configuration cannot move the work tree.
func TestWorkTreeStays(t *testing.T) {
	g := isolatedGit(t)
	dir := repository(t, "f", "1\n")
	elsewhere := t.TempDir()
	write(t, elsewhere, "secret", "x")
	git(t, dir, "config", "core.worktree", elsewhere)
	write(t, dir, "f", "2\n")
	r := open(t, g, dir)
	entries, err := r.List(context.Background(), "")
	if err != nil || len(entries) != 1 || entries[0].Path != "f" {
		t.Errorf("List() = %v, %v", entries, err)
	}
	if got := patch(t, r); !strings.Contains(got, "+2\n") {
		t.Errorf("Diff() = %s", got)
	}
}

// Variables of a git that started hone, for example from a hook, do not select
// another repository.
func TestOutsideVariables(t *testing.T) {
	isolatedGit(t)
	dir, other := repository(t, "f", "1\n"), repository(t, "other", "1\n")
	t.Setenv("GIT_DIR", filepath.Join(other, ".git"))
	t.Setenv("GIT_WORK_TREE", other)
	t.Setenv("GIT_INDEX_FILE", filepath.Join(other, ".git", "index"))
	t.Setenv("GIT_EXTERNAL_DIFF", "false")
	g, err := Find("")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := open(t, g, dir).List(context.Background(), "")
	if err != nil || len(entries) != 1 || entries[0].Path != "f" {
		t.Errorf("List() = %v, %v", entries, err)
	}
}

// A git that does not read settings from its environment is not used on a
// repository with filters.
func TestOldGitWithFilters(t *testing.T) {
	g := isolatedGit(t)
	dir := repository(t, "f", "1\n")
	old := filepath.Join(t.TempDir(), "git")
	write(t, filepath.Dir(old), "git", "#!/bin/sh\nunset GIT_CONFIG_COUNT\nexec '"+g.path+"' \"$@\"\n")
	if err := os.Chmod(old, 0o755); err != nil {
		t.Fatal(err)
	}
	r := open(t, &Git{path: old, env: g.env}, dir)
	if _, err := r.DiffMain(context.Background(), nil); err != nil {
		t.Errorf("without filters: %v", err)
	}
	git(t, dir, "config", "filter.x.clean", "cat")
	if _, err := r.DiffMain(context.Background(), nil); err == nil || !strings.Contains(err.Error(), "2.31") {
		t.Errorf("with a filter: %v", err)
	}
}

func TestDubiousOwnership(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a repository to someone else")
	}
	g := isolatedGit(t)
	for name, foreign := range map[string]string{"work tree": "", "git directory": ".git"} {
		t.Run(name, func(t *testing.T) {
			dir := repository(t, "f", "1\n")
			r := open(t, g, dir)
			if err := os.Chown(filepath.Join(dir, foreign), 4321, 4321); err != nil {
				t.Fatal(err)
			}
			_, err := r.List(context.Background(), "")
			checkHint(t, err, "git config --global --add safe.directory "+dir)
			var refused *ForeignError
			if _, err := Root(dir); !errors.As(err, &refused) || refused.Dir != dir || refused.Advice != "git config --global --add safe.directory "+dir {
				t.Errorf("Root() = %v", err)
			}
			if _, err := g.Open(dir); !errors.As(err, &refused) {
				t.Errorf("Open() = %v", err)
			}
			git(t, t.TempDir(), "config", "--global", "--add", "safe.directory", dir)
			if top, err := Root(dir); err != nil || top != dir {
				t.Errorf("with safe.directory: %s, %v", top, err)
			}
		})
	}
}

// The git directory of a linked work tree may be another user's.
func TestDubiousOwnershipOfALinkedWorkTree(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a repository to someone else")
	}
	isolatedGit(t)
	dir := repository(t, "f", "1\n")
	linked := filepath.Join(filepath.Dir(dir), "linked")
	git(t, dir, "worktree", "add", "-q", linked)
	if top, err := Root(linked); err != nil || top != linked {
		t.Errorf("%s, %v", top, err)
	}
	if err := os.Chown(filepath.Join(dir, ".git", "worktrees", "linked"), 4321, 4321); err != nil {
		t.Fatal(err)
	}
	if _, err := Root(linked); !errors.As(err, new(*ForeignError)) {
		t.Errorf("Root() = %v", err)
	}
}

func TestUnreadableConfiguration(t *testing.T) {
	g := isolatedGit(t)
	dir := repository(t, "f", "1\n")
	if err := os.Mkdir(filepath.Join(os.Getenv("HOME"), ".gitconfig"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := open(t, g, dir).List(context.Background(), "")
	if err == nil || !strings.Contains(err.Error(), ".gitconfig") || strings.Contains(err.Error(), "\n") {
		t.Errorf("List() = %v", err)
	}
}

func checkHint(t *testing.T, err error, want string) {
	t.Helper()
	failure, ok := err.(*Error)
	if !ok || failure.Hint != want {
		t.Errorf("error %v, want the hint %q", err, want)
	}
}
