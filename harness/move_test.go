package harness

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/harness/runs"
	"hone/history"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/journal/bundle"
	"hone/workspace"
)

// exported returns the bundle of a run.
func exported(t *testing.T, dir, run string) []byte {
	t.Helper()
	home, err := runs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	x, err := runs.OpenExport(t.Context(), home, run)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Collect(t.Context(), func(path string, _ []byte) bool { return path == "secret" }); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := x.Write(t.Context(), &b, "test"); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// imported imports a bundle to a directory.
func imported(t *testing.T, dir string, file []byte) (*runs.Import, error) {
	t.Helper()
	return runs.ReadImport(t.Context(), dir, bytes.NewReader(file), 1<<30)
}

// A user's own run needs to be accepted where it is imported, as it could come with a
// tree that another user made. Elsewhere it stays the user's.
func TestImportOwnRun(t *testing.T) {
	dir, there := crashtest.Workspace(t, map[string]string{"a": "1"}), crashtest.Workspace(t, nil)
	run := finished(t, dir)
	file := exported(t, dir, run)
	i, err := imported(t, there, file)
	if err != nil || i.Before != 0 || i.Header.Run != run || i.Start.Dir != dir {
		t.Fatalf("%+v, %v", i, err)
	}
	if !refused(t, there, run) || refused(t, dir, run) {
		t.Error("an imported run is resumed, or the run is no longer its owner's")
	}
	seen, err := runs.Inspect(t.Context(), there, run)
	if err == nil {
		err = seen.Accept()
	}
	if err != nil || !seen.Imported || refused(t, there, run) {
		t.Errorf("an accepted run: %v", err)
	}
	if i, err = imported(t, there, file); err != nil || i.Before != i.Header.Events || refused(t, there, run) {
		t.Errorf("the same again: %+v, %v", i, err)
	}
}

// What is not imported leaves no run, and a workspace in use is left alone.
func TestImportRefused(t *testing.T) {
	dir, there := crashtest.Workspace(t, map[string]string{"a": "1"}), crashtest.Workspace(t, nil)
	run := finished(t, dir)
	file := exported(t, dir, run)
	for n := 0; n < len(file); n += 1 + len(file)/40 {
		var damage *bundle.DamageError
		if _, err := imported(t, there, file[:n]); !errors.As(err, &damage) {
			t.Errorf("%d of %d bytes: %v", n, len(file), err)
		}
	}
	var limit *bundle.LimitError
	if _, err := runs.ReadImport(t.Context(), there, bytes.NewReader(file), 10); !errors.As(err, &limit) {
		t.Errorf("with a small limit: %v", err)
	}
	w, err := runs.Enter(t.Context(), there, true)
	if err != nil {
		t.Fatal(err)
	}
	var usage *hone.UsageError
	if _, err := imported(t, there, file); !errors.As(err, &usage) || !strings.Contains(usage.Why, "another hone is working here") {
		t.Errorf("while another process has the lock: %v", err)
	}
	if ids, err := w.Home.Runs(); err != nil || len(ids) > 0 {
		t.Errorf("runs: %q, %v", ids, err)
	}
	w.Close()
}

// A bundle without a record that its journal needs is not imported.
func TestImportWithoutRecord(t *testing.T) {
	there := crashtest.Workspace(t, nil)
	lines := journalOf(t, map[string]string{"manifest": strings.Repeat("0", 64)})
	var b bytes.Buffer
	if err := bundle.Write(&b, bundle.Header{}, lines, nil, nil); err != nil {
		t.Fatal(err)
	}
	var damage *bundle.DamageError
	if _, err := imported(t, there, b.Bytes()); !errors.As(err, &damage) || !strings.Contains(err.Error(), "lacks something") {
		t.Errorf("error %v", err)
	}
	if _, err := runs.Inspect(t.Context(), there, "last"); err == nil {
		t.Error("the run was imported")
	}
}

// journalOf returns the events of a run that opens one round.
func journalOf(t *testing.T, opened map[string]string) []journal.Event {
	t.Helper()
	home, err := journal.OpenHome(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	j, err := home.Create("20260102-030405-abcdef")
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for _, e := range []journal.Entry{
		{Type: history.TypeStart, Payload: hone.Start{Version: "v", Loop: "fix", Dir: "/elsewhere", Settings: []byte("{}")}},
		{Type: history.TypeStep, Phase: journal.Record, Step: &journal.Identity{Round: 1, Name: history.StepOpen}, Payload: opened},
	} {
		if _, err := j.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	return j.Events()
}

// TestPlaceHostileTree accepts runs whose trees have paths that no tree has. Nothing is
// written for them, not even for the files beside them.
func TestPlaceHostileTree(t *testing.T) {
	const content = "#!/bin/sh\ntouch /tmp/owned\n"
	name := workspace.Digest([]byte(content))
	for _, path := range []string{"../x", "/etc/x", ".git/hooks/pre-commit", "sub/.git/config", ".GIT/config", ".hone/runs/x", "link/x", "a/../../x", ".hone~x", "dir/"} {
		there := crashtest.Workspace(t, map[string]string{"kept": "kept"})
		if out, err := exec.Command("git", "init", "-q", there).CombinedOutput(); err != nil {
			t.Skipf("SKIPPED: git: %s", out)
		}
		outside := t.TempDir()
		if err := os.Symlink(outside, filepath.Join(there, "link")); err != nil {
			t.Fatal(err)
		}
		entry := func(p string) workspace.Entry {
			return workspace.Entry{Path: p, Kind: workspace.Regular, Mode: 0o755, Size: int64(len(content)), Digest: name}
		}
		text := workspace.Manifest{entry(path), entry("zz")}.Encode()
		manifest := workspace.Digest(text)
		objects := map[string][]byte{name: []byte(content), manifest: text}
		var b bytes.Buffer
		err := bundle.Write(&b, bundle.Header{}, journalOf(t, map[string]string{"manifest": manifest}),
			[]bundle.Object{{Name: name, Size: -1}, {Name: manifest, Size: -1}},
			func(name string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(objects[name])), nil })
		if err != nil {
			t.Fatal(err)
		}
		before := files(t, there)
		if _, err := imported(t, there, b.Bytes()); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if err := placeAccepted(t, there); err == nil {
			t.Errorf("%s: the tree was placed", path)
		}
		if diff := cmp.Diff(before, files(t, there)); diff != "" {
			t.Errorf("%s:\n%s", path, diff)
		}
		if names, _ := os.ReadDir(outside); len(names) > 0 {
			t.Errorf("%s: written outside", path)
		}
		if _, err := os.Lstat(filepath.Join(filepath.Dir(there), "x")); err == nil {
			t.Errorf("%s: written above", path)
		}
	}
}

// placeAccepted accepts the last run of a directory, and places its tree.
func placeAccepted(t *testing.T, dir string) error {
	t.Helper()
	seen, err := runs.Inspect(t.Context(), dir, "last")
	if err == nil {
		err = seen.Accept()
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := runs.Find(t.Context(), dir, "last")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := r.Placement(t.Context(), nil)
	if err == nil {
		err = r.Place(t.Context(), p)
	}
	return err
}

// files returns the contents of the files of a directory, except those of hone.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(p string, d fs.DirEntry, err error) error {
		if p == ".hone" {
			return fs.SkipDir
		}
		if err == nil && d.Type().IsRegular() {
			b, err := os.ReadFile(filepath.Join(dir, p))
			all[p] = string(b)
			return err
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestRelocated(t *testing.T) {
	start := hone.Start{Dir: "/home/a", Settings: []byte(`{"n":9007199254740993,"log":"/home/a/x.log","dir":"/home/a","b":["/home/ab/x","see /home/a"],"s":{"t":""}}`)}
	got := string(runs.Relocated(start, "/w").Settings)
	if want := `{"b":["/home/ab/x","see /home/a"],"dir":"/w","log":"/w/x.log","n":9007199254740993,"s":{"t":""}}`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	for _, dir := range []string{"/home/a", ""} {
		start.Dir = dir
		if got := runs.Relocated(start, "/home/a"); string(got.Settings) != string(start.Settings) {
			t.Errorf("recorded in %q: %s", dir, got.Settings)
		}
	}
}

// An export of a run whose objects were damaged or lost says so, and writes no whole
// bundle.
func TestExportDamaged(t *testing.T) {
	for name, damage := range map[string]func(*journal.Home, string){"changed": crashtest.DamageObject, "lost": crashtest.RemoveObject} {
		dir := crashtest.Workspace(t, map[string]string{"a": strings.Repeat("a long text\n", 1<<16)})
		run := finished(t, dir)
		home, err := runs.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer home.Close()
		x, err := runs.OpenExport(t.Context(), home, run)
		if err != nil {
			t.Fatal(err)
		}
		events, err := home.Read(run)
		if err != nil {
			t.Fatal(err)
		}
		manifest := crashtest.Manifests(events)[0].Manifest
		damage(home, manifest)
		err = x.Collect(t.Context(), func(string, []byte) bool { return false })
		var stop *hone.Stop
		if !errors.As(err, &stop) || !strings.Contains(stop.Next.First, "restore .hone from a backup") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
