package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/cmd/hone/failure"
	"hone/history"
	"hone/journal"
)

// endOf returns how a run ended whose journal exists.
func endOf(t *testing.T, end hone.End, files ...changedFile) ending {
	t.Helper()
	dir := t.TempDir()
	home, err := journal.OpenHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { home.Close() })
	run := home.NewRun()
	j, err := home.Create(run)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if _, err := j.Append(journal.Entry{Type: history.TypeNotice, Payload: history.Notice{Text: "x"}}); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	return ending{home: home, run: run, end: end, active: 38_400_000_000, files: files}
}

func onTerminalOf(s ending, columns int) string {
	var out strings.Builder
	s.printOnTerminal(&out, false, columns)
	return out.String()
}

// TestSummaryOnATerminal: the summary names the result, the files, what was used and
// what fits next. Unknown costs and unconfirmed tokens are no figures of their own.
func TestSummaryOnATerminal(t *testing.T) {
	cost := 0.0123
	done := hone.End{Kind: hone.KindDone, Why: "the check has no findings", Rounds: 2, Tokens: 2434, Cost: &cost, Notes: []string{"1 change was declined: specs/slug.md"}}
	want := `✓ done: the check has no findings        2 rounds · 38s · 2.4k tokens · $0.0123
  main.go  +15 −3
  長い.go  +1
  ! 1 change was declined: specs/slug.md
  review  hone show last --diff
  undo    hone undo last
  keep    git add main.go 長い.go && git commit
`
	s := endOf(t, done, changedFile{"main.go", 15, 3}, changedFile{"長い.go", 1, 0})
	if diff := cmp.Diff(want, onTerminalOf(s, 100)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := onTerminalOf(s, 40); !strings.HasPrefix(got, "✓ done: the check has no findings\n  2 rounds · 38s · 2.4k tokens · $0.0123\n") {
		t.Errorf("on 40 columns:\n%s", got)
	}

	stopped := hone.End{Kind: hone.KindRounds, Why: "8 of 8 rounds used", Rounds: 8, Tokens: 153_128, Assumed: 149_332, Next: hone.Next{Verb: hone.Resume}}
	want = `✗ stopped: 8 of 8 rounds used        8 rounds · 38s · 3.8k tokens · +149k unconfirmed · cost unknown
  next    hone resume last
`
	if diff := cmp.Diff(want, onTerminalOf(endOf(t, stopped), 120)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := onTerminalOf(endOf(t, hone.End{Kind: hone.KindInterrupted, Why: "interrupted"}), 100); got != "! interrupted        0 rounds · 38s · 0 tokens\n" {
		t.Errorf("interrupted:\n%s", got)
	}
}

// TestAdded: the command that keeps a change names few files, and quotes their names.
func TestAdded(t *testing.T) {
	many := []changedFile{{path: "a"}, {path: "b"}, {path: "c"}, {path: "d"}, {path: "e"}}
	for want, files := range map[string][]changedFile{
		"a b c d": many[:4], "-A": many, `"it's" 'a b'`: {{path: "it's"}, {path: "a b"}},
	} {
		if got := (ending{files: files}).added(false); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := (ending{files: []changedFile{{path: "-x"}}}).added(false); got != "-A" {
		t.Errorf("an option: %s", got)
	}
	if got := (ending{files: many[:1]}).added(true); got != ":/a" {
		t.Errorf("in a subdirectory: %s", got)
	}
}

func TestSummaryOfManyFiles(t *testing.T) {
	var files []changedFile
	for i := range 12 {
		files = append(files, changedFile{fmt.Sprintf("file%02d", i), 1, 2})
	}
	lines := ending{files: files}.fileLines("-", maxFiles)
	if len(lines) != 10 || lines[8] != "file08        +1 -2" || lines[9] != "3 more files  +3 -6" {
		t.Errorf("%q", lines)
	}
}

// TestElsewhere: commands for a run of another directory name that.
func TestElsewhere(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	inner := filepath.Join(dir, "it's")
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(inner)
	if got := failure.Elsewhere(dir); got != "" {
		t.Errorf("in it: %q", got)
	}
	t.Chdir(dir)
	if got, want := failure.Elsewhere(inner), ` -C "it's"`; got != want {
		t.Errorf("above it: %q, want %q", got, want)
	}
	beside := filepath.Join(dir, "beside")
	if err := os.Mkdir(beside, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(beside)
	if got, want := failure.Elsewhere(inner), ` -C "`+inner+`"`; got != want {
		t.Errorf("beside it: %q, want %q", got, want)
	}
}
