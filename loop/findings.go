package loop

import (
	"fmt"
	"slices"
	"strings"

	"hone/check"
	"hone/internal/excerpt"
	"hone/internal/render"
)

// The bounds of what a prompt says about findings that a reader has understood (ruling
// S12), in bytes.
const (
	maxTold  = 8 << 10 // of all of them together
	maxLines = 3 << 10 // of that, for those told in a line
	maxWhole = 4 << 10 // of one
	maxShort = 200     // of one in a line
)

// wholeAtPlace is how many findings of one place are told whole. The others there usually
// say the same of other input.
const wholeAtPlace = 2

// ForModel words findings for a prompt, a text for each entry of a list, the blocking ones
// first. Of each place two are told whole and the others in a line, equal ones are counted, and
// long runs of one character are cut. What does not fit into 8 KB is told in a line, and
// the rest is counted by files. A finding without an ID is not cut, because it is not
// known what in it matters, nor is one that is not of a check command.
func ForModel(findings []check.Finding) []string {
	advisory := slices.DeleteFunc(slices.Clone(findings), check.Finding.Blocks)
	var (
		texts []string
		left  = maxTold
		at    = map[string]int{} // how many were told whole, by place
		same  = map[string]int{} // the index of each text
		count []int
		rest  []check.Finding
	)
	add := func(text string) {
		if i, told := same[text]; told {
			count[i]++
			return
		}
		same[text] = len(texts)
		texts, count = append(texts, text), append(count, 1)
		left -= len(text)
	}
	for _, f := range eachFileFirst(slices.Concat(check.BlockingOf(findings), advisory)) {
		text := strings.TrimRight(FindingText(f), "\r\n")
		if f.ID == "" || f.Source != check.SourceCommand {
			texts, count = append(texts, text), append(count, 1)
			continue
		}
		text = shortRuns(text)
		whole := f.File == "" || at[f.Place()] < wholeAtPlace
		if _, told := same[text]; !told && (!whole || len(text) > left-maxLines) {
			first, _, _ := strings.Cut(text, "\n") // which has the values
			text = strings.ReplaceAll(excerpt.Middle(first, maxShort), "\n", " ")
		} else if len(text) > maxWhole {
			text = excerpt.Middle(text, maxWhole)
		}
		if _, told := same[text]; !told && len(text) > left {
			rest = append(rest, f)
			continue
		}
		at[f.Place()]++
		add(text)
	}
	for i, n := range count {
		if n > 1 {
			texts[i] += fmt.Sprintf(" (%d times)", n)
		}
	}
	return append(texts, restText(rest)...)
}

// Of findings that cannot all be told, the first of each file comes before the others: one
// file with many must not hide the others. Blocking ones stay before advisory ones.
func eachFileFirst(findings []check.Finding) []check.Finding {
	size := 0
	for _, f := range findings {
		size += len(f.Text)
	}
	if size <= maxTold {
		return findings
	}
	var first, others, notes []check.Finding
	seen := map[string]bool{}
	for _, f := range findings {
		switch {
		case !f.Blocks():
			notes = append(notes, f)
		case f.File != "" && seen[f.File]:
			others = append(others, f)
		default:
			first = append(first, f)
		}
		seen[f.File] = true
	}
	return slices.Concat(first, others, notes)
}

func restText(rest []check.Finding) []string {
	if len(rest) == 0 {
		return nil
	}
	var files []string
	for _, f := range rest {
		if f.File != "" && !slices.Contains(files, f.File) {
			files = append(files, f.File)
		}
	}
	text := "… and " + render.Count(check.Count(rest), "more finding")
	if len(files) > 0 {
		text += ", in " + render.Names(files)
	}
	return []string{text}
}

// maxRun is how often one character may be repeated.
const maxRun = 60

// The input of a test of limits may have long runs.
func shortRuns(text string) string {
	var b strings.Builder
	runes := []rune(text)
	for i := 0; i < len(runes); {
		n := 1
		for i+n < len(runes) && runes[i+n] == runes[i] {
			n++
		}
		if n > maxRun {
			b.WriteString(strings.Repeat(string(runes[i]), 10) + fmt.Sprintf("[… %d times in all]", n))
		} else {
			b.WriteString(string(runes[i : i+n]))
		}
		i += n
	}
	return b.String()
}
