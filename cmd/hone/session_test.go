package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"hone"
	"hone/check"
	"hone/workspace"
)

// looked starts a run in a folder that has one more file, lets it look at the
// tree, and returns what it would have begun with.
func looked(t *testing.T, dir, file string) (before workspace.Manifest) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, file), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	start := &hone.Start{Loop: "test", Dir: dir, Settings: json.RawMessage("{}")}
	err := (&app{}).begin(t.Context(), dir, start, outputFlags{}, func(s session) error {
		r := s.run(workspace.Rules{}, runSettings{})
		if err := s.lock.Say(s.journal.Run()); err != nil {
			return err
		}
		before = r.Before()
		if err := r.Start(*s.start); err != nil {
			return err
		}
		if _, err := r.Do(t.Context(), func(context.Context, *hone.Run, []check.Finding) ([]check.Finding, error) { return nil, nil }); err != nil {
			return err
		}
		s.start = nil // as if it was gone on with
		if m := s.before()(); len(m) == 0 || m[len(m)-1].Path != file {
			t.Errorf("it would be gone on with from %v", m)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return before
}

// A run begins with what the run before knew of the tree, and one that is gone
// on with begins with its own.
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
	if m := (session{place: &place{}, replayed: new(hone.Replayed)}).run(workspace.Rules{}, runSettings{}).Before; m != nil {
		t.Error("a replay knows the tree")
	}
}
