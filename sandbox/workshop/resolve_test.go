//go:build unix

package workshop

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRealPath(t *testing.T) {
	b := newBench(t, "d/f", "d/e/g", "abs -> %/d", "rel -> d/e", "d/up -> ../d/e", "over -> rel/../f", "gone -> nowhere/x", "loop -> loop", "twice -> abs/up")
	for name, want := range map[string]string{
		"d/f": "d/f", "abs/f": "d/f", "rel/g": "d/e/g", "abs/up/g": "d/e/g", "over": "d/f", "twice/g": "d/e/g",
		"gone": "gone", "gone/y": "gone/y", "loop/y": "loop/y", "abs/no/z": "d/no/z", "d/f/below": "d/f/below", "abs//./e/../f": "d/f",
	} {
		paths := resolver{}
		paths.real(filepath.Join(b.base, "abs", "up"))
		if got := paths.real(filepath.Clean(b.base + "/" + name)); got != filepath.Join(b.base, want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// Without walls nothing of the machine is needed, only what is protected.
func TestPolicyWithoutWalls(t *testing.T) {
	b := newBench(t, "src/project/.git/config", "person/.cargo/bin/cargo*", "person/.ssh/id_ed25519")
	b.env("PATH=%/person/.cargo/bin:/usr/bin")
	b.shop.Env, b.shop.Protect = []string{}, []string{"check.sh"}
	p, env := b.policy(t)
	if len(env) > 0 {
		t.Errorf("environment %q", env)
	}
	b.check(t, p, "write", "src/project/main.go")
	b.check(t, p, "read", "src/project/check.sh", "src/project/.git/config", "src/project/.git/hooks", "src/project/.config/hone.toml")
	b.check(t, p, "none", "/usr/bin", "person/.cargo/bin/cargo")
	if p.Placeholders[filepath.Join(b.root, ".config", "bork.json")].Text != "{}" {
		t.Errorf("placeholders %v", p.Placeholders)
	}
	if left, err := os.ReadDir(b.run); err != nil || len(left) > 0 {
		t.Errorf("the run's directory contains %v (%v)", left, err)
	}
	b.make(t, "elsewhere/", "src/project/.config -> %/elsewhere")
	if _, err := b.shop.Equip(); err == nil {
		t.Error("a protected path may lead out of the workspace")
	}
}

// What commands need cannot be hidden around it: it would stay visible without a word.
func TestHidden(t *testing.T) {
	for hidden, needed := range map[string]string{"/": "src/project", "%": "src/project", "%/src/project": "src/project", "/etc": "/etc/", "/usr/share/doc": "", "%/src/project/private": "", "/etc/passwd": "", "%/nothing": ""} {
		b := newBench(t, "src/project/private/key")
		b.shop.Hide = []string{strings.ReplaceAll(hidden, "%", filepath.Dir(filepath.Dir(b.root)))}
		_, err := b.shop.Equip()
		if path, ok := errors.AsType[*PathError](err); ok != (needed != "") || ok && !strings.Contains(path.Why, needed) {
			t.Errorf("%s: %v", hidden, err)
		}
	}
}
