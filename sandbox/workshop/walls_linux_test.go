package workshop

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"hone/sandbox"
	"hone/sandbox/wall"
)

// handiworkDir is the variable that tells a test binary of another user which
// directory was prepared for it.
const handiworkDir = "SANDBOX_TEST_HANDIWORK"

// handiworkFiles returns small projects like those of users.
func handiworkFiles() map[string]string {
	return map[string]string{
		"gomod/go.mod":                         "module example.com/small\n\ngo 1.26\n\nrequire github.com/google/go-cmp v0.7.0\n",
		"gomod/a_test.go":                      "package small\n\nimport (\n\t\"testing\"\n\n\t\"github.com/google/go-cmp/cmp\"\n)\n\nfunc TestA(t *testing.T) {\n\tif d := cmp.Diff(1, 1); d != \"\" {\n\t\tt.Fatal(d)\n\t}\n}\n",
		"gomod/cmd/main.go":                    "package main\n\nfunc main() { println(\"small\") }\n",
		"node/package.json":                    `{"name": "small", "version": "1.0.0", "scripts": {"test": "node --test"}, "dependencies": {"seven": "1.0.0"}}` + "\n",
		"node/node_modules/seven/package.json": `{"name": "seven", "version": "1.0.0", "main": "seven.js"}` + "\n",
		"node/node_modules/seven/seven.js":     "module.exports = 7\n",
		"node/seven.test.js":                   "const test = require('node:test'), assert = require('node:assert')\ntest('seven', () => assert.equal(require('seven'), 7))\n",
		"py/test_small.py":                     "import sqlite3, ssl, subprocess, tempfile, unittest\n\n\nclass Small(unittest.TestCase):\n    def test_child(self):\n        with tempfile.NamedTemporaryFile():\n            self.assertEqual(subprocess.check_output(['echo', 'x']), b'x\\n')\n",
		"rs/Cargo.toml":                        "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
		"rs/src/main.rs":                       "fn main() { println!(\"small\") }\n",
		"c/Makefile":                           "small: small.c\n\t$(CC) -o $@ $<\n\t./small\n",
		"c/small.c":                            "#include <stdio.h>\nint main(void) { return puts(\"small\") < 0; }\n",
		"java/Small.java":                      "class Small { public static void main(String[] a) throws Exception { java.io.File.createTempFile(\"small\", null); System.out.println(\"small\"); } }\n",
	}
}

// handiwork returns typical commands of a model in these projects.
func handiwork() []struct {
	name, dir string
	needs     []string
	script    string
} {
	return []struct {
		name, dir string
		needs     []string
		script    string
	}{
		{"Go", "gomod", []string{"go"}, "if [ -e a_test.go ]; then go test ./... && go vet ./...; fi && go list github.com/google/go-cmp/cmp && go run ./cmd"},
		{"node", "node", []string{"npm", "node"}, "npm test"},
		{"Python", "py", []string{"python3"}, "python3 -m unittest"},
		{"pytest", "py", []string{"pytest"}, "pytest -q"},
		{"Rust", "rs", []string{"cargo", "cc"}, "cargo build --offline && target/debug/small"},
		{"make", "c", []string{"make", "cc"}, "make clean 2>/dev/null; rm -f small; make"},
		{"Java", "java", []string{"javac"}, `java -XX:TieredStopAtLevel=1 -Djava.io.tmpdir="$TMPDIR" Small.java`},
		{"git", ".", []string{"git"}, "date +%N >> notes && git add notes && git commit -qm note && git log -1 --format=%an | grep -qx 'Ann Author' && git status --short >/dev/null"},
		{"a shell", ".", nil, `echo "$(printf 'b\na\n' | sort | head -1)" > "$TMPDIR/x" && test "$(cat "$TMPDIR/x")" = a && mktemp && cat <<< here`},
	}
}

