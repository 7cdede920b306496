package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const broken = "package p\n\nimport \"fmt\"\n\nfunc hello() { fmt.Printf(\"%d\\n\", \"hello\") }\n"

const replies = `=== reply when="wrong type" ===
=== call read ===
{"path": "p.go"}
=== call edit ===
{"path": "p.go", "edits": [{"oldText": "%d", "newText": "%s"}]}
=== reply ===
The verb was wrong.
`

// TestFixlint builds the program and lets it fix a module, with replies of a
// script in a model's place.
func TestFixlint(t *testing.T) {
	program := filepath.Join(t.TempDir(), "fixlint")
	// The settings of make build, whose packages are compiled already.
	build := exec.Command("go", "build", "-trimpath", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module p\n", "p.go": broken, "replies": replies, ".config/hone.toml": "[sandbox]\nwall = \"none\"\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	state, trusted := t.TempDir(), sha256.Sum256([]byte(`.config/hone.toml: sandbox.wall = "none"`))
	for _, want := range []string{"The verb was wrong.\ndone: the check has no findings\n", "done: the check already passes\n"} {
		run := exec.Command(program)
		run.Dir, run.Env = dir, append(os.Environ(), "HONE_MODEL=script/"+filepath.Join(dir, "replies"),
			"XDG_STATE_HOME="+state, fmt.Sprintf("HONE_TRUST=%x", trusted))
		if out, err := run.CombinedOutput(); err != nil || string(out) != want {
			t.Fatalf("%v\n%s\nwant\n%s", err, out, want)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "p.go")); err != nil || string(text) != strings.Replace(broken, "%d", "%s", 1) {
		t.Fatalf("%v\n%s", err, text)
	}
}
