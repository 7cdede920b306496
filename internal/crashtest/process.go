package crashtest

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/crashtest/waittest"
	"hone/journal"
	"hone/workspace"
)

// Process is one process of a program on a workspace: it opens everything,
// settles the last run, starts a run or resumes the last one, and closes
// everything.
type Process struct {
	// Setup completes the run, which has its tree, its journal and a short
	// retry, and returns its round.
	Setup func(*hone.Run) hone.Round
	Ctx   context.Context  // nil: never canceled
	List  workspace.Lister // nil: the tree is walked
	// Observer is called for the journal's events.
	Observer journal.Observer
	New      bool // starts a run even if there is one
}

// Run returns how the run ended, and the events of its journal. The error is
// that of [history.Settle] or of [hone.Run.Do].
func (p Process) Run(dir string) (hone.End, []journal.Event, error) {
	ctx := p.Ctx
	if ctx == nil {
		ctx = context.Background()
	}
	home := Must(journal.OpenHome(dir))
	defer home.Close()
	lock := lockHome(home)
	defer lock.Unlock()
	tree := Must(workspace.Open(dir, workspace.Options{List: p.List}))
	defer tree.Close()
	if err := history.Settle(ctx, home, tree, lock.LastRun); err != nil {
		return hone.End{}, nil, err
	}
	r := &hone.Run{Tree: tree, Journal: openJournal(home, p.New), Retry: hone.Retry{First: time.Millisecond}}
	defer r.Journal.Close()
	Must(0, lock.SetRun(r.Journal.Run()))
	r.OnStart = func() error {
		if len(r.Journal.Events()) > 0 {
			return nil
		}
		return r.Start(hone.Start{Loop: "test", Dir: dir, Limits: r.Limits, Settings: json.RawMessage("{}")})
	}
	round := p.Setup(r)
	r.Journal.Observe(p.Observer)
	end, err := r.Do(ctx, round)
	return end, r.Journal.Events(), err
}

// End is Run for a process that must succeed. It returns how the run ended.
func (p Process) End(t testing.TB, dir string) hone.End {
	t.Helper()
	end, _, err := p.Run(dir)
	if err != nil {
		t.Fatal(err)
	}
	return end
}

// Undo restores the files of the last run, like the command. It returns the
// paths of files that changed since, and where they are kept.
func Undo(dir string, round int, force bool) (*history.Reversal, map[string]string, error) {
	home := Must(journal.FindHome(dir))
	defer home.Close()
	lock := lockHome(home)
	defer lock.Unlock()
	tree := Must(workspace.Open(dir, workspace.Options{}))
	defer tree.Close()
	Must(0, history.Settle(context.Background(), home, tree, lock.LastRun))
	j := Must(home.Open(Must(home.FindRun("last"))))
	defer j.Close()
	v, err := history.Reverse(context.Background(), j, tree, round, nil)
	if err != nil {
		return nil, nil, err
	}
	kept, err := v.Restore(context.Background(), force)
	return v, kept, err
}

// RunWithState runs tests with a state folder of their own, and returns their status.
func RunWithState(m interface{ Run() int }) int {
	dir := Must(os.MkdirTemp("", "state-*"))
	defer os.RemoveAll(dir)
	Must(0, os.Setenv("XDG_STATE_HOME", dir))
	return m.Run()
}

// Workspace returns a new workspace with these files, by contents. Its path has no
// symbolic links.
func Workspace(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := Must(filepath.EvalSymlinks(t.TempDir()))
	for name, content := range files {
		WriteFile(dir, name, content)
	}
	return dir
}

// LargeWorkspace returns a workspace with that many files, a hundred in each
// directory. They were modified an hour ago.
func LargeWorkspace(t testing.TB, files int) string {
	t.Helper()
	dir := t.TempDir()
	old := time.Now().Add(-time.Hour)
	for i := range files {
		name := fmt.Sprintf("pkg%02d/file%04d", i/100, i)
		WriteFile(dir, name, "")
		Must(0, os.Chtimes(filepath.Join(dir, filepath.FromSlash(name)), old, old))
	}
	return dir
}

