package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRewritten(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"task T.toml -nloop 3 -niter 4", "task T.toml --rounds 3 --turns 4"},
		{"task -nloop=3 T.toml -niter=4", "task --rounds=3 T.toml --turns=4"},
		{"task -nloop= T.toml", "task --rounds= T.toml"},
		{"task -nloop=a=b", "task --rounds=a=b"},
		{"task -- -nloop 3", "task -- -nloop 3"},
		{"task -niter 4 -- -nloop=3", "task --turns 4 -- -nloop=3"},
		{"task -nloops 3 --nloop -n -m=x", "task -nloops 3 --nloop -n -m=x"},
		{"reconcile -nloop 3", "reconcile -nloop 3"},
		{"prompt task -nloop 3", "prompt task --rounds 3"},
		{"", ""},
	} {
		args := strings.Fields(test.args)
		if diff := cmp.Diff(strings.Fields(test.want), rewrittenArgs(args)); diff != "" {
			t.Errorf("%s: %s", test.args, diff)
		}
		if strings.Join(args, " ") != test.args {
			t.Errorf("%s was changed to %q", test.args, args)
		}
	}
}
