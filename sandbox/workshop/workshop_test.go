//go:build unix

package workshop

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/internal/gitdir"
	"hone/sandbox"
)

// bench is an invented home, a workspace and a run's directory.
type bench struct {
	base, home, root, run string
	shop                  Workshop
}

// newBench makes files below a common directory: "a/b" is a file, "a/b*" a program,
// "a/b/" a directory, and "a -> b" a symlink.
func newBench(t *testing.T, lines ...string) *bench {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{base: base, home: filepath.Join(base, "person"), root: filepath.Join(base, "src", "project"), run: filepath.Join(base, "cache", "run")}
	b.make(t, "person/", "src/project/", "cache/run/")
	b.make(t, lines...)
	b.shop = Workshop{Root: b.root, Home: b.run, Environ: []string{"HOME=" + b.home, "PATH=/usr/bin:/bin"}}
	return b
}

func (b *bench) make(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines {
		name, target, isLink := strings.Cut(line, " -> ")
		path := filepath.Join(b.base, strings.TrimSuffix(name, "*"))
		dir := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			dir = path
		}
		err := os.MkdirAll(dir, 0o755)
		switch {
		case err != nil || dir == path:
		case isLink:
			err = os.Symlink(strings.ReplaceAll(target, "%", b.base), path)
		case strings.HasSuffix(name, "*"):
			err = os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755)
		default:
			err = os.WriteFile(path, []byte("x\n"), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// write writes a file. In its contents % stands for the common directory.
func (b *bench) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(b.base, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "%", b.base)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// env adds variables. In them % stands for the common directory.
func (b *bench) env(vars ...string) {
	for _, kv := range vars {
		b.shop.Environ = append(b.shop.Environ, strings.ReplaceAll(kv, "%", b.base))
	}
}

func (b *bench) findRepositories(t *testing.T) {
	t.Helper()
	watch, err := gitdir.NewWatch(t.Context(), b.shop.Root, b.shop.Root, func([]string) []string { return nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.shop.Repositories = watch.Known()
}

func (b *bench) policy(t *testing.T) (sandbox.Policy, []string) {
	t.Helper()
	b.findRepositories(t)
	p, err := b.shop.Equip()
	if err != nil {
		t.Fatal(err)
	}
	return p, p.Env
}

// reach returns what a policy lets commands do with a path: write, read, hidden, or
// none if the path is not shown at all.
func (b *bench) reach(t *testing.T, p sandbox.Policy, name string) string {
	t.Helper()
	entries, err := p.Entries()
	if err != nil {
		t.Fatal(err)
	}
	path := name
	if !filepath.IsAbs(name) {
		path = filepath.Join(b.base, name)
	}
	path = realPath(path)
	longest, answer := "", "none"
	for _, e := range entries {
		if e.Link == "" && sandbox.Within(e.Path, path) && len(e.Path) >= len(longest) {
			longest, answer = e.Path, []string{"hidden", "read", "write"}[e.Access]
		}
	}
	return answer
}

func (b *bench) check(t *testing.T, p sandbox.Policy, want string, names ...string) {
	t.Helper()
	for _, name := range names {
		if got := b.reach(t, p, name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestPolicyOfAnEmptyHome(t *testing.T) {
	b := newBench(t, "person/.ssh/id_ed25519", "person/notes.txt", "src/other/main.go", "src/project/main.go", "src/project/.config/hone.toml", "src/project/.hone/runs/1")
	p, env := b.policy(t)
	b.check(t, p, "write", "src/project/main.go", "src/project/new", "src/project/.config/new", "cache/run/home/x", "cache/run/tmp/x")
	b.check(t, p, "read", "src/project/.config/hone.toml", "src/project/.config/bork.json", "/usr/bin/env", "/etc/passwd")
	b.check(t, p, "hidden", "src/project/.hone", "src/project/.hone/runs/1")
	b.check(t, p, "none", "person", "person/notes.txt", "person/.ssh/id_ed25519", "src/other/main.go", "cache/run/aside/x", "/etc/shadow", "/etc/ssl/private", "/opt", "/var/run", "/root/x")
	for name, want := range map[string]string{"HOME": b.run + "/home", "TMPDIR": b.run + "/tmp", "PATH": "/usr/bin:/bin", "GOPROXY": "off", "CARGO_NET_OFFLINE": "true", "npm_config_offline": "true"} {
		if got := sandbox.EnvValue(env, name); got != want {
			t.Errorf("%s=%s, want %s", name, got, want)
		}
	}
	if p.Tmp != b.run+"/tmp" || p.Aside != b.run+"/aside" || p.Net {
		t.Errorf("%+v", p)
	}
	for _, dir := range []string{"home", "tmp", "aside"} {
		if info, err := os.Lstat(filepath.Join(b.run, dir)); err != nil || info.Mode() != os.ModeDir|0o700 {
			t.Errorf("%s: %v, %v", dir, info, err)
		}
	}
}

func TestWhatTheCallerAdds(t *testing.T) {
	b := newBench(t, "src/project/.env", "src/project/spec.md", "src/project/a/b.txt", "data/x", "out/", "person/.netrc", "person/.aws/credentials", "person/.config/gh/hosts.yml", "person/.gitconfig")
	b.shop.Hide = []string{b.root + "/.env"}
	b.shop.Protect = []string{"spec.md", b.root + "/a/"}
	b.shop.Read = []string{b.base + "/data/", b.home, b.home + "/.netrc"}
	b.shop.Write = []string{b.base + "/out"}
	b.shop.Net = true
	b.shop.Limits = sandbox.Limits{Memory: 1 << 30}
	p, env := b.policy(t)
	b.check(t, p, "hidden", "src/project/.env", "person/.aws/credentials", "person/.config/gh/hosts.yml")
	b.check(t, p, "read", "src/project/spec.md", "src/project/a/b.txt", "data/x", "person/.netrc", "person/.gitconfig")
	b.check(t, p, "write", "out/x", "src/project/b")
	if !p.Net || p.Limits.Memory != 1<<30 || sandbox.EnvValue(env, "GOPROXY") == "off" || sandbox.EnvValue(env, "CARGO_NET_OFFLINE") != "" {
		t.Errorf("%+v %q", p, env)
	}
}

func TestEnvironment(t *testing.T) {
	b := newBench(t, "person/ca.pem", "person/token", "person/ca/")
	b.env("AWS_SECRET_ACCESS_KEY=s", "GITHUB_TOKEN=s", "SSH_AUTH_SOCK=/s", "DBUS_SESSION_BUS_ADDRESS=s", "ANTHROPIC_API_KEY=s", "LISTED_API_KEY=listed", "UNKNOWN=s",
		"LD_PRELOAD=/s", "PYTHONPATH=/s", "NODE_OPTIONS=--require=/s", "GIT_DIR=/s", "GIT_CONFIG_COUNT=1", "MAKEFLAGS=-j --jobserver-auth=3,4", "BASH_ENV=/s", "ENV=/s",
		"LANG=old", "LANG=C.UTF-8", "LC_ALL=C", "CC=clang", "TZ=UTC", "CI=true", "DROPPED=s", "GOFLAGS=-modcacherw -mod=mod", "USER=\xff",
		"NODE_EXTRA_CA_CERTS=%/person/ca.pem", "SSL_CERT_FILE=%/person/token", "SSL_CERT_DIR=%/person/ca", "CURL_CA_BUNDLE=ca.pem", "TMPDIR=/s",
		"HTTPS_PROXY=http://proxy.example:8080", "HTTP_PROXY=http://me:secret@proxy.example:8080")
	b.shop.Drop = []string{"ANTHROPIC_API_KEY", "LISTED_API_KEY", "CC"}
	b.shop.Keep = []string{"LISTED_API_KEY", "UNSET", "HOME", "TMPDIR", "PATH", "GOPROXY"}
	b.env("GOPROXY=https://mine.example")
	b.shop.Net = true
	p, env := b.policy(t)
	for name, want := range map[string]string{
		"LANG": "C.UTF-8", "LC_ALL": "C", "TZ": "UTC", "CI": "true", "TERM": "dumb", "LISTED_API_KEY": "listed", "GOFLAGS": "-mod=mod",
		"NODE_EXTRA_CA_CERTS": b.home + "/ca.pem", "HTTPS_PROXY": "http://proxy.example:8080", "GOPROXY": "https://mine.example",
		"HOME": b.run + "/home", "TMPDIR": b.run + "/tmp", "PATH": "/usr/bin:/bin",
	} {
		if got := sandbox.EnvValue(env, name); got != want {
			t.Errorf("%s=%s, want %s", name, got, want)
		}
	}
	for _, kv := range env {
		if strings.HasSuffix(kv, "=s") || strings.Contains(kv, "=/s") || strings.Contains(kv, "secret") || strings.Contains(kv, "\xff") {
			t.Errorf("passed on: %q", kv)
		}
	}
	for _, name := range []string{"CC", "UNSET", "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "MAKEFLAGS", "GIT_CONFIG_COUNT", "NODE_OPTIONS"} {
		if slices.ContainsFunc(env, func(kv string) bool { return sandbox.EnvName(kv) == name }) {
			t.Errorf("%s is passed on", name)
		}
	}
	if !slices.IsSorted(env) {
		t.Error("not sorted")
	}
	b.check(t, p, "read", "person/ca.pem")
	b.check(t, p, "none", "person/token", "person/ca")
}

func TestProxiesAreNotForOfflineRuns(t *testing.T) {
	b := newBench(t)
	b.env("HTTPS_PROXY=http://proxy.example:8080")
	if _, env := b.policy(t); sandbox.EnvValue(env, "HTTPS_PROXY") != "" {
		t.Error(env)
	}
}

// TestHomeUnset checks that without HOME no home is guessed.
func TestHomeUnset(t *testing.T) {
	for _, home := range []string{"", "relative", "."} {
		b := newBench(t, "person/.cargo/bin/cargo*")
		b.shop.Environ = []string{"HOME=" + home, "PATH=/usr/bin:" + b.home + "/.cargo/bin"}
		p, _ := b.policy(t)
		b.check(t, p, "read", "person/.cargo/bin/cargo")
		b.check(t, p, "none", "person", "person/.cargo/x")
		for _, path := range slices.Concat(p.Read, p.Hide, p.Write) {
			if !filepath.IsAbs(path) {
				t.Errorf("%q", path)
			}
		}
	}
}

func TestFoldersThatCannotBe(t *testing.T) {
	b := newBench(t, "src/project/run/", "src/link -> /", "cache/run/root/", "file")
	for name, w := range map[string]Workshop{
		"a relative workspace":                    {Root: "src", Home: b.run},
		"no workspace":                            {Home: b.run},
		"no run's directory":                      {Root: b.root},
		"a missing run's directory":               {Root: b.root, Home: b.base + "/nowhere"},
		"a workspace that is a file":              {Root: b.base + "/file", Home: b.run},
		"the whole machine":                       {Root: "/", Home: b.run},
		"the whole machine by a link":             {Root: b.base + "/src/link", Home: b.run},
		"a run's directory in the workspace":      {Root: b.root, Home: b.root + "/run"},
		"a run's directory that is the workspace": {Root: b.root, Home: b.root},
		"a workspace in the run's directory":      {Root: b.run + "/root", Home: b.run},
		"a workspace whose name is no text":       {Root: b.base + "/\xff", Home: b.run},
	} {
		if _, err := w.Equip(); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// Walls of several kinds may be tried with one home.
func TestHomeTwice(t *testing.T) {
	b := newBench(t, "person/.cargo/registry/x", "person/.m2/repository/x", "person/.agent/x")
	b.shop.Links = []string{"~/.agent"}
	first, _ := b.policy(t)
	again, _ := b.policy(t)
	if diff := cmp.Diff(first.Env, again.Env); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]string{".cargo/registry": ".cargo/registry", ".m2/repository": ".m2/repository", ".agent": ".agent"} {
		if target, err := os.Readlink(filepath.Join(b.run, "home", name)); err != nil || target != filepath.Join(b.home, want) {
			t.Errorf("%s: %s, %v", name, target, err)
		}
	}
}

// A tree that is read-only stays so under all its names, and what lies elsewhere can be written.
func TestReadOnly(t *testing.T) {
	b := newBench(t, "src/project/in/x", "src/project-beside/", "out/", "link -> %/src/project/in")
	b.shop.ReadOnly, b.shop.Write = true, []string{b.root + "/in", b.base + "/link", b.root + "-beside", b.base + "/out"}
	p, _ := b.policy(t)
	b.check(t, p, "read", "src/project/x", "src/project/in/x", "src/project/.git/config")
	b.check(t, p, "write", "src/project-beside/x", "out/x", "cache/run/home/x")
	if want := []string{b.run + "/home", b.run + "/tmp", b.root + "-beside", b.base + "/out"}; !slices.Equal(p.Write, want) {
		t.Errorf("%q can be written, want %q", p.Write, want)
	}
}

// Links lead to the user's files. What the run's home has already stays.
func TestHomeLinks(t *testing.T) {
	b := newBench(t, "person/.agent/x", "person/.config/agent/x", "person/.gitconfig")
	b.shop.Links = []string{"~/.agent", "~/.config/agent", "~/.gitconfig"}
	b.policy(t)
	for name, want := range map[string]string{".agent": b.home + "/.agent", ".config/agent": b.home + "/.config/agent", ".gitconfig": ""} {
		if target, _ := os.Readlink(filepath.Join(b.run, "home", name)); target != want {
			t.Errorf("%s leads to %q, want %q", name, target, want)
		}
	}
}

// TestIdentity checks that commits have the user's name, and that no other setting of
// the user is used.
func TestIdentity(t *testing.T) {
	b := newBench(t)
	b.write(t, "person/.gitconfig", "[user]\n\tname = \"Ann \\\"A\\\" \\\\ O'Neil # 1\"\n\temail = ann@example.org\n\tsigningkey = SECRET\n[core]\n\thooksPath = /evil\n")
	b.write(t, "person/.config/git/config", "[user]\n\tname = Bob\n[user \"x\"]\n\temail = x@example.org\n")
	b.shop.Environ = []string{"HOME=" + b.home, "PATH=/usr/bin:/bin"}
	b.policy(t)
	person := b.shop.prepared()
	person.Environ = []string{"HOME=" + b.run + "/home"}
	if name, email := person.gitUser(); name != `Ann "A" \ O'Neil # 1` || email != "ann@example.org" {
		t.Errorf("%q %q", name, email)
	}
	if text, err := os.ReadFile(b.run + "/home/.gitconfig"); err != nil || strings.Contains(string(text), "SECRET") || strings.Contains(string(text), "evil") {
		t.Errorf("%s %v", text, err)
	}
}

func BenchmarkWorkshop(b *testing.B) {
	base := b.TempDir()
	w := Workshop{Root: filepath.Join(base, "project"), Home: filepath.Join(base, "run"), Environ: os.Environ()}
	for _, dir := range []string{w.Root, w.Home} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := w.Equip(); err != nil {
			b.Fatal(err)
		}
	}
}
