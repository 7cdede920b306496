package tool

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// placed is one edit with its place in the original.
type placed struct {
	index      int // in the call, from 0
	start, end int // in the original's bytes
	text       []byte
}

// mostFaults is how many edits that cannot be placed are explained.
const mostFaults = 3

// place finds the place of every edit in the original and returns them in the
// order of the file, or what is wrong with them in words for the model.
func place(content []byte, edits []replacement) ([]placed, string) {
	v := viewOf(content)
	var places []placed
	var faults []string
	for i, e := range edits {
		one, fault := v.place(e)
		if fault != "" {
			faults = append(faults, numbered(i, len(edits), fault))
		}
		one.index = i
		places = append(places, one)
		if len(faults) == mostFaults {
			break
		}
	}
	if len(faults) == 0 {
		slices.SortFunc(places, func(a, b placed) int { return cmp.Or(a.start-b.start, a.index-b.index) })
		faults = overlaps(places, v)
	}
	if len(faults) > 0 {
		return nil, strings.Join(faults, "\n") + "\nNothing was changed"
	}
	return places, ""
}

// numbered names the edit that a fault is about, if there are several.
func numbered(i, of int, fault string) string {
	if of == 1 {
		return fault
	}
	return fmt.Sprintf("edits[%d]: %s", i, fault)
}

// overlaps says which neighbours share a part of the original.
func overlaps(places []placed, v view) []string {
	var faults []string
	for i := 1; i < len(places) && len(faults) < mostFaults; i++ {
		a, b := places[i-1], places[i]
		if b.start < a.end {
			faults = append(faults, fmt.Sprintf("edits[%d] and edits[%d] overlap at line %d; make one edit of them",
				min(a.index, b.index), max(a.index, b.index), v.lineAt(b.start)))
		}
	}
	return faults
}

// view is a file as the model was shown it: without a byte order mark, and
// with every line ending in a newline alone.
type view struct {
	original []byte
	skipped  int // bytes before the text
	text     []byte
	returns  []int // places in text of newlines that have a carriage return in the original
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

// at is a place of the view in the original; the place of a newline is that of
// the carriage return before it.
func (v view) at(i int) int {
	before, _ := slices.BinarySearch(v.returns, i)
	return v.skipped + i + before
}

// lineAt is the number of the line at a place of the original.
func (v view) lineAt(i int) int { return 1 + bytes.Count(v.original[:i], []byte("\n")) }

// place finds the one place of an edit, or says why there is none.
func (v view) place(e replacement) (placed, string) {
	old := newlines(e.Old)
	found, more := matches(v.text, []byte(old))
	switch {
	case len(found) == 0:
		return placed{}, "oldText must match exactly once; found 0 matches for: " + quoted(e.Old) + "\n" + v.nearest(old)
	case len(found) > 1:
		return placed{}, "oldText must match exactly once; found " + v.several(found, more) + " for: " + quoted(e.Old) +
			"\nTake in more of the lines around the one that is meant"
	}
	start, end := found[0], found[0]+len(old)
	return placed{start: v.at(start), end: v.at(end), text: v.ended(newlines(e.New), start)}, ""
}

// newlines is a text of the model's with newlines alone.
func newlines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// quoted is the beginning of a text in quotes.
func quoted(text string) string { return fmt.Sprintf("%q", clip(text, 200)) }

// mostMatches is how many places of one text are looked for.
const mostMatches = 1000

// matches are the places where a text stands, also those that overlap.
func matches(text, old []byte) (found []int, more bool) {
	for at := 0; at <= len(text)-len(old); {
		i := bytes.Index(text[at:], old)
		if i < 0 {
			return found, false
		}
		if len(found) == mostMatches {
			return found, true
		}
		found = append(found, at+i)
		at += i + 1
	}
	return found, false
}

// several says how many matches there are, and where the first ones begin.
func (v view) several(found []int, more bool) string {
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
		where += " and on"
	}
	return fmt.Sprintf("%s matches (%s)", count, where)
}

// ended gives a new text the line ends of its place: those of the line where
// it begins, or of the one before where the file ends without.
func (v view) ended(text string, start int) []byte {
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
