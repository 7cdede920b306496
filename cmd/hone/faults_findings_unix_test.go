//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hone/check"
	"hone/history"
)

// manyFindings prints as many findings as its first argument says.
const manyFindings = `#!/bin/sh
seq %d | awk 'BEGIN { printf "{\"overall_findings\": [], \"per_file_findings\": [" }
	{ printf "%%s\n{\"provenance\": \"code-review\", \"file\": \"f%%d.go\", \"finding\": \"line %%d is wrong\"}", comma, $1, $1; comma = "," }
	END { print "]}" }'
exit 1
`

// TestFaultFindings: of very many findings the model gets a few and the screen shows
// fewer; all are counted, and the memory and the journal stay small.
func TestFaultFindings(t *testing.T) {
	skipRace(t)
	if testing.Short() {
		t.Skip("SKIPPED: it takes half a minute")
	}
	for _, n := range []int{201, 300_000} { // more than 370 000 would be longer than a checker may print
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			v := victim{dir: t.TempDir()}
			replies := filepath.Join(t.TempDir(), "replies")
			err := errors.Join(os.CopyFS(v.dir, os.DirFS(killedRepository(t))), os.Mkdir(filepath.Join(v.dir, ".config"), 0o755),
				os.WriteFile(filepath.Join(v.dir, ".config", "bork.json"), []byte(`{"correctness-checker": "check.sh"}`), 0o644),
				os.WriteFile(filepath.Join(v.dir, "check.sh"), fmt.Appendf(nil, manyFindings, n), 0o755),
				os.WriteFile(replies, []byte("=== reply ===\n{\"create-or-update\": {\"made\": \"one\\n\"}}\n=== reply ===\n{\"create-or-update\": {\"made\": \"two\\n\"}}\n"), 0o644))
			if err != nil {
				t.Fatal(err)
			}
			run := v.command("reconcile", "--rounds", "2", "-m", "script/"+replies)
			out, _ := run.CombinedOutput()
			if got := run.ProcessState.ExitCode(); got != 1 || !strings.Contains(string(out), fmt.Sprintf("2 of 2 rounds used, %d findings left", n)) {
				t.Errorf("exit status %d\n%s", got, last(out, 2000))
			}
			holdsFindings(t, v.dir, n)
			wantSmall(t, "reconcile", run, out)
			for _, args := range [][]string{{"runs"}, {"show", "last"}, {"show", "last", "--html", "-"}, {"replay", "last"}} {
				later := v.command(args...)
				out, err := later.Output()
				if err != nil {
					t.Errorf("%s: %v", args, err)
				}
				wantSmall(t, strings.Join(args, " "), later, out)
			}
		})
	}
}

// wantSmall checks how much memory a command took, and how much it printed.
func wantSmall(t *testing.T, name string, c *exec.Cmd, out []byte) {
	t.Helper()
	if most := memory(c.ProcessState); most > 100<<20 {
		t.Errorf("%s took %d MB of memory", name, most>>20)
	}
	if lines := bytes.Count(out, []byte("\n")); lines > 130 && !strings.Contains(name, "html") || len(out) > 200<<10 {
		t.Errorf("%s printed %d lines, %d bytes", name, lines, len(out))
	}
}

// holdsFindings checks what a run of two rounds recorded about n findings, and what it
// sent to the model.
func holdsFindings(t *testing.T, dir string, n int) {
	t.Helper()
	events := lastEvents(t, dir)
	var asked []int64
	size := 0
	for _, e := range events {
		size += len(e.Line())
		switch p := history.Decode(e).Payload.(type) {
		case history.Asked:
			asked = append(asked, p.Bytes)
		case history.Checked:
			if check.Count(p.Findings) != n || len(p.Findings) > check.MaxFindings+1 {
				t.Errorf("%d findings are recorded, which stand for %d", len(p.Findings), check.Count(p.Findings))
			}
		}
	}
	if len(asked) != 2 || asked[1]-asked[0] > 100<<10 {
		t.Errorf("the requests have %d bytes", asked)
	}
	if size > 2<<20 {
		t.Errorf("the journal has %d bytes", size)
	}
}
