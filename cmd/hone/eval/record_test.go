package eval

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// open opens a record that must be good.
func open(t *testing.T, path string) *Record {
	t.Helper()
	r, err := OpenRecord(path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	cost := 0.5
	want := Result{Key: "k", Case: "a", Model: "m", Time: 2, Passed: true, Kind: "done", Why: "ok", Rounds: 1, Tokens: 7, Cost: &cost,
		Malformed: 1, Refused: 2, Seconds: 1.5, Run: "r", Hone: "devel", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	if err := open(t, path).Add(want); err != nil {
		t.Fatal(err)
	}
	got, ok := open(t, path).Result("k")
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Error(diff)
	}
	if _, ok := open(t, path).Result("other"); ok {
		t.Error("it has another result")
	}
}

// A last line without an end does not count, and the next result replaces it.
func TestRecordTorn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	if err := open(t, path).Add(Result{Key: "a"}); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(whole, whole[:10]...), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	r := open(t, path)
	if err := errors.Join(r.CanAdd(), r.Add(Result{Key: "b"})); err != nil {
		t.Fatal(err)
	}
	r = open(t, path)
	_, a := r.Result("a")
	_, b := r.Result("b")
	if text, _ := os.ReadFile(path); !a || !b || strings.Count(string(text), "\n") != 2 {
		t.Errorf("a %v, b %v:\n%s", a, b, text)
	}
}

func TestRecordErrors(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{"{}\n": ":1: it is not a result", "{\"key\":\"a\"}\nhello\n": ":2: it is not a result"} {
		path := filepath.Join(dir, "r.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenRecord(path); err == nil || !strings.Contains(err.Error(), path+want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := open(t, filepath.Join(dir, "no", "r.jsonl")).Add(Result{Key: "a"}); err == nil {
		t.Error("it was written without a directory")
	}
}
