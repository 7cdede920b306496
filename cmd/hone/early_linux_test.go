package main

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
)

// A helper of the walls initializes fewer packages than the program. It gets no spec here,
// so that it fails.
func TestHelpersStartEarly(t *testing.T) {
	initialized := func(args ...string) int {
		c := exec.Command("/proc/self/exe")
		c.Args, c.Env = args, append(os.Environ(), "GODEBUG=inittrace=1")
		out, _ := c.CombinedOutput()
		return bytes.Count(out, []byte("\ninit "))
	}
	helper, all := initialized("hone-wall", "helper"), initialized("hone", "-test.list=^$")
	if helper == 0 || helper > all*4/5 {
		t.Errorf("a helper initializes %d packages of %d", helper, all)
	}
}
