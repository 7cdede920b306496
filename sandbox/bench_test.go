package sandbox_test

import (
	"fmt"
	"testing"

	"hone/sandbox"
)

func BenchmarkNone(b *testing.B) {
	k := sandbox.NewKeeper(b.TempDir())
	defer k.Close()
	for _, runner := range []sandbox.None{{}, {Keeper: k}} {
		b.Run(fmt.Sprintf("keeper=%t", runner.Keeper != nil), func(b *testing.B) {
			c := sandbox.Command{Argv: []string{"/bin/true"}, Dir: b.TempDir()}
			for b.Loop() {
				if r, err := runner.Run(b.Context(), c); err != nil || r.Exit != 0 {
					b.Fatal(r, err)
				}
			}
		})
	}
}
