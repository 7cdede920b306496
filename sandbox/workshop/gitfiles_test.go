//go:build unix

package workshop

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"hone/sandbox"
)

// git runs git in a directory of a bench.
func (b *bench) git(t *testing.T, dir string, args ...string) {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("SKIPPED: no git")
	}
	cmd := exec.Command(git, append([]string{"-c", "protocol.file.allow=always", "-c", "user.name=n", "-c", "user.email=e"}, args...)...)
	cmd.Dir = filepath.Join(b.base, dir)
	cmd.Env = []string{"HOME=" + b.home, "GIT_CONFIG_NOSYSTEM=1", "PATH=/usr/bin:/bin"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestOwnRepository(t *testing.T) {
	b := newBench(t)
	b.git(t, "src/project", "init", "-q")
	b.git(t, "src/project", "commit", "-q", "--allow-empty", "-m", "x")
	b.git(t, "src/project", "worktree", "add", "-q", "../linked")
	b.git(t, "src", "clone", "-q", "project", "lib")
	b.git(t, "src/project", "submodule", "--quiet", "add", b.base+"/src/lib", "deep/lib")
	p, _ := b.policy(t)
	b.check(t, p, "read", "src/project/.git/config", "src/project/.git/hooks/new", "src/project/.git/info/exclude", "src/project/.git/config.worktree",
		"src/project/.git/commondir", "src/project/.git/objects/info/alternates",
		"src/project/.git/worktrees/linked/gitdir", "src/project/.git/worktrees/linked/commondir", "src/project/.git/worktrees/linked/config.worktree",
		"src/project/.git/modules/deep/lib/config", "src/project/.git/modules/deep/lib/hooks/x", "src/project/deep/lib/.git")
	b.check(t, p, "write", "src/project/.git/HEAD", "src/project/.git/index.lock", "src/project/.git/objects/aa/x", "src/project/.git/refs/heads/x",
		"src/project/.git/logs/HEAD", "src/project/.git/packed-refs", "src/project/.git/COMMIT_EDITMSG", "src/project/.git/modules/deep/lib/HEAD", "src/project/.gitmodules", "src/project/deep/lib/new")
	b.check(t, p, "none", "src/linked/.git", "src/lib/.git/config")

	b.shop.Root = b.base + "/src/linked"
	p, _ = b.policy(t)
	b.check(t, p, "read", "src/linked/.git", "src/project/.git/HEAD", "src/project/.git/objects/x", "src/project/.git/worktrees/linked/index")
	b.check(t, p, "write", "src/linked/x")
	b.check(t, p, "none", "src/project/x")

	b.shop.Root = b.root + "/deep/lib"
	p, _ = b.policy(t)
	b.check(t, p, "read", "src/project/deep/lib/.git", "src/project/.git/modules/deep/lib/HEAD", "src/project/.git/modules/deep/lib/config")
	b.check(t, p, "none", "src/project/.git/config", "src/project/x")
	b.check(t, p, "write", "src/project/deep/lib/x")

	b.make(t, "src/linked/below/x", "src/project/below/x")
	b.shop.Root = b.root + "/below"
	p, _ = b.policy(t)
	b.check(t, p, "read", "src/project/.git/HEAD", "src/project/.git/config")
	b.check(t, p, "none", "src/project/x", "src/project/deep")
	b.check(t, p, "write", "src/project/below/x")

	b.shop.Root = b.base + "/src/linked/below"
	p, _ = b.policy(t)
	b.check(t, p, "read", "src/linked/.git", "src/project/.git/worktrees/linked/HEAD")
	b.check(t, p, "none", "src/linked/x")
}

// TestWorktreesOfABareRepository checks a repository that contains its worktrees: it
// shows only git's own files.
func TestWorktreesOfABareRepository(t *testing.T) {
	b := newBench(t, "src/bare.git/secret")
	b.git(t, "src/bare.git", "init", "-q", "--bare")
	b.git(t, "src/project", "init", "-q")
	b.git(t, "src/project", "commit", "-q", "--allow-empty", "-m", "x")
	b.git(t, "src/project", "push", "-q", b.base+"/src/bare.git", "HEAD:refs/heads/main")
	b.git(t, "src/bare.git", "worktree", "add", "-q", "one", "main")
	b.git(t, "src/bare.git", "worktree", "add", "-q", "-b", "two", "two", "main")
	b.shop.Root = b.base + "/src/bare.git/one"
	p, _ := b.policy(t)
	b.check(t, p, "read", "src/bare.git/HEAD", "src/bare.git/objects/x", "src/bare.git/worktrees/one/index", "src/bare.git/one/.git")
	b.check(t, p, "none", "src/bare.git/secret", "src/bare.git/two/x", "src/bare.git/hooks/x")
	b.check(t, p, "write", "src/bare.git/one/x")
}

// TestGitFilesAreNotBelieved checks that git files that a model can write in the
// workspace show nothing outside of it.
func TestGitFilesAreNotBelieved(t *testing.T) {
	private := []string{"person/.ssh/id_rsa", "person/.ssh/HEAD", "person/.ssh/objects/x", "person/.ssh/refs/x", "person/private/.git/HEAD", "person/private/.git/objects/x", "person/private/.git/worktrees/w/HEAD"}
	for name, git := range map[string]string{
		"a directory of keys":    "gitdir: %/person/.ssh\n",
		"another repository":     "gitdir: %/person/private/.git\n",
		"another worktree":       "gitdir: %/person/private/.git/worktrees/w\n",
		"a relative one":         "gitdir: ../../person/.ssh\n",
		"one of the workspace's": "gitdir: fake/worktrees/w\n",
		"no name":                "gitdir: \n",
		"two lines":              "gitdir: x\n%/person/.ssh\n",
		"garbage":                "\x00\xff",
		"nothing":                "",
		"the machine":            "gitdir: /\n",
		"the home":               "gitdir: %/person\n",
		"itself":                 "gitdir: .git\n",
		"not a directory":        "gitdir: /dev/zero\n",
		"a missing directory":    "gitdir: /nowhere/.git\n",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, private...)
			b.write(t, "src/project/.git", git)
			b.write(t, "src/project/fake/worktrees/w/gitdir", "%/src/project/.git\n")
			b.write(t, "src/project/fake/worktrees/w/commondir", "%/person/private/.git\n")
			b.write(t, "src/project/fake/worktrees/w/config", "[core]\n\tworktree = %/src/project\n")
			p, err := b.shop.Equip()
			if err != nil {
				t.Fatal(err)
			}
			b.check(t, p, "none", "person", "person/.ssh/id_rsa", "person/private/.git/objects/x", "person/private/.git/worktrees/w/HEAD", "/root/x")
			b.check(t, p, "read", "src/project/.git")
			b.check(t, p, "write", "src/project/x")
		})
	}
}

