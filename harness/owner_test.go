package harness

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hone/harness/runs"
	"hone/internal/crashtest"

	"hone"
)

// finished runs a loop without rounds in a directory, and returns its run.
func finished(t *testing.T, dir string) string {
	t.Helper()
	s := runEmptyLoop(t, dir, func(*hone.Run) {})
	defer s.Close()
	return s.ID()
}

// refused reports whether a run cannot be resumed, with what to type.
func refused(t *testing.T, dir, run string) bool {
	t.Helper()
	r, err := runs.Find(t.Context(), dir, run)
	if err == nil {
		r.Close()
		return false
	}
	var usage *hone.UsageError
	if !errors.As(err, &usage) || usage.Next.Verb != hone.Accept || usage.Next.Run != run {
		t.Fatal(err)
	}
	return true
}

// Accepting a run is for this run in this directory, until it is revoked.
func TestAcceptAndRevoke(t *testing.T) {
	dir := crashtest.Workspace(t, nil)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	run := finished(t, dir)
	if refused(t, dir, run) {
		t.Error("the run is not its owner's")
	}
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	if !refused(t, dir, run) {
		t.Error("another user resumes the run")
	}
	seen, err := runs.Inspect(t.Context(), dir, "last")
	if err != nil || seen.Foreign != 1 || seen.Run != run {
		t.Fatalf("%+v, %v", seen, err)
	}
	if err := seen.Accept(); err != nil {
		t.Fatal(err)
	}
	if seen, err = runs.Inspect(t.Context(), dir, run); err != nil || seen.Foreign != 0 || refused(t, dir, run) {
		t.Errorf("event %d of the accepted run is foreign: %v", seen.Foreign, err)
	}
	if err := runs.Revoke(dir, "last"); err != nil || !refused(t, dir, run) {
		t.Errorf("a run that is no longer accepted: %v", err)
	}
	if err := runs.Revoke(dir, "last"); err == nil {
		t.Error("it was revoked twice")
	}
}

// A run remains its owner's run if the owner moves or copies the workspace, and also
// if another user copies it.
func TestOwnRunElsewhere(t *testing.T) {
	dir, elsewhere := crashtest.Workspace(t, nil), crashtest.Workspace(t, nil)
	run := finished(t, dir)
	if err := os.CopyFS(filepath.Join(elsewhere, ".hone"), os.DirFS(filepath.Join(dir, ".hone"))); err != nil {
		t.Fatal(err)
	}
	if refused(t, elsewhere, run) {
		t.Error("the run is not its owner's any more")
	}
}

// Without a state folder a run starts and says what that means. It has no owner.
func TestRunWithoutStateFolder(t *testing.T) {
	dir := crashtest.Workspace(t, nil)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	own := finished(t, dir)
	t.Setenv("XDG_STATE_HOME", file)
	run := finished(t, dir)
	if !refused(t, dir, run) || !refused(t, dir, own) {
		t.Error("a run is resumed although nothing says whose it is")
	}
	seen, err := runs.Inspect(t.Context(), dir, run)
	if err != nil {
		t.Fatal(err)
	}
	if err := seen.Accept(); err == nil || !strings.Contains(err.Error(), "state folder") {
		t.Errorf("accepted: %v", err)
	}
}
