package near

import "testing"

func TestName(t *testing.T) {
	known := []string{"fix", "task", "reconcile", "replay", "resume", "runs"}
	for unknown, want := range map[string]string{
		"reconcil": "reconcile", "RECONCILE": "reconcile", "recincile": "reconcile", "rusn": "runs", "fx": "fix",
		"replya": "replay", "reco": "reconcile", "res": "resume", "nothing": "", "x": "", "": "", "implement": "",
	} {
		if got := Name(unknown, known); got != want {
			t.Errorf("Name(%q) is %q, want %q", unknown, got, want)
		}
	}
}

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"kitten", "sitting", 3}, {"rounds", "rounds", 0}} {
		if got := edits(c.a, c.b); got != c.want {
			t.Errorf("edits(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
