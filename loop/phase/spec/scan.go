package spec

import (
	"strings"
	"unicode"

	"hone/internal/lazyregexp"
)

// lineKind is the form of a line, independent of its meaning.
type lineKind int

const (
	plainLine   lineKind = iota
	blankLine            // also the fences around code, and rules
	headingLine          // a Markdown heading
	otherLine            // a table row, a quotation, a comment in code, code in a programming language
)

// textLine is one line of a spec without its Markdown.
type textLine struct {
	number int // counted from 1
	kind   lineKind
	indent int    // columns before the text or its list mark
	level  int    // of a heading
	item   bool   // it is a list item
	fenced bool   // it is inside a code fence
	text   string // without mark, emphasis and redundant white space
}

// scanner strips Markdown line by line.
type scanner struct {
	lines   []textLine
	fence   string // the mark that closes the open fence; empty outside fences
	foreign bool   // the open fence contains a programming language
	comment bool   // an HTML comment is open
}

// scan returns the lines of a spec, one for each line of the text.
func scan(text string) []textLine {
	var s scanner
	text = strings.TrimPrefix(text, "\ufeff")
	for _, line := range strings.Split(text, "\n") {
		s.add(strings.TrimRightFunc(line, unicode.IsSpace))
	}
	return s.lines
}

var (
	fenceMark   = lazyregexp.New("^(`{3,}|~{3,})\\s*([^`]*)$")
	atxHeading  = lazyregexp.New(`^(#{1,6})(?:\s+(.*?))?(?:\s+#+)?$`)
	underlining = lazyregexp.New(`^(?:=+|-{2,})$`)
	thematic    = lazyregexp.New(`^(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$`)
	listMark    = lazyregexp.New(`^(?:[-*+•–]|[0-9]{1,9}[.)])\s+(?:\[[ xX]\]\s+)?`)
	strong      = lazyregexp.New(`\*\*([^*/\s](?:[^*]*[^*/\s])?)\*\*`)
)

// textFence matches the info strings of fences that may contain contracts.
var textFence = lazyregexp.New(`(?i)^(?:text|txt|plain|plaintext|http|md|markdown|specs?|contracts?|flows?|abl)?$`)

func (s *scanner) add(raw string) {
	trimmed := strings.TrimSpace(raw)
	line := textLine{number: len(s.lines) + 1, indent: columns(raw), fenced: s.fence != ""}
	switch {
	case s.fence != "" && closes(trimmed, s.fence):
		s.fence = ""
		line.kind = blankLine
	case s.fence != "" && (s.foreign || strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, "//")):
		line.kind = otherLine
	case s.fence != "":
		s.plain(&line, trimmed)
	default:
		s.outside(&line, trimmed)
	}
	s.lines = append(s.lines, line)
}

// outside reads a line outside fences.
func (s *scanner) outside(line *textLine, trimmed string) {
	before := trimmed
	trimmed = s.uncomment(trimmed)
	mark := fenceMark.FindStringSubmatch(trimmed)
	heading := atxHeading.FindStringSubmatch(trimmed)
	switch {
	case trimmed == "" && before != "":
		line.kind = otherLine
	case mark != nil:
		s.fence, s.foreign = mark[1], !textFence.MatchString(strings.TrimSpace(mark[2]))
		line.kind = blankLine
	case heading != nil && line.indent < 4:
		line.kind, line.level, line.text = headingLine, len(heading[1]), stripMarks(heading[2])
	case underlining.MatchString(trimmed) && s.underline(trimmed):
		line.kind = blankLine
	case thematic.MatchString(trimmed):
		line.kind = blankLine
	case strings.HasPrefix(trimmed, "|"), strings.HasPrefix(trimmed, ">"):
		line.kind = otherLine
	default:
		s.plain(line, trimmed)
	}
}

// plain reads a line of text without its list mark.
func (s *scanner) plain(line *textLine, trimmed string) {
	if mark := listMark.FindString(trimmed); mark != "" {
		line.item, trimmed = true, trimmed[len(mark):]
	}
	line.text = stripMarks(trimmed)
	if line.text == "" {
		line.kind = blankLine
	}
}

