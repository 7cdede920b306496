package hone_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/check"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/model"
	"hone/workspace"
)

// replay replays the last run in a scratch tree, which it returns.
func (p process) replay(t testing.TB, dir string) (hone.Replayed, string, error) {
	t.Helper()
	return p.replayWith(t, dir, nil)
}

// replayWith is replay with a lister of the scratch tree; nil lists all files.
func (p process) replayWith(t testing.TB, dir string, list workspace.Lister) (hone.Replayed, string, error) {
	t.Helper()
	home := must(journal.FindHome(dir))
	defer home.Close()
	scratch := t.TempDir()
	tree := must(workspace.Open(scratch, workspace.Options{List: list, Scratch: true}))
	defer tree.Close()
	j, err := home.OpenReplay(must(home.FindRun("last")))
	if err != nil {
		return hone.Replayed{}, scratch, err
	}
	r := &hone.Run{Tree: tree, Journal: j, Limits: hone.Limits{Rounds: 3}}
	if p.set != nil {
		p.set(r)
	}
	done, err := r.Replay(context.Background(), p.round)
	return done, scratch, err
}

// replays compares a run with its replay: the tree must match, and nothing may
// be unexplained.
func (p process) replays(t testing.TB, dir string) hone.Replayed {
	t.Helper()
	before := crashtest.Tree(t, dir)
	done, scratch, err := p.replay(t, dir)
	if err != nil {
		t.Fatalf("the replay is another run: %v", err)
	}
	if len(done.Unexplained)+len(done.Lost) > 0 {
		t.Errorf("not explained: %q, lost: %q", done.Unexplained, done.Lost)
	}
	if diff := cmp.Diff(crashtest.Tree(t, dir), crashtest.Tree(t, scratch)); diff != "" && !done.Open {
		t.Errorf("the scratch tree (-run +replay):\n%s", diff)
	}
	if diff := cmp.Diff(before, crashtest.Tree(t, dir)); diff != "" {
		t.Errorf("the replay changed the workspace:\n%s", diff)
	}
	return done
}

// everything is a run with a step of every kind, a question and a check.
func everything(dir string, m model.Model) process {
	return process{round: everyKind(dir, m), set: func(r *hone.Run) {
		r.Human = hone.Always{}
		r.Rules.Approve = []string{"sub/**"}
		r.Check = func(context.Context) ([]check.Finding, error) {
			b, err := os.ReadFile(filepath.Join(dir, "a"))
			if string(b) == "two" {
				return nil, err
			}
			return []check.Finding{{Source: "check", Text: "a must be two"}}, err
		}
	}}
}

func TestReplay(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"a": "zero", "gone": "soon", "kept": "kept"})
	p := everything(dir, speaker(says("one"), says("two")))
	wantEnd(t, p.end(t, dir), hone.KindDone)
	journalBefore := journalOf(t, dir)
	done := p.replays(t, dir)
	if done.Rounds != 2 || done.Requests != 2 || done.Edits != 5 || done.Trees == 0 || done.Open {
		t.Errorf("%+v", done)
	}
	if !bytes.Equal(journalBefore, journalOf(t, dir)) {
		t.Error("the replay wrote into the journal")
	}
}

// The cost of a replay is that of the changes: it lists the scratch tree once,
// however many snapshots the run has.
func TestReplayListsTheTreeOnce(t *testing.T) {
	dir := crashtest.LargeWorkspace(t, 40)
	p := process{round: crashtest.RunCommands(dir, 10)}
	p.end(t, dir)
	listings := 0
	done, _, err := p.replayWith(t, dir, countedLister(&listings))
	if err != nil || done.Trees < 30 || listings != 1 {
		t.Errorf("%d snapshots, %d listings, %v", done.Trees, listings, err)
	}
}

// countedLister counts its calls, and lists all files.
func countedLister(calls *int) workspace.Lister {
	return func(context.Context, string) (workspace.Listing, error) {
		*calls++
		return workspace.Listing{}, workspace.ErrNoRepository
	}
}

