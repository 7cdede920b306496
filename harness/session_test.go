package harness

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hone"
	"hone/check"
	"hone/harness/runs"
	"hone/history"
	"hone/internal/config"
	"hone/internal/crashtest"
	"hone/loop"
	"hone/workspace"
)

// looked adds a file to a directory, starts a run there, and returns the
// manifest that the run starts from.
func looked(t *testing.T, dir, file string) (before workspace.Manifest) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, file), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s := runEmptyLoop(t, dir, func(r *hone.Run) { before = r.Before() })
	defer s.Close()
	// The start is recorded, so that this is what a resumed run begins with.
	if m := history.LastManifest(s.Home, s.journal.Run()); len(m) == 0 || m[len(m)-1].Path != file {
		t.Errorf("it would be resumed from %v", m)
	}
	return before
}

// runEmptyLoop runs a loop without rounds in a directory. It calls begun before the
// first round.
func runEmptyLoop(t *testing.T, dir string, begun func(*hone.Run)) *Session {
	t.Helper()
	l := &programLoop{loop.Settings{Model: loop.Model{Name: "script/" + replies(t)}}}
	s, err := Host{}.Start(t.Context(), loop.Kind{Name: "test"}, l, Needs{Folder: dir}, hone.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	r := s.NewRun(workspace.Rules{})
	if err := s.Begin(); err != nil {
		t.Fatal(err)
	}
	begun(r)
	if _, err := r.Do(t.Context(), func(context.Context, *hone.Run, []check.Finding) ([]check.Finding, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	return s
}

// A run starts from the last manifest of the run before it, and a resumed run
// from its own.
func TestSessionKnowsTheTree(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if m := looked(t, dir, "a"); m != nil {
		t.Errorf("the first run knows %v", m)
	}
	if m := looked(t, dir, "b"); len(m) != 1 || m[0].Path != "a" {
		t.Errorf("the second run knows %v", m)
	}
	if m := looked(t, dir, "c"); len(m) != 2 || m[1].Path != "b" {
		t.Errorf("the third run knows %v", m)
	}
	replay := Host{}.session(&programLoop{}, hone.Start{})
	replay.Workspace, replay.replayed = &runs.Workspace{}, true
	if m := replay.NewRun(workspace.Rules{}).Before; m != nil {
		t.Error("a replay knows the tree")
	}
}

// If the start of a run cannot be recorded, Do returns the error before it calls
// the round. Its Stop does not repeat the cause, which the end has.
func TestSessionRunReportsStart(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{Model: "script/" + replies(t), Walls: "none"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	run := s.Run(hone.Limits{})
	s.journal.Close()
	end, err := run.Do(t.Context(), func(context.Context, *hone.Run, []check.Finding) ([]check.Finding, error) {
		t.Error("the round was called")
		return nil, nil
	})
	if end.Kind != hone.KindFailed || !strings.Contains(end.Why, "cannot write the journal") {
		t.Errorf("%+v", end)
	}
	if stop, ok := errors.AsType[*hone.Stop](err); !ok || strings.Contains(stop.Error(), "journal") || !errors.Is(err, os.ErrClosed) {
		t.Errorf("the end says it, but the error is %v", err)
	}
}

// replies writes a file of scripted replies.
func replies(t *testing.T) string {
	t.Helper()
	at := filepath.Join(t.TempDir(), "replies.script")
	if err := os.WriteFile(at, []byte("=== reply ===\ndone\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return at
}

func TestWorkspaceIncludes(t *testing.T) {
	root := ignoring(t)
	w, err := runs.Enter(t.Context(), root, true)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Use(config.Values{config.Include.Name: []string{".env"}}); err != nil {
		t.Fatal(err)
	}
	m, err := w.Tree.Manifest(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]bool{}
	for _, e := range m {
		if e.Ignored {
			kept[e.Path] = true
		}
	}
	if got := slices.Collect(maps.Keys(kept)); !slices.Equal(got, []string{".env"}) {
		t.Errorf("kept: %q", got)
	}
}

// ignoring is a repository that ignores two files.
func ignoring(t *testing.T) string {
	t.Helper()
	root := crashtest.Workspace(t, map[string]string{"a.go": "", ".env": "", "top.db": "", ".gitignore": "*.db\n.env*\n"})
	if out, err := exec.Command("git", "init", "-q", root).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	return root
}
