package journal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hone/internal/crashtest"
	"hone/journal"
)

func home(t testing.TB) *journal.Home {
	t.Helper()
	h, err := journal.OpenHome(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

type payload struct {
	N    int    `json:"n"`
	Text string `json:"text,omitempty"`
}

func fill(t testing.TB, h *journal.Home, run string, n int) {
	t.Helper()
	j, err := h.Create(run)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for i := range n {
		if _, err := j.Append(journal.Entry{Type: "test", Payload: payload{N: i}}); err != nil {
			t.Fatal(err)
		}
	}
}

func file(h *journal.Home, run string) string { return filepath.Join(h.Dir(), "runs", run+".jsonl") }

func TestWhatIsAppendedIsRead(t *testing.T) {
	h := home(t)
	j, err := h.Create("r1")
	if err != nil {
		t.Fatal(err)
	}
	id := journal.Identity{Round: 1, Name: "look"}
	for _, phase := range []journal.Phase{journal.Begin, journal.Record} {
		if _, err := j.Append(journal.Entry{Type: "step", Phase: phase, Step: &id, Input: "in", Payload: payload{7, "<é>\u2028"}, Sync: true}); err != nil {
			t.Fatal(err)
		}
	}
	head := j.Head()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	events, err := h.Read("r1")
	if err != nil {
		t.Fatal(err)
	}
	var p payload
	if err := events[1].Decode(&p); err != nil || p != (payload{7, "<é>\u2028"}) {
		t.Errorf("payload %+v, %v", p, err)
	}
	if e := events[1]; e.Seq != 2 || e.Run != "r1" || *e.Step != id || e.Prev == "" || e.Version != journal.Version {
		t.Errorf("envelope %+v", e)
	}
	j, err = h.Open("r1")
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if j.Head() != head {
		t.Errorf("head %s, was %s", j.Head(), head)
	}
}

func TestTornLastLineIsCutOff(t *testing.T) {
	for name, tail := range map[string]string{
		"half a line":      `{"v":1,"seq":4,"ti`,
		"zeros":            strings.Repeat("\x00", 100) + "\n",
		"a line cut short": `{"v":1,"seq":4` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			h := home(t)
			fill(t, h, "r", 3)
			whole, _ := os.ReadFile(file(h, "r"))
			if err := os.WriteFile(file(h, "r"), append(bytes.Clone(whole), tail...), 0o600); err != nil {
				t.Fatal(err)
			}
			if events, err := h.Read("r"); err != nil || len(events) != 3 {
				t.Fatalf("read: %d events, %v", len(events), err)
			}
			j, err := h.Open("r")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := j.Append(journal.Entry{Type: "test"}); err != nil {
				t.Fatal(err)
			}
			j.Close()
			got, _ := os.ReadFile(file(h, "r"))
			if !bytes.HasPrefix(got, whole) {
				t.Error("earlier lines were changed")
			}
			if events, err := h.Read("r"); err != nil || len(events) != 4 {
				t.Errorf("after the append: %d events, %v", len(events), err)
			}
		})
	}
}

// TestChangedWhileOpen: another program makes the file longer or shorter. The next append fails; what
// was added is removed, and no event follows lines that are missing.
func TestChangedWhileOpen(t *testing.T) {
	for name, c := range map[string]struct {
		by        int64
		continues bool
	}{"longer": {2 << 30, true}, "shorter": {-20, false}} {
		h := home(t)
		fill(t, h, "r", 3)
		j, err := h.Open("r")
		if err != nil {
			t.Fatal(err)
		}
		size, err := h.Size("r")
		if err := errors.Join(err, os.Truncate(file(h, "r"), size+c.by)); err != nil {
			t.Fatal(err)
		}
		if _, err := j.Append(journal.Entry{Type: "test"}); err == nil || !strings.Contains(err.Error(), "another program changed") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := j.Append(journal.Entry{Type: "test"}); (err == nil) != c.continues {
			t.Errorf("%s: the append after that: %v", name, err)
		}
		j.Close()
		want := 2
		if c.continues {
			want = 4
		}
		if events, err := h.Read("r"); err != nil || len(events) != want {
			t.Errorf("%s: %d events, %v", name, len(events), err)
		}
	}
}

// TestLongLine: a line that hone does not write is damage, and readers do not read all of it.
func TestLongLine(t *testing.T) {
	h := home(t)
	fill(t, h, "r", 3)
	if err := os.Truncate(file(h, "r"), 1<<40); err != nil {
		t.Skip("no sparse files: ", err)
	}
	_, readErr := h.Read("r")
	_, openErr := h.Open("r")
	for _, err := range []error{readErr, openErr} {
		if damage := new(journal.DamageError); !errors.As(err, &damage) || damage.Line != 4 {
			t.Errorf("%v", err)
		}
	}
}

