package sandbox_test

import (
	"strings"
	"testing"

	"hone/sandbox"
)

func TestLookup(t *testing.T) {
	env := []string{"PATH=a", "PATH=b=c", "PATHS=d", "=C:=e", ""}
	for name, want := range map[string]string{"PATH": "b=c", "PATHS": "d", "=C:": "e", "gone": "", "PAT": ""} {
		if got := sandbox.EnvValue(env, name); got != want {
			t.Errorf("lookup(%s) = %q, want %q", name, got, want)
		}
	}
}

func TestCleanEnv(t *testing.T) {
	env := []string{"A=1", "KEY=secret", "B=", "KEYS=2", "odd", "KEY=again"}
	got := sandbox.CleanEnv(env, []string{"KEY", "absent"})
	if strings.Join(got, " ") != "A=1 B= KEYS=2 odd" {
		t.Errorf("%q", got)
	}
	got = append(sandbox.CleanEnv(env, nil), "more")
	if got[0] = "changed"; env[0] != "A=1" || len(got) != 7 {
		t.Errorf("%q from %q", got, env)
	}
}
