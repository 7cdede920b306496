package hone_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"hone"
	"hone/check"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/workspace"
)

// freeze makes a file one that not even root may change, until the test ends.
func freeze(t *testing.T, dir, name string) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags|unix.STATX_ATTR_IMMUTABLE)
	}
	t.Cleanup(func() {
		_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags)
		f.Close()
	})
	if err != nil {
		t.Skipf("this needs root and a file system with immutable files: %v", err)
	}
}

// A file that the user may not change is refused (ruling G22). The other edits of the change are made, and the run goes on.
func TestDeniedEdit(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"a": "old", "b": "old", "c": "old"})
	freeze(t, dir, "b")
	var vs []workspace.Verdict
	p := process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) (_ []check.Finding, err error) {
		vs, err = r.Apply(ctx, workspace.Change{Edits: []workspace.Edit{edit("a", "new"), edit("b", "new"), {Path: "c", Delete: true}}}, nil)
		return nil, err
	}}
	wantEnd(t, p.end(t, dir), hone.KindDone)
	if len(vs) != 3 || vs[0].Ruling != workspace.Allow || vs[1].Ruling != workspace.Deny || vs[1].Reason != "the user may not write there" || vs[2].Ruling != workspace.Allow {
		t.Errorf("%+v", vs)
	}
	if diff := cmp.Diff(map[string]string{"a": "new", "b": "old"}, crashtest.Tree(t, dir)); diff != "" {
		t.Errorf("the tree (-want +got):\n%s", diff)
	}
	p.replays(t, dir)
}

// A change that is made whole or not at all is not made, however much of it another process has made already. It blocks no later
// run.
func TestDeniedHalf(t *testing.T) {
	dir := halfApplied(t)
	freeze(t, dir, "b")
	wantEnd(t, process{fresh: true, round: finds()}.end(t, dir), hone.KindDone)
	if diff := cmp.Diff(map[string]string{"a": "old", "b": "old"}, crashtest.Tree(t, dir)); diff != "" {
		t.Errorf("the tree (-want +got):\n%s", diff)
	}
	dir = crashtest.Workspace(t, map[string]string{"a": "old", "b": "old"})
	p := process{round: applies([]workspace.Edit{edit("a", "new"), edit("b", "new")})}
	if !p.killedAt(t, dir, on("after", "apply", journal.Begin)) {
		t.Fatal("the run was not killed")
	}
	freeze(t, dir, "b")
	wantEnd(t, p.end(t, dir), hone.KindDone)
	if diff := cmp.Diff(map[string]string{"a": "new", "b": "old"}, crashtest.Tree(t, dir)); diff != "" {
		t.Errorf("the resumed run's tree (-want +got):\n%s", diff)
	}
	p.replays(t, dir)
}
