package sandbox_test

import (
	"os"
	"testing"

	"hone/sandbox"
)

func BenchmarkNone(b *testing.B) {
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	c := sandbox.Command{Argv: []string{program, "-test.run=^$"}, Dir: b.TempDir(), Env: os.Environ()}
	for b.Loop() {
		if r, err := (sandbox.None{}).Run(b.Context(), c); err != nil || r.Exit != 0 {
			b.Fatal(r, err)
		}
	}
}
