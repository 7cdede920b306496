package journal_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"hone/journal"
)

// owner returns an owner with a key, who accepted nothing.
func owner(key string) *journal.Owner {
	return &journal.Owner{Key: []byte(key), Accepted: func(string) string { return "" }}
}

// owned returns a home with a run of three events that an owner recorded.
func owned(t testing.TB, o *journal.Owner) *journal.Home {
	h := home(t)
	h.Owner = o
	fill(t, h, "run", 3)
	return h
}

// foreignEvent opens a run and returns its first foreign event; 0 if there is
// none. A run that is refused must stay as it is.
func foreignEvent(t testing.TB, h *journal.Home, run string) int64 {
	t.Helper()
	before, err := os.ReadFile(file(h, run))
	if err != nil {
		t.Fatal(err)
	}
	j, err := h.Open(run)
	if err == nil {
		j.Close()
		return 0
	}
	var foreign *journal.ForeignError
	if !errors.As(err, &foreign) {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(file(h, run)); err != nil || !bytes.Equal(before, after) {
		t.Errorf("a run that was refused changed: %v", err)
	}
	return foreign.Event
}

// rewrite replaces the lines of a journal, and computes the chain again.
func rewrite(t testing.TB, h *journal.Home, run string, lines ...[]byte) {
	t.Helper()
	var all []byte
	head := ""
	for i, line := range lines {
		var e map[string]json.RawMessage
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		for key, value := range map[string]string{"seq": fmt.Sprint(i + 1), "run": `"` + run + `"`, "prev": `"` + head + `"`} {
			line = bytes.Replace(line, fmt.Appendf(nil, `"%s":%s`, key, e[key]), fmt.Appendf(nil, `"%s":%s`, key, value), 1)
		}
		head = fmt.Sprintf("%x", sha256.Sum256(line))
		all = append(append(all, line...), '\n')
	}
	if err := os.WriteFile(file(h, run), all, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Read(run); err != nil {
		t.Fatalf("the chain is wrong: %v", err)
	}
}

func linesOf(t testing.TB, h *journal.Home, run string) (lines [][]byte) {
	t.Helper()
	events, err := h.Read(run)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		lines = append(lines, e.Line())
	}
	return lines
}

// A run can be continued by its owner alone, and everyone can read it.
func TestOwnerOpensOwnRuns(t *testing.T) {
	for name, tt := range map[string]struct {
		by, opens *journal.Owner
		foreign   int64
	}{
		"by its owner":                      {by: owner("a"), opens: owner("a")},
		"by another":                        {by: owner("a"), opens: owner("b"), foreign: 1},
		"without a key":                     {by: owner("a"), opens: owner(""), foreign: 1},
		"recorded without a key":            {by: owner(""), opens: owner("a"), foreign: 1},
		"recorded and opened without a key": {by: owner(""), opens: owner(""), foreign: 1},
		"without owners":                    {by: nil, opens: nil},
		"without an owner":                  {by: owner("a"), opens: nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := owned(t, tt.by)
			h.Owner = tt.opens
			if got := foreignEvent(t, h, "run"); got != tt.foreign {
				t.Errorf("event %d is foreign", got)
			}
			if _, err := h.Read("run"); err != nil {
				t.Error(err)
			}
		})
	}
}

// A chain that was computed again does not make lines the owner's.
func TestOwnerRefusesForgedLines(t *testing.T) {
	for name, tt := range map[string]struct {
		forge   func(own, other [][]byte) [][]byte
		foreign int64
	}{
		"unchanged": {func(own, _ [][]byte) [][]byte { return own }, 0},
		"changed": {func(own, _ [][]byte) [][]byte {
			own[1] = bytes.Replace(own[1], []byte(`"n":1`), []byte(`"n":7`), 1)
			return own
		}, 2},
		"removed":                 {func(own, _ [][]byte) [][]byte { return own[1:] }, 1},
		"removed in the middle":   {func(own, _ [][]byte) [][]byte { return slices.Delete(own, 1, 2) }, 2},
		"swapped":                 {func(own, _ [][]byte) [][]byte { own[1], own[2] = own[2], own[1]; return own }, 2},
		"repeated":                {func(own, _ [][]byte) [][]byte { return append(own, own[2]) }, 4},
		"of another own run":      {func(_, other [][]byte) [][]byte { return other }, 1},
		"added from another run":  {func(own, other [][]byte) [][]byte { return append(own, other[0]) }, 4},
		"added without a MAC":     {func(own, _ [][]byte) [][]byte { return append(own, unsigned(own[2])) }, 4},
		"with a MAC of its prior": {func(own, _ [][]byte) [][]byte { return append(own, withMACOf(unsigned(own[2]), own[1])) }, 4},
		"removed at the end":      {func(own, _ [][]byte) [][]byte { return own[:2] }, 0}, // what no MAC shows
	} {
		t.Run(name, func(t *testing.T) {
			h := owned(t, owner("a"))
			fill(t, h, "other", 3)
			rewrite(t, h, "run", tt.forge(linesOf(t, h, "run"), linesOf(t, h, "other"))...)
			if got := foreignEvent(t, h, "run"); got != tt.foreign {
				t.Errorf("event %d is foreign, want %d", got, tt.foreign)
			}
		})
	}
}

