package wall

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hone/sandbox"
)

// What a wall shows or lets write was replaced by a link, by a command behind other walls, such as the check: no later command gets
// what the link leads to.
func TestReplacedByLink(t *testing.T) {
	for _, replaced := range []string{"AGENTS.md", "settings"} {
		t.Run(replaced, func(t *testing.T) {
			beside := func(dir string) string { return filepath.Join(filepath.Dir(dir), "outside") }
			everyWall(t, func(p *sandbox.Policy) {
				tree := p.Write[0]
				p.Aside = t.TempDir()
				for name, text := range map[string]string{
					filepath.Join(tree, "AGENTS.md"): "advice", filepath.Join(tree, "settings", "config"): "setting",
					filepath.Join(beside(tree), "AGENTS.md"): "secret", filepath.Join(beside(tree), "config"): "secret",
					filepath.Join(beside(tree), "shown", "file"): "",
				} {
					if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				p.Read = append(p.Read, filepath.Join(tree, "AGENTS.md"), filepath.Join(tree, "settings", "config"), filepath.Join(beside(tree), "shown"))
			}, func(t *testing.T, w *Walls, dir string) {
				if w.spec.Policy.Wall == sandbox.NoWall {
					t.Skip("it hides nothing")
				}
				outside, target := beside(dir), filepath.Join("..", "outside")
				defer os.RemoveAll(outside)
				if replaced == "AGENTS.md" {
					target = filepath.Join(target, "AGENTS.md")
				}
				at := filepath.Join(dir, replaced)
				if err := os.Rename(at, at+".old"); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(target, at); err != nil {
					t.Fatal(err)
				}
				r, err := w.Run(context.Background(), inside(dir, "cat AGENTS.md settings/config; echo changed > settings/config; chmod 777 settings/config"))
				if strings.Contains(string(r.Stdout), "secret") {
					t.Errorf("the command reads what the link leads to (error %v)", err)
				}
				info, statErr := os.Stat(filepath.Join(outside, "config"))
				text, _ := os.ReadFile(filepath.Join(outside, "config"))
				if statErr != nil || string(text) != "secret" || info.Mode().Perm() != 0o644 {
					t.Errorf("the command changes what the link leads to: %q, %v, %v", text, info.Mode(), statErr)
				}
				if err == nil && w.spec.Policy.Wall.Mounts() {
					t.Error("the command ran")
				}
			})
		})
	}
}

// What a wall protects was removed, by a command behind other walls or by the user: it is then protected as what never existed. What is to
// be hidden was made after the walls were built: it is hidden.
func TestRemovedAndMadeLater(t *testing.T) {
	everyWall(t, func(p *sandbox.Policy) {
		tree := p.Write[0]
		p.Aside = t.TempDir()
		if err := os.WriteFile(filepath.Join(tree, "AGENTS.md"), []byte("advice"), 0o644); err != nil {
			t.Fatal(err)
		}
		p.Read, p.Hide = append(p.Read, filepath.Join(tree, "AGENTS.md")), append(p.Hide, filepath.Join(tree, "later"))
	}, func(t *testing.T, w *Walls, dir string) {
		behind(t, w, dir, "true")
		if err := os.Remove(filepath.Join(dir, "AGENTS.md")); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, "later"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "later", "file"), []byte("secret"), 0o644); err != nil {
			t.Fatal(err)
		}
		r := behind(t, w, dir, "cat later/file; echo obey me > AGENTS.md")
		if _, err := os.Lstat(filepath.Join(dir, "AGENTS.md")); err == nil || len(r.Restored) != 1 || r.Restored[0].MovedTo == "" {
			t.Errorf("the removed file was made again: %+v", r)
		}
		if w.Grade().Wall.Namespaces() && strings.Contains(string(r.Stdout), "secret") {
			t.Error("what was made later is not hidden")
		}
	})
}
