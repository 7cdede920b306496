package eval

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// load writes a file of cases and loads it.
func load(t *testing.T, text string) (*Suite, string, error) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "cases.toml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := Load(file, []string{"fix", "task"})
	return s, dir, err
}

func TestLoad(t *testing.T) {
	s, dir, err := load(t, `
[defaults]
repo = ".."
commit = "v1"
check = "make test"
args = ["--rounds", "3"]

[cases.second]
args = ["--turns", "9"]

[cases.first]
files = "tree"
loop = "task"
task = "do it"
check = "make lint"
judge = "make hidden"
judge_files = "/judge"
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []Case{
		{"second", Table{Repo: filepath.Dir(dir), Commit: "v1", Loop: "fix", Check: "make test", Args: []string{"--rounds", "3", "--turns", "9"}}},
		{"first", Table{Files: filepath.Join(dir, "tree"), Repo: filepath.Dir(dir), Loop: "task", Task: "do it", Check: "make lint",
			Args: []string{"--rounds", "3"}, Judge: "make hidden", JudgeFiles: "/judge"}},
	}
	if diff := cmp.Diff(want, s.Cases); diff != "" {
		t.Error(diff)
	}
	if err := s.Select([]string{"first"}); err != nil || len(s.Cases) != 1 || s.Cases[0].Name != "first" {
		t.Errorf("selected %v, %v", s.Cases, err)
	}
	if err := s.Select([]string{"no"}); err == nil || !slices.Contains(strings.Fields(err.Error()), `"no"`) {
		t.Errorf("%v", err)
	}
}

func TestLoadErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                        "cases.toml: it has no cases; write [cases.NAME]",
		"[cases.a]\nchek = 'x'\n":                 "cases.toml:2: cases.a.chek: unknown key; did you mean check?",
		"\n[cases.a]\ncheck = 'x'\n":              "cases.toml:2: cases.a: it names no tree; write one of commit, files and run",
		"[cases.a]\nfiles='x'\ncommit='y'\n":      "cases.toml:1: cases.a: it names more than one tree; write one of commit, files and run",
		"[cases.a]\nfiles='x'\nloop='phase'\n":    `cases.toml:3: cases.a.loop: "phase" is not a loop that eval runs; write fix, task`,
		"[cases.a]\nfiles='x'\njudge-files='y'\n": "cases.toml:3: cases.a.judge-files: it has no effect without judge",
		"[cases.a]\nfiles='~bob/x'\n":             "cases.toml:2: cases.a.files: \"~bob/x\" is not a path that hone expands",
		"[defaults]\nrun=''\n":                    "cases.toml:2: defaults.run: an empty string is not allowed",
	} {
		_, dir, err := load(t, text)
		if err == nil || !strings.HasPrefix(err.Error(), filepath.Join(dir, want)) {
			t.Errorf("%q:\n got %v\nwant %s", text, err, want)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "no.toml"), nil); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("no file: %v", err)
	}
}
