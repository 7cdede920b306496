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
const linesOfCause = 8

// cause is what several findings of a file have in common: they say the same but for names, numbers and quoted texts.
type cause struct {
	file, said string
	blocks     bool
}

// ForModel words findings for a prompt, a text for each entry of a list, the blocking ones
// first. Findings of a file that say the same of other input are one entry: the first of
// them whole, eight in a line, and how many more there are. Long runs of one character are cut. All have 8 KB: each is cut to 4 KB, or to
// less if they do not all fit then, down to 512 bytes. If not even that suffices, long ones are told in a line, and what is left is counted, once, at the end. A finding without
// an ID is not cut, because it is not known what in it matters, nor is one that is not of a
// check command.
func ForModel(findings []check.Finding) []string {
	var (
		entries []entry
		known   = map[cause]int{}
		rest    []check.Finding
	)
	for _, f := range BlockingFirst(findings) {
		c := cause{f.File, said(f), f.Blocks()}
		at, is := known[c]
		switch {
		case f.More > 0:
			rest = append(rest, f)
			continue
		case !isRead(f):
		case is:
			entries[at].add(f)
			continue
		default:
			known[c] = len(entries)
		}
		entries = append(entries, entry{Finding: f})
		entries[len(entries)-1].add(f)
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
		text := wholeText(e.Finding, share)
		if !isRead(e.Finding) {
			texts = append(texts, text)
			continue
		}
		if more := strings.Count(strings.TrimSpace(e.Text), "\n"); more > 0 && len(text) > max(left-lines, 2*maxShort) {
			text = fmt.Sprintf("%s (and %s)", e.lines[0].text, render.Count(more, "more line"))
		}
		if text = e.told(text); len(text) > left {
			for _, l := range e.lines {
				rest = append(rest, check.Finding{File: e.File, More: l.times})
			}
			continue
		}
		left -= len(text)
		texts = append(texts, text)
	}
	if len(rest) == 0 {
		return texts
	}
	var files []string
	count := map[string]int{}
	for _, f := range rest {
		if f.File != "" && count[f.File] == 0 {
			files = append(files, f.File)
		}
		count[f.File] += max(1, f.More)
	}
	text := "… and " + render.Count(check.Count(rest), "more finding")
	for i, file := range files {
		if i == maxNamed {
			text += ", and in other files"
			break
		}
		text += fmt.Sprintf("%s%d in %s", map[bool]string{true: ": ", false: ", "}[i == 0], count[file], render.Line(file))
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

func sizeOf(entries []entry, share int) (size int) {
	for _, e := range entries {
		if isRead(e.Finding) {
			size += len(e.told(wholeText(e.Finding, share)))
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
	anyValue    = lazyregexp.New("(?:(?:\"[^\"]*\"|'[^']*'|`[^`]*`|[\\w.+~^<>=|-]*\\d[\\w.+|-]*) ?)+")
)

// said is the first line without the name of the test, which is at the end of the ID, and without values.
func said(f check.Finding) string {
	head, _, _ := strings.Cut(f.Text, "\n")
	name := sameFinding.ReplaceAllString(f.ID, "")
	if strings.HasSuffix(name, head) { // it is only a name
		head = head[strings.LastIndex(head, " > ")+1:]
	}
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

func lineOf(f check.Finding) string {
	first, _, _ := strings.Cut(shortRuns(strings.TrimRight(FindingText(f), "\r\n")), "\n")
	if len(first) > maxShort+maxShort/2 {
		first = strings.ReplaceAll(excerpt.Middle(first, maxShort), "\n", " ")
	}
	return first
}

// entry has what is told of the findings of one cause: the first, and the lines of all of them.
type entry struct {
	check.Finding
	lines []telling
}

// telling is the first line of a finding, where it is, and how often it was found.
type telling struct {
	text        string
	line, times int
}

func (e *entry) add(f check.Finding) {
	text := lineOf(f)
	for i := range e.lines {
		if e.lines[i].text == text {
			e.lines[i].times++
			return
		}
	}
	e.lines = append(e.lines, telling{text, f.Line, 1})
}

// told returns a text about the first finding, and the lines of the others.
func (e entry) told(text string) string {
	first, below, _ := strings.Cut(text, "\n")
	text = first + e.lines[0].again()
	if below != "" {
		text += "\n" + below
	}
	more := 0
	var places []string // of those that are left
	for i, l := range e.lines[1:] {
		if i < linesOfCause {
			text += "\n" + l.text + l.again()
			continue
		}
		more += l.times
		if at := strconv.Itoa(l.line); l.line > 0 && !slices.Contains(places, at) && len(places) < 20 {
			places = append(places, at)
		}
	}
	if more == 0 {
		return text
	}
	text += fmt.Sprintf("\n(and %d more like these", more)
	switch len(places) {
	case 0:
		return text + ")"
	case 1:
		return text + ", on line " + places[0] + ")"
	}
	return text + ", on lines " + strings.Join(places, ", ") + ")"
}

func (l telling) again() string {
	if l.times == 1 {
		return ""
	}
	return fmt.Sprintf(" (%d times)", l.times)
}

// Of entries that cannot all be told, the first of each file comes before the others, and then the
// first of each line: one assertion with many must not hide the others. Blocking ones stay
// before advisory ones.
func eachPlaceFirst(entries []entry) []entry {
	var files, lines, others, notes []entry
	seen := map[string]bool{}
	for _, e := range entries {
		f := e.Finding
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
			b.WriteString(strings.Repeat(string(runes[i]), 3) + fmt.Sprintf("[… %d times]", n))
		} else {
			b.WriteString(string(runes[i : i+n]))
		}
		i += n
	}
	return b.String()
}

// FindingText returns the text of a finding for a prompt, after its place if it has one,
// as compilers write it. A test that is named after the file of the place is not named again.
func FindingText(f check.Finding) string {
	if f.File == "" {
		return f.Text
	}
	return render.Line(f.Place()) + ": " + strings.TrimPrefix(f.Text, f.File+" > ")
}

// FindingTexts returns the texts of findings for a prompt, with an empty line between them.
func FindingTexts(findings []check.Finding) string {
	var texts []string
	for _, f := range findings {
		texts = append(texts, strings.TrimRight(FindingText(f), "\r\n"))
	}
	return strings.Join(texts, "\n\n")
}

// BlockingFirst returns findings with the blocking ones before the advisory ones.
func BlockingFirst(findings []check.Finding) []check.Finding {
	return append(check.BlockingOf(findings), slices.DeleteFunc(slices.Clone(findings), check.Finding.Blocks)...)
}
