package main

import (
	"strings"
	"testing"
)

// TestEditor: without a variable and without vi, the error says what to do.
func TestEditor(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	set := map[string]string{}
	a := &app{env: func(name string) string { return set[name] }}
	if _, err := a.editor(); err == nil || !strings.Contains(err.Error(), "press q, set EDITOR, then hone resume") {
		t.Errorf("no editor: %v", err)
	}
	set["EDITOR"] = "nano"
	if got, err := a.editor(); got != "nano" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