func TestDamageIsFound(t *testing.T) {
	edit := func(old, new string) func([]byte) []byte {
		return func(b []byte) []byte { return bytes.Replace(b, []byte(old), []byte(new), 1) }
	}
	lines := func(order ...int) func([]byte) []byte {
		return func(b []byte) []byte {
			all := bytes.SplitAfter(b, []byte("\n"))
			var out []byte
			for _, i := range order {
				out = append(out, all[i]...)
			}
			return out
		}
	}
	for name, c := range map[string]struct {
		damage func([]byte) []byte
		line   int
	}{
		"an edit":          {edit(`"n":1`, `"n":9`), 3},
		"a gap":            {lines(0, 2, 3), 2},
		"a swap":           {lines(0, 2, 1, 3), 2},
		"a line from else": {lines(0, 1, 1, 3), 3},
		"no JSON inside":   {edit(`{"v":1,"seq":2`, `{"v":1 "seq":2`), 2},
		"a newer format":   {edit(`"v":1`, `"v":2`), 1},
		"another's line":   {edit(`"run":"r"`, `"run":"q"`), 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := home(t)
			fill(t, h, "r", 4)
			b, _ := os.ReadFile(file(h, "r"))
			if err := os.WriteFile(file(h, "r"), c.damage(b), 0o600); err != nil {
				t.Fatal(err)
			}
			for what, open := range map[string]func() error{
				"read": func() error { _, err := h.Read("r"); return err },
				"open": func() error { _, err := h.Open("r"); return err },
			} {
				err := open()
				var d *journal.DamageError
				if !errors.As(err, &d) || d.Line != c.line || !strings.Contains(err.Error(), file(h, "r")) {
					t.Errorf("%s: %v, want damage in line %d", what, err, c.line)
				}
			}
		})
	}
}

func TestObjects(t *testing.T) {
	h := home(t)
	j := crashtest.Must(h.Create("r"))
	defer j.Close()
	name, err := j.Put([]byte("contents"))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := j.Put([]byte("contents")); err != nil || again != name {
		t.Errorf("again: %s, %v", again, err)
	}
	if b, err := h.Get(name); err != nil || string(b) != "contents" {
		t.Errorf("get: %q, %v", b, err)
	}
	if path, err := h.KeepFile(name); err != nil || string(crashtest.Must(os.ReadFile(path))) != "contents" {
		t.Errorf("kept in %s: %v", path, err)
	}
	crashtest.DamageObject(h, name)
	if _, err := h.Get(name); err == nil || !strings.Contains(err.Error(), "changed") {
		t.Errorf("a changed object: %v", err)
	}
	for _, bad := range []string{"", "../../../etc/passwd", strings.Repeat("A", 64)} {
		if _, err := h.Get(bad); err == nil {
			t.Errorf("object %q was found", bad)
		}
	}
}

func TestFind(t *testing.T) {
	h := home(t)
	for _, run := range []string{"20260101-000000-aa", "20260101-000000-ab", "20260202-000000-cc"} {
		fill(t, h, run, 1)
	}
	for ref, want := range map[string]string{"last": "20260202-000000-cc", "202602": "20260202-000000-cc", "20260101-000000-aa": "20260101-000000-aa"} {
		if got, err := h.FindRun(ref); err != nil || got != want {
			t.Errorf("%s: %s, %v", ref, got, err)
		}
	}
	for _, ref := range []string{"2026", "", "x"} {
		var n *journal.NotFoundError
		if _, err := h.FindRun(ref); !errors.As(err, &n) {
			t.Errorf("%q: %v", ref, err)
		}
	}
}

func TestRunsSortByTheirTime(t *testing.T) {
	h := home(t)
	var runs []string
	for range 5 {
		runs = append(runs, h.NewRun())
		time.Sleep(2 * time.Millisecond)
	}
	if !slices.IsSorted(runs) {
		t.Errorf("%v", runs)
	}
}

// TestRunsHaveTheLocalTime, as the ids of CodeScribe have it (ruling S1).
func TestRunsHaveTheLocalTime(t *testing.T) {
	before := time.Local
	defer func() { time.Local = before }()
	time.Local = time.FixedZone("far east", 9*60*60)
	h, at := home(t), time.Now()
	if got, err := time.ParseInLocation("20060102-150405", h.NewRun()[:15], time.Local); err != nil || got.Before(at.Truncate(time.Second)) || got.After(time.Now()) {
		t.Errorf("%v at %v, %v", got, at, err)
	}
}

// TestRunsAfterTheClockWasSetBack: "last" is the run started last, even if the
// id of an earlier run has a later time.
func TestRunsAfterTheClockWasSetBack(t *testing.T) {
	h := home(t)
	fill(t, h, "29991231-235959-fffe00", 1)
	for range 3 {
		run := h.NewRun()
		fill(t, h, run, 1)
		if last, err := h.FindRun("last"); err != nil || last != run {
			t.Errorf("last is %s, not %s (%v)", last, run, err)
		}
	}
}

