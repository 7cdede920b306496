package hone_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/check"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/workspace"
)

// manifestOf reads a manifest of the last run.
func manifestOf(t testing.TB, dir, name string) workspace.Manifest {
	t.Helper()
	home := must(journal.FindHome(dir))
	defer home.Close()
	return must(workspace.ReadManifest(name, home.Get)).Manifest
}

// Manifests of a run take little room, also those of a resumed process and of undo, and each
// is the recorded tree.
func TestManifestsAreSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: thousands of files in one goroutine")
	}
	dir := crashtest.LargeWorkspace(t, 100)
	crashtest.AwaitOldStamps()
	p := process{round: crashtest.RunCommands(dir, 30)}
	for range 3 {
		begun := 0
		p.killedAt(t, dir, func(when string, typ journal.Type, phase journal.Phase) bool {
			if when == "after" && typ == "command" && phase == journal.Begin {
				begun++
			}
			return begun == 25
		})
	}
	p.end(t, dir)
	all := crashtest.Manifests(events(t, dir))
	for _, o := range all {
		if o.Tree != "" && manifestOf(t, dir, o.Manifest).Digest() != o.Tree {
			t.Errorf("manifest %.12s is another tree", o.Manifest)
		}
	}
	if len(all) < 180 {
		t.Errorf("there are only %d looks", len(all))
	}
	if _, _, err := undo(t, dir, 0, false); err != nil {
		t.Fatal(err)
	}
	if crashtest.ReadFile(dir, "pkg00/file0003") != "" {
		t.Error("not undone")
	}
	whole, stored := 0, int64(0)
	for _, o := range crashtest.Manifests(events(t, dir)) {
		whole += len(object(t, dir, o.Manifest))
	}
	for _, pack := range must(filepath.Glob(filepath.Join(dir, ".hone", "runs", "*.pack"))) {
		stored += must(os.Stat(pack)).Size()
	}
	if stored == 0 || stored > int64(whole)/10 {
		t.Errorf("the manifests, of %d bytes, take %d with all else", whole, stored)
	}
}

// A run with many commands can be undone, replayed and killed like one with
// few.
func TestManyCommands(t *testing.T) {
	dir := crashtest.LargeWorkspace(t, 60)
	before := crashtest.Tree(t, dir)
	p := process{round: crashtest.RunCommands(dir, 25)}
	p.end(t, dir)
	p.replays(t, dir)
	want := crashtest.Tree(t, dir)
	for _, round := range []int{1, 3, 2, 0, 3} {
		if _, _, err := undo(t, dir, round, false); err != nil {
			t.Fatalf("to round %d: %v", round, err)
		}
		if round > 0 && crashtest.ReadFile(dir, "pkg00/file0004") != fmt.Sprint(round, 24) {
			t.Errorf("in round %d it is %q", round, crashtest.ReadFile(dir, "pkg00/file0004"))
		}
		if diff := cmp.Diff(before, crashtest.Tree(t, dir)); diff != "" && round == 0 {
			t.Errorf("(-before +undone):\n%s", diff)
		}
	}
	if diff := cmp.Diff(want, crashtest.Tree(t, dir)); diff != "" {
		t.Errorf("(-after the run +undone again):\n%s", diff)
	}
}

// An unreadable manifest is an error that says so, and nothing is undone.
func TestUndoWithoutManifest(t *testing.T) {
	for name, damage := range map[string]func(home *journal.Home, object string){
		"missing": crashtest.RemoveObject,
		"damaged": crashtest.DamageObject,
	} {
		t.Run(name, func(t *testing.T) {
			dir := crashtest.LargeWorkspace(t, 40)
			process{round: crashtest.RunCommands(dir, 5)}.end(t, dir)
			home := must(journal.FindHome(dir))
			damage(home, crashtest.Manifests(events(t, dir))[4].Manifest)
			home.Close()
			want := crashtest.Tree(t, dir)
			_, _, err := undo(t, dir, 0, false)
			if err == nil || !strings.Contains(err.Error(), "manifest ") || name == "missing" && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the error is %v", err)
			}
			if diff := cmp.Diff(want, crashtest.Tree(t, dir)); diff != "" {
				t.Errorf("something was changed:\n%s", diff)
			}
		})
	}
}

