package main

import (
	"os/exec"
	"testing"

	"hone/sandbox"
)

// TestFaultKillPhase is TestFaultKill for a phase. It also checks that no
// process survives.
func TestFaultKillPhase(t *testing.T) {
	skipRace(t)
	needsPhase(t)
	t.Parallel()
	compareKilledRuns(t, 2, func(t *testing.T) killableRun {
		b := newPhaseProject(t, sandbox.Hidden, true)
		return killableRun{args: b.args, run: func(args ...string) *exec.Cmd { return b.command("", args...) }, state: b.outcome,
			paid: func() int { return int(b.asked.Load()) }, after: b.waitForNoProcesses}
	})
}