// TestPipes: a pipe in place of a file is an error and does not block.
func TestPipes(t *testing.T) {
	h := home(t)
	fill(t, h, "r", 1)
	for _, path := range []string{file(h, "r"), filepath.Join(h.Dir(), "lock")} {
		if err := errors.Join(os.RemoveAll(path), os.Mkdir(path, 0o700)); err != nil {
			t.Fatal(err)
		}
		if mkfifo, err := exec.LookPath("mkfifo"); err == nil {
			if err := errors.Join(os.Remove(path), exec.Command(mkfifo, path).Run()); err != nil {
				t.Fatal(err)
			}
		}
	}
	follow := func() (err error) {
		for _, err = range h.Follow(t.Context(), "r") {
			break
		}
		return err
	}
	for what, open := range map[string]func() error{
		"read":   func() error { _, err := h.Read("r"); return err },
		"open":   func() error { _, err := h.Open("r"); return err },
		"follow": follow,
		"lock":   func() error { _, err := h.Lock(); return err },
	} {
		if err := open(); err == nil || !strings.Contains(err.Error(), "is not a regular file: move it away") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestHomeIgnoresItselfAndFollowsNoLink(t *testing.T) {
	h := home(t)
	if b, err := os.ReadFile(filepath.Join(h.Dir(), ".gitignore")); err != nil || string(b) != "*\n" {
		t.Errorf(".gitignore: %q, %v", b, err)
	}
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, journal.HomeName)); err != nil {
		t.Skip("no symlinks here:", err)
	}
	if _, err := journal.OpenHome(dir); err == nil {
		t.Error("a symlink in place of .hone was followed")
	}
	if left, _ := os.ReadDir(outside); len(left) > 0 {
		t.Errorf("something was written outside: %v", left)
	}
}

func TestOneLockAWorkspace(t *testing.T) {
	h := home(t)
	l, err := h.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.SetRun("r1"); err != nil {
		t.Fatal(err)
	}
	var held *journal.LockedError
	if _, err := h.Lock(); !errors.As(err, &held) || held.Run != "r1" {
		t.Errorf("a second lock: %v", err)
	}
	if run, ok := h.LockedRun(); !ok || run != "r1" {
		t.Errorf("holder: %s, %v", run, ok)
	}
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	l, err = h.Lock()
	if err != nil || l.LastRun != "r1" {
		t.Fatalf("after the lock was released: %v, %v", l, err)
	}
	l.Unlock()
	if _, ok := h.LockedRun(); ok {
		t.Error("a released lock is still held")
	}
}

func TestFollow(t *testing.T) {
	h := home(t)
	j, err := h.Create("r")
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := j.Append(journal.Entry{Type: "test", Payload: payload{N: 0}}); err != nil {
		t.Fatal(err)
	}
	n := 0
	for e, err := range h.Follow(ctx, "r") {
		var p payload
		if err != nil || e.Decode(&p) != nil || p.N != n {
			t.Fatalf("event %d: %+v, %v", n, e, err)
		}
		if n++; n == 5 {
			break
		}
		if _, err := j.Append(journal.Entry{Type: "test", Payload: payload{N: n}}); err != nil {
			t.Fatal(err)
		}
	}
	if n != 5 {
		t.Errorf("%d events were followed", n)
	}
}

func TestPayloadMustBeAnObject(t *testing.T) {
	h := home(t)
	j, err := h.Create("r")
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for _, bad := range []any{[]int{1}, "text", 3} {
		if _, err := j.Append(journal.Entry{Type: "test", Payload: bad}); err == nil {
			t.Errorf("payload %v was accepted", bad)
		}
	}
	if _, err := j.Append(journal.Entry{Type: "test", Payload: struct{}{}}); err != nil {
		t.Errorf("an empty payload: %v", err)
	}
}

func FuzzReadNeverPanics(f *testing.F) {
	h := home(f)
	fill(f, h, "r", 3)
	good, _ := os.ReadFile(file(h, "r"))
	f.Add(good)
	f.Add([]byte("{}\n"))
	f.Add([]byte("\n\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(file(h, "r"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		events, err := h.Read("r")
		if err != nil {
			return
		}
		for _, e := range events {
			if !json.Valid(e.Line()) {
				t.Errorf("event %d is not JSON", e.Seq)
			}
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	for name, sync := range map[string]bool{"without fsync": false, "with fsync": true} {
		b.Run(name, func(b *testing.B) {
			j, err := home(b).Create("r")
			if err != nil {
				b.Fatal(err)
			}
			defer j.Close()
			p := payload{Text: strings.Repeat("x", 500)}
			for b.Loop() {
				if _, err := j.Append(journal.Entry{Type: "test", Payload: p, Sync: sync}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
