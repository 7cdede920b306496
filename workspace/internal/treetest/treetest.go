// Package treetest helps to test the packages below workspace: it creates and
// compares directories, and runs the test binary as another process.
package treetest

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Dir returns a temporary directory with the given files. The names and
// contents are as in Put.
func Dir(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		Put(t, dir, name, content)
	}
	return dir
}

// Put creates a file with its parent directories. A name that ends in "/" is a
// directory, and contents that start with "->" are the target of a symlink.
func Put(t testing.TB, dir, name, content string) {
	t.Helper()
	full := filepath.Join(dir, filepath.FromSlash(name))
	parent := filepath.Dir(full)
	if strings.HasSuffix(name, "/") {
		parent = full
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		t.Fatal(err)
	}
	var err error
	if target, ok := strings.CutPrefix(content, "->"); ok {
		err = os.Symlink(target, full)
	} else if parent != full {
		err = os.WriteFile(full, []byte(content), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Chmod sets the permission bits of a path in a directory.
func Chmod(t testing.TB, dir, path string, mode fs.FileMode) {
	t.Helper()
	if err := os.Chmod(filepath.Join(dir, path), mode); err != nil {
		t.Fatal(err)
	}
}

// Contents returns everything below a directory in the form that Put takes.
func Contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		rel = filepath.ToSlash(rel)
		switch {
		case d.IsDir():
			found[rel+"/"] = ""
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			found[rel] = "->" + target
			return err
		default:
			content, err := os.ReadFile(path)
			found[rel] = string(content)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// NoTemps fails the test if a directory contains temporary files of hone. It
// opens no files, so a FIFO does not block it.
func NoTemps(t testing.TB, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if strings.HasPrefix(d.Name(), ".hone~") {
			t.Errorf("%s was not removed", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// InMemory puts the test's directories on an in-memory file system if there is
// one. Otherwise syncs would take most of the time.
func InMemory(t *testing.T) {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		t.Setenv("TMPDIR", "/dev/shm")
	}
}

// Git runs git in a directory, without the user's configuration.
func Git(t testing.TB, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@t", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// ManyFiles returns a new repository of n files, a hundred per directory.
func ManyFiles(b *testing.B, n int) string {
	b.Helper()
	dir := b.TempDir()
	for i := range n {
		Put(b, dir, fmt.Sprintf("pkg%02d/sub%03d/file%05d.go", i/5000, i/100, i), strings.Repeat("some source code\n", 1+i%300))
	}
	Git(b, dir, "init", "-q")
	Git(b, dir, "add", ".")
	return dir
}

// roleVar is the environment variable that names the role of a process.
const roleVar = "WORKSPACE_TEST_ROLE"

// Main runs the tests, or the role that Command started this process for, and
// returns the exit status. A test's TestMain must pass it to os.Exit.
func Main(m *testing.M, roles map[string]func(args []string) error) int {
	name := os.Getenv(roleVar)
	if name == "" {
		return m.Run()
	}
	run := roles[name]
	if run == nil {
		fmt.Fprintln(os.Stderr, "no such role:", name)
		return 1
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// Command returns the command that runs the test binary in a role of Main.
func Command(t *testing.T, role string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), roleVar+"="+role)
	cmd.Stderr = os.Stderr
	return cmd
}
