package tool

import (
	"bytes"
	"fmt"
	"math/bits"
	"regexp"
	"strings"
)

// How much is looked at to find what a text is near to.
const (
	nearBytes  = 16 << 20 // of a file
	nearLines  = 24       // of the text that is looked for
	sketchSize = 512      // bytes of a line
)

// isNear is the least likeness that lines are shown for, of 1.
const isNear = 0.4

// nearest says for a text that does not stand in the file where the file comes
// nearest to it, with the real lines. It looks at each line of the file once.
func (v view) nearest(old string) string {
	if strings.TrimSpace(old) == "" {
		return "oldText holds white space alone; take in a line with text"
	}
	if bare := unnumbered(old); bare != old && bytes.Contains(v.text, []byte(bare)) {
		return "oldText holds the line numbers of read, which do not stand in the file; leave them out"
	}
	wanted := strings.Split(strings.TrimSuffix(old, "\n"), "\n")
	text := v.text[:min(len(v.text), nearBytes)]
	start, likeness := window(text, wanted)
	if likeness < isNear {
		return "Nothing in the file is near to it; read the file again"
	}
	return compare(text, start, wanted, old)
}

// unnumbered is a text without the numbers that read puts before lines.
func unnumbered(text string) string {
	return regexp.MustCompile(`(?m)^\d{4,}: `).ReplaceAllString(text, "")
}

// window finds the run of lines that is most like the wanted ones, and how
// like it is, of 1. The first line is 0.
func window(text []byte, wanted []string) (start int, likeness float64) {
	skip := 0
	for strings.TrimSpace(wanted[skip]) == "" {
		skip++
	}
	wanted = wanted[skip:min(len(wanted), skip+nearLines)]
	sketches, whole := make([]sketch, len(wanted)), 0.0
	for i, line := range wanted {
		sketches[i] = sketchOf([]byte(line))
		whole += float64(sketches[i].size)
	}
	if whole == 0 {
		return 0, 0
	}
	// Runs that have begun and not ended: the one that begins with line n is
	// at n modulo their number.
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
		add(open, sketches, sketchOf(line), number)
		number++
	}
	for n := number - len(open); n < number; n++ {
		end(n)
	}
	return max(0, start-skip), best / whole
}

// add adds to every run that holds a line how like the line is to the wanted
// one in its place.
func add(open []float64, wanted []sketch, line sketch, number int) {
	if line.size == 0 {
		return
	}
	for i := range wanted[:min(len(wanted), number+1)] {
		if wanted[i].size > 0 {
			open[(number-i)%len(open)] += wanted[i].likeness(line) * float64(wanted[i].size)
		}
	}
}

// sketch is a line in short: a set of its runs of three characters, white
// space apart, each hashed to one of 256 bits.
type sketch struct {
	set  [4]uint64
	size int // bits that are set
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

// add puts a run into the set.
func (s *sketch) add(run uint32) {
	hash := run * 2654435761
	s.set[hash>>30] |= 1 << (hash >> 24 & 63)
}

// likeness is how much of a wanted line stands in another, of 1; what the
// other has besides counts against it a little.
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

// compare shows the lines of the file from the first one on that differs from
// the wanted ones.
func compare(text []byte, start int, wanted []string, old string) string {
	lines := linesFrom(text, start, len(wanted))
	differs, spaces := 0, squeezed(strings.Join(lines, "\n")) == squeezed(old)
	for differs < len(wanted)-1 && differs < len(lines) && wanted[differs] == lines[differs] {
		differs++
	}
	const before, shown = 2, 12
	from := start + max(0, differs-before)
	var b strings.Builder
	switch {
	case spaces:
		b.WriteString("The same text with other white space stands here:\n")
	default:
		b.WriteString("The nearest lines are:\n")
	}
	for i, line := range linesFrom(text, from, shown) {
		fmt.Fprintf(&b, "%04d: %s\n", from+i+1, clip(line, 300))
	}
	if differs > 0 {
		fmt.Fprintf(&b, "Line %d of oldText is the first that differs: %s\n", differs+1, quoted(wanted[differs]))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// linesFrom are some lines of a text; the first line is 0.
func linesFrom(text []byte, start, count int) []string {
	for ; start > 0; start-- {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	var lines []string
	for line := range bytes.Lines(text) {
		if len(lines) == count {
			break
		}
		lines = append(lines, string(bare(line)))
	}
	return lines
}

// squeezed is a text without white space.
func squeezed(text string) string { return strings.Join(strings.Fields(text), "") }
