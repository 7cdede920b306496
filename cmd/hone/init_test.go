package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"hone/internal/config"
	"hone/loop"
	"hone/loop/task"
)

// TestInitLanguages: what init offers for each language is commented out. Without the
// comment signs it is a valid configuration with the language's check.
func TestInitLanguages(t *testing.T) {
	for mark, check := range map[string]string{
		"go.mod": "go vet ./... && go test ./...", "go.work": "go vet ./... && go test ./...", "pyproject.toml": "python3 -m pytest", "setup.py": "python3 -m pytest",
		"package.json": "npm test", "Cargo.toml": "cargo test", "pom.xml": "mvn test", "build.gradle.kts": "gradle test", "Gemfile": "bundle exec rake",
		"composer.json": "composer test", "mix.exs": "mix test", "x.csproj": "dotnet test", "all.sln": "dotnet test", "CMakeLists.txt": "cmake -B build && cmake --build build && ctest --test-dir build", "GNUmakefile": "make",
	} {
		root := t.TempDir()
		touch(t, root, mark)
		if out := runInit(t, root); !strings.Contains(out, "wrote   .config/hone.toml, with the check commented out\n") {
			t.Errorf("%s: %s", mark, out)
		}
		if off, err := (&app{err: io.Discard}).loadConfig(root); err != nil || config.Check.In(off.Shared()) != "" || config.Judge.In(off.Shared()) != "ask" {
			t.Errorf("%s: %+v, %v", mark, off, err)
		}
		if on := enabledConfig(t, root); config.Check.In(on.Shared()) != check || config.Judge.In(on.Shared()) != "keep" {
			t.Errorf("%s: %+v", mark, on)
		}
		if out := runInit(t, root); !strings.Contains(out, "kept    .config/hone.toml, which already exists\n") {
			t.Errorf("%s, a second time: %s", mark, out)
		}
	}
}

// TestInitNothing: only a regular file at the root marks a language.
func TestInitNothing(t *testing.T) {
	root := t.TempDir()
	touch(t, root, "sub/go.mod")
	touch(t, root, "package.json/x")
	touch(t, root, "main.go")
	if out := runInit(t, root); strings.Contains(out, "hone.toml") {
		t.Error(out)
	}
}

// enabledConfig removes the comment signs from what init wrote, and reads it.
func enabledConfig(t *testing.T, root string) config.File {
	t.Helper()
	at := filepath.Join(root, ".config", "hone.toml")
	text, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("# command"), []byte("command")), []byte("# judge"), []byte("judge")), 0o644); err != nil {
		t.Fatal(err)
	}
	file, err := (&app{err: io.Discard}).loadConfig(root)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func touch(t *testing.T, root, name string) {
	t.Helper()
	at := filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

// runInit writes the starter files of task and returns the output.
func runInit(t *testing.T, root string) string {
	t.Helper()
	var out bytes.Buffer
	if err := (&app{out: &out}).init(new(cobra.Command), root, task.Kind().Starters()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// A .config/hone.toml that a loop's own starter files include is named once.
func TestInitOwnConfig(t *testing.T) {
	root := t.TempDir()
	touch(t, root, "go.mod")
	var out bytes.Buffer
	err := (&app{out: &out, err: &out}).init(new(cobra.Command), root, loop.Starters{
		Files: func(string, string, func(string)) ([]loop.File, error) {
			return []loop.File{{Path: config.HonePath, Content: []byte("[check]\n")}}, nil
		},
		Next: func(_, _ string) string { return "go" }, NeedsCheck: true})
	if want := "wrote   .config/hone.toml\nnext: go\n"; err != nil || out.String() != want {
		t.Errorf("%q, %v; want %q", out.String(), err, want)
	}
}

// A loop without starter files says so. Its command of init is not listed.
func TestInitWithoutStarters(t *testing.T) {
	c := (&app{}).initLoopCommand(loop.Kind{Name: "bare"})
	if err := c.RunE(c, nil); err == nil || err.Error() != "bare needs no starter files" || !c.Hidden {
		t.Errorf("%v, hidden: %v", err, c.Hidden)
	}
}
