package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/google/go-cmp/cmp"

	"hone/cmd/hone/language"
	"hone/internal/config"
	"hone/loop"
	"hone/loop/task"
)

// TestInitProtect: what init offers for each language is commented out. Without
// the comment signs it is a valid configuration that protects the tests and not
// the code.
func TestInitProtect(t *testing.T) {
	for _, c := range []struct {
		language, mark string
		tests, code    []string
	}{
		{"Go", "go.mod", []string{"a_test.go", "x/y/a_test.go", "testdata/a", "x/testdata/y/a", ".golangci.yml"}, []string{"go.mod", "a.go", "x/test.go"}},
		{"Go", "go.work", []string{"x/a_test.go"}, []string{"x/a.go"}},
		{"Python", "pyproject.toml", []string{"tests/a.py", "x/tests/y/a.py", "test_a.py", "x/a_test.py", "conftest.py"}, []string{"pyproject.toml", "a.py", "x/contest.py"}},
		{"Python", "setup.py", []string{"tests/a.py"}, []string{"setup.py"}},
		{"Python", "requirements.txt", []string{"tests/a.py"}, []string{"requirements.txt"}},
		{"Node", "package.json", []string{"a.test.js", "src/a.spec.tsx", "src/__tests__/a.js", "test/a.js", "package.json", "jest.config.mjs", "tsconfig.build.json"}, []string{"index.js", "src/test.js"}},
		{"Rust", "Cargo.toml", []string{"tests/a.rs", "x/tests/a.rs", "src/snapshots/a.snap", ".cargo/config.toml"}, []string{"Cargo.toml", "src/lib.rs"}},
		{"Java", "pom.xml", []string{"src/test/java/x/ATest.java", "m/src/test/A.java"}, []string{"pom.xml", "src/main/java/x/A.java"}},
		{"Java", "build.gradle.kts", []string{"src/test/A.kt"}, []string{"build.gradle.kts"}},
		{"Ruby", "Gemfile", []string{"spec/a_spec.rb", "test/a.rb", ".rspec"}, []string{"Gemfile", "lib/a.rb"}},
		{"PHP", "composer.json", []string{"tests/ATest.php", "phpunit.xml.dist"}, []string{"composer.json", "src/A.php"}},
		{"Elixir", "mix.exs", []string{"test/a_test.exs", "apps/x/test/a_test.exs"}, []string{"mix.exs", "lib/a.ex"}},
		{".NET", "x.csproj", []string{"x.Tests/A.cs", "src/ATests.cs", "tests/a.cs"}, []string{"x.csproj", "src/A.cs"}},
		{".NET", "all.sln", []string{"UnitTests/A.cs"}, []string{"all.sln"}},
		{"C and C++", "CMakeLists.txt", []string{"tests/a.c", "src/test_a.c", "src/a_test.cpp"}, []string{"CMakeLists.txt", "src/a.c"}},
		{"make", "Makefile", []string{"Makefile", "test/a.sh"}, []string{"a.sh"}},
		{"make", "GNUmakefile", []string{"GNUmakefile"}, []string{"a.sh"}},
	} {
		root := t.TempDir()
		touch(t, root, c.mark)
		if out := runInit(t, root); !strings.Contains(out, "wrote   .config/hone.toml") {
			t.Errorf("%s: %s", c.mark, out)
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, ".config", "hone.toml"))
		if err != nil || !strings.Contains(string(text), "("+c.language+")") {
			t.Errorf("%s: %v, and the file says:\n%s", c.mark, err, text)
		}
		if off, err := (&app{err: io.Discard}).loadConfig(root, "", nil); err != nil || !cmp.Equal(off, config.File{}) {
			t.Errorf("%s: something is switched on: %+v, %v", c.mark, off, err)
		}
		on := enabledConfig(t, root)
		for i, files := range [][]string{c.tests, c.code} {
			for _, file := range files {
				if covered(on.Check.Protect, file) != (i == 0) {
					t.Errorf("%s: protected is %v of %s", c.mark, i != 0, file)
				}
			}
		}
		if out := runInit(t, root); !strings.Contains(out, "kept    .config/hone.toml, which already exists\n") {
			t.Errorf("%s, a second time: %s", c.mark, out)
		}
	}
}

// TestInitProtectAll: a directory with many languages has each glob once, and a
// Makefile adds none.
func TestInitProtectAll(t *testing.T) {
	root := t.TempDir()
	var want []string
	for _, l := range language.All() {
		touch(t, root, strings.ReplaceAll(l.Marks[0], "*", "x"))
		want = append(want, l.Protect...)
	}
	touch(t, root, "makefile")
	runInit(t, root)
	got := enabledConfig(t, root)
	slices.Sort(want)
	slices.Sort(got.Check.Protect)
	if diff := cmp.Diff(slices.Compact(want), got.Check.Protect); diff != "" {
		t.Error(diff)
	}
}

// TestInitProtectNothing: only a regular file at the root marks a language.
func TestInitProtectNothing(t *testing.T) {
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
	if err := os.WriteFile(at, bytes.Replace(text, []byte("# protect"), []byte("protect"), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	file, err := (&app{err: io.Discard}).loadConfig(root, "", nil)
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
	if err := (&app{out: &out}).init(root, task.Kind().Starters()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func covered(globs []string, file string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool { return doublestar.MatchUnvalidated(glob, file) })
}

// A .config/hone.toml that a loop's own starter files include is named once. What
// could be added to it is printed.
func TestInitOwnConfig(t *testing.T) {
	const own = "wrote   .config/hone.toml\n"
	for _, c := range []struct{ mark, content, want string }{
		{"x", "[check]\n", own + "next: go\n"},
		{"go.mod", "[check]\nprotect = []\n", own + "next: go\n"},
		{"go.mod", "[check]\n", own + "to protect the tests, you could add to .config/hone.toml:\n\n    [check]\n    " +
			language.ProtectLine(language.All()[:1]) + "\n\nnext: go\n"},
	} {
		root := t.TempDir()
		touch(t, root, c.mark)
		var out bytes.Buffer
		err := (&app{out: &out, err: &out}).init(root, loop.Starters{
			Files: func(string, func(string)) ([]loop.File, error) {
				return []loop.File{{Path: config.HonePath, Content: []byte(c.content)}}, nil
			},
			Next: func(string) string { return "go" }, NeedsCheck: true})
		if err != nil || out.String() != c.want {
			t.Errorf("%s with %q: %q, %v; want %q", c.mark, c.content, out.String(), err, c.want)
		}
	}
}

// A loop without starter files says so. Its command of init is not listed.
func TestInitWithoutStarters(t *testing.T) {
	c := (&app{}).initLoopCommand(loop.Kind{Name: "bare"})
	if err := c.RunE(c, nil); err == nil || err.Error() != "bare needs no starter files" || !c.Hidden {
		t.Errorf("%v, hidden: %v", err, c.Hidden)
	}
}
