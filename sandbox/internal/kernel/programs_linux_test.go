package kernel

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hone/sandbox"
	"hone/sandbox/internal/runtest"
)

// realWork returns typical commands of users; each runs in its own empty directory.
func realWork() map[string]string {
	return map[string]string{
		"bash":    `set -o pipefail; seq 1000 | grep 7 | sort -rn | head -1 | diff - <(echo 997) && cat <<< here > out && [ "$(cat out)" = here ]`,
		"go":      `printf 'module m\ngo 1.21\n' > go.mod; printf 'package main\nfunc main() { go println(1); println("it works") }\n' > main.go; go build -o m . && ./m 2>&1 | grep -q 'it works'`,
		"python3": `python3 -c 'import subprocess, threading, tempfile, os; t = threading.Thread(target=print); t.start(); t.join(); fd, name = tempfile.mkstemp(); os.write(fd, b"x"); assert subprocess.run(["cat", name], capture_output=True).stdout == b"x"; os.rename(name, "kept")'`,
		"node":    `node -e 'const c = require("child_process"), fs = require("fs"), w = require("worker_threads"); fs.writeFileSync("a", "x"); if (c.execSync("cat a").toString() !== "x") process.exit(1); const k = c.fork("-e", [], {execArgv: ["-e", "process.send(7)"]}); k.on("message", m => new w.Worker("process.exit(0)", {eval: true}).on("exit", () => process.exit(m === 7 ? 0 : 1)))'`,
		"git":     `git init -q . && echo a > f && git add f && git -c user.name=n -c user.email=e@x commit -qm m && git mv f g && git -c user.name=n -c user.email=e@x commit -qm m2 && git gc -q && git fsck && [ "$(git log --oneline | wc -l)" = 2 ]`,
		"gcc":     `printf 'int main(void) { return 0; }\n' > p.c; printf 'p: p.c\n\tgcc -O1 -o p p.c\n' > Makefile; make -j2 p && ./p`,
		"java":    `java -Xmx64m -version`,
		"rustc":   `echo 'fn main() { std::thread::spawn(|| println!("x")).join().unwrap() }' > m.rs; rustc m.rs && ./m`,
	}
}

// toolchains returns entries for the programs of this machine. Production code uses
// workshop.System; here it is enough that the programs are found.
func toolchains(t *testing.T) []sandbox.Entry {
	t.Helper()
	paths := []string{"/usr", "/etc", "/opt", "/sys/devices/system/cpu", "/sys/kernel/mm/transparent_hugepage", "/sys/fs/cgroup"}
	for _, program := range []string{"go", "python3", "node", "java", "rustc"} {
		if path, err := exec.LookPath(program); err == nil {
			real := must(filepath.EvalSymlinks(path))
			paths = append(paths, filepath.Dir(path), filepath.Dir(filepath.Dir(real)))
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		paths = append(paths, home+"/.pyenv", home+"/.rustup", home+"/.cargo")
	}
	entries, err := sandbox.Policy{Read: paths, Write: goCache()}.Entries()
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// goCache returns the directory of Go's build cache, because compiling Go's library takes longer than all the other
// work together.
func goCache() []string {
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return nil
	}
	return []string{strings.TrimSpace(string(out))}
}

func TestProgramsWorkUnderTheRestraint(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: it is about other processes")
	}
	requireLandlock(t, 2)
	tools, u := toolchains(t), runtest.Users()[0]
	binary := runtest.TestBinary(t, u)
	for program, script := range realWork() {
		t.Run(program, func(t *testing.T) {
			if _, err := exec.LookPath(program); err != nil {
				t.Skipf("SKIPPED: no %s", program)
			}
			dir, home := runtest.OpenDir(t, u), runtest.OpenDir(t, u)
			must(0, os.Mkdir(home+"/tmp", 0o755))
			r := landlocked(append(tools, sandbox.Entry{Path: dir, Access: sandbox.AccessWrite, Dir: true}, sandbox.Entry{Path: home, Access: sandbox.AccessWrite, Dir: true})...)
			r.Policy.Limits = sandbox.Limits{Memory: 4 << 30}
			env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home + "/tmp", "GOFLAGS=-mod=mod", "GOTOOLCHAIN=local", "GOPROXY=off", "LC_ALL=C"}
			if home, err := os.UserHomeDir(); err == nil {
				env = append(env, "RUSTUP_HOME="+home+"/.rustup")
			}
			for _, cache := range goCache() {
				env = append(env, "GOCACHE="+cache)
			}
			for _, name := range []string{"JAVA_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "CARGO_HOME"} {
				if value := os.Getenv(name); value != "" {
					env = append(env, name+"="+value)
				}
			}
			got := restrainAs(t, u, binary, restrained{Under: r, Argv: []string{"/bin/bash", "-c", script}, Dir: dir, Env: env})
			if got.Fail != "" || got.Exit != 0 {
				t.Errorf("%s exit %d: %s", got.Fail, got.Exit, got.Output)
			}
			if strings.Contains(got.Output, "ermission denied") {
				t.Logf("said on the way: %s", got.Output)
			}
		})
	}
}
