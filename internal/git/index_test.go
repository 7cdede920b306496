package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Whatever a command has left of the index, what the commit has and what is new is listed, and the hint makes the index anew.
func TestListWithoutIndex(t *testing.T) {
	for name, index := range map[string]string{"truncated": "", "garbage": "garbage\n", "of the future": "DIRC\x00\x00\x00\x09\x00\x00\x00\x01aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			git := func(args ...string) {
				t.Helper()
				cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@t"}, args...)...)
				if cmd.Dir = dir; cmd.Run() != nil {
					t.Fatalf("git %q failed", args)
				}
			}
			write := func(name, text string) {
				t.Helper()
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			git("init", "-q")
			write("a", "a")
			write("ignored", "tracked all the same")
			git("add", "-A")
			git("commit", "-qm", "base")
			write("new", "new")
			write(".gitignore", "ignored\n")
			write(".git/index", index)
			repo, err := OpenAt(dir)
			if err != nil {
				t.Fatal(err)
			}
			entries, err := repo.List(t.Context(), ".")
			if err != nil {
				t.Fatal(err)
			}
			want := []Entry{{Path: ".gitignore", Untracked: true}, {Path: "a"}, {Path: "ignored"}, {Path: "new", Untracked: true}}
			if diff := cmp.Diff(want, entries); diff != "" {
				t.Error(diff)
			}
			if IndexRemedy(dir) == "" {
				t.Error("its first bytes do not show it")
			}
			fault := repo.IndexFault()
			if fault == nil {
				t.Fatal("no fault")
			}
			if out, err := exec.Command("sh", "-c", fault.Hint).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", fault.Hint, err, out)
			}
			if again, err := OpenAt(dir); err != nil {
				t.Error(err)
			} else if list, err := again.List(t.Context(), "."); err != nil || again.IndexFault() != nil || IndexRemedy(dir) != "" || len(list) != 4 {
				t.Errorf("after the hint: %v, %v, %v", list, err, again.IndexFault())
			}
		})
	}
}