// AwaitOldStamps waits until a manifest trusts the change times of the files
// written so far. A test cannot set them.
func AwaitOldStamps() { time.Sleep(2100 * time.Millisecond) }

// RunCommands returns a round of that many commands, each of which changes one file
// of a [LargeWorkspace].
func RunCommands(dir string, commands int) hone.Round {
	type result struct {
		What string `json:"what"`
	}
	return func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		for i := range commands {
			_, err := hone.Once(ctx, r, "work", i, func(context.Context) (result, error) {
				WriteFile(dir, fmt.Sprintf("pkg00/file%04d", i%10), fmt.Sprint(r.Round(), i))
				return result{"done"}, nil
			}, func(context.Context, []string) (result, error) { return result{"interrupted"}, nil })
			if err != nil {
				return nil, err
			}
		}
		return []check.Finding{{Source: "test", Text: "never right"}}, nil
	}
}

// Manifests returns the manifests and trees that events name, in order.
func Manifests(events []journal.Event) (all []history.Opened) {
	for _, e := range events {
		var o history.Opened
		if e.Type != history.TypeStart && e.Decode(&o) == nil && o.Manifest != "" {
			all = append(all, o)
		}
	}
	return all
}

// WriteFile writes a file of a workspace, and the directories above it.
func WriteFile(dir, name, content string) {
	path := filepath.Join(dir, filepath.FromSlash(name))
	Must(0, os.MkdirAll(filepath.Dir(path), 0o755))
	Must(0, os.WriteFile(path, []byte(content), 0o644))
}

// ReadFile returns the contents of a file of a workspace, or "no file".
func ReadFile(dir, name string) string {
	b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		return "no file"
	}
	return string(b)
}

// Must panics if an error occurs that only a wrong test can cause. It does not
// fail the test, so that the panic of a killed process passes through.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// RunProcess is [Process.End] of a process that starts the workspace's only run or
// resumes it.
func RunProcess(t testing.TB, dir string, list workspace.Lister, o journal.Observer, setup func(*hone.Run) hone.Round) hone.End {
	t.Helper()
	return Process{Setup: setup, List: list, Observer: o}.End(t, dir)
}

// lockHome locks the workspace. A child process that another test is just
// starting briefly inherits all open files, so a lock that was released can
// still appear held.
func lockHome(home *journal.Home) *journal.Lock {
	var lock *journal.Lock
	var err error
	waittest.Until(func() bool {
		lock, err = home.Lock()
		return err == nil
	})
	return Must(lock, err)
}

// openJournal opens the journal of the last run, or that of a new one.
func openJournal(home *journal.Home, isNew bool) *journal.Journal {
	runs := Must(home.Runs())
	if len(runs) == 0 || isNew {
		return Must(home.Create(home.NewRun()))
	}
	return Must(home.Open(runs[len(runs)-1]))
}

// RemoveObject removes an object from a home that no process writes.
func RemoveObject(home *journal.Home, object string) {
	rest := [][]byte{}
	for name := range Must(home.Sizes()) {
		if name != object {
			rest = append(rest, Must(home.Get(name)))
		}
	}
	for _, run := range Must(home.Packs()) {
		Must(0, os.Remove(filepath.Join(home.Dir(), "runs", run+".pack")))
	}
	pack := Must(journal.FindHome(home.Workspace())).Pack("rest")
	for _, b := range rest {
		Must(pack.Put(b))
	}
	Must(0, pack.Close())
	home.Reset()
}

// DamageObject changes an object, whose digest is a part of its record.
func DamageObject(home *journal.Home, object string) {
	digest := Must(hex.DecodeString(object))
	for _, run := range Must(home.Packs()) {
		file := filepath.Join(home.Dir(), "runs", run+".pack")
		b := Must(os.ReadFile(file))
		if at := bytes.Index(b, digest); at >= 0 {
			b[at+len(digest)+29] ^= 1
			Must(0, os.WriteFile(file, b, 0o600))
		}
	}
}
