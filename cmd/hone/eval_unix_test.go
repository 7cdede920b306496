//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/cmd/hone/eval"
)

// evaluated is what a test compares of a row of the report.
type evaluated struct {
	Model, Case        string
	Passed, Tries      int
	Rounds             float64
	Malformed, Refused int
}

// evalExamples runs hone eval on the examples, which need programs, and returns the report.
// Words is the rest of the command line.
func evalExamples(t *testing.T, words string, programs ...string) eval.Report {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("SKIPPED: %s is missing", program)
		}
	}
	hone, err := exec.LookPath("hone")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"eval", "cases.toml", "--json", "--parallel", "2", "-o", filepath.Join(t.TempDir(), "results.jsonl")}, strings.Fields(words)...)
	c := exec.Command(hone, args...)
	c.Dir = filepath.Join("..", "..", "examples", "eval")
	c.Env = append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir(), "GOCACHE="+strings.TrimSpace(string(cache)), promptExit)
	out, err := c.Output()
	if err != nil {
		said := ""
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			said = string(exit.Stderr)
		}
		t.Fatalf("%v\n%s%s", err, out, said)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	var report eval.Report
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &report); err != nil || report.Type != "report" {
		t.Fatalf("%v\n%s", err, out)
	}
	return report
}

// rows returns what a test compares of a report.
func rows(scores []eval.Score) (all []evaluated) {
	for _, s := range scores {
		all = append(all, evaluated{strings.TrimSuffix(filepath.Base(s.Model), ".script"), s.Case, s.Passed, s.Tries, s.Rounds, s.Malformed, s.Refused})
	}
	return all
}

// TestEvalExamples runs all examples once with a model that solves them.
func TestEvalExamples(t *testing.T) {
	skipShort(t)
	t.Parallel()
	report := evalExamples(t, "-m script/script/good.script", "go", "python3", "node", "make", "cc")
	want := []evaluated{{Model: "good", Passed: 10, Tries: 10, Rounds: 1}}
	if diff := cmp.Diff(want, rows(report.Models)); diff != "" {
		t.Error(diff)
	}
	for _, row := range rows(report.Cases) {
		if row.Passed != 1 {
			t.Errorf("%+v", row)
		}
	}
}

// TestEvalModels compares the whole table of models that pass and fail as they are named.
func TestEvalModels(t *testing.T) {
	skipShort(t)
	t.Parallel()
	report := evalExamples(t, "--case py-roman --case py-csv --case py-leap -m script/script/half.script -m script/script/cheat.script "+
		"-m script/script/malformed.script -m script/script/refused.script", "python3")
	want := []evaluated{
		{"half", "py-roman", 1, 1, 1, 0, 0}, {"cheat", "py-roman", 0, 1, 2, 0, 0}, {"malformed", "py-roman", 0, 1, 2, 2, 0}, {"refused", "py-roman", 1, 1, 1, 0, 1},
		{"half", "py-csv", 0, 1, 2, 0, 0}, {"cheat", "py-csv", 0, 1, 1, 0, 0}, {"malformed", "py-csv", 0, 1, 2, 2, 0}, {"refused", "py-csv", 0, 1, 2, 2, 0},
		{"half", "py-leap", 1, 1, 1, 0, 0}, {"cheat", "py-leap", 0, 1, 2, 2, 0}, {"malformed", "py-leap", 0, 1, 2, 2, 0}, {"refused", "py-leap", 1, 1, 2, 0, 1},
	}
	if diff := cmp.Diff(want, rows(report.Cases)); diff != "" {
		t.Error(diff)
	}
	want = []evaluated{
		{"half", "", 2, 3, 4.0 / 3, 0, 0}, {"cheat", "", 0, 3, 5.0 / 3, 2, 0}, {"malformed", "", 0, 3, 2, 6, 0}, {"refused", "", 2, 3, 5.0 / 3, 2, 2},
	}
	if diff := cmp.Diff(want, rows(report.Models)); diff != "" {
		t.Error(diff)
	}
}
