package render_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hone/internal/render"
)

// TestStatOfLargeChanges: many small changes count as what they are, as git counts them.
func TestStatOfLargeChanges(t *testing.T) {
	var before, after strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&before, "line %d\n\n}\n", i)
		if i%10 == 0 {
			fmt.Fprintf(&after, "changed %d\n", i)
		} else {
			fmt.Fprintf(&after, "line %d\n", i)
		}
		after.WriteString("\n}\n")
	}
	if added, removed := render.Stat([]byte(before.String()), []byte(after.String())); added != 300 || removed != 300 {
		t.Errorf("300 changed lines count as +%d -%d", added, removed)
	}
}

// TestDiffApplies: git applies the diff of any two texts, whatever the size of the change.
func TestDiffApplies(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	text := func(n int) string {
		var b strings.Builder
		for range n {
			fmt.Fprintf(&b, "%d\n", r.IntN(n/4+2))
		}
		return b.String()[r.IntN(2):]
	}
	for i := range 40 {
		before := text(1 + r.IntN(600))
		lines := strings.SplitAfter(before, "\n")
		for range r.IntN(300) {
			at := r.IntN(len(lines))
			lines = append(lines[:at:at], append([]string{fmt.Sprintf("new %d\n", r.IntN(50))}, lines[at+r.IntN(2)*min(1, len(lines)-at):]...)...)
		}
		after := strings.Join(lines, "")
		if i%7 == 0 {
			after = strings.TrimSuffix(after, "\n")
		}
		if before == after {
			continue
		}
		name := filepath.Join(dir, "f")
		if err := os.WriteFile(name, []byte(before), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("git", "apply", "--unidiff-zero", "-")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(render.Diff("f", []byte(before), []byte(after)))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%d: %v\n%s", i, err, out)
		}
		if got, _ := os.ReadFile(name); string(got) != after {
			t.Fatalf("%d: the diff makes another text", i)
		}
	}
}
