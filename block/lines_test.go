package block

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// vocabulary has lines of every kind, so that each byte of a fuzzer's input can
// be a line: random bytes almost never make a marker.
var vocabulary = strings.Split("&&&start|&&&end|%%%start|%%%end|^^^a|^^^end|$$$start|$$$end|x||^^^./a|^^^b|&&&|%%% note|^^^|  ^^^ end \r|$$$begin|^^^^", "|")

// FuzzLines checks texts made mostly of markers as FuzzParse checks any text.
// Parse must find a problem exactly where a reader finds one who tracks only
// one open block at a time.
func FuzzLines(f *testing.F) {
	f.Add([]byte{4, 8, 5, 0, 8, 1})
	f.Add([]byte{4, 0, 5, 4, 1, 5, 7})
	f.Add([]byte{0, 4, 1, 11, 5, 12, 14, 5})
	f.Fuzz(func(t *testing.T, choice []byte) {
		var lines []string
		for _, c := range choice {
			lines = append(lines, vocabulary[int(c)%len(vocabulary)])
		}
		checkReply(t, lines)
	})
}

// TestShortReplies checks all replies of up to four lines.
func TestShortReplies(t *testing.T) {
	var extend func(lines []string)
	extend = func(lines []string) {
		checkReply(t, lines)
		if len(lines) == 4 {
			return
		}
		for _, line := range vocabulary {
			extend(append(lines, line))
		}
	}
	extend(make([]string, 0, 4))
}

// checkReply checks that a reply is read as it should be.
func checkReply(t *testing.T, lines []string) {
	t.Helper()
	text := strings.Join(lines, "\n")
	r, problems := Parse(text)
	checkProblems(t, text, problems)
	if again, _ := Parse(Format(r)); !reflect.DeepEqual(r, again) {
		t.Errorf("%q written and read again (-first +second):\n%s", text, cmp.Diff(r, again))
	}
	if want := plain(lines); want != (len(problems) == 0) {
		t.Errorf("%q is right: %t; problems %v", text, want, problems)
	}
}

// plain reports whether a reply has no problems.
func plain(lines []string) bool {
	const outside = kinds
	open := outside
	paths := make(map[string]bool)
	reasons := 0
	for _, line := range lines {
		k, r := classify(line)
		switch {
		case r == text:
		case r == closing && open == k:
			open = outside
		case r == opening && open == outside:
			open = k
			if k == done {
				reasons++
			}
			if k == file && paths[clean(marker{text: line}.word())] {
				return false
			}
			if k == file {
				paths[clean(marker{text: line}.word())] = true
			}
		default:
			return false
		}
	}
	return open == outside && (len(paths) > 0) != (reasons > 0)
}

// FuzzParse checks that a parsed reply is equal after Format and Parse, and that
// problems name lines of the text in order.
func FuzzParse(f *testing.F) {
	for _, text := range hostile(1 << 10) {
		f.Add(text)
	}
	f.Add("&&&start\r\nx\r\r\n&&&end\r\n%%%\n^^^a\n%%%end\n^^^ ^b\n\n^^^end\n\n$$$START\n$$$end")
	f.Add("^^^a\n&&&start\n^^^end\n&&&start\n^^^b\n&&&end\n^^^end\n^^^end\n")
	f.Add("^^^a\n\n^^^delete\n\n^^^end\n^^^b\nx\n^^^delete\n^^^`c`\n^^^end\n^^^delete")
	f.Add("\ufeff^^^ end\n^^^./end\n\ufeff\n^^^END")
	f.Fuzz(func(t *testing.T, text string) {
		r, problems := Parse(text)
		checkProblems(t, text, problems)
		again, after := Parse(Format(r))
		if diff := cmp.Diff(r, again); diff != "" {
			t.Errorf("written and read again (-first +second):\n%s", diff)
		}
		if len(problems) == 0 && len(after) > 0 {
			t.Errorf("a reply without problems has some when it is written: %v", after)
		}
	})
}

func checkProblems(t *testing.T, text string, problems []Problem) {
	t.Helper()
	lines := slices.Collect(strings.Lines(text))
	last := 0
	for i, p := range problems {
		if i >= maxProblems && p.Line == 0 {
			continue // the number of those that are omitted
		}
		if p.Line < last || p.Line > len(lines) {
			t.Fatalf("%v after line %d, of %d lines", p, last, len(lines))
		}
		last = p.Line
		if p.Line > 0 && !isMarker(lines[p.Line-1]) {
			t.Errorf("%v: the line is not a marker: %q", p, lines[p.Line-1])
		}
	}
	if len(problems) > maxProblems+2 {
		t.Errorf("%d problems", len(problems))
	}
}

func isMarker(line string) bool {
	_, r := classify(strings.TrimPrefix(line, "\ufeff"))
	return r != text
}

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