// macLength is the length of the last field of a line.
var macLength = len(`,"mac":"`) + 2*sha256.Size + len(`"}`)

func unsigned(line []byte) []byte { return append(line[:len(line)-macLength:len(line)-macLength], '}') }

func withMACOf(line, other []byte) []byte {
	return append(line[:len(line)-1:len(line)-1], other[len(other)-macLength:]...)
}

// An incomplete last line is removed from an own run, and only from that.
func TestOwnerOfATornRun(t *testing.T) {
	h := owned(t, owner("a"))
	f, err := os.OpenFile(file(h, "run"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"v":1,"mac":"`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	h.Owner = owner("b")
	if foreignEvent(t, h, "run") == 0 {
		t.Error("another owner opened the run")
	}
	h.Owner = owner("a")
	j, err := h.Open("run")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Append(journal.Entry{Type: "test"}); err != nil {
		t.Fatal(err)
	}
	j.Close()
	if got := foreignEvent(t, h, "run"); got != 0 || len(linesOf(t, h, "run")) != 4 {
		t.Errorf("event %d is foreign", got)
	}
}

// A foreign run that was accepted up to an event is continued with own events.
func TestAcceptedRun(t *testing.T) {
	h := owned(t, owner("stranger"))
	foreign := linesOf(t, h, "run")
	events, err := h.Read("run")
	if err != nil {
		t.Fatal(err)
	}
	mine := owner("me")
	mine.Accepted = func(run string) string { return events[2].Hash() }
	h.Owner = mine
	j, err := h.Open("run")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Append(journal.Entry{Type: "test"}); err != nil {
		t.Fatal(err)
	}
	j.Close()
	if got := foreignEvent(t, h, "run"); got != 0 {
		t.Errorf("event %d is foreign", got)
	}
	own := linesOf(t, h, "run")
	rewrite(t, h, "run", append(own, unsigned(own[3]))...)
	if got := foreignEvent(t, h, "run"); got != 5 {
		t.Errorf("event %d is foreign, want 5", got)
	}
	rewrite(t, h, "run", foreign[:2]...)
	if got := foreignEvent(t, h, "run"); got != 1 {
		t.Errorf("event %d is foreign, want 1", got)
	}
}

func TestReplayOfSignedRuns(t *testing.T) {
	for _, o := range []*journal.Owner{nil, owner("a"), owner("")} {
		h := owned(t, o)
		h.Owner = nil
		j, err := h.OpenReplay("run")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := j.Append(journal.Entry{Type: "test"}); err == nil || len(j.Events()) > 0 {
			t.Errorf("a replayed journal has %d events after an append: %v", len(j.Events()), err)
		}
		for len(j.Remaining()) > 0 {
			j.Skip()
		}
		if n := len(j.Events()); n != 3 || j.Close() != nil {
			t.Errorf("%d events were replayed", n)
		}
	}
}

func BenchmarkAppendSigned(b *testing.B) {
	for name, o := range map[string]*journal.Owner{"mac": owner("a"), "plain": nil} {
		b.Run(name, func(b *testing.B) {
			h := home(b)
			h.Owner = o
			j, err := h.Create("run")
			if err != nil {
				b.Fatal(err)
			}
			defer j.Close()
			for b.Loop() {
				if _, err := j.Append(journal.Entry{Type: "test", Payload: payload{Text: "a reply"}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A damaged run is foreign if its first event is, and damaged otherwise.
func TestOwnerOfADamagedRun(t *testing.T) {
	h := owned(t, owner("a"))
	lines := linesOf(t, h, "run")
	damaged := append(bytes.Join(lines, []byte("\n")), "\nx\n\n"...)
	if err := os.WriteFile(file(h, "run"), damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"a": false, "b": true} {
		h.Owner = owner(name)
		_, err := h.Open("run")
		if !errors.As(err, new(*journal.DamageError)) || errors.As(err, new(*journal.ForeignError)) != want {
			t.Errorf("owner %s: %v", name, err)
		}
	}
}
