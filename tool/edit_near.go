package tool

import (
	"bytes"
	"fmt"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"hone/workspace/treepath"
)

// Limits of the search for similar lines.
const (
	nearBytes  = 16 << 20 // of a file
	nearLines  = 24       // of oldText
	lookBytes  = 1 << 20  // of a file, for texts that look the same
	sketchSize = 512      // bytes of a line
)

// minSimilarity is the minimum similarity of lines that are shown; 1 is equal.
const minSimilarity = 0.4

// It takes linear time.
func (v view) nearest(old string) string {
	if strings.TrimSpace(old) == "" {
		return "oldText is only white space; include a line with text"
	}
	if bare := withoutLineNumbers(old); bare != old && bytes.Contains(v.text, []byte(bare)) {
		return "oldText contains read's line numbers, which are not part of the file; remove them"
	}
	if differs := lookAlike(string(v.text[:min(len(v.text), lookBytes)]), old); differs != "" {
		return differs
	}
	wanted := strings.Split(strings.TrimSuffix(old, "\n"), "\n")
	text := v.text[:min(len(v.text), nearBytes)]
	start, likeness := mostSimilar(text, wanted)
	if likeness < minSimilarity {
		return "No lines in the file are similar to it; read the file again"
	}
	return showNearest(text, start, wanted, old)
}

// It says which code points differ; empty if no text looks the same.
func lookAlike(text, old string) string {
	look, at := treepath.Look(text)
	wanted, _ := treepath.Look(old)
	start := strings.Index(look, wanted)
	if start < 0 || strings.TrimSpace(wanted) == "" {
		return ""
	}
	end := len(text)
	if start+len(wanted) < len(at) {
		end = at[start+len(wanted)]
	}
	is := []rune(text[at[start]:end])
	was := []rune(old)
	same := 0
	for same < len(is) && same < len(was) && is[same] == was[same] {
		same++
	}
	line := 1 + strings.Count(text[:at[start]], "\n") + strings.Count(string(is[:same]), "\n")
	return fmt.Sprintf("Line %d of the file looks the same, but has %s where oldText has %s. Copy the file's characters, or leave that part out of oldText",
		line, codePoints(is[same:]), codePoints(was[same:]))
}

// It includes what combines with the first character or cannot be seen.
func codePoints(text []rune) string {
	n := 0
	for n < len(text) && n < 4 && (n == 0 || unicode.Is(unicode.M, text[n]) || treepath.Invisible(text[n-1])) {
		n++
	}
	if n == 0 {
		return "nothing"
	}
	codes := make([]string, n)
	for i, r := range text[:n] {
		codes[i] = fmt.Sprintf("U+%04X", r)
	}
	return fmt.Sprintf("%s (%s)", strconv.QuoteToGraphic(string(text[:n])), strings.Join(codes, " "))
}

func withoutLineNumbers(text string) string {
	return regexp.MustCompile(`(?m)^\d{4,}: `).ReplaceAllString(text, "")
}

// A likeness of 1 is equal. The first line is 0.
func mostSimilar(text []byte, wanted []string) (start int, likeness float64) {
	skip := 0
	for strings.TrimSpace(wanted[skip]) == "" {
		skip++
	}
	wanted = wanted[skip:min(len(wanted), skip+nearLines)]
	sketches, total := make([]sketch, len(wanted)), 0.0
	for i, line := range wanted {
		sketches[i] = sketchOf([]byte(line))
		total += float64(sketches[i].size)
	}
	if total == 0 {
		return 0, 0
	}
	// The scores of the runs of lines that are not yet complete. The run that
	// starts at line n has index n modulo the number of runs.
	open := make([]float64, len(wanted))
	best, number := 0.0, 0
	end := func(n int) {
		if n >= 0 && open[n%len(open)] > best {
			best, start = open[n%len(open)], n
		}
	}
	for line := range bytes.Lines(text) {
		end(number - len(open))
		open[number%len(open)] = 0
		addSimilarity(open, sketches, sketchOf(line), number)
		number++
	}
	for n := number - len(open); n < number; n++ {
		end(n)
	}
	return max(0, start-skip), best / total
}

// addSimilarity adds the similarity of a line and the wanted line at its position
// to the score of every run that contains the line.
func addSimilarity(open []float64, wanted []sketch, line sketch, number int) {
	if line.size == 0 {
		return
	}
	for i := range wanted[:min(len(wanted), number+1)] {
		if wanted[i].size > 0 {
			open[(number-i)%len(open)] += wanted[i].likeness(line) * float64(wanted[i].size)
		}
	}
}

// sketch is a summary of a line: the set of its sequences of three characters
// without white space, each hashed to one of 256 bits.
type sketch struct {
	set  [4]uint64
	size int // number of bits in set
}

func sketchOf(line []byte) sketch {
	var s sketch
	var run uint32
	n := 0
	for _, c := range line[:min(len(line), sketchSize)] {
		if c <= ' ' {
			continue
		}
		n++
		run = (run<<8 | uint32(c)) & 0xffffff
		if n >= 3 {
			s.add(run)
		}
	}
	if n == 1 || n == 2 {
		s.add(run)
	}
	for _, word := range s.set {
		s.size += bits.OnesCount64(word)
	}
	return s
}

func (s *sketch) add(run uint32) {
	hash := run * 2654435761
	s.set[hash>>30] |= 1 << (hash >> 24 & 63)
}

// It is from 0 to 1. Other contents of line reduce it a little.
func (s sketch) likeness(line sketch) float64 {
	common := 0
	for i := range s.set {
		common += bits.OnesCount64(s.set[i] & line.set[i])
	}
	if common == 0 {
		return 0
	}
	return float64(common) / (float64(s.size) + float64(line.size-common)/4)
}

func showNearest(text []byte, start int, wanted []string, old string) string {
	lines := linesFrom(text, start, len(wanted))
	differs, spaces := 0, withoutSpace(strings.Join(lines, "\n")) == withoutSpace(old)
	for differs < len(wanted)-1 && differs < len(lines) && wanted[differs] == lines[differs] {
		differs++
	}
	const before, shown = 2, 12
	from := start + max(0, differs-before)
	var b strings.Builder
	switch {
	case spaces:
		b.WriteString("The same text with different white space is here:\n")
	default:
		b.WriteString("The most similar lines are:\n")
	}
	for i, line := range linesFrom(text, from, shown) {
		fmt.Fprintf(&b, "%04d: %s\n", from+i+1, clip(line, 300))
	}
	if differs > 0 {
		fmt.Fprintf(&b, "Line %d of oldText is the first different line: %s\n", differs+1, quoted(wanted[differs]))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// The first line is 0.
func linesFrom(text []byte, start, count int) []string {
	for ; start > 0; start-- {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	var lines []string
	for line := range bytes.Lines(text) {
		if len(lines) == count {
			break
		}
		lines = append(lines, string(trimLineEnd(line)))
	}
	return lines
}

func withoutSpace(text string) string { return strings.Join(strings.Fields(text), "") }