// TestHandiwork runs real tools on small projects behind every wall that is available
// here, as this user, and also as another one if this one is root.
func TestHandiwork(t *testing.T) {
	if dir := os.Getenv(handiworkDir); dir != "" {
		workBehindWalls(t, dir)
		return
	}
	if testing.Short() {
		t.Skip("SKIPPED: it compiles Go's library twice")
	}
	ids := []int{os.Getuid()}
	if os.Getuid() == 0 {
		ids = append(ids, 65534)
	}
	for _, id := range ids {
		t.Run("uid"+strconv.Itoa(id), func(t *testing.T) {
			t.Parallel()
			dir := must(os.MkdirTemp("", "handiwork"))
			t.Cleanup(func() { os.RemoveAll(dir) })
			dir = must(filepath.EvalSymlinks(dir))
			makeHandiwork(t, dir, id)
			cmd := exec.Command(filepath.Join(dir, "test"), "-test.run=^TestHandiwork$", "-test.v")
			cmd.Dir, cmd.Env = dir, append(os.Environ(), handiworkDir+"="+dir)
			if id != os.Getuid() {
				cmd.Env = append(cmd.Env, "HOME="+dir+"/person", "PATH="+goBin()+":/usr/local/bin:/usr/bin:/bin",
					"GOFLAGS=-gcflags=all=-l") // compiles Go's library faster
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(id), Gid: uint32(id)}}
			}
			out, err := cmd.CombinedOutput()
			t.Logf("%s", out)
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// goBin returns the directory of the Go toolchain's programs.
func goBin() string {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "/usr/local/go/bin"
	}
	return filepath.Join(strings.TrimSpace(string(out)), "bin")
}

// makeHandiwork makes the projects, a home with a secret, a module cache and a copy
// of this program. A user becomes the owner of everything.
func makeHandiwork(t *testing.T, dir string, id int) {
	t.Helper()
	files := map[string]string{"person/secret": "SECRET\n"}
	for name, text := range handiworkFiles() {
		files["project/"+name] = text
	}
	if id != os.Getuid() {
		// With an empty cache, compiling and vetting what a test imports takes longer than
		// all the other work together.
		delete(files, "project/gomod/a_test.go")
	}
	sums := must(os.ReadFile("../../go.sum"))
	for line := range bytes.Lines(sums) {
		if bytes.HasPrefix(line, []byte("github.com/google/go-cmp v0.7.0")) {
			files["project/gomod/go.sum"] += string(line)
		}
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		must(0, os.MkdirAll(filepath.Dir(path), 0o755))
		must(0, os.WriteFile(path, []byte(text), 0o644))
	}
	must(0, os.Mkdir(filepath.Join(dir, "run"), 0o700))
	must(0, os.WriteFile(filepath.Join(dir, "test"), must(os.ReadFile("/proc/self/exe")), 0o755))
	cache := strings.TrimSpace(string(must(exec.Command("go", "env", "GOMODCACHE").Output())))
	for _, argv := range [][]string{{"go", "mod", "download"}, {"git", "init", "-q", ".."}} {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir = filepath.Join(dir, "project", "gomod")
		cmd.Env = append(os.Environ(), "GOMODCACHE="+dir+"/modules", "GOFLAGS=-modcacherw", "GOSUMDB=off", "GOPROXY=file://"+cache+"/cache/download")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", argv, err, out)
		}
	}
	must(0, os.Chmod(dir, 0o755))
	must(0, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, id, id)
	}))
}

