package main

import (
	"bytes"
	"syscall"
	"testing"

	"hone/sandbox"
	"hone/workspace/secret"
)

func TestShellStatus(t *testing.T) {
	for want, r := range map[int]sandbox.Result{
		0:   {},
		7:   {Exit: 7},
		137: {Exit: -1, Signal: syscall.SIGKILL.String()},
		143: {Exit: -1, Signal: syscall.SIGTERM.String()},
		128: {Exit: -1, Signal: "something new"},
	} {
		if got := shellStatus(r); got != want {
			t.Errorf("%+v: %d", r, got)
		}
	}
}

// TestShown: the output of a command is forwarded without keys, even if a key is
// split between writes.
func TestShown(t *testing.T) {
	var out bytes.Buffer
	s := shownOn(&out, &secret.Guard{Known: []string{"sk-a-key-of-mine"}})
	for _, piece := range []string{"begin sk-a-", "key-of-mine, and", "the end"} {
		if n, err := s.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	s.Flush()
	if got, want := out.String(), "begin [key], andthe end"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