// A run stops if its objects were removed, rather than record events that name them.
func TestObjectsAreRemoved(t *testing.T) {
	dir := crashtest.LargeWorkspace(t, 40)
	end, err := process{round: func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
		findings, err := crashtest.RunCommands(dir, 3)(ctx, r, prior)
		must(0, os.RemoveAll(filepath.Join(dir, journal.HomeName, "runs", r.Journal.Run()+".pack")))
		return findings, err
	}}.live(t, dir)
	if end.Kind != hone.KindFailed || !strings.Contains(end.Why, ".pack") {
		t.Errorf("the run ended with %v: %v", end, err)
	}
}

// The loop's own files are never restored, so their contents are not stored.
func TestOwnContents(t *testing.T) {
	dir := crashtest.LargeWorkspace(t, 1)
	crashtest.WriteFile(dir, "logs/query-1.txt", "all that was sent")
	crashtest.WriteFile(dir, "pkg00/theirs", "contents")
	process{round: finds(), set: func(r *hone.Run) {
		r.Own = func(path string) bool { return strings.HasPrefix(path, "logs/") }
	}}.end(t, dir)
	home := must(journal.FindHome(dir))
	defer home.Close()
	for text, want := range map[string]bool{"all that was sent": false, "contents": true} {
		if home.Has(workspace.Digest([]byte(text))) != want {
			t.Errorf("%q: stored is not %v", text, want)
		}
	}
}

// A run starts from what the previous run knew of the tree, and stores what
// that one did not.
func TestBefore(t *testing.T) {
	dir := crashtest.LargeWorkspace(t, 40)
	crashtest.WriteFile(dir, "pkg00/file0007", "contents")
	crashtest.AwaitOldStamps()
	asked, run := 0, ""
	from := func(last *workspace.Manifest) process {
		return process{fresh: true, round: finds(), set: func(r *hone.Run) {
			r.Largest, run = 3, r.Journal.Run()
			if last == nil {
				return
			}
			r.Largest = 0
			r.Before = func() workspace.Manifest { asked++; return *last }
		}}
	}
	from(nil).end(t, dir)
	home := must(journal.FindHome(dir))
	defer home.Close()
	all := crashtest.Manifests(must(home.Read(run)))
	last := manifestOf(t, dir, all[len(all)-1].Manifest)
	digest := workspace.Digest([]byte("contents"))
	if home.Has(digest) {
		t.Fatal("the first run kept it")
	}
	forged := bytes.ReplaceAll(last.Encode(), []byte(workspace.Digest(nil)), []byte(digest))
	mark := must(workspace.DecodeManifest(forged))
	crashtest.WriteFile(dir, "pkg00/file0001", "changed")
	none := workspace.Manifest(nil)
	for i, name := range []string{"last", "mark", "none"} { // the first keeps what the second says is there
		asked = 0
		from([]*workspace.Manifest{&last, &mark, &none}[i]).end(t, dir)
		if asked != 1 {
			t.Errorf("%s: asked %d times", name, asked)
		}
		got := manifestOf(t, dir, crashtest.Manifests(must(home.Read(run)))[0].Manifest)
		if name == "mark" && got[2].Digest != digest || name != "mark" && got[2].Digest != workspace.Digest(nil) {
			t.Errorf("%s: a file that was not touched has digest %s", name, got[2].Digest)
		}
		if got[1].Digest != workspace.Digest([]byte("changed")) {
			t.Errorf("%s: a file that was changed has digest %s", name, got[1].Digest)
		}
		if !home.Has(digest) || !home.Has(got[1].Digest) {
			t.Errorf("%s: contents are not kept", name)
		}
	}
}
