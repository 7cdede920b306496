package spec

import (
	"regexp"
	"strings"
	"unicode"
)

// lineKind is what a line of a spec is before anyone asks what it means.
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
	fenced bool   // it stands in a code fence
	text   string // without mark, emphasis and needless white space
}

// scanner strips Markdown line by line.
type scanner struct {
	lines   []textLine
	fence   string // what closes the open fence; empty outside of fences
	foreign bool   // the open fence holds a programming language
	comment bool   // an HTML comment is open
}

// scan are the lines of a spec, one for each line of the text.
func scan(text string) []textLine {
	var s scanner
	text = strings.TrimPrefix(text, "\ufeff")
	for _, line := range strings.Split(text, "\n") {
		s.add(strings.TrimRightFunc(line, unicode.IsSpace))
	}
	return s.lines
}

var (
	fenceMark   = regexp.MustCompile("^(`{3,}|~{3,})\\s*([^`]*)$")
	atxHeading  = regexp.MustCompile(`^(#{1,6})(?:\s+(.*?))?(?:\s+#+)?$`)
	underlining = regexp.MustCompile(`^(?:=+|-{2,})$`)
	thematic    = regexp.MustCompile(`^(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$`)
	listMark    = regexp.MustCompile(`^(?:[-*+•–]|[0-9]{1,9}[.)])\s+(?:\[[ xX]\]\s+)?`)
	strong      = regexp.MustCompile(`\*\*([^*/\s](?:[^*]*[^*/\s])?)\*\*`)
)

// textFence are the words behind a fence that say nothing against contracts.
var textFence = regexp.MustCompile(`(?i)^(?:text|txt|plain|plaintext|http|md|markdown|specs?|contracts?|flows?|abl)?$`)

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

// outside reads a line that stands in no fence.
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
		line.kind, line.level, line.text = headingLine, len(heading[1]), bare(heading[2])
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

// plain strips what a line of text begins with.
func (s *scanner) plain(line *textLine, trimmed string) {
	if mark := listMark.FindString(trimmed); mark != "" {
		line.item, trimmed = true, trimmed[len(mark):]
	}
	line.text = bare(trimmed)
	if line.text == "" {
		line.kind = blankLine
	}
}

// underline makes the line before a heading where it can be one.
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

// uncomment takes HTML comments out of a line.
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

// closes reports whether a line ends the code that a fence opened.
func closes(line, fence string) bool {
	return len(line) >= len(fence) && strings.Trim(line, fence[:1]) == ""
}

// columns is how far a line is indented; a tab goes on to the next multiple of
// four, as in Markdown.
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

// bare is a text without emphasis, backquotes and needless white space.
func bare(text string) string {
	text = strong.ReplaceAllString(strings.ReplaceAll(text, "`", ""), "$1")
	return strings.Join(strings.Fields(text), " ")
}

// joined puts lines together that state one contract: a line that begins with
// the arrow and the one above it, and what stands below a contract, indented
// deeper and without an arrow of its own. Lines that were put to another one
// are left out.
func joined(lines []textLine) []textLine {
	var out []textLine
	var tail []string // of the last line of out
	arrow := false    // the last line of out has one, its tail included
	adjacent := false // the line before belongs to the last of out
	settle := func() {
		if tail != nil {
			out[len(out)-1].text += " " + strings.Join(tail, " ")
			tail = nil
		}
	}
	for _, line := range lines {
		plain := line.kind == plainLine && !keyword(line.text)
		if adjacent && plain && below(out[len(out)-1], arrow, line) {
			tail = append(tail, line.text)
			arrow = true
			continue
		}
		settle()
		out = append(out, line)
		adjacent, arrow = plain, hasArrow(line.text)
	}
	settle()
	return out
}

// below reports whether a line goes on with the contract of the one above,
// which has its arrow already or not.
func below(above textLine, arrow bool, line textLine) bool {
	if arrow {
		return !hasArrow(line.text) && line.indent > above.indent
	}
	return beginsWithArrow(line.text) && !line.item
}

// arrowMark is how people write the arrow. One in ASCII needs room around it,
// or it may as well be code.
var arrowMark = regexp.MustCompile(`[→⇒⟶⟹➜➔]|(?:^|\s)(?:--?|==?)>(?:\s|$)`)

func hasArrow(text string) bool { return arrowMark.MatchString(text) }

func beginsWithArrow(text string) bool {
	at := arrowMark.FindStringIndex(text)
	return at != nil && at[0] == 0
}

// cutArrow splits a contract at its first arrow that stands in no brackets or
// quotation marks; at the first one where all do.
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

// openings counts what is open at a place of a text.
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
