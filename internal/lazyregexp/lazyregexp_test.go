package lazyregexp_test

import (
	"os"
	"testing"

	"hone/internal/lazyregexp"
)

// In a process that runs tests an invalid pattern panics when it is made, so that any
// test of its package finds it; in another process when it is used.
func TestNew(t *testing.T) {
	if !panics(func() { lazyregexp.New("(") }) {
		t.Error("New accepted an invalid pattern in a test")
	}
	args := os.Args
	t.Cleanup(func() { os.Args = args })
	for _, helper := range [][]string{{args[0]}, {args[0], "helper"}} {
		os.Args = helper
		if panics(func() { lazyregexp.New("(") }) {
			t.Errorf("New compiled the pattern at once for %q", helper)
		}
	}
	os.Args = []string{"hone"}
	var r *lazyregexp.Regexp
	if panics(func() { r = lazyregexp.New("(") }) {
		t.Fatal("New compiled the pattern at once")
	}
	if !panics(func() { r.MatchString("a") }) {
		t.Error("MatchString accepted an invalid pattern")
	}
	if r := lazyregexp.New("b+"); r.FindString("abbc") != "bb" {
		t.Errorf("found %q", r.FindString("abbc"))
	}
}

func panics(run func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	run()
	return false
}
