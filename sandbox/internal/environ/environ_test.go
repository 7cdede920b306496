package environ

import "testing"

func TestLookup(t *testing.T) {
	env := []string{"PATH=a", "PATH=b=c", "PATHS=d", "=C:=e", ""}
	for name, want := range map[string]string{"PATH": "b=c", "PATHS": "d", "=C:": "e", "gone": "", "PAT": ""} {
		if got := Value(env, name); got != want {
			t.Errorf("lookup(%s) = %q, want %q", name, got, want)
		}
	}
}