// An edit that changed other files than its record says is found in the end.
func TestReplayFindsOtherChanges(t *testing.T) {
	dir := crashtest.LargeWorkspace(t, 10)
	p := process{round: crashtest.RunCommands(dir, 2)}
	p.end(t, dir)
	_, _, err := p.replayWith(t, dir, func(_ context.Context, scratch string) (workspace.Listing, error) {
		crashtest.WriteFile(scratch, "pkg00/other", "")
		return workspace.Listing{}, workspace.ErrNoRepository
	})
	if err == nil || !strings.Contains(err.Error(), "pkg00/other") {
		t.Errorf("the error is %v", err)
	}
}

// BenchmarkReplay replays a run of 30 commands in a tree of 5 000 files.
func BenchmarkReplay(b *testing.B) {
	dir := crashtest.LargeWorkspace(b, 5000)
	crashtest.AwaitOldStamps()
	p := process{round: crashtest.RunCommands(dir, 10)}
	p.end(b, dir)
	listings := 0
	for b.Loop() {
		if _, _, err := p.replayWith(b, dir, countedLister(&listings)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(listings)/float64(b.N), "listings/op")
}

// A run that was killed anywhere and resumed can be replayed.
func TestReplayAfterEveryCrash(t *testing.T) {
	points := 0
	count := everything(t.TempDir(), speaker(says("one"), says("two")))
	count.observe = journal.Observer{Before: func(journal.Entry) { points++ }, After: func(journal.Event) { points++ }}
	dir := crashtest.Workspace(t, map[string]string{"a": "zero", "gone": "soon", "kept": "kept"})
	count.round = everyKind(dir, speaker(says("one"), says("two")))
	count.end(t, dir)
	for point := range points {
		if !crashtest.IsSampled(point, points) {
			continue
		}
		dir := crashtest.Workspace(t, map[string]string{"a": "zero", "gone": "soon", "kept": "kept"})
		m := speaker(says("one"), says("two"), says("two"))
		p := everything(dir, m)
		n := 0
		p.killedAt(t, dir, func(string, journal.Type, journal.Phase) bool { n++; return n > point })
		if !strings.Contains(string(journalOf(t, dir)), `"type":"start"`) {
			continue
		}
		if strings.Contains(string(journalOf(t, dir)), `"manifest"`) {
			p.replays(t, dir) // as far as it came
		}
		p = everything(dir, m)
		crashtest.WriteFile(dir, "theirs", "meanwhile")
		p.end(t, dir)
		p.replays(t, dir)
	}
}

// A replay finds a changed line of a journal, even if its author computed the
// chain again.
func TestReplayFindsForgeries(t *testing.T) {
	for name, forge := range map[string]func([][]byte) [][]byte{
		"an edited line": func(lines [][]byte) [][]byte {
			return edited(lines, `"type":"reply"`, `"finish":"stop"`, `"finish":"length"`)
		},
		"an edited finding, the chain made anew": func(lines [][]byte) [][]byte {
			return chained(edited(lines, `"type":"check","phase":"record"`, "a must be two", "a must be one"))
		},
		"a decision, the chain made anew": func(lines [][]byte) [][]byte {
			return chained(edited(lines, `"type":"round"`, `"decision":"continue"`, `"decision":"stop"`))
		},
		"an edit that was made, the chain made anew": func(lines [][]byte) [][]byte {
			return chained(edited(lines, `"type":"change"`, `"verdict":"allow"`, `"verdict":"deny"`))
		},
		"an ask, cut out, the chain made anew": func(lines [][]byte) [][]byte {
			return chained(slices.DeleteFunc(lines, func(l []byte) bool { return bytes.Contains(l, []byte(`"type":"reply"`)) }))
		},
		"a step that the loop does not take, the chain made anew": func(lines [][]byte) [][]byte {
			i := slices.IndexFunc(lines, func(l []byte) bool { return bytes.Contains(l, []byte(`"type":"step","phase":"record"`)) })
			return chained(slices.Insert(lines, i+1, bytes.Replace(lines[i], []byte(`"name":"open"`), []byte(`"name":"another"`), 1)))
		},
		"a line that is cut out": func(lines [][]byte) [][]byte { return append(lines[:4], lines[5:]...) },
		"two that are swapped": func(lines [][]byte) [][]byte {
			lines[5], lines[6] = lines[6], lines[5]
			return lines
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := crashtest.Workspace(t, map[string]string{"a": "zero", "gone": "soon"})
			p := everything(dir, speaker(says("one"), says("two")))
			p.end(t, dir)
			rewrite(t, dir, forge)
			if _, _, err := p.replay(t, dir); err == nil {
				t.Error("nobody noticed")
			} else {
				t.Log(err)
			}
		})
	}
}

