package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/history"
	"hone/journal"
	"hone/story"
)

// endOf returns how a run ended whose journal exists.
func endOf(t *testing.T, end hone.End, files ...File) Account {
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
	return Account{Run: &Run{Home: home, ID: run, Past: history.Read(nil), Start: hone.Start{Loop: "fix"}}, End: end, Ended: true, Files: files, Standing: story.Standing{Mark: story.MarkOf(end.Kind)},
		Numbers: story.Numbers{Rounds: end.Rounds, Tokens: end.Tokens - end.Assumed, Unconfirmed: end.Assumed, Cost: end.Cost, Active: 38_400_000_000}}
}

func onTerminalOf(s Account, columns int) string {
	var out strings.Builder
	s.printOnTerminal(&out, false, columns)
	return out.String()
}

// TestEndingOnATerminal: it names the result, the files, what was used and
// what fits next. Unknown costs and unconfirmed tokens are no figures of their own.
func TestEndingOnATerminal(t *testing.T) {
	cost := 0.0123
	done := hone.End{Kind: hone.KindDone, Why: "the check passes", Rounds: 2, Tokens: 2434, Cost: &cost, Notes: []string{"1 change was declined: specs/slug.md"}}
	want := `✓ done  make test passes        2 rounds · 38s · 2.4k tokens · $0.0123
  main.go  +15 −3
  長い.go  +1
  ! 1 change was declined: specs/slug.md
  review  hone show last --diff
  undo    hone undo last
`
	s := endOf(t, done, File{Path: "main.go", Added: 15, Removed: 3}, File{Path: "長い.go", Added: 1, Removed: 0})
	s.Start.Settings = []byte(`{"Check":"make test"}`)
	if diff := cmp.Diff(want, onTerminalOf(s, 100)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := onTerminalOf(s, 40); !strings.HasPrefix(got, "✓ done  make test passes\n  2 rounds · 38s · 2.4k tokens · $0.0123\n") {
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

func TestEndingOfManyFiles(t *testing.T) {
	var files []File
	for i := range 12 {
		files = append(files, File{Path: fmt.Sprintf("file%02d", i), Added: 1, Removed: 2})
	}
	lines := Account{Files: files}.fileLines(false)
	if len(lines) != 10 || lines[8] != "file08        +1 -2" || lines[9] != "3 more files  +3 -6" {
		t.Errorf("%q", lines)
	}
}
