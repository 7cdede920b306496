//go:build unix

package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestKilledGit: a git that a signal killed while it only read is started once more; one that
// writes is not, and one that is killed again is an error (ruling G22).
func TestKilledGit(t *testing.T) {
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	bin, dir := t.TempDir(), t.TempDir()
	killed := filepath.Join(bin, "killed")
	script := "#!/bin/sh\necho >>" + killed + "\ntest $(wc -l <" + killed + ") -gt ${KILLS:-1} || kill -9 $$\nexec " + real + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kills string
		args  []string
		ok    bool
	}{
		{"1", []string{"version"}, true},
		{"2", []string{"version"}, false},
		{"1", []string{"init", dir}, false},
	} {
		_ = os.Remove(killed)
		g := &Git{path: filepath.Join(bin, "git"), env: append(environment(os.Environ()), "KILLS="+c.kills)}
		if _, err := g.run(t.Context(), call{args: c.args}); (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "killed") {
			t.Errorf("%v, killed %s times: %v", c.args, c.kills, err)
		}
	}
}
