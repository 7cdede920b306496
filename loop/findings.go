package loop

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hone"
	"hone/check"
	"hone/internal/excerpt"
	"hone/internal/lazyregexp"
	"hone/internal/render"
)

// The bounds of what a prompt says about findings that a reader has understood (ruling
// S12), in bytes.
const (
	maxTold  = 8 << 10 // of all of them together
	maxWhole = 4 << 10 // of one
	minWhole = 512     // of one of many
	maxLines = 3 << 10 // of those told in a line, where not even that is room enough
	maxShort = 200     // of one in a line
)

// linesOfCause is how many findings of one cause are told in a line, after the one that is told whole.
const linesOfCause = 4

// cause is what several findings of a file have in common: they say the same but for names, numbers and quoted texts.
type cause struct {
	file, said string
	blocks     bool
}

// ForModel words findings for a prompt, a text for each entry of a list, the blocking ones
// first. Findings of a file that say the same of other input are one entry, and so are leaks
// of what one function asked for: the first of them whole, four in a line, and how many more
// there are. Long runs of one character are cut. All have 8 KB: each is cut to 4 KB, or to
// less if they do not all fit then, down to 512 bytes. If not even that suffices, long ones are told in a line, and what is left is counted, once, at the end. A finding without
// an ID is not cut, because it is not known what in it matters, nor is one that is not of a
// check command.
func ForModel(findings []check.Finding) []string {
	var (
		entries [][]check.Finding // of one cause each
		known   = map[cause]int{}
		rest    []check.Finding
	)
	for _, f := range BlockingFirst(findings) {
		c := causeOf(f)
		at, is := known[c]
		switch {
		case f.More > 0:
			rest = append(rest, f)
			continue
		case !isRead(f):
		case is:
			entries[at] = append(entries[at], f)
			continue
		default:
			known[c] = len(entries)
		}
		entries = append(entries, []check.Finding{f})
	}
	share, lines := maxWhole, 0
	if sizeOf(entries, share) > maxTold {
		entries = eachPlaceFirst(entries)
	}
	for share > minWhole && sizeOf(entries, share) > maxTold {
		share /= 2
	}
	if sizeOf(entries, share) > maxTold {
		lines = maxLines
	}
	var texts []string
	left := maxTold
	for _, e := range entries {
		text := wholeText(e[0], share)
		if !isRead(e[0]) {
			texts = append(texts, text)
			continue
		}
		if more := strings.Count(strings.TrimSpace(e[0].Text), "\n"); more > 0 && len(text) > max(left-lines, 2*maxShort) {
			text = fmt.Sprintf("%s (and %s)", lineOf(e[0]), render.Count(more, "more line"))
		}
		if text += others(e); len(text) > left {
			rest = append(rest, e...)
			continue
		}
		left -= len(text)
		texts = append(texts, text)
	}
	if len(rest) == 0 {
		return texts
	}
	var files []string
	for _, f := range rest {
		if f.File != "" && !slices.Contains(files, f.File) {
			files = append(files, render.Line(f.File))
		}
	}
	if len(files) > maxNamed {
		files = append(files[:maxNamed], "and other files")
	}
	text := "… and " + render.Count(check.Count(rest), "more finding")
	if len(files) > 0 {
		text += ", in " + strings.Join(files, ", ")
	}
	return append(texts, text)
}

func wholeText(f check.Finding, share int) string {
	text := strings.TrimRight(FindingText(f), "\r\n")
	if !isRead(f) {
		return text
	}
	return excerpt.Middle(shortRuns(text), share)
}

func sizeOf(entries [][]check.Finding, share int) (size int) {
	for _, e := range entries {
		if isRead(e[0]) {
			size += len(wholeText(e[0], share)) + len(others(e))
		}
	}
	return size
}

// isRead reports whether a reader understood what the check command printed, here or in a clean copy.
func isRead(f check.Finding) bool {
	return f.ID != "" && (f.Source == check.SourceCommand || f.Source == hone.SourceProof)
}

// ProofNote returns what findings say about the others, if those are of a clean copy; empty if they
// are of the tree.
func ProofNote(findings []check.Finding) (note string, others []check.Finding) {
	for _, f := range findings {
		if f.Source == hone.SourceProof && f.Advisory {
			note = f.Text
		} else {
			others = append(others, f)
		}
	}
	return note, others
}

