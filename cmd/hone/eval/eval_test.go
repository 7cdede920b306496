package eval

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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

func result(name, model string, passed bool, tokens int64, cost *float64) Result {
	return Result{Case: name, Model: model, Passed: passed, Rounds: 2, Tokens: tokens, Cost: cost, Malformed: 1, Seconds: 1}
}

// One case passes in 2 of 4 tries, the other in none of 2.
func TestSum(t *testing.T) {
	cents := func(f float64) *float64 { return &f }
	results := []Result{
		result("a", "m", true, 10, cents(0.25)), result("a", "m", true, 10, cents(0.25)),
		result("a", "m", false, 10, cents(0.25)), result("a", "m", false, 10, cents(0.25)),
		result("b", "m", false, 10, cents(0.5)), result("b", "m", false, 10, nil),
	}
	results[5].Tokens = 0 // nothing was sent, so that it has no price
	s := Sum(results, 2)
	if s.Tries != 6 || s.Passed != 2 || s.Rounds != 2 || s.Tokens != 50 || s.Malformed != 6 || s.Refused != 0 || s.Seconds != 6 {
		t.Errorf("%+v", s)
	}
	for what, v := range map[string]struct {
		got  *float64
		want float64
	}{"pass@1": {s.Pass1, 0.25}, "pass@2": {s.PassK, 0.5}, "cost": {s.Cost, 1.5}, "cost per pass": {s.CostPerPass, 0.75}} {
		if v.got == nil || math.Abs(*v.got-v.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", what, v.got, v.want)
		}
	}
	if s := Sum(results, 3); *s.PassK != 1 { // only a has three tries
		t.Errorf("pass@3: %v", *s.PassK)
	}
	results[5].Tokens = 1
	if s := Sum(results, 5); s.PassK != nil || s.Cost != nil || s.CostPerPass != nil {
		t.Errorf("too few tries, unknown price: %+v", s)
	}
	if s := Sum(nil, 1); s.Pass1 != nil || s.Cost != nil {
		t.Errorf("no tries: %+v", s)
	}
}

func TestReport(t *testing.T) {
	results := []Result{result("a", "x", true, 1, nil), result("a", "y", false, 1, nil), result("b", "x", true, 1, nil)}
	rep := NewReport(results, []string{"a", "b"}, []string{"y", "x"}, 1)
	if len(rep.Models) != 2 || rep.Models[0].Model != "y" || rep.Models[1].Passed != 2 || len(rep.Cases) != 4 {
		t.Errorf("%+v", rep)
	}
	if last := rep.Cases[3]; last.Case != "b" || last.Model != "x" || last.Passed != 1 || rep.Cases[2].Tries != 0 {
		t.Errorf("%+v", rep.Cases)
	}
}

// open opens a record that must be good.
func open(t *testing.T, path string) *Record {
	t.Helper()
	r, err := OpenRecord(path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	cost := 0.5
	want := Result{Key: "k", Case: "a", Model: "m", Time: 2, Passed: true, Kind: "done", Why: "ok", Rounds: 1, Tokens: 7, Cost: &cost,
		Malformed: 1, Refused: 2, Seconds: 1.5, Run: "r", Hone: "devel", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	if err := open(t, path).Add(want); err != nil {
		t.Fatal(err)
	}
	got, ok := open(t, path).Results["k"]
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Error(diff)
	}
	if _, ok := open(t, path).Results["other"]; ok {
		t.Error("it has another result")
	}
}

// A last line without an end does not count, and the next result replaces it.
func TestRecordTorn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	if err := open(t, path).Add(Result{Key: "a"}); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(whole, whole[:10]...), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	r := open(t, path)
	if err := errors.Join(r.CanAdd(), r.Add(Result{Key: "b"})); err != nil {
		t.Fatal(err)
	}
	r = open(t, path)
	_, a := r.Results["a"]
	_, b := r.Results["b"]
	if text, _ := os.ReadFile(path); !a || !b || strings.Count(string(text), "\n") != 2 {
		t.Errorf("a %v, b %v:\n%s", a, b, text)
	}
}

func TestRecordErrors(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{"{}\n": ":1: it is not a result", "{\"key\":\"a\"}\nhello\n": ":2: it is not a result"} {
		path := filepath.Join(dir, "r.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenRecord(path); err == nil || !strings.Contains(err.Error(), path+want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := open(t, filepath.Join(dir, "no", "r.jsonl")).Add(Result{Key: "a"}); err == nil {
		t.Error("it was written without a directory")
	}
}

// put writes files below a directory.
func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Old copies of an evaluation are swept, and recent ones of another are not.
func TestSweep(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("LocalAppData", t.TempDir())
	var dirs []string
	for _, record := range []string{"old", "young"} {
		record = filepath.Join(t.TempDir(), record)
		e, err := Open(record)
		if err != nil {
			t.Fatal(err)
		}
		put(t, e.Cache, map[string]string{"tries/a-1-x/project/a.txt": "a"})
		if _, err := Open(record); err == nil {
			t.Error("two evaluations share a record")
		}
		e.Close()
		dirs = append(dirs, e.Cache)
	}
	long := time.Now().Add(-2 * maxAge)
	if err := os.Chtimes(dirs[0], long, long); err != nil {
		t.Fatal(err)
	}
	e, err := Open(filepath.Join(t.TempDir(), "new"))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := os.Lstat(dirs[0]); err == nil {
		t.Error("the old copies are left")
	}
	if _, err := os.Lstat(filepath.Join(dirs[1], "tries", "a-1-x", "project", "a.txt")); err != nil {
		t.Error(err)
	}
}
