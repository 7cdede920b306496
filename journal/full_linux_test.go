package journal_test

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"hone/internal/disktest"
	"hone/journal"
)

// TestFullDisk fills a small file system until an append fails. No partial line
// may remain, and after space is freed the next append continues the chain.
func TestFullDisk(t *testing.T) {
	dir := disktest.Small(t, "256k")
	h, err := journal.OpenHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	j, err := h.Create("r")
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	ballast := dir + "/ballast"
	if err := os.WriteFile(ballast, make([]byte, 100<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	p := payload{Text: strings.Repeat("x", 10_000)}
	n := 0
	for ; err == nil; n++ {
		_, err = j.Append(journal.Entry{Type: "test", Payload: p})
	}
	if !errors.Is(err, syscall.ENOSPC) || n < 3 {
		t.Fatalf("append %d: %v", n, err)
	}
	events, err := h.Read("r")
	if err != nil || len(events) != n-1 {
		t.Fatalf("%d events after the disk was full, want %d: %v", len(events), n-1, err)
	}
	if _, err := j.Put(disktest.Noise(200<<10, 1)); err == nil {
		t.Error("an object larger than the disk was stored")
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Append(journal.Entry{Type: "test", Payload: p}); err != nil {
		t.Fatalf("after freeing space: %v", err)
	}
	if events, err := h.Read("r"); err != nil || len(events) != n {
		t.Errorf("%d events after freeing space, want %d: %v", len(events), n, err)
	}
}

// TestBrokenJournalRefusesEvents closes the file under the journal, so that the
// partial line of a failed append cannot be removed either.
func TestBrokenJournalRefusesEvents(t *testing.T) {
	j, err := home(t).Create("r")
	if err != nil {
		t.Fatal(err)
	}
	j.Close()
	if _, err := j.Append(journal.Entry{Type: "test"}); err == nil {
		t.Fatal("an append to a closed file succeeded")
	}
	if _, err := j.Append(journal.Entry{Type: "test"}); !errors.Is(err, journal.ErrBroken) {
		t.Errorf("the next append: %v", err)
	}
}