// A round that reads a record, and so does not take its step again, replays.
func TestReplayOfWhatIsDecidedOnce(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"a": "zero"})
	p := process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		_, ok, err := hone.First[seen](r, "once")
		if err == nil && !ok {
			_, err = hone.Step(ctx, r, "once", nil, func(context.Context) (seen, error) { return seen{"decided"}, nil })
		}
		if r.Round() < 2 {
			return []check.Finding{wrong("one more round")}, err
		}
		return nil, err
	}}
	wantEnd(t, p.end(t, dir), hone.KindDone)
	if done := p.replays(t, dir); done.Rounds != 2 || done.Open {
		t.Errorf("%+v", done)
	}
}

// A loop that asks something else does not match the run.
func TestReplayOfAnotherLoop(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"a": "zero"})
	p := process{round: asks(editor(speaker(says("one"))), "a question")}
	p.end(t, dir)
	p.round = asks(editor(nil), "another")
	if _, _, err := p.replay(t, dir); err == nil || !strings.Contains(err.Error(), "was recorded for input") {
		t.Errorf("error %v", err)
	}
	p.round = finds(wrong("not so"))
	if _, _, err := p.replay(t, dir); err == nil || !strings.Contains(err.Error(), "differs: recorded") {
		t.Errorf("error %v", err)
	}
}

// edited changes the first line that contains a mark.
func edited(lines [][]byte, mark, from, to string) [][]byte {
	for i, l := range lines {
		if bytes.Contains(l, []byte(mark)) && bytes.Contains(l, []byte(from)) {
			lines[i] = bytes.Replace(l, []byte(from), []byte(to), 1)
			return lines
		}
	}
	panic("the journal has no such line")
}

// chained computes the chain again, as an author who knows how can.
func chained(lines [][]byte) [][]byte {
	head := ""
	for i, l := range lines {
		var e map[string]json.RawMessage
		must(0, json.Unmarshal(l, &e))
		l = bytes.Replace(l, []byte(`"prev":`+string(e["prev"])), []byte(`"prev":"`+head+`"`), 1)
		lines[i] = bytes.Replace(l, []byte(`"seq":`+string(e["seq"])+","), []byte(fmt.Sprintf(`"seq":%d,`, i+1)), 1)
		head = fmt.Sprintf("%x", sha256.Sum256(lines[i]))
	}
	return lines
}

// journalOf returns the bytes of the last run's journal.
func journalOf(t testing.TB, dir string) []byte {
	t.Helper()
	return must(os.ReadFile(journalPath(dir)))
}

func journalPath(dir string) string {
	files := must(filepath.Glob(filepath.Join(dir, ".hone", "runs", "*.jsonl")))
	return files[len(files)-1]
}

// rewrite changes the lines of the last run's journal.
func rewrite(t testing.TB, dir string, change func([][]byte) [][]byte) {
	t.Helper()
	lines := bytes.Split(bytes.TrimSuffix(journalOf(t, dir), []byte("\n")), []byte("\n"))
	must(0, os.WriteFile(journalPath(dir), append(bytes.Join(change(lines), []byte("\n")), '\n'), 0o600))
}
