package block

import (
	"fmt"
	"strings"
	"testing"
)

// hostile returns texts of about size bytes that could cost more than their
// length.
func hostile(size int) map[string]string {
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	return map[string]string{
		"openings":       fill("^^^a\n"),
		"closings":       fill("^^^end\n"),
		"text openings":  fill("&&&start\n"),
		"nested":         strings.Repeat("^^^a\n", size/12) + strings.Repeat("^^^end\n", size/12),
		"four kinds":     fill("&&&start\n%%%start\n^^^a\n$$$start\n&&&end\n%%%end\n^^^end\n$$$end\n"),
		"inside one":     "^^^" + strings.Repeat("x", size/2) + "\n" + strings.Repeat("&&&start\n&&&end\n", size/32) + "^^^end\n",
		"under one":      "^^^" + strings.Repeat("x", size/2) + "\n" + strings.Repeat("^^^a\n^^^end\n", size/24) + "^^^end\n",
		"one line":       "^^^" + fill("x"),
		"one underline":  fill("^"),
		"one white line": "&&&" + fill(" ") + "start",
		"empty lines":    fill("\n"),
		"deep path":      "^^^" + fill("a/") + "b\n^^^end\n",
		"long dot path":  "^^^" + fill("./") + "b\n^^^end\n",
		"same path":      fill("^^^a\n^^^end\n"),
		"distinct paths": distinct(size, "^^^%d\n^^^end\n"),
		"refused paths":  distinct(size, "^^^/%d\n^^^end\n"),
		"one file":       "^^^a\n" + fill("some line of a program that is long enough\n") + "^^^end\n",
	}
}

func distinct(size int, format string) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func BenchmarkParse(b *testing.B) {
	for name, text := range hostile(10 << 20) {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				Parse(text)
			}
		})
	}
}

func BenchmarkFormat(b *testing.B) {
	r, _ := Parse(distinct(10<<20, "^^^%d\nsome content\n^^^end\n"))
	b.SetBytes(10 << 20)
	for b.Loop() {
		Format(r)
	}
}
