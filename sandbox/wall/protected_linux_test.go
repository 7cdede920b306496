package wall

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"hone/sandbox"
)

// What may only be read in a folder that may be written is the same after a
// command as before, whichever wall it ran behind, and what was not there still
// is not.
func TestProtectedPathsBehindWalls(t *testing.T) {
	const config = "[core]\n"
	for name, script := range map[string]string{
		"written":      "echo evil >.git/config",
		"renamed over": "echo evil >x; mv x .git/config",
		"moved away":   "mv .git gone; mkdir .git; echo evil >.git/config",
		"made":         "mkdir -p .config; echo evil >.config/hone.toml; echo evil >.git/hooks/pre-commit",
		"linked":       "ln .git/config alias; echo evil >alias",
		"removed":      "rm -rf .git",
	} {
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
				if len(r.Restored) == 0 && !w.spec.Traits.Mounted && w.spec.Wall != sandbox.Firejail {
					t.Error("nothing is told to have been put back")
				}
			})
		})
	}
}