// workBehindWalls does the work behind each wall. All share one run's directory, so
// that Go's library is compiled only once.
func workBehindWalls(t *testing.T, dir string) {
	root := filepath.Join(dir, "project")
	shop := Workshop{Root: root, Home: filepath.Join(dir, "run"), Environ: append(os.Environ(), "GOMODCACHE="+dir+"/modules",
		"GIT_AUTHOR_NAME=Ann Author", "GIT_AUTHOR_EMAIL=ann@example.org", "GIT_COMMITTER_NAME=Ann Author", "GIT_COMMITTER_EMAIL=ann@example.org")}
	// One user shares the machine's build cache. The other one starts with an empty
	// cache, as runs do.
	if cache, err := exec.Command("go", "env", "GOCACHE").Output(); err == nil && os.Getuid() == 0 {
		at := strings.TrimSpace(string(cache))
		shop.Environ, shop.Keep, shop.Write = append(shop.Environ, "GOCACHE="+at), []string{"GOCACHE"}, []string{at}
	}
	p, err := shop.Equip()
	if err != nil {
		t.Fatal(err)
	}
	env := p.Env
	for _, kind := range []sandbox.Wall{sandbox.Hidden, sandbox.Bubblewrap, sandbox.Landlock, sandbox.Firejail, sandbox.NoWall} {
		t.Run(string(kind), func(t *testing.T) {
			p.Wall = kind
			w, err := wall.Build(context.Background(), p)
			if err != nil {
				t.Skip("SKIPPED: ", err)
			}
			defer w.Close()
			for _, c := range handiwork() {
				t.Run(c.name, func(t *testing.T) {
					for _, program := range c.needs {
						if _, err := sandbox.FindProgram(program, shop.Environ); err != nil {
							t.Skipf("SKIPPED: there is no %s here", program)
						}
					}
					r, err := w.Run(context.Background(), sandbox.Command{Argv: []string{"bash", "-c", c.script}, Dir: filepath.Join(root, c.dir), Env: env})
					if err != nil || r.Exit != 0 {
						t.Errorf("%v, exit %d %s\n%s%s", err, r.Exit, r.Signal, r.Stdout, r.Stderr)
					}
				})
			}
			t.Run("what is not theirs", func(t *testing.T) { checkHeld(t, w, dir, env) })
		})
	}
}

// checkHeld tries actions that the work does not need.
func checkHeld(t *testing.T, w *wall.Walls, dir string, env []string) {
	config := filepath.Join(dir, "project", ".git", "config")
	before := must(os.ReadFile(config))
	for script, opens := range map[string]bool{
		"cat ../person/secret":                     false,
		"echo x > ../modules/x":                    false,
		"ls ../run/aside/":                         false,
		"git config core.fsmonitor evil$$ || true": true,
		"echo x > ../run/home/x":                   true,
	} {
		r, err := w.Run(context.Background(), sandbox.Command{Argv: []string{"sh", "-c", script}, Dir: filepath.Join(dir, "project"), Env: env})
		if opened := r.Exit == 0; err != nil || w.Grade().Wall != sandbox.NoWall && opened != opens {
			t.Errorf("%s: %v, exit %d\n%s%s", script, err, r.Exit, r.Stdout, r.Stderr)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "person", "made")); err == nil && w.Grade().Wall != sandbox.NoWall {
		t.Error("a file was made in the home")
	}
	if after := must(os.ReadFile(config)); !bytes.Equal(before, after) {
		t.Errorf("the repository's settings are now\n%s", after)
	}
}

// TestLinkedWorktree checks that a repository outside of the workspace can be read but
// not written.
func TestLinkedWorktree(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: it is about other processes")
	}
	b := newBench(t)
	b.git(t, "src/project", "init", "-q")
	b.git(t, "src/project", "commit", "-q", "--allow-empty", "-m", "first")
	b.git(t, "src/project", "worktree", "add", "-q", "../linked")
	b.shop.Root = b.base + "/src/linked"
	p, env := b.policy(t)
	for _, kind := range []sandbox.Wall{sandbox.Hidden, sandbox.Bubblewrap, sandbox.Landlock, sandbox.Firejail} {
		t.Run(string(kind), func(t *testing.T) {
			p.Wall = kind
			w, err := wall.Build(context.Background(), p)
			if err != nil {
				t.Skip("SKIPPED: ", err)
			}
			defer w.Close()
			for script, works := range map[string]bool{
				"git log --format=%s | grep -qx first": true,
				"echo x >> new && git status --short":  true,
				"git diff":                             true,
				"git -c user.name=n -c user.email=e commit -q --allow-empty -m second": false,
				"cat ../project/new": false,
			} {
				r, err := w.Run(context.Background(), sandbox.Command{Argv: []string{"sh", "-c", script}, Dir: b.shop.Root, Env: env})
				if err != nil || (r.Exit == 0) != works {
					t.Errorf("%s: %v, exit %d\n%s%s", script, err, r.Exit, r.Stdout, r.Stderr)
				}
			}
		})
	}
}