// underline makes the line before a heading, if it can be one.
func (s *scanner) underline(mark string) bool {
	if len(s.lines) == 0 {
		return false
	}
	last := &s.lines[len(s.lines)-1]
	if last.kind != plainLine || last.item || last.fenced || hasArrow(last.text) {
		return false
	}
	last.kind, last.level = headingLine, 1
	if mark[0] == '-' {
		last.level = 2
	}
	return true
}

// uncomment removes HTML comments from a line.
func (s *scanner) uncomment(line string) string {
	var kept strings.Builder
	for {
		mark := "<!--"
		if s.comment {
			mark = "-->"
		}
		before, after, found := strings.Cut(line, mark)
		if !s.comment {
			kept.WriteString(before)
		}
		if !found {
			return strings.TrimSpace(kept.String())
		}
		s.comment = !s.comment
		line = after
	}
}

// closes reports whether a line closes a fence.
func closes(line, fence string) bool {
	return len(line) >= len(fence) && strings.Trim(line, fence[:1]) == ""
}

// columns returns a line's indentation. A tab extends to the next multiple of four,
// as in Markdown.
func columns(line string) int {
	n := 0
	for _, r := range line {
		switch r {
		case ' ':
			n++
		case '\t':
			n += 4 - n%4
		default:
			return n
		}
	}
	return n
}

// stripMarks returns a text without emphasis, backquotes and redundant white space.
func stripMarks(text string) string {
	text = strong.ReplaceAllString(strings.ReplaceAll(text, "`", ""), "$1")
	return strings.Join(strings.Fields(text), " ")
}

// joinLines joins lines that state one contract: a line that starts with the arrow
// is joined to the line above it, and a line without an arrow to the contract above
// it if it is indented deeper.
func joinLines(lines []textLine) []textLine {
	var out []textLine
	var tail []string // of the last line of out
	arrow := false    // the last line of out has one, including its tail
	adjacent := false // the line before belongs to the last of out
	flush := func() {
		if tail != nil {
			out[len(out)-1].text += " " + strings.Join(tail, " ")
			tail = nil
		}
	}
	for _, line := range lines {
		plain := line.kind == plainLine && !keyword(line.text)
		if adjacent && plain && continuesContract(out[len(out)-1], arrow, line) {
			tail = append(tail, line.text)
			arrow = true
			continue
		}
		flush()
		out = append(out, line)
		adjacent, arrow = plain, hasArrow(line.text)
	}
	flush()
	return out
}

// continuesContract reports whether a line continues the contract of the line above.
// arrow tells whether that one already has its arrow.
func continuesContract(above textLine, arrow bool, line textLine) bool {
	if arrow {
		return !hasArrow(line.text) && line.indent > above.indent
	}
	return beginsWithArrow(line.text) && !line.item
}

// arrowMark matches an arrow. An ASCII arrow needs white space around it, because it
// could be code otherwise.
var arrowMark = lazyregexp.New(`[→⇒⟶⟹➜➔]|(?:^|\s)(?:--?|==?)>(?:\s|$)`)

func hasArrow(text string) bool { return arrowMark.MatchString(text) }

func beginsWithArrow(text string) bool {
	at := arrowMark.FindStringIndex(text)
	return at != nil && at[0] == 0
}

// cutArrow splits a contract at its first arrow outside brackets and quotation
// marks, or else at its first arrow.
func cutArrow(text string) (action, expected string, ok bool) {
	found := arrowMark.FindAllStringIndex(text, -1)
	if found == nil {
		return "", "", false
	}
	at := found[0]
	var open openings
	read := 0
	for _, f := range found {
		open.read(text[read:f[0]])
		read = f[0]
		if open.none() {
			at = f
			break
		}
	}
	return strings.TrimSpace(text[:at[0]]), strings.TrimSpace(text[at[1]:]), true
}

// openings counts the open brackets and quotation marks at a place in a text.
type openings struct {
	brackets int
	quoted   bool
}

func (o *openings) read(text string) {
	for _, r := range text {
		switch r {
		case '{', '(', '[':
			o.brackets++
		case '}', ')', ']':
			o.brackets = max(0, o.brackets-1)
		case '"':
			o.quoted = !o.quoted
		}
	}
}

func (o *openings) none() bool { return o.brackets == 0 && !o.quoted }
