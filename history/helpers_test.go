package history_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"hone"
	"hone/check"
	"hone/history"
	"hone/journal"
	"hone/workspace"
)

// process is one process of a program on a workspace: it starts a run or resumes
// the last one, for three rounds.
type process struct {
	ctx   context.Context // nil: never canceled
	round hone.Round
	set   func(*hone.Run) // may be nil
}

// end is how the process ended.
func (p process) end(t testing.TB, dir string) hone.End {
	t.Helper()
	ctx := p.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	home := must(journal.OpenHome(dir))
	defer home.Close()
	lock := must(home.Lock())
	defer lock.Unlock()
	tree := must(workspace.Open(dir, workspace.Options{}))
	defer tree.Close()
	must(0, history.Settle(ctx, home, tree, lock.Last))
	r := &hone.Run{Tree: tree, Journal: openJournal(home), Limits: hone.Limits{Rounds: 3}}
	defer r.Journal.Close()
	must(0, lock.Say(r.Journal.Run()))
	if p.set != nil {
		p.set(r)
	}
	if len(r.Journal.Events()) == 0 {
		must(0, r.Start(hone.Start{Loop: "test", Dir: dir, Limits: r.Limits, Settings: json.RawMessage("{}")}))
	}
	return must(r.Do(ctx, p.round))
}

// openJournal opens the journal of the last run, or that of a new one.
func openJournal(home *journal.Home) *journal.Journal {
	runs := must(home.Runs())
	if len(runs) == 0 {
		return must(home.Create(home.NewRun()))
	}
	return must(home.Open(runs[len(runs)-1]))
}

// must is for what can fail only if the test itself is wrong.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// furnished is a workspace with files in it.
func furnished(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		write(dir, name, content)
	}
	return dir
}

func write(dir, name, content string) {
	path := filepath.Join(dir, filepath.FromSlash(name))
	must(0, os.MkdirAll(filepath.Dir(path), 0o755))
	must(0, os.WriteFile(path, []byte(content), 0o644))
}

func read(dir, name string) string {
	b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		return "no file"
	}
	return string(b)
}

func edit(path, content string) workspace.Edit {
	return workspace.Edit{Path: path, Content: []byte(content)}
}

func wrong(s string) check.Finding { return check.Finding{Source: "test", Text: s} }

// seen is the result of a step.
type seen struct {
	What string `json:"what"`
}
