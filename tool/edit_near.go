package tool

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"hone/workspace/treepath"
)

// nearBytes limits the search of a file for similar texts.
const nearBytes = 1 << 20

// minSimilarity is the minimum similarity of lines that are shown; 1 is equal.
const minSimilarity = 0.4

// It takes linear time.
func (v view) nearest(old string) string {
	if strings.TrimSpace(old) == "" {
		return "oldText is only white space; include a line with text"
	}
	if bare := regexp.MustCompile(`(?m)^\d{4,}: `).ReplaceAllString(old, ""); bare != old && bytes.Contains(v.text, []byte(bare)) {
		return "oldText contains read's line numbers, which are not part of the file; remove them"
	}
	text := v.text[:min(len(v.text), nearBytes)]
	if differs := lookAlike(string(text), old); differs != "" {
		return differs
	}
	wanted := strings.Split(strings.TrimSuffix(old, "\n"), "\n")
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	start, likeness := mostSimilar(lines, wanted)
	if likeness < minSimilarity {
		return "No lines in the file are similar to it; read the file again"
	}
	return showNearest(lines[start:], start, wanted, old)
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

// It is the place of the old text whose longest line is the most similar to a line of the text; a likeness of 1 is equal.
func mostSimilar(lines, wanted []string) (start int, likeness float64) {
	longest, parts := 0, map[string]bool{}
	for i, line := range wanted {
		if len(withoutSpace(line)) > len(withoutSpace(wanted[longest])) {
			longest = i
		}
	}
	const length = 3 // of a part; a shorter line is one
	line := withoutSpace(clip(wanted[longest], maxReadLine))
	for at := range max(1, len(line)-length+1) {
		parts[line[at:min(len(line), at+length)]] = true
	}
	for number, line := range lines {
		line = withoutSpace(line[:min(len(line), maxReadLine)])
		common, others := 0, 0
		for at := range max(1, len(line)-length+1) {
			if parts[line[at:min(len(line), at+length)]] {
				common++
			} else {
				others++
			}
		}
		common = min(common, len(parts))
		if like := float64(common) / (float64(len(parts)) + float64(others)/4); like > likeness {
			start, likeness = max(0, number-longest), like
		}
	}
	return start, likeness
}

// The lines begin with the one at start, which is the first of the most similar ones.
func showNearest(lines []string, start int, wanted []string, old string) string {
	like := lines[:min(len(lines), len(wanted))]
	differs, says := 0, "The most similar lines are:"
	if withoutSpace(strings.Join(like, "\n")) == withoutSpace(old) {
		says = "The same text with different white space is here:"
	}
	for differs < len(wanted)-1 && differs < len(like) && wanted[differs] == like[differs] {
		differs++
	}
	const before, shown = 2, 12
	from := max(0, differs-before)
	for i, line := range lines[from:min(len(lines), from+shown)] {
		says += fmt.Sprintf("\n%04d: %s", start+from+i+1, clip(line, 300))
	}
	if differs > 0 {
		says += fmt.Sprintf("\nLine %d of oldText is the first different line: %s", differs+1, quoted(wanted[differs]))
	}
	return says
}

func withoutSpace(text string) string { return strings.Join(strings.Fields(text), "") }
