package gitdir

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestRefsUnchanged checks that whatever moves a branch, a tag, a stash or HEAD shows.
func TestRefsUnchanged(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("SKIPPED: no git")
	}
	run := func(dir string, args ...string) {
		t.Helper()
		cmd := exec.Command(git, append([]string{"-c", "user.name=n", "-c", "user.email=e@x"}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
	}
	for name, move := range map[string]func(t *testing.T, dir string){
		"commit":       func(t *testing.T, dir string) { run(dir, "commit", "-q", "--allow-empty", "-m", "b") },
		"branch":       func(t *testing.T, dir string) { run(dir, "branch", "-D", "a/deep/one") },
		"packed":       func(t *testing.T, dir string) { run(dir, "branch", "-D", "packed") },
		"tag":          func(t *testing.T, dir string) { run(dir, "tag", "-d", "v1") },
		"first stash":  func(t *testing.T, dir string) { run(dir, "stash", "drop", "-q", "stash@{0}") },
		"second stash": func(t *testing.T, dir string) { run(dir, "stash", "drop", "-q", "stash@{1}") },
		"switch":       func(t *testing.T, dir string) { run(dir, "switch", "-q", "a/deep/one") },
		"in place": func(t *testing.T, dir string) {
			common := Common(filepath.Join(dir, ".git"))
			if link := Link(filepath.Join(dir, ".git")); link != "" {
				common = Common(link)
			}
			if err := os.WriteFile(filepath.Join(common, "refs/heads/a/deep/one"), []byte("0123456789012345678901234567890123456789\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, linked := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				dir := t.TempDir()
				run(dir, "init", "-q", "-b", "main")
				run(dir, "commit", "-q", "--allow-empty", "-m", "a")
				run(dir, "branch", "packed")
				run(dir, "pack-refs", "--all")
				run(dir, "branch", "a/deep/one")
				run(dir, "tag", "v1")
				if linked {
					run(dir, "worktree", "add", "-q", "-b", "other", "linked")
					dir = filepath.Join(dir, "linked")
				}
				for _, text := range []string{"1", "2"} {
					if err := os.WriteFile(filepath.Join(dir, "x"), []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
					run(dir, "stash", "push", "-q", "--include-untracked")
				}
				dotGit := filepath.Join(dir, ".git")
				time.Sleep(50 * time.Millisecond) // several steps of the kernel's clock
				now := time.Now().Add(-25 * time.Millisecond)
				if at, _, err := stampOf(dotGit); err != nil || at.changed == 0 {
					t.Skip("SKIPPED: no change times")
				}
				if !RefsUnchanged(dotGit, now.Add(settled)) {
					t.Error("nothing has changed")
				}
				move(t, dir)
				if RefsUnchanged(dotGit, now.Add(settled)) {
					t.Error("the change does not show")
				}
			})
		}
	}
}