var (
	sameFinding = lazyregexp.New(` #\d+$`)
	anyValue    = lazyregexp.New("\"[^\"]*\"|'[^']*'|`[^`]*`|[\\w.+-]*\\d[\\w.+-]*")
)

// said is the first line without the name of the test, which is at the end of the ID, and without values.
func said(f check.Finding) string {
	head, _, _ := strings.Cut(f.Text, "\n")
	name := sameFinding.ReplaceAllString(f.ID, "")
	for at := 0; ; {
		next := strings.Index(head[at:], ": ")
		if next < 0 {
			break
		}
		if at += next + len(": "); strings.HasSuffix(name, head[:at-len(": ")]) {
			head = head[at:]
			break
		}
	}
	return anyValue.ReplaceAllString(head, "<v>")
}

// lineOf is a finding's first line, which has the values.
func lineOf(f check.Finding) string {
	first, _, _ := strings.Cut(shortRuns(strings.TrimRight(FindingText(f), "\r\n")), "\n")
	if len(first) > maxShort+maxShort/2 {
		first = strings.ReplaceAll(excerpt.Middle(first, maxShort), "\n", " ")
	}
	return first
}

var frame = lazyregexp.New(`(?m)^ +(at .*\((\S+:\d+)\))$`)

// leak is in the first line of a finding about memory that nothing points to any more.
var leak = lazyregexp.New(`^[^\n]*(?:\bleak of |\blost\b)`)

// causeOf returns what a finding has in common with others. Of leaked memory that is the
// function that asked for it, above main, because what it calls is not wrong.
func causeOf(f check.Finding) cause {
	if _, function, _ := owner(f); function != "" {
		return cause{"", "leak in " + function, f.Blocks()}
	}
	return cause{f.File, said(f), f.Blocks()}
}

// owner returns the frame that leaked memory belongs to, its function and its place; empty
// if the finding is about something else.
func owner(f check.Finding) (at, function, place string) {
	if !leak.MatchString(f.Text) {
		return "", "", ""
	}
	for _, m := range frame.FindAllStringSubmatch(f.Text, -1) {
		if name, _, _ := strings.Cut(strings.TrimPrefix(m[1], "at "), " ("); function == "" || name != "main" {
			at, function, place = m[1], name, m[2]
		}
	}
	return at, function, place
}

// others tells the findings of a cause after the first one, of leaked memory with its owner.
func others(e []check.Finding) string {
	text, shown, left := "", []string{lineOf(e[0])}, 0
	var lines []string // where those are that are left
	for _, f := range e[1:] {
		line, at := lineOf(f), strconv.Itoa(f.Line)
		if frame, _, place := owner(f); frame != "" {
			line, at = line+" "+frame, place
		}
		switch {
		case slices.Contains(shown, line):
			left++
		case len(shown) <= linesOfCause:
			shown = append(shown, line)
			text += "\n" + line
		default:
			left++
			if f.Line > 0 && !slices.Contains(lines, at) {
				lines = append(lines, at)
			}
		}
	}
	switch {
	case left > 0 && len(shown) == 1:
		return fmt.Sprintf(" (%d times)", left+1)
	case left > 0:
		text += fmt.Sprintf("\n(and %d more like these", left)
		if len(lines) > 0 {
			where := "on " + strings.TrimLeft(render.Count(len(lines), "line"), "0123456789 ")
			if strings.Contains(lines[0], ":") {
				where = "at"
			}
			text += ", " + where + " " + strings.Join(lines[:min(len(lines), 20)], ", ")
		}
		text += ")"
	}
	return text
}

// Of entries that cannot all be told, the first of each file comes before the others, and then the
// first of each line: one assertion with many must not hide the others. Blocking ones stay
// before advisory ones.
func eachPlaceFirst(entries [][]check.Finding) [][]check.Finding {
	var files, lines, others, notes [][]check.Finding
	seen := map[string]bool{}
	for _, e := range entries {
		f := e[0]
		place := fmt.Sprint(f.File, ":", f.Line)
		switch {
		case !f.Blocks():
			notes = append(notes, e)
		case f.File == "" || !seen[f.File]:
			files = append(files, e)
		case !seen[place]:
			lines = append(lines, e)
		default:
			others = append(others, e)
		}
		seen[f.File], seen[place] = true, true
	}
	return slices.Concat(files, lines, others, notes)
}

// maxNamed is how many files are named of findings that are left out.
const maxNamed = 5

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
