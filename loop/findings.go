package loop

import (
	"cmp"
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
// first. Findings of a file that say the same of other input are one entry, and so are leaks
// of what one function asked for: the first of them whole, four in a line, and how many more
// there are. Long runs of one character are cut. All have 8 KB: each is cut to 4 KB, or to
// less if they do not all fit then, down to 512 bytes. If not even that suffices, long ones are told in a line, and what is left is counted, once, at the end. A finding without
// an ID is not cut, because it is not known what in it matters, nor is one that is not of a
// check command.
func ForModel(findings []check.Finding) []string {
	var (
		entries []entry // of one cause each
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
			entries[at] = entries[at].with(f)
			continue
		default:
			known[c] = len(entries)
		}
		entries = append(entries, entry{tell(f)})
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
		text := wholeText(e[0].Finding, share)
		if !isRead(e[0].Finding) {
			texts = append(texts, text)
			continue
		}
		if more := strings.Count(strings.TrimSpace(e[0].Text), "\n"); more > 0 && len(text) > max(left-lines, 2*maxShort) {
			text = fmt.Sprintf("%s (and %s)", lineOf(e[0].Finding), render.Count(more, "more line"))
		}
		if text = e.told(text); len(text) > left {
			for _, t := range e {
				rest = append(rest, check.Finding{File: t.File, More: t.times})
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
		if isRead(e[0].Finding) {
			size += len(e.told(wholeText(e[0].Finding, share)))
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
	gotAndWant  = lazyregexp.New(`: (got .{6,}, want .*\d.*)$`)
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

// entry has what is told of the findings of one cause.
type entry []telling

// telling is a finding, and how often it was found: with the same line, or with the same values by other assertions of
// one test.
type telling struct {
	check.Finding
	line   string
	values string // what a test got and wanted, with its name; empty if others may have the same by chance
	times  int
	lines  []string // others than its own
}

func tell(f check.Finding) telling {
	line := lineOf(f)
	if frame, _, _ := owner(f); frame != "" {
		line += " " + frame
	}
	values := ""
	head, _, _ := strings.Cut(f.Text, "\n")
	if m, test := gotAndWant.FindStringSubmatch(head), strings.LastIndex(f.ID, " > "); m != nil && test >= 0 {
		values = f.ID[:test] + m[1]
	}
	return telling{f, line, values, 1, nil}
}

func (e entry) with(f check.Finding) entry {
	now := tell(f)
	for i, t := range e {
		other := t.Line != f.Line
		if t.line != now.line && !(other && now.values != "" && now.values == t.values) {
			continue
		}
		t.times++
		if line := strconv.Itoa(f.Line); other && !slices.Contains(t.lines, line) {
			t.lines = append(t.lines, line)
		}
		e[i] = t
		return e
	}
	return append(e, now)
}

// told returns a text about the first finding, and what the others say that it does not.
func (e entry) told(text string) string {
	first, below, _ := strings.Cut(text, "\n")
	text = first + e[0].again()
	if below != "" {
		text += "\n" + below
	}
	more := 0
	var places []string // of those that are left
	for i, t := range e[1:] {
		if i < linesOfCause {
			text += "\n" + differing(t.line, e[0].line) + t.again()
			continue
		}
		more += t.times
		_, _, place := owner(t.Finding)
		if place = cmp.Or(place, strconv.Itoa(t.Line)); place != "0" && !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	if more == 0 {
		return text
	}
	text += fmt.Sprintf("\n(and %d more like these", more)
	if len(places) > 0 {
		text += ", " + onLines(places[:min(len(places), 20)])
	}
	return text + ")"
}

func (t telling) again() string {
	switch {
	case t.times == 1:
		return ""
	case len(t.lines) == 0:
		return fmt.Sprintf(" (%d times)", t.times)
	case t.times == len(t.lines)+1:
		return " (also " + onLines(t.lines) + ")"
	}
	return fmt.Sprintf(" (%d times, also %s)", t.times, onLines(t.lines))
}

// The lines may have files.
func onLines(lines []string) string {
	where := "on lines "
	if strings.Contains(lines[0], ":") {
		where = "at "
	} else if len(lines) == 1 {
		where = "on line "
	}
	return where + strings.Join(lines, ", ")
}

// differing returns a line without the words at its start and end that another has, too.
func differing(line, other string) string {
	const least = 12 // bytes that are left out
	start, end := 0, 0
	for i := 0; i < min(len(line), len(other)) && line[i] == other[i]; i++ {
		if line[i] == ' ' {
			start = i + 1
		}
	}
	if start >= least {
		line, other = "… "+line[start:], "… "+other[start:]
	}
	for i := 1; i < min(len(line), len(other))-len("… ") && line[len(line)-i] == other[len(other)-i]; i++ {
		if line[len(line)-i] == ' ' {
			end = i
		}
	}
	if end >= least {
		line = line[:len(line)-end] + " …"
	}
	return line
}

// Of entries that cannot all be told, the first of each file comes before the others, and then the
// first of each line: one assertion with many must not hide the others. Blocking ones stay
// before advisory ones.
func eachPlaceFirst(entries []entry) []entry {
	var files, lines, others, notes []entry
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
