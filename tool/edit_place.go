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
		if fault != "" && len(edits) > 1 {
			fault = fmt.Sprintf("edits[%d]: %s", i, fault)
		}
		if fault != "" {
			faults = append(faults, fault)
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

func overlaps(places []placement, v view) []string {
	var faults []string
	for i := 1; i < len(places) && len(faults) < maxFaults; i++ {
		a, b := places[i-1], places[i]
		if b.start < a.end {
			faults = append(faults, fmt.Sprintf("edits[%d] and edits[%d] overlap at line %d; combine them into one edit",
				min(a.index, b.index), max(a.index, b.index), 1+bytes.Count(v.original[:b.start], []byte("\n"))))
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

// The text is an explanation for the model.
func (v view) place(e replacement) (placement, string) {
	old := normalizeNewlines(e.Old)
	start := bytes.Index(v.text, []byte(old))
	if start < 0 {
		return placement{}, "oldText must match exactly once; found 0 matches for: " + quoted(e.Old) + "\n" + v.nearest(old)
	}
	if matches := v.countMatches(old, start); matches != "" {
		return placement{}, "oldText must match exactly once; found " + matches + " for: " + quoted(e.Old) +
			"\nInclude more of the surrounding lines to make it unique"
	}
	end := start + len(old)
	return placement{start: v.originalOffset(start), end: v.originalOffset(end), text: v.withLineEnds(normalizeNewlines(e.New), start)}, ""
}

func normalizeNewlines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

func quoted(text string) string { return fmt.Sprintf("%q", clip(text, 200)) }

// Overlapping ones count. It is empty for a single match, which is at start.
func (v view) countMatches(old string, start int) string {
	const most, named = 1000, 10
	count, more, where := 0, "", ""
	for at, next := start, 0; next >= 0; at += next + 1 {
		if count++; count > most {
			count, more = most, "more than "
			break
		}
		switch {
		case count <= named:
			where += fmt.Sprintf(", %d", 1+bytes.Count(v.text[:at], []byte("\n")))
		case count == named+1:
			where += ", …"
		}
		next = bytes.Index(v.text[at+1:], []byte(old))
	}
	if count == 1 {
		return ""
	}
	return fmt.Sprintf("%s%d matches (at lines %s)", more, count, strings.TrimPrefix(where, ", "))
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
