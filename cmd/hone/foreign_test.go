package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hone"
	"hone/check"
	"hone/cmd/hone/failure"
	"hone/harness"
	"hone/workspace"
)

// TestRunsOfOtherPrograms: hone lists, shows and undoes the run of another
// program with its own loop. It cannot resume or replay it.
func TestRunsOfOtherPrograms(t *testing.T) {
	dir := otherProgramRun(t)
	for _, tt := range []struct {
		args   string
		status int
		want   string
	}{
		{"runs", 0, "greeter  "},
		{"show last --diff", 0, "+hello"},
		{"resume last", failure.ExitStatus(hone.KindUsage), `the run uses the loop "greeter", which this program does not have`},
		{"replay last", failure.ExitStatus(hone.KindUsage), "hint: hone show and hone undo work on it; "},
		{"undo last", 0, "undone: 1 file"},
	} {
		var out, errs bytes.Buffer
		a := &app{out: &out, err: &errs, env: func(string) string { return "" }}
		status := a.run(t.Context(), append(strings.Fields(tt.args), "-C", dir))
		if printed := out.String() + errs.String(); status != tt.status || !strings.Contains(printed, tt.want) {
			t.Errorf("hone %s: exit status %d, want %d and %q:\n%s", tt.args, status, tt.status, tt.want, printed)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "greeting.txt")); !os.IsNotExist(err) {
		t.Errorf("greeting.txt is still there: %v", err)
	}
}

// TestUnfinishedRunsOfOtherPrograms: no command line is suggested that hone refuses.
func TestUnfinishedRunsOfOtherPrograms(t *testing.T) {
	dir := otherProgramRun(t, check.Finding{Text: "the greeting is missing"})
	for _, args := range []string{"show last", "show last -v"} {
		var out bytes.Buffer
		a := &app{out: &out, err: &out, env: func(string) string { return "" }}
		a.run(t.Context(), append(strings.Fields(args), "-C", dir))
		if got := out.String(); !strings.Contains(got, `next: resume it with the program that has the loop "greeter"`) || strings.Contains(got, "hone resume") {
			t.Errorf("hone %s:\n%s", args, got)
		}
	}
}

// otherProgramRun returns a directory in which another program ran a loop that leaves findings.
func otherProgramRun(t *testing.T, left ...check.Finding) string {
	t.Helper()
	dir := t.TempDir()
	replies := filepath.Join(t.TempDir(), "replies.script")
	if err := os.WriteFile(replies, []byte("=== reply ===\nhello\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := harness.Open(dir, harness.Options{Model: "script/" + replies, Loop: "greeter"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	run := s.Run(hone.Limits{Rounds: 1})
	greeter := s.Role("greeter", "Greet.")
	end, err := run.Do(t.Context(), func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		reply, err := r.Ask(ctx, greeter, hone.Text("Whom do you greet?"))
		if err != nil {
			return nil, err
		}
		_, err = r.Apply(ctx, workspace.Change{Edits: []workspace.Edit{{Path: "greeting.txt", Content: []byte(reply.Text() + "\n")}}}, nil)
		return left, err
	})
	if err != nil || (end.Kind == hone.KindDone) != (len(left) == 0) {
		t.Fatalf("%+v, %v", end, err)
	}
	return dir
}
