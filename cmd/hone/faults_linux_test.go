package main

import (
	"os/exec"
	"testing"

	"hone/sandbox"
)

// TestFaultKillPhase is TestFaultKill for a phase; nothing that it started
// outlives it either.
func TestFaultKillPhase(t *testing.T) {
	unraced(t)
	needsPhase(t)
	mortality(t, 2, func(t *testing.T) mortal {
		b := newBuilt(t, sandbox.Hidden)
		return mortal{args: b.args, run: func(args ...string) *exec.Cmd { return b.command("", args...) }, state: b.outcome,
			paid: func() int { return int(b.asked.Load()) }, after: b.deserted}
	})
}
