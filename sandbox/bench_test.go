package sandbox_test

import (
	"fmt"
	"os/exec"
	"testing"

	"hone/sandbox"
)

// With another child of this process, what a command has left behind must be told from it.
func BenchmarkNone(b *testing.B) {
	k := sandbox.NewKeeper(b.TempDir())
	defer k.Close()
	for _, runner := range []sandbox.None{{}, {Keeper: k}} {
		b.Run(fmt.Sprintf("keeper=%t", runner.Keeper != nil), func(b *testing.B) { benchmarkTrue(b, runner) })
	}
	other := exec.Command("sleep", "1000")
	if err := other.Start(); err != nil {
		b.Skip(err)
	}
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	b.Run("child", func(b *testing.B) { benchmarkTrue(b, sandbox.None{Keeper: k}) })
}

func benchmarkTrue(b *testing.B, runner sandbox.None) {
	c := sandbox.Command{Argv: []string{"/bin/true"}, Dir: b.TempDir()}
	for b.Loop() {
		if r, err := runner.Run(b.Context(), c); err != nil || r.Exit != 0 {
			b.Fatal(r, err)
		}
	}
}
