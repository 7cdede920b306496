package sandbox

import (
	"os"
	"testing"
)

func BenchmarkNone(b *testing.B) {
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	c := Command{Argv: []string{program, "-test.run=^$"}, Dir: b.TempDir(), Env: os.Environ()}
	for b.Loop() {
		if r, err := (None{}).Run(b.Context(), c); err != nil || r.Exit != 0 {
			b.Fatal(r, err)
		}
	}
}