// TestLinksOutOfTheWorkspace checks that a protected symlink out of the workspace is
// refused, unless its target may be read anyway.
func TestLinksOutOfTheWorkspace(t *testing.T) {
	for _, name := range []string{
		"src/project/.git", "src/project/.git/config", "src/project/.git/hooks", "src/project/.git/modules/evil/hooks", "src/project/.git/worktrees/evil/gitdir", "src/project/.git/objects",
		"src/project/.config", "src/project/.config/hone.toml", "src/project/.config/bork.json", "src/project/mine",
	} {
		b := newBench(t, "src/project/.keep", "person/.ssh/info", "person/.ssh/hone.toml")
		b.shop.Protect = []string{"mine"}
		if strings.Contains(name, "evil") {
			b.write(t, filepath.Dir(name)+"/HEAD", "ref: refs/heads/x\n")
			b.make(t, filepath.Dir(name)+"/objects/x", filepath.Dir(name)+"/refs/x")
		}
		b.make(t, name+" -> %/person/.ssh")
		b.findRepositories(t)
		p, err := b.shop.Equip()
		var out *EscapeError
		if !errors.As(err, &out) || !strings.Contains(out.Error(), "person/.ssh") || out.Hint() == "" {
			t.Errorf("%s: %v\n%q", name, err, p.Read)
		}
	}
	b := newBench(t, "person/private/.git/config", "src/project/linked -> %/person/private/.git")
	b.write(t, "src/project/.git", "gitdir: linked\n")
	if _, err := b.shop.Equip(); !errors.As(err, new(*EscapeError)) {
		t.Error(err)
	}
	b = newBench(t, "hooks/pre-commit*", "src/project/.git/HEAD", "src/project/.git/hooks -> %/hooks")
	b.shop.Read = []string{b.base + "/hooks"}
	p, _ := b.policy(t)
	b.check(t, p, "read", "hooks/pre-commit", "src/project/.git/hooks/pre-commit")
}

