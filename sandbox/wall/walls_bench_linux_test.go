package wall

import (
	"testing"

	"hone/sandbox"
)

// BenchmarkWalls measures a command that does nothing, without walls and behind each
// wall that is available here.
func BenchmarkWalls(b *testing.B) {
	c := sandbox.Command{Argv: []string{"/bin/true"}, Dir: "/", Env: []string{}}
	b.Run("plain", func(b *testing.B) { runs(b, None{}, c) })
	for _, wall := range []sandbox.Wall{sandbox.NoWall, sandbox.Landlock, sandbox.Hidden, sandbox.Bubblewrap, sandbox.Firejail} {
		w, err := Build(b.Context(), system(wall))
		if err != nil {
			b.Log(err)
			continue
		}
		b.Run(string(wall), func(b *testing.B) { runs(b, w, c) })
		w.Close()
	}
}

// BenchmarkWallsWithHeap measures the same in a process that uses a gigabyte.
func BenchmarkWallsWithHeap(b *testing.B) {
	heap := make([]byte, 1<<30)
	for i := 0; i < len(heap); i += 4096 {
		heap[i] = 1
	}
	BenchmarkWalls(b)
	if heap[4096] != 1 {
		b.Fatal("the heap is gone")
	}
}

func runs(b *testing.B, r sandbox.Runner, c sandbox.Command) {
	for b.Loop() {
		if result, err := r.Run(b.Context(), c); err != nil || result.Exit != 0 {
			b.Fatal(result, err)
		}
	}
}
