//go:build linux

package putback

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hone/sandbox"
)

// hostile does something that a command could do, to names that matter.
func hostile(f *fixture, r *rand.Rand) {
	names := []string{
		".git", ".git/config", ".git/config.worktree", ".git/hooks", ".git/hooks/pre-commit.sample", ".git/hooks/deep", ".git/hooks/deep/er",
		".git/hooks/deep/er/file", ".git/hooks/link", ".git/hooks/new", ".git/HEAD", "ro", "ro/sub", "ro/sub/a", "ro/rw", "ro/rw/b", "ro/new",
		"src", "src/main.c", "src/x", "task.toml", "no", "no/such", "no/such/file", "x",
	}
	pick := func() string { return f.path(names[r.IntN(len(names))]) }
	a, b := pick(), pick()
	switch r.IntN(13) {
	case 0, 1:
		if info, err := os.Lstat(a); err == nil && info.Mode().IsRegular() || err != nil {
			os.WriteFile(a, fmt.Appendf(nil, "%x", r.Uint32()), 0o644)
		}
	case 2:
		if info, err := os.Stat(filepath.Dir(a)); err == nil && info.IsDir() { // RemoveAll would wait for a FIFO there
			os.RemoveAll(a)
		}
	case 3, 4, 5:
		os.Rename(a, b)
	case 6:
		os.MkdirAll(a, 0o755)
	case 7:
		os.Symlink(b, a)
	case 8:
		rel, _ := filepath.Rel(filepath.Dir(a), b)
		os.Symlink(rel, a)
	case 9:
		os.Link(a, b)
	case 10:
		syscall.Mkfifo(a, 0o644)
	case 11:
		if info, err := os.Lstat(a); err == nil && info.Mode()&fs.ModeSymlink == 0 {
			os.Chmod(a, []fs.FileMode{0, 0o777, 0o500, 0o644, 0o755}[r.IntN(5)])
		}
	case 12:
		if info, err := os.Lstat(a); err == nil && info.Mode().IsRegular() {
			os.WriteFile(a, bytes.Repeat([]byte("x"), int(info.Size())), 0o644)
			os.Chtimes(a, info.ModTime(), info.ModTime())
		}
	}
}

// attackAtRandom lets something hostile happen, and checks what is restored.
func attackAtRandom(t *testing.T, seed uint64, crash bool) {
	f := newFixture(t)
	r := rand.New(rand.NewPCG(seed, 0))
	before := f.state(true)
	var free map[string]string
	attack := func() {
		for range 1 + r.IntN(20) {
			hostile(f, r)
		}
		free = f.state(false)
	}
	var restored []sandbox.Restored
	var err error
	if crash {
		f.killed(attack)
		restored, err = Recover(f.aside, f.dir)
	} else {
		var result sandbox.Result
		result, err = f.guard().Around(func() (sandbox.Result, error) { attack(); return sandbox.Result{}, nil })
		restored = result.Restored
	}
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	f.want(fmt.Sprintf("seed %d: protected", seed), f.state(true), before)
	left := f.state(false)
	for _, r := range restored {
		if r.NotRestored != "" {
			t.Errorf("seed %d: %+v", seed, r)
		}
		rel, _ := filepath.Rel(f.dir, r.Path)
		for rel := rel; rel != "."; rel = filepath.Dir(rel) {
			if !strings.HasPrefix(free[rel], "drwx") { // otherwise its parent was not restored
				delete(free, rel)
				delete(left, rel)
			}
		}
	}
	if free[".git"] == "" { // it was created again
		delete(left, ".git")
	}
	f.want(fmt.Sprintf("seed %d: not protected", seed), left, free)
}

func TestRestoreAgainstAnything(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		attackAtRandom(t, seed, seed%4 == 0)
		if t.Failed() {
			break
		}
	}
}

// The tests above once more, as a user to whom modes mean something.
func TestRestoreAsNobody(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: it is TestRestoreAgainstAnything for another user")
	}
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: this is not root")
	}
	dir, err := os.MkdirTemp("", "nobody")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program, tmp := filepath.Join(dir, "test"), filepath.Join(dir, "tmp")
	for _, err := range []error{os.Chmod(dir, 0o755), copyProgram(program), os.Mkdir(tmp, 0o700), os.Chown(tmp, 65534, 65534)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, "-test.run=^Test(Restore|Settle|Guard)", "-test.short")
	cmd.Dir, cmd.Env = tmp, []string{"TMPDIR=" + tmp, "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("PASS")) {
		t.Errorf("%v\n%s", err, out)
	}
}

func copyProgram(to string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	in, err := os.Open(self)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Chmod(0o755)
	}
	return errors.Join(err, out.Close())
}
