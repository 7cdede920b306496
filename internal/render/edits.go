package render

import (
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/rogpeppe/go-internal/diff"

	"hone/internal/lazyregexp"
)

// mostExact is up to how many changed lines udiff finds the smallest change. Beyond, it takes
// what lies between two changes for changed.
const mostExact = 100

var hunk = lazyregexp.New(`(?m)^@@ -(\d+),(\d+) \+(\d+),(\d+) @@$`)

// edits returns what changes a text to another one, by whole lines. A large change is cut at
// the lines that occur once in both texts, and each part of it is compared by itself.
func edits(before, after string) []udiff.Edit {
	all := udiff.Lines(before, after)
	if added, removed := count(before, all); added+removed <= mostExact {
		return all
	}
	was, is := lineStarts(before), lineStarts(after)
	all = nil
	for _, m := range hunk.FindAllStringSubmatch(string(diff.Diff("", []byte(before), "", []byte(after))), -1) {
		from, to := bounds(was, m[1], m[2])
		newFrom, newTo := bounds(is, m[3], m[4])
		for _, e := range udiff.Lines(before[from:to], after[newFrom:newTo]) {
			all = append(all, udiff.Edit{Start: from + e.Start, End: from + e.End, New: e.New})
		}
	}
	return all
}

// bounds returns where the lines of a hunk begin and end. A hunk without lines names the line before it.
func bounds(starts []int, first, count string) (from, to int) {
	i, _ := strconv.Atoi(first)
	n, _ := strconv.Atoi(count)
	if n > 0 {
		i--
	}
	return starts[i], starts[i+n]
}

// lineStarts returns where each line begins, and the end of the text.
func lineStarts(text string) []int {
	starts := []int{0}
	for line := range strings.Lines(text) {
		starts = append(starts, starts[len(starts)-1]+len(line))
	}
	return starts
}

func count(before string, all []udiff.Edit) (added, removed int) {
	for _, e := range all {
		added += lineCount(e.New)
		removed += lineCount(before[e.Start:e.End])
	}
	return added, removed
}