// TestLinksWithinTheWorkspace checks that symlinks are protected like files.
func TestLinksWithinTheWorkspace(t *testing.T) {
	b := newBench(t, "src/project/conf/hone.toml", "src/project/.config -> conf", "src/project/repo/config", "src/project/.git -> repo")
	p, _ := b.policy(t)
	b.check(t, p, "read", "src/project/.config/hone.toml", "src/project/conf/hone.toml", "src/project/repo/config", "src/project/repo/hooks")
	b.check(t, p, "write", "src/project/repo/HEAD", "src/project/conf/x")
}

// TestProtectedBelowAFile checks a protected path that cannot exist because its parent
// is a file: the file is protected.
func TestProtectedBelowAFile(t *testing.T) {
	b := newBench(t, "src/project/.config")
	p, _ := b.policy(t)
	b.check(t, p, "read", "src/project/.config")
}

// TestOuterRepositories checks that a repository above the workspace is shown, unless
// it is the user's home or a symlink.
func TestOuterRepositories(t *testing.T) {
	b := newBench(t, "person/.git/objects/x", "person/project/x", "src/.git -> %/person/.git")
	p, _ := b.policy(t)
	b.check(t, p, "none", "person/.git/objects/x")
	b.shop.Root = b.home + "/project"
	p, _ = b.policy(t)
	b.check(t, p, "none", "person/.git/objects/x")
	b.check(t, p, "write", "person/project/x")
}

// What git's settings name in the workspace is read-only, also if it does not exist.
func TestGitIndirections(t *testing.T) {
	b := newBench(t, "src/project/.husky/_/pre-commit", "src/project/hooks/x", "src/project/x", "person/.gitconfig", "src/project/scripts/push", "src/project/all/x")
	b.git(t, "src/project", "init", "-q")
	b.make(t, "src/project/.git/hooks/pre-push -> %/src/project/scripts/push")
	b.git(t, "src/project", "init", "-q", "clone")
	if err := os.RemoveAll(b.root + "/clone/.git/hooks"); err != nil {
		t.Fatal(err)
	}
	b.make(t, "src/project/clone/.git/hooks -> ../../all")
	for key, value := range map[string]string{
		"include.path": "../.gitconfig", "includeIf.onbranch:x.path": b.root + "/deep/config", "core.attributesFile": "~/../src/project/attributes",
		"core.hooksPath": ".husky/_", "core.excludesFile": "excludes",
	} {
		b.git(t, "src/project", "config", key, value)
	}
	b.git(t, "src/project", "config", "--file", ".gitconfig", "include.path", "nested")
	b.git(t, "src/project", "config", "--file", "nested", "core.hooksPath", "other-hooks")
	b.git(t, "src/project", "config", "--file", ".git/config.worktree", "include.path", "inner")
	b.git(t, "src/project", "config", "--file", b.home+"/.gitconfig", "core.hooksPath", "hooks")
	p, _ := b.policy(t)
	named := []string{".gitconfig", ".husky", "all", "attributes", "clone/hooks", "deep/config", "hooks", "nested", "other-hooks", "scripts/push"}
	for _, name := range named {
		b.check(t, p, "read", "src/project/"+name)
	}
	b.check(t, p, "read", "src/project/hooks/new", "src/project/.husky/_/x", "src/project/.git/inner")
	b.check(t, p, "write", "src/project/x", "src/project/excludes", "src/project/.git/index", "src/project/deep/x")
	for path, want := range map[string]sandbox.Placeholder{"deep/config": {}, "other-hooks": {Dir: true}, ".git/commondir": {Text: "."}, ".config/bork.json": {Text: "{}"}} {
		if got, ok := p.Placeholders[b.root+"/"+path]; !ok || got != want {
			t.Errorf("the placeholder of %s is %+v, %t", path, got, ok)
		}
	}
	got, err := GitIndirections(b.root, b.shop.Repositories, b.shop.Environ)
	if want := append([]string{".git/inner"}, named...); err != nil || !slices.Equal(slices.Sorted(slices.Values(append(want, ".husky/_"))), got) {
		t.Errorf("%q, %v", got, err)
	}
}

// Sockets and FIFOs in the workspace are hidden, but not those that the user names.
func TestEndpoints(t *testing.T) {
	b := newBench(t, "src/project/sub/x")
	l, err := net.Listen("unix", filepath.Join(b.root, "s"))
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	defer l.Close()
	for _, name := range []string{"sub/fifo", "named"} {
		if err := syscall.Mkfifo(filepath.Join(b.root, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.shop.Write = []string{filepath.Join(b.root, "named")}
	p, _ := b.policy(t)
	b.check(t, p, "hidden", "src/project/s", "src/project/sub/fifo")
	b.check(t, p, "write", "src/project/named", "src/project/sub/x")
}
