package wall

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"hone/sandbox"
)

// TestHiddenStaysHidden: what one command does to the directories around a hidden file does not
// make it readable to the next one, nor to one behind walls that are built afterwards.
func TestHiddenStaysHidden(t *testing.T) {
	const secret = "canary-of-the-hidden-file"
	everyWall(t, func(p *sandbox.Policy) {
		dir := p.Write[0]
		for _, name := range []string{"a/b/.env", "c/keys/id", "top.env"} {
			must(0, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
			must(0, os.WriteFile(filepath.Join(dir, name), []byte(secret), 0o644))
		}
		p.Hide = []string{filepath.Join(dir, "a/b/.env"), filepath.Join(dir, "c/keys"), filepath.Join(dir, "top.env")}
	}, func(t *testing.T, w *Walls, dir string) {
		find := "cat $(find . -type f) 2>/dev/null; cat .moved 2>/dev/null; true"
		if wall := w.Grade().Wall; wall == sandbox.Landlock || wall == sandbox.NoWall {
			if r := behind(t, w, dir, find); !strings.Contains(string(r.Stdout), secret) {
				t.Fatalf("%s: this test cannot fail: %s", wall, r.Stdout)
			}
			return
		}
		for _, attack := range []string{
			"mv a/b a/b2", "mv a a2", "mv c c2", "mv c/keys c/keys2", "mv top.env plain",
			"mv a/b x && ln -s ../x a/b", "mv a x && ln -s x a", "rm -rf a c", "rmdir a/b", "rm -f top.env",
			"ln a/b/.env .moved", "ln top.env .moved", "ln c/keys/id .moved", "cp a/b/.env .moved",
			"python3 -c 'import ctypes; ctypes.CDLL(None).renameat2(-100, b\"a\", -100, b\"c\", 2)'",
			"mkdir n && mv a n/ && mv c n/",
		} {
			behind(t, w, dir, attack)
			if r := behind(t, w, dir, find); strings.Contains(string(r.Stdout), secret) {
				t.Errorf("after %s the next command reads it", attack)
			}
		}
		for _, name := range []string{"a/b/.env", "c/keys/id", "top.env"} {
			if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(text) != secret {
				t.Errorf("%s is %q, %v", name, text, err)
			}
		}
	})
}

// TestHiddenChangesNoSetting: before Linux 6.14 the highest process number is the machine's, and root could write it.
func TestHiddenChangesNoSetting(t *testing.T) {
	w, err := Build(t.Context(), system(sandbox.Hidden))
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	defer w.Close()
	const file = "/proc/sys/kernel/pid_max"
	number := func(text []byte) int { return must(strconv.Atoi(strings.TrimSpace(string(text)))) }
	if inside, machine := number(behind(t, w, "/", "cat "+file).Stdout), number(must(os.ReadFile(file))); inside < machine {
		t.Errorf("the wall has set %s to %d", file, inside)
	}
}
