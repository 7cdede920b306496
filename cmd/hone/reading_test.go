package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hone/loop"
)

// TestTerminalGetsEscapes: prompt and rollup print what files contain, a terminal gets it
// escaped, and other programs as it is sent.
func TestTerminalGetsEscapes(t *testing.T) {
	const odd, safe = "esc \x1b[31m bidi \u202e end\n", `esc \x1b[31m bidi \u202e end`
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "odd.txt"), []byte(odd), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, terminal := range []bool{true, false} {
		want, not := odd, safe
		if terminal {
			want, not = safe, odd
		}
		var prompt, rollup, errs strings.Builder
		a := &app{out: &prompt, err: &errs, env: func(string) string { return "" }, outTerminal: terminal}
		if err := a.showPrompt(loop.Prompt{System: "Rules.", Text: odd}, "", false); err != nil {
			t.Fatal(err)
		}
		a.out = &rollup
		if err := a.rollup(t.Context(), dir, "-"); err != nil {
			t.Fatal(err)
		}
		for command, got := range map[string]string{"prompt": prompt.String(), "rollup": rollup.String()} {
			if !strings.Contains(got, want) || strings.Contains(got, not) {
				t.Errorf("%s, terminal %v: %q", command, terminal, got)
			}
		}
	}
}
