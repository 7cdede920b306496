package stage

import (
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"

	"hone/sandbox"
)

// TestEndedInTheMiddle checks that an attempt whose process ended without a result
// never counts as stopped, unless its walls killed it at a limit.
func TestEndedInTheMiddle(t *testing.T) {
	const told = `{"begin":"a"}` + "\n" + `{"end":"a","got":"ENOENT"}` + "\n" + `{"begin":"b"}` + "\n"
	for _, tt := range []struct {
		how  sandbox.Result
		want string
	}{
		{sandbox.Result{Signal: "killed", Exit: -1}, WordUnknown},
		{sandbox.Result{TimedOut: true, Exit: -1}, WordUnknown},
		{sandbox.Result{OverLimit: "memory", Exit: -1}, WordHeld},
	} {
		tt.how.Stdout = []byte(told)
		got, err := readNotes(tt.how, false)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 2 || got[0].Got != "ENOENT" || got[1].Name != "b" || got[1].Got != tt.want {
			t.Errorf("%+v: got %+v", tt.how, got)
		}
	}
}

func TestWord(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{nil, WordOpen},
		{&os.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, "EACCES"},
		{fmt.Errorf("wrapped: %w", syscall.EXDEV), "EXDEV"},
		{Held("empty"), WordHeld},
		{Unknown("none here"), WordUnknown},
		{ErrNotTried, WordNotTried},
		{io.EOF, WordHeld},
	} {
		if got, _ := word(tt.err); got != tt.want {
			t.Errorf("word(%v) = %s, want %s", tt.err, got, tt.want)
		}
	}
}
