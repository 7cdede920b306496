package main

import (
	"strings"
	"testing"
)

// Without a variable and without vi, the error says what to do.
func TestEditor(t *testing.T) {
	t.Setenv("VISUAL", "")
	t.Setenv("EDITOR", "")
	if _, err := editor([]string{"PATH=" + t.TempDir()}); err == nil || !strings.Contains(err.Error(), "set EDITOR first") {
		t.Errorf("no editor: %v", err)
	}
	t.Setenv("EDITOR", "nano")
	if got, err := editor([]string{"PATH=" + t.TempDir()}); got != "nano" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
