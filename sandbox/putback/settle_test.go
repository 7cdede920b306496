//go:build unix

package putback

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// die ends a guard as if its process had been killed.
func die(g *Guard) {
	if g.form.lock != nil {
		g.form.lock.Close()
	}
	g.leave()
	g.form = form{}
}

func TestSettle(t *testing.T) {
	for name, m := range mutations() {
		if name == "the tree moved" {
			continue // its place is what a form knows
		}
		t.Run(name, func(t *testing.T) {
			y := newPlotted(t)
			before := y.state(true)
			g := y.guard()
			_, err := g.protect()
			y.must(err)
			m.do(y)
			if restored, err := Settle(y.aside); err != nil || restored != nil {
				t.Errorf("of a process that lives: %v, %v", restored, err)
			}
			g.mu.Lock()
			g.active = 0
			die(g)
			g.mu.Unlock()
			if name == "the tree closed" {
				y.must(os.Chmod(y.dir, 0o755)) // nobody else can open it
				m.want = m.want[1:]
			}
			restored, err := Settle(y.aside)
			y.must(err)
			if got := y.told(restored); !slices.Equal(got, m.want) {
				t.Errorf("told %q, want %q", got, m.want)
			}
			if name == "a folder that holds one to write renamed" || name == "everything removed" {
				delete(before, "ro/rw")
			}
			diff(t, "protected", y.state(true), before)
			if forms, _ := filepath.Glob(filepath.Join(y.aside, formPrefix+"*")); len(forms) > 0 {
				t.Errorf("left in aside: %v", forms)
			}
			if restored, err := Settle(y.aside); err != nil || restored != nil {
				t.Errorf("settled twice: %v, %v", restored, err)
			}
		})
	}
}

// Between two commands nothing is owed: what changes then is the person's.
func TestSettleIdle(t *testing.T) {
	y := newPlotted(t)
	g := y.guard()
	p, err := g.protect()
	y.must(err)
	_, err = p.restore()
	y.must(err)
	die(g)
	y.write(".git/config", "[person]\n", 0o644)
	before := y.state(true)
	if restored, err := Settle(y.aside); err != nil || restored != nil {
		t.Errorf("%v, %v", restored, err)
	}
	diff(t, "protected", y.state(true), before)
	if forms, _ := filepath.Glob(filepath.Join(y.aside, formPrefix+"*")); len(forms) > 0 {
		t.Errorf("left in aside: %v", forms)
	}
}

func TestSettleDamaged(t *testing.T) {
	y := newPlotted(t)
	g := y.guard()
	_, err := g.protect()
	y.must(err)
	path := g.form.name + armed
	good, err := os.ReadFile(path)
	y.must(err)
	g.active = 0
	die(g)
	y.write(".git/config", "[evil]\n", 0o644)
	before := y.state(true)
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 1
	for name, data := range map[string][]byte{
		"empty": nil, "head": good[:10], "cut": good[:len(good)-1], "longer": append(bytes.Clone(good), 0), "flipped": flipped,
		"other version": bytes.Replace(good, []byte(" 1 "), []byte(" 2 "), 1), "garbage": []byte("\x00\xff{}"),
	} {
		y.must(os.WriteFile(path, data, 0o600))
		restored, err := Settle(y.aside)
		if err == nil || !strings.Contains(err.Error(), path) || restored != nil {
			t.Errorf("%s: %v, %v", name, restored, err)
		}
		if left, err := os.ReadFile(path); err != nil || !bytes.Equal(left, data) {
			t.Errorf("%s: it was not left alone: %v", name, err)
		}
	}
	diff(t, "protected", y.state(true), before)
	y.must(os.WriteFile(path, good, 0o600))
	y.must(os.Rename(y.dir, y.dir+"2"))
	if _, err := Settle(y.aside); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("without its folder: %v", err)
	}
	y.must(os.Mkdir(y.dir, 0o755))
	if _, err := Settle(y.aside); err == nil || !strings.Contains(err.Error(), "not the same directory") {
		t.Errorf("with another folder: %v", err)
	}
	y.must(os.Remove(y.dir))
	y.must(os.Rename(y.dir+"2", y.dir))
	if restored, err := Settle(y.aside); err != nil || len(restored) != 1 {
		t.Errorf("%v, %v", restored, err)
	}
}

// A process that is killed while a command runs leaves what the next one needs.
func TestSettleAfterKill(t *testing.T) {
	const variable = "HONE_TEST_KILLED_IN"
	if dir := os.Getenv(variable); dir != "" {
		y := &plotted{T: t, dir: filepath.Join(dir, "tree"), aside: filepath.Join(dir, "aside")}
		y.protect(".git/config")
		_, err := y.guard().protect()
		y.must(err)
		y.write(".git/config", "[evil]\n", 0o644)
		y.must(syscall.Kill(os.Getpid(), syscall.SIGKILL))
		select {}
	}
	y := newPlotted(t)
	before := y.state(true)
	cmd := exec.Command(os.Args[0], "-test.run=^TestSettleAfterKill$")
	cmd.Env = append(os.Environ(), variable+"="+filepath.Dir(y.dir))
	if err := cmd.Run(); err == nil {
		t.Fatal("it was not killed")
	}
	restored, err := Settle(y.aside)
	if got := y.told(restored); err != nil || !slices.Equal(got, []string{".git/config kept"}) {
		t.Errorf("told %q, %v", got, err)
	}
	diff(t, "protected", y.state(true), before)
}
