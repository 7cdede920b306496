package leg

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A run that waits for the user can be imported elsewhere, where hone shows its question,
// and the job continues as if nothing had happened.
func TestExport(t *testing.T) {
	f := newFleet(t, map[string]string{".config/hone.toml": "[check]\nprotect = [\"a.txt\"]\n"})
	w, l := f.worker(), f.leg(1)
	o := f.done(w, l, 4)
	before := f.stored()
	out := filepath.Join(t.TempDir(), "run.hone")
	if err := (&Worker{Store: w.Store, Key: w.Key, Hone: hone, Dir: t.TempDir(), Env: f.env()}).Export(t.Context(), l.Batch, l.Job, out); err != nil {
		t.Fatal(err)
	}
	for name, content := range f.stored() {
		if !bytes.Equal(content, before[name]) {
			t.Errorf("export has changed %s in the store", name)
		}
	}
	clone := filepath.Join(t.TempDir(), "clone")
	f.git(f.repo, "clone", "-q", f.repo, clone)
	for _, args := range [][]string{{"import", out}, {"show", "last"}} {
		c := exec.Command(hone, args...)
		c.Dir, c.Env = clone, f.env()
		said, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("hone %q: %v\n%s", args, err, said)
		}
		want := map[string]string{"import": "imported run " + o.Run, "show": "question " + o.Questions[0].Digest[:12]}
		if !strings.Contains(string(said), want[args[0]]) {
			t.Errorf("hone %s does not have %q:\n%s", args[0], want[args[0]], said)
		}
	}
	other := &Worker{Store: w.Store, Key: []byte(strings.Repeat("another key ", 4)), Dir: t.TempDir(), Env: f.env()}
	if err := other.Export(t.Context(), l.Batch, l.Job, out); err == nil || !strings.Contains(err.Error(), "not signed with this worker's key") {
		t.Error(err)
	}
}
