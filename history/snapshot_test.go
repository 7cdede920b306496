package history_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"hone"
	"hone/check"
	"hone/history"
	"hone/journal"
	"hone/workspace"
)

// wide is a workspace of many files that have long been as they are.
func wide(t testing.TB, files int) string {
	t.Helper()
	dir := t.TempDir()
	old := time.Now().Add(-time.Hour)
	for i := range files {
		name := fmt.Sprintf("pkg%02d/file%04d", i/100, i)
		write(dir, name, "")
		must(0, os.Chtimes(filepath.Join(dir, filepath.FromSlash(name)), old, old))
	}
	return dir
}

// settled waits until what was written is old enough for its stamp to be
// trusted: the change time cannot be set.
func settled() { time.Sleep(2100 * time.Millisecond) }

// works is a round of so many commands, each of which changes one file.
func works(dir string, commands int) hone.Round {
	return func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		for i := range commands {
			_, err := hone.Once(ctx, r, "work", i, func(context.Context) (seen, error) {
				write(dir, fmt.Sprintf("pkg00/file%04d", i%10), fmt.Sprint(r.Round(), i))
				return seen{"done"}, nil
			}, func(context.Context, []string) (seen, error) { return seen{"cut off"}, nil })
			if err != nil {
				return nil, err
			}
		}
		return []check.Finding{wrong("never right")}, nil
	}
}

// onRecord are the manifests and trees that a journal names, in order.
func onRecord(events []journal.Event) (all []history.Opened) {
	for _, e := range events {
		var o history.Opened
		if e.Type != "start" && e.Decode(&o) == nil && o.Manifest != "" {
			all = append(all, o)
		}
	}
	return all
}

func TestLastManifest(t *testing.T) {
	dir := must(filepath.EvalSymlinks(wide(t, 3)))
	run := func(in string) string {
		home := must(journal.OpenHome(dir))
		defer home.Close()
		tree := must(workspace.Open(dir, workspace.Options{}))
		defer tree.Close()
		r := &hone.Run{Tree: tree, Journal: must(home.Create(home.NewRun())), Limits: hone.Limits{Rounds: 1}}
		defer r.Journal.Close()
		must(0, r.Start(hone.Start{Loop: "test", Dir: in, Settings: json.RawMessage("{}")}))
		must(r.Do(t.Context(), works(dir, 1)))
		return r.Journal.Run()
	}
	here, elsewhere := run(dir), run(filepath.Dir(dir))
	home := must(journal.FindHome(dir))
	defer home.Close()
	tree := must(workspace.Open(dir, workspace.Options{}))
	defer tree.Close()
	now := must(tree.Manifest(t.Context(), nil))
	if got := history.LastManifest(home, here); got == nil || len(got.Diff(now)) != 0 {
		t.Errorf("got %v, want %v", got, now)
	}
	for name, ref := range map[string]string{"of another folder": elsewhere, "unknown": "20000101-000000-zzzz", "empty": "", "no name": "../x"} {
		if got := history.LastManifest(home, ref); got != nil {
			t.Errorf("%s: got %v", name, got)
		}
	}
	all := onRecord(must(home.Read(here)))
	must(0, os.WriteFile(home.ObjectPath(all[len(all)-1].Manifest), []byte("x"), 0o600))
	if got := history.LastManifest(home, here); got != nil {
		t.Errorf("of a damaged manifest: got %v", got)
	}
	if b, err := os.ReadFile(filepath.Join(home.Dir(), "runs", here+".jsonl")); err != nil {
		t.Error(err)
	} else {
		must(0, os.WriteFile(filepath.Join(home.Dir(), "runs", here+".jsonl"), bytes.Replace(b, []byte("work"), []byte("walk"), 1), 0o600))
	}
	if got := history.LastManifest(home, here); got != nil {
		t.Errorf("of a damaged journal: got %v", got)
	}
}

// BenchmarkReverse is what it takes to find out what a run changed: 200 commands
// in a tree of 20 000 files.
func BenchmarkReverse(b *testing.B) {
	dir := wide(b, 20_000)
	settled()
	process{round: works(dir, 200), set: func(r *hone.Run) { r.Limits.Rounds = 1 }}.end(b, dir)
	home := must(journal.FindHome(dir))
	defer home.Close()
	tree := must(workspace.Open(dir, workspace.Options{}))
	defer tree.Close()
	j := must(home.Open(must(home.Find("last"))))
	defer j.Close()
	size, known := 0, map[string]bool{}
	for _, o := range onRecord(j.Events()) {
		if !known[o.Manifest] {
			known[o.Manifest], size = true, size+len(must(home.Get(o.Manifest)))
		}
	}
	b.Run("reverse", func(b *testing.B) {
		for b.Loop() {
			must(history.Reverse(b.Context(), j, tree, 0, nil))
		}
		b.ReportMetric(float64(size), "manifest-bytes")
	})
	b.Run("look at the tree", func(b *testing.B) {
		all := onRecord(j.Events())
		last := must(history.ReadManifest(all[len(all)-1].Manifest, home.Get))
		for b.Loop() {
			must(tree.Manifest(b.Context(), last))
		}
	})
}
