package history_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hone"
	"hone/history"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/workspace"
)

func TestLastManifest(t *testing.T) {
	dir := crashtest.Must(filepath.EvalSymlinks(crashtest.LargeWorkspace(t, 3)))
	run := func(in string) string {
		home := crashtest.Must(journal.OpenHome(dir))
		defer home.Close()
		tree := crashtest.Must(workspace.Open(dir, workspace.Options{}))
		defer tree.Close()
		r := &hone.Run{Tree: tree, Journal: crashtest.Must(home.Create(home.NewRun())), Limits: hone.Limits{Rounds: 1}}
		defer r.Journal.Close()
		crashtest.Must(0, r.Start(hone.Start{Loop: "test", Dir: in, Settings: json.RawMessage("{}")}))
		crashtest.Must(r.Do(t.Context(), crashtest.RunCommands(dir, 1)))
		return r.Journal.Run()
	}
	here, elsewhere := run(dir), run(filepath.Dir(dir))
	home := crashtest.Must(journal.FindHome(dir))
	defer home.Close()
	tree := crashtest.Must(workspace.Open(dir, workspace.Options{}))
	defer tree.Close()
	now := crashtest.Must(tree.Manifest(t.Context(), nil))
	if got := history.LastManifest(home, here); got == nil || len(got.Diff(now)) != 0 {
		t.Errorf("got %v, want %v", got, now)
	}
	for name, ref := range map[string]string{"of another folder": elsewhere, "unknown": "20000101-000000-zzzz", "empty": "", "no name": "../x"} {
		if got := history.LastManifest(home, ref); got != nil {
			t.Errorf("%s: got %v", name, got)
		}
	}
	all := crashtest.Manifests(crashtest.Must(home.Read(here)))
	crashtest.DamageObject(home, all[len(all)-1].Manifest)
	if got := history.LastManifest(home, here); got != nil {
		t.Errorf("of a damaged manifest: got %v", got)
	}
	if b, err := os.ReadFile(filepath.Join(home.Dir(), "runs", here+".jsonl")); err != nil {
		t.Error(err)
	} else {
		crashtest.Must(0, os.WriteFile(filepath.Join(home.Dir(), "runs", here+".jsonl"), bytes.Replace(b, []byte("work"), []byte("walk"), 1), 0o600))
	}
	if got := history.LastManifest(home, here); got != nil {
		t.Errorf("of a damaged journal: got %v", got)
	}
}

// Files that are read at once and files that are read in parts are stored alike, and only
// those that differ.
func TestTakeManifest(t *testing.T) {
	dir := crashtest.Must(filepath.EvalSymlinks(t.TempDir()))
	long := strings.Repeat("a long file\n", 1<<14)
	files := map[string]string{"small": "1", "long": long, "same": "1", "empty": "", "known": "known", "key": "a key"}
	for name, text := range files {
		crashtest.Must(0, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	home := crashtest.Must(journal.OpenHome(dir))
	defer home.Close()
	tree := crashtest.Must(workspace.Open(dir, workspace.Options{}))
	defer tree.Close()
	j := crashtest.Must(home.Create("r"))
	defer j.Close()
	before := workspace.Manifest{{Path: "known", Kind: workspace.Regular, Digest: workspace.Digest([]byte("known"))}}
	m, err := history.TakeManifest(t.Context(), tree, j, before, nil, func(e workspace.Entry, contents []byte) bool {
		if contents != nil && string(contents) != files[e.Path] {
			t.Errorf("%s has other contents", e.Path)
		}
		return e.Path == "key"
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := m.Diff(crashtest.Must(tree.Manifest(t.Context(), nil))); len(diff) > 0 {
		t.Errorf("the manifest differs: %v", diff)
	}
	for name, text := range files {
		b, err := home.Get(workspace.Digest([]byte(text)))
		if left := name == "known" || name == "key"; left != errors.Is(err, fs.ErrNotExist) || !left && string(b) != text {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
	again, err := history.TakeManifest(t.Context(), tree, j, m, m, func(workspace.Entry, []byte) bool { t.Error("nothing differs"); return true })
	if err != nil || len(m.Diff(again)) > 0 {
		t.Errorf("again: %v", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := history.TakeManifest(canceled, tree, j, nil, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// BenchmarkReverse finds out what a run changed: 200 commands in a tree of 20
// 000 files.
func BenchmarkReverse(b *testing.B) {
	dir := crashtest.LargeWorkspace(b, 20_000)
	crashtest.AwaitOldStamps()
	process{round: crashtest.RunCommands(dir, 200), set: func(r *hone.Run) { r.Limits.Rounds = 1 }}.end(b, dir)
	home := crashtest.Must(journal.FindHome(dir))
	defer home.Close()
	tree := crashtest.Must(workspace.Open(dir, workspace.Options{}))
	defer tree.Close()
	j := crashtest.Must(home.Open(crashtest.Must(home.FindRun("last"))))
	defer j.Close()
	size, known := 0, map[string]bool{}
	for _, o := range crashtest.Manifests(j.Events()) {
		if !known[o.Manifest] {
			known[o.Manifest], size = true, size+len(crashtest.Must(home.Get(o.Manifest)))
		}
	}
	b.Run("reverse", func(b *testing.B) {
		for b.Loop() {
			crashtest.Must(history.Reverse(b.Context(), j, tree, 0, nil))
		}
		b.ReportMetric(float64(size), "manifest-bytes")
	})
	b.Run("look at the tree", func(b *testing.B) {
		all := crashtest.Manifests(j.Events())
		last := crashtest.Must(history.ReadManifest(all[len(all)-1].Manifest, home.Get))
		for b.Loop() {
			crashtest.Must(tree.Manifest(b.Context(), last))
		}
	})
}
