package wall

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"hone/sandbox"
)

// What may only be read in a folder that may be written is the same after a
// command as before, whichever wall it ran behind, and what was not there still
// is not.
func TestProtectedPathsBehindWalls(t *testing.T) {
	t.Run("restored afterwards", func(t *testing.T) { testProtectedPaths(t, false) })
	t.Run("placeholders", func(t *testing.T) { testProtectedPaths(t, true) })
}

func testProtectedPaths(t *testing.T, placeholders bool) {
	const config = "[core]\n"
	for name, script := range map[string]string{
		"written":      "echo evil >.git/config",
		"renamed over": "echo evil >x; mv x .git/config",
		"moved away":   "mv .git gone; mkdir .git; echo evil >.git/config",
		"made":         "mkdir -p .config; echo evil >.config/hone.toml; echo evil >.git/hooks/pre-commit",
		"linked":       "ln .git/config alias; echo evil >alias",
		"removed":      "rm -rf .git",
	} {
		if testing.Short() && name != "moved away" && name != "made" {
			continue // the others differ in what the command does, which is another process
		}
		t.Run(name, func(t *testing.T) {
			aside := filepath.Join(t.TempDir(), "aside")
			prepare := func(p *sandbox.Policy) {
				dir := p.Write[0]
				must(0, os.MkdirAll(filepath.Join(dir, ".git", "hooks"), 0o755))
				must(0, os.WriteFile(filepath.Join(dir, ".git", "config"), []byte(config), 0o644))
				for _, path := range []string{".git/config", ".git/hooks", ".config/hone.toml"} {
					p.Read = append(p.Read, filepath.Join(dir, path))
				}
				p.Aside = aside
				if placeholders {
					p.Placeholders = map[string]sandbox.Placeholder{filepath.Join(dir, ".config", "hone.toml"): {}}
				}
			}
			everyWall(t, prepare, func(t *testing.T, w *Walls, dir string) {
				r := must(w.Run(context.Background(), inside(dir, script+"; true")))
				got, err := os.ReadFile(filepath.Join(dir, ".git", "config"))
				if err != nil || string(got) != config {
					t.Errorf("the file holds %q, %v; restored %+v", got, err, r.Restored)
				}
				for _, path := range []string{".config/hone.toml", ".git/hooks/pre-commit"} {
					if _, err := os.Lstat(filepath.Join(dir, path)); err == nil {
						t.Errorf("%s is there; restored %+v", path, r.Restored)
					}
				}
				if len(r.Restored) == 0 && !w.spec.Policy.Wall.Mounts() && w.spec.Policy.Wall != sandbox.Firejail {
					t.Error("nothing is told to have been put back")
				}
			})
		})
	}
}

// While a command runs there are placeholders in place of protected files that do not
// exist, in all walls but landlock and none. Afterwards there are none, and what the
// command put next to them stays.
func TestPlaceholders(t *testing.T) {
	names := map[string]sandbox.Placeholder{".git/commondir": {Text: "."}, ".git/hooks": {Dir: true}, ".config/hone.toml": {}}
	prepare := func(p *sandbox.Policy) {
		dir := p.Write[0]
		must(0, os.MkdirAll(filepath.Join(dir, ".git"), 0o755))
		p.Aside, p.Placeholders = t.TempDir(), map[string]sandbox.Placeholder{}
		for name, file := range names {
			p.Read = append(p.Read, filepath.Join(dir, name))
			p.Placeholders[filepath.Join(dir, name)] = file
		}
	}
	everyWall(t, prepare, func(t *testing.T, w *Walls, dir string) {
		h := holdShell(t, context.Background(), w, dir)
		must(fmt.Fprintln(h.orders, `echo ../evil >.git/commondir; echo evil >.config/hone.toml; echo evil >.git/hooks/pre-commit
			rm -rf .config/hone.toml .git/hooks; mv .config moved; mv .git/commondir moved; mkdir -p .config; echo mine >.config/other; echo tried`))
		<-h.lines
		filled := w.spec.Policy.Wall.Namespaces()
		for range 2 { // the second time after the end of another command
			for name, want := range map[string]string{".git/commondir": ".", ".config/hone.toml": ""} {
				if got, err := os.ReadFile(filepath.Join(dir, name)); filled && (err != nil || string(got) != want) {
					t.Errorf("%s contains %q, %v", name, got, err)
				}
			}
			behind(t, w, dir, "true")
		}
		h.orders.Close()
		r := must(h.Wait())
		for name := range names {
			if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
				t.Errorf("%s exists; restored %+v", name, r.Restored)
			}
		}
		if mine, err := os.ReadFile(filepath.Join(dir, ".config", "other")); filled && (err != nil || string(mine) != "mine\n" || len(r.Restored) > 0) {
			t.Errorf("the command's own file: %q, %v; restored %+v", mine, err, r.Restored)
		}
	})
}

// What is to be hidden and no longer exists is not created by its mount.
func TestHiddenFileThatDisappears(t *testing.T) {
	prepare := func(p *sandbox.Policy) {
		path := filepath.Join(p.Write[0], "secret")
		must(0, os.WriteFile(path, nil, 0o600))
		p.Hide = append(p.Hide, path)
	}
	everyWall(t, prepare, func(t *testing.T, w *Walls, dir string) {
		must(0, os.Remove(filepath.Join(dir, "secret")))
		behind(t, w, dir, "true")
		if _, err := os.Lstat(filepath.Join(dir, "secret")); err == nil {
			t.Error("the walls created it")
		}
	})
}
