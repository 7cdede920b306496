package git

import (
	"context"
	"fmt"
	"testing"
)

// bigRepository returns a repository of n tracked files and two specs that
// differ from main.
func bigRepository(b *testing.B, n int) string {
	b.Helper()
	files := []string{"specs/a.md", "one\n", "specs/b.md", "two\n"}
	for i := range n {
		files = append(files, fmt.Sprintf("d%d/e%d/f%d.go", i/1000, i/50%20, i), "package x\n")
	}
	dir := repository(b, files...)
	write(b, dir, "specs/a.md", "one\nmore\n", "new", "x")
	return dir
}

func BenchmarkOpenListDiff(b *testing.B) {
	for _, n := range []int{10, 50_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := isolatedGit(b)
			dir := bigRepository(b, n)
			ctx := context.Background()
			b.Run("open", func(b *testing.B) {
				for b.Loop() {
					if _, err := g.Open(dir); err != nil {
						b.Fatal(err)
					}
				}
			})
			r := open(b, g, dir)
			b.Run("list", func(b *testing.B) {
				for b.Loop() {
					if entries, err := r.List(ctx, ""); err != nil || len(entries) != n+3 {
						b.Fatal(len(entries), err)
					}
				}
			})
			b.Run("diff", func(b *testing.B) {
				for b.Loop() {
					if d, err := r.DiffMain(ctx, nil, "specs"); err != nil || len(d.Patch) == 0 {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// A commit reads every file again, because it ignores the index.
func BenchmarkCommit(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := isolatedGit(b)
			r := open(b, g, bigRepository(b, n))
			for i := 0; b.Loop(); i++ {
				commit(b, r, Commit{Subject: fmt.Sprint("s", i)})
			}
		})
	}
}
