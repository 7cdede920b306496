package main

import (
	"io"
	"os"
	"testing"

	"hone/loop"
)

// trustAll trusts all that a folder needs trust for, as a user who answered yes.
func trustAll(t *testing.T, dir string) {
	t.Helper()
	root, err := loop.AbsDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	a := &app{env: os.Getenv, out: io.Discard, err: io.Discard}
	if err := a.trustStarters(root); err != nil {
		t.Fatal(err)
	}
}
