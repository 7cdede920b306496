package journal_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"hone/journal"
)

// imported returns a run of a home of its own, with the given number of events.
func imported(t testing.TB, o *journal.Owner, events int) []journal.Event {
	t.Helper()
	h := home(t)
	h.Owner = o
	fill(t, h, "20260102-030405-abcdef", events)
	all, err := h.Read("20260102-030405-abcdef")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// An imported run must be accepted, also if its owner recorded it; what the owner
// records afterwards need not be.
func TestImport(t *testing.T) {
	mine := owner("mine")
	events := imported(t, mine, 3)
	run := events[0].Run
	h := home(t)
	mine.Imported = func(run string) string { return h.Imported(run).Head }
	h.Owner = mine
	if err := h.Import(events[:2], "c0ffee"); err != nil {
		t.Fatal(err)
	}
	if got := h.Imported(run); got.Head != events[1].Hash() || got.Base != "c0ffee" || got.Placed {
		t.Errorf("imported: %+v", got)
	}
	if got := foreignEvent(t, h, run); got != 1 {
		t.Errorf("an imported run is foreign from event %d on, want 1", got)
	}
	if err := h.SetPlaced(run); err != nil || !h.Imported(run).Placed || h.Imported(run).Base != "c0ffee" {
		t.Errorf("placed: %+v, %v", h.Imported(run), err)
	}
	accepted := events[1].Hash()
	mine.Accepted = func(string) string { return accepted }
	if got := foreignEvent(t, h, run); got != 0 {
		t.Errorf("an accepted run is foreign from event %d on", got)
	}
	if err := h.Import(events, ""); err != nil {
		t.Fatal(err)
	}
	if h.Imported(run).Placed {
		t.Error("a run that was continued elsewhere is still placed")
	}
	if got := foreignEvent(t, h, run); got != 3 {
		t.Errorf("a run that was continued elsewhere is foreign from event %d on, want 3", got)
	}
	accepted = events[2].Hash()
	j, err := h.Open(run)
	if err == nil {
		_, err = j.Append(journal.Entry{Type: "step"})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if got := foreignEvent(t, h, run); got != 0 {
		t.Errorf("own events after imported ones are foreign from event %d on", got)
	}
	whole, err := os.ReadFile(file(h, run))
	if err != nil || !bytes.HasPrefix(whole, journal.Lines(events)) {
		t.Errorf("the journal is not the imported one: %v", err)
	}
}

// Nothing is written for a run whose id could name another file.
func TestImportNames(t *testing.T) {
	h := home(t)
	for _, run := range []string{"run", "../../x", "20260102-030405-abcdef/../x", "20260102-030405-", "", "20260102-030405-ABCDEF", "con"} {
		if journal.ValidRun(run) {
			t.Errorf("%q is valid", run)
		}
	}
	if err := h.Import(nil, ""); err == nil {
		t.Error("no events were imported")
	}
	source := home(t)
	fill(t, source, "run", 1)
	events, err := source.Read("run")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Import(events, ""); err == nil {
		t.Error("a run without a valid id was imported")
	}
	if runs, err := h.Runs(); err != nil || len(runs) > 0 {
		t.Errorf("runs: %q, %v", runs, err)
	}
}

func TestParse(t *testing.T) {
	events := imported(t, nil, 3)
	run, whole := events[0].Run, journal.Lines(events)
	if got, err := journal.Parse(run, whole); err != nil || len(got) != 3 {
		t.Errorf("%d events, %v", len(got), err)
	}
	first := bytes.IndexByte(whole, '\n') + 1
	for name, bad := range map[string][]byte{
		"cut":         whole[:len(whole)-1],
		"cut earlier": whole[:len(whole)-20],
		"no start":    whole[first:],
		"twice":       append(bytes.Clone(whole[:first]), whole...),
		"edited":      bytes.Replace(whole, []byte(`"active_ms":`), []byte(`"active_ms":1`), 1),
	} {
		var damage *journal.DamageError
		if _, err := journal.Parse(run, bad); !errors.As(err, &damage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := journal.Parse("20260102-030405-000000", whole); err == nil {
		t.Error("the events of another run were accepted")
	}
}

// The note about the import goes with the run.
func TestCollectImported(t *testing.T) {
	events := imported(t, nil, 1)
	h := home(t)
	if err := h.Import(events, ""); err != nil {
		t.Fatal(err)
	}
	c, err := h.NewCollector()
	if err == nil {
		err = c.Delete(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(h.Dir(), "runs", "*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
