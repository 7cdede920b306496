package harness

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/internal/config"
	"hone/internal/crashtest"
	"hone/internal/listing"
	"hone/loop"
	"hone/sandbox"
)

// TestSecretsNote: the note counts the files that are hidden, and those that were
// not read.
func TestSecretsNote(t *testing.T) {
	found := listing.SecretFiles{Files: []listing.SecretFile{{Path: "/w/.env"}, {Path: "/w/key"}}, Unread: 1}
	for wall, want := range map[sandbox.Wall]string{
		sandbox.Hidden:   "2 secret files hidden from commands; [guard] send in .config/hone.toml allows them; 1 file checked for secrets only by name, because there is too much to read",
		sandbox.Landlock: "2 secret files not hidden: the wall landlock cannot do that; 1 file checked for secrets only by name, because there is too much to read",
		sandbox.NoWall:   "2 secret files not hidden; 1 file checked for secrets only by name, because there is too much to read",
	} {
		if got := secretsNote(found, wall); got != want {
			t.Errorf("%s: %q", wall, got)
		}
	}
	if got := secretsNote(listing.SecretFiles{}, sandbox.Hidden); got != "" {
		t.Errorf("%q about no files", got)
	}
}

func TestResolveWalls(t *testing.T) {
	root := crashtest.Workspace(t, map[string]string{"out/x": ""})
	t.Setenv("HOME", root)
	t.Setenv("USERPROFILE", root)
	got, err := Host{}.ResolveWalls(config.Values{config.Wall.Name: "landlock", config.Net.Name: true, config.MayWrite.Name: []string{"out", "~/out"}, config.MayRead.Name: []string{"lib/../lib"},
		config.Hide.Name: []string{filepath.Join(root, "x")}, config.Variables.Name: []string{"A"}, config.Memory.Name: int64(5), config.Processes.Name: 6}, root)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(root, "out")
	want := loop.WallSettings{Env: []string{"A"}, Policy: sandbox.Policy{Wall: sandbox.Landlock, Net: true, Write: []string{out, out},
		Read: []string{filepath.Join(root, "lib")}, Hide: []string{filepath.Join(root, "x")}, Limits: sandbox.Limits{Memory: 5, Processes: 6}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !(loop.WallSettings{}).None() {
		t.Error("nothing is taken for a wall")
	}
}

func TestCommandNotes(t *testing.T) {
	const missed = "curl: (6) Could not resolve host: x"
	restoredOne := []sandbox.Restored{{Path: "/w/.git/config", MovedTo: "/aside/config"}}
	made := []sandbox.Repository{{Path: "/w/x/.git"}, {Path: "/w/y", Why: "why", MovedTo: "/w/.hone/aside/1/HEAD.aside"}, {Path: "/copy/x/.git"}}
	for _, tt := range []struct {
		r    sandbox.Result
		net  bool
		want []hone.Notice
	}{
		{r: sandbox.Result{}},
		{r: sandbox.Result{Stderr: []byte(missed)}},
		{r: sandbox.Result{Exit: 6, Stderr: []byte(missed)}, want: []hone.Notice{wantsNet()}},
		{r: sandbox.Result{Exit: 6, Stdout: []byte(missed)}, want: []hone.Notice{wantsNet()}},
		{r: sandbox.Result{Exit: 6, Stdout: []byte(missed)}, net: true},
		{r: sandbox.Result{Exit: -1, TimedOut: true, Stdout: []byte(missed)}, want: []hone.Notice{wantsNet()}},
		{r: sandbox.Result{Exit: -1, OverLimit: "memory"}, want: []hone.Notice{{Text: "a command exceeded its limit of memory", Next: hone.Next{First: "raise memory or processes in [sandbox] of .config/hone.toml"}}}},
		{r: sandbox.Result{Repositories: made}, want: []hone.Notice{{Text: made[0].Note(), Repository: "x/.git"}, {Text: made[1].Note(), Repository: "y", Aside: ".hone/aside/1/HEAD.aside"}, {Text: made[2].Note()}}},
		{r: sandbox.Result{Restored: restoredOne}, want: []hone.Notice{{Text: restoredOne[0].Note()}}},
	} {
		if diff := cmp.Diff(tt.want, commandNotes(tt.r, "/w", tt.net)); diff != "" {
			t.Errorf("%+v:\n%s", tt.r, diff)
		}
	}
}

func TestRestoredNote(t *testing.T) {
	for want, r := range map[string]sandbox.Restored{
		"/a is protected: a command changed it, and it was restored":                                           {Path: "/a"},
		"/a is protected: a command changed it, and it was restored; the command's version is in /k":           {Path: "/a", MovedTo: "/k"},
		"/a is protected: a command changed it, and it was NOT restored: gone; the command's version is in /k": {Path: "/a", MovedTo: "/k", NotRestored: "gone"},
	} {
		if got := r.Note(); got != want {
			t.Errorf("%+v: %s", r, got)
		}
	}
}

// If no walls work, the user is told how to continue without them.
func TestNoWalls(t *testing.T) {
	var stop *hone.Stop
	err := NoWalls(t.Context(), &sandbox.WallError{Wall: sandbox.Auto, Reason: "none", Next: "hone doctor"})
	if !errors.As(err, &stop) || stop.Kind != hone.KindFailed || stop.Next.Or == nil || !slices.Contains(stop.Next.Or.Flags, hone.Flag{Name: "sandbox", Value: "none"}) {
		t.Errorf("%+v", err)
	}
	err = NoWalls(t.Context(), &sandbox.WallError{Wall: sandbox.Bubblewrap, Reason: "none", Next: "install it"})
	if !errors.As(err, &stop) || stop.Next.First != "install it" {
		t.Errorf("%+v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := NoWalls(cancelled, context.Canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
