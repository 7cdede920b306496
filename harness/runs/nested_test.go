package runs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"hone/harness/internal/state"
	"hone/internal/crashtest"
)

// TestNestedStartTogether starts a run in a directory and one below it at the same
// time: both may be refused, but they never both enter.
func TestNestedStartTogether(t *testing.T) {
	top := crashtest.Workspace(t, nil)
	below := filepath.Join(top, "a", "b")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	entered := 0
	for range 100 {
		var both sync.WaitGroup
		var entry [2]*Workspace
		for i, dir := range []string{top, below} {
			both.Go(func() { entry[i], _ = Enter(t.Context(), dir, true) })
		}
		both.Wait()
		if entry[0] != nil && entry[1] != nil {
			t.Fatal("both entered")
		}
		for _, w := range entry {
			if w != nil {
				entered++
				w.Close()
			}
		}
	}
	if entered == 0 {
		t.Error("neither ever entered")
	}
}

// TestNestedLeftovers: what a killed process left in the state folder refuses no one,
// and is removed when its directory is gone.
func TestNestedLeftovers(t *testing.T) {
	top := crashtest.Workspace(t, nil)
	gone, below := filepath.Join(top, "gone"), filepath.Join(top, "below")
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{gone, below} {
		died(dir)
	}
	w, err := Enter(t.Context(), top, true)
	if err != nil {
		t.Fatal(err)
	}
	registered := func() (names []string) {
		dir, _ := state.Find(registeredDir)
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	both := []string{homeName(below), homeName(top)}
	slices.Sort(both)
	if got := registered(); !slices.Equal(got, both) {
		t.Errorf("registered: %q", got)
	}
	w.Close()
	if got := registered(); len(got) != 1 || got[0] != homeName(below) {
		t.Errorf("registered after Close: %q", got)
	}
}

// died leaves what a process in a directory leaves that was killed.
func died(dir string) {
	w := &Workspace{Dir: dir}
	w.register()
	w.registered.Close()
}

// TestOrphaned: processes are searched for what an earlier hone left running if that did
// not unlock its workspace, also if the workspace was renamed since or another start was
// refused.
func TestOrphaned(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir()) // others leave the names of removed directories
	top := crashtest.Workspace(t, nil)
	below := filepath.Join(top, "below")
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	lock := func(dir string) (orphaned, refused bool) {
		w := &Workspace{Dir: dir}
		err := w.lockHome(t.Context(), true)
		orphaned = w.orphaned
		w.closeHome()
		return orphaned, err != nil
	}
	enter := func(dir string) {
		t.Helper()
		w, err := Enter(t.Context(), dir, true)
		if err != nil {
			t.Fatal(err)
		}
		w.Close()
	}
	if orphaned, _ := lock(below); orphaned {
		t.Error("nothing was here before")
	}
	died(below)
	other, err := Enter(t.Context(), top, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, refused := lock(below); !refused {
		t.Error("entered below a locked workspace")
	}
	other.Close()
	if orphaned, _ := lock(below); !orphaned {
		t.Error("a refused start forgot the process that died")
	}
	enter(below)
	if orphaned, _ := lock(below); orphaned {
		t.Error("the processes are searched again")
	}
	died(below)
	renamed := filepath.Join(top, "renamed")
	if err := os.Rename(below, renamed); err != nil {
		t.Fatal(err)
	}
	if orphaned, _ := lock(renamed); !orphaned {
		t.Error("a renamed workspace is not searched")
	}
}

// TestNestedWithoutState: a run above is seen without a state folder.
func TestNestedWithoutState(t *testing.T) {
	top := crashtest.Workspace(t, nil)
	below := filepath.Join(top, "below")
	state := filepath.Join(top, "state")
	if err := errors.Join(os.Mkdir(below, 0o755), os.WriteFile(state, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_STATE_HOME", state)
	w, err := Enter(t.Context(), top, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Enter(t.Context(), below, true); err == nil || !strings.Contains(err.Error(), "another hone is working in "+top) {
		t.Errorf("below a locked workspace: %v", err)
	}
	w.Close()
	w, err = Enter(t.Context(), below, true)
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
}
