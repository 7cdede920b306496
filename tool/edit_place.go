package tool

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
)

type placement struct {
	index      int // in the call, from 0
	start, end int // byte offsets in the original
	text       []byte
}

const maxFaults = 3

// They are in the order of the file. The text is an explanation for the model.
func place(content []byte, edits []replacement) ([]placement, string) {
	v := viewOf(content)
	var places []placement
	var faults []string
	for i, e := range edits {
		one, fault := v.place(e)
		if fault != "" {
			faults = append(faults, withIndex(i, len(edits), fault))
		}
		one.index = i
		places = append(places, one)
		if len(faults) == maxFaults {
			break
		}
	}
	if len(faults) == 0 {
		slices.SortFunc(places, func(a, b placement) int { return cmp.Or(a.start-b.start, a.index-b.index) })
		faults = overlaps(places, v)
	}
	if len(faults) > 0 {
		return nil, strings.Join(faults, "\n") + "\nNothing was changed"
	}
	return places, ""
}

func withIndex(i, of int, fault string) string {
	if of == 1 {
		return fault
	}
	return fmt.Sprintf("edits[%d]: %s", i, fault)
}

func overlaps(places []placement, v view) []string {
	var faults []string
	for i := 1; i < len(places) && len(faults) < maxFaults; i++ {
		a, b := places[i-1], places[i]
		if b.start < a.end {
			faults = append(faults, fmt.Sprintf("edits[%d] and edits[%d] overlap at line %d; combine them into one edit",
				min(a.index, b.index), max(a.index, b.index), v.lineAt(b.start)))
		}
	}
	return faults
}

// view is a file as read shows it to the model: without a byte order mark, and
// with newlines as line ends.
type view struct {
	original []byte
	skipped  int // bytes before the text
	text     []byte
	returns  []int // offsets in text of newlines that follow a carriage return in the original
}

func viewOf(content []byte) view {
	text := bytes.TrimPrefix(content, []byte(bom))
	v := view{original: content, skipped: len(content) - len(text), text: text}
	if !bytes.Contains(text, []byte("\r\n")) {
		return v
	}
	v.text = make([]byte, 0, len(text))
	for {
		line, rest, found := bytes.Cut(text, []byte("\r\n"))
		v.text = append(v.text, line...)
		if !found {
			return v
		}
		v.returns = append(v.returns, len(v.text))
		v.text = append(v.text, '\n')
		text = rest
	}
}

// The offset of a newline becomes that of the carriage return before it.
func (v view) originalOffset(i int) int {
	before, _ := slices.BinarySearch(v.returns, i)
	return v.skipped + i + before
}

func (v view) lineAt(i int) int { return 1 + bytes.Count(v.original[:i], []byte("\n")) }

// The text is an explanation for the model.
func (v view) place(e replacement) (placement, string) {
	old := normalizeNewlines(e.Old)
	found, more := findAll(v.text, []byte(old))
	switch {
	case len(found) == 0:
		return placement{}, "oldText must match exactly once; found 0 matches for: " + quoted(e.Old) + "\n" + v.nearest(old)
	case len(found) > 1:
		return placement{}, "oldText must match exactly once; found " + v.describeMatches(found, more) + " for: " + quoted(e.Old) +
			"\nInclude more of the surrounding lines to make it unique"
	}
	start, end := found[0], found[0]+len(old)
	return placement{start: v.originalOffset(start), end: v.originalOffset(end), text: v.withLineEnds(normalizeNewlines(e.New), start)}, ""
}

func normalizeNewlines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

func quoted(text string) string { return fmt.Sprintf("%q", clip(text, 200)) }

const maxMatches = 1000

// Overlapping ones count; more means that there are more than maxMatches.
func findAll(text, old []byte) (found []int, more bool) {
	for at := 0; at <= len(text)-len(old); {
		i := bytes.Index(text[at:], old)
		if i < 0 {
			return found, false
		}
		if len(found) == maxMatches {
			return found, true
		}
		found = append(found, at+i)
		at += i + 1
	}
	return found, false
}

func (v view) describeMatches(found []int, more bool) string {
	const named = 10
	var lines []string
	line, at := 1, 0
	for _, f := range found[:min(len(found), named)] {
		line += bytes.Count(v.text[at:f], []byte("\n"))
		at = f
		lines = append(lines, fmt.Sprint(line))
	}
	count := fmt.Sprint(len(found))
	if more {
		count = "more than " + count
	}
	where := "at lines " + strings.Join(lines, ", ")
	if len(found) > named {
		where += ", …"
	}
	return fmt.Sprintf("%s matches (%s)", count, where)
}

// The line ends are those of the line at its place, or of the line before if the last line has none.
func (v view) withLineEnds(text string, start int) []byte {
	if len(v.returns) == 0 || !strings.Contains(text, "\n") {
		return []byte(text)
	}
	end := bytes.IndexByte(v.text[start:], '\n')
	if end >= 0 {
		end += start
	} else {
		end = bytes.LastIndexByte(v.text, '\n')
	}
	if _, crlf := slices.BinarySearch(v.returns, end); crlf {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return []byte(text)
}
