package lazyregexp_test

import (
	"os"
	"testing"

	"hone/internal/lazyregexp"
)

// In a test binary an invalid pattern panics when it is made, so that any test of its
// package finds it; in another program when it is used.
func TestNew(t *testing.T) {
	if !panics(func() { lazyregexp.New("(") }) {
		t.Error("New accepted an invalid pattern in a test")
	}
	name := os.Args[0]
	t.Cleanup(func() { os.Args[0] = name })
	os.Args[0] = "hone"
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
