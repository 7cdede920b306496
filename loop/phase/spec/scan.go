package spec

import (
	"strings"

	"hone/internal/lazyregexp"
)

// line is a line of a spec without its Markdown. A wrapped contract is one line.
type line struct {
	number int    // counted from 1
	indent int    // before the text or its list mark; a tab counts as four columns
	level  int    // of a heading; 0 for other lines
	marked bool   // a list item, or in a code fence
	inside bool   // below a heading for contracts
	gap    bool   // the line above is blank or context
	key    string // "FLOW" or "SUPERSEDES" if the line starts with it, else empty
	text   string // what follows the key
}

var (
	comment   = lazyregexp.New(`(?s)<!--.*?(?:-->|$)`)
	fence     = lazyregexp.New("^(?:`{3,}|~{3,})\\s*([^`]*)$")
	textFence = lazyregexp.New(`(?i)^(?:text|txt|plain|plaintext|http|md|markdown|specs?|contracts?|flows?|abl)?$`)
	context   = lazyregexp.New(`^(?:[|>]|//)`)
	heading   = lazyregexp.New(`^(#{1,6})\s+(.*?)(?:\s+#+)?$`)
	listMark  = lazyregexp.New(`^(?:[-*+•–]|[0-9]{1,9}[.)])\s+(?:\[[ xX]\]\s+)?`)
	strong    = lazyregexp.New(`\*\*([^*/\s](?:[^*]*[^*/\s])?)\*\*`)

	keyword    = lazyregexp.New(`^(?:(FLOW)\s*:|(SUPERSEDES)\b\s*(?:\([^)]*\))?\s*:?)`)
	section    = lazyregexp.New(`(?i)\b(?:contracts?|flows?|supersedes|supersessions?)\b`)
	phaseTitle = lazyregexp.New(`(?i)^phase`)
)

// sections reports whether the spec has headings for contracts.
func scan(text string) (lines []line, sections bool) {
	text = comment.ReplaceAllStringFunc(text, func(c string) string { return strings.Repeat("\n", strings.Count(c, "\n")) })
	fenced, foreign := false, false // in a code fence, and in one with a programming language
	gap, level := false, 0          // of the heading for contracts above; 0 if there is none
	for i, raw := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(raw)
		if mark := fence.FindStringSubmatch(trimmed); mark != nil {
			fenced, foreign = !fenced, !fenced && !textFence.MatchString(mark[1])
			continue
		}
		l := line{number: i + 1, marked: fenced, gap: gap}
		if !foreign && !context.MatchString(trimmed) && !(fenced && strings.HasPrefix(trimmed, "#")) {
			l.strip(raw, trimmed)
		}
		if gap = l.key+l.text == ""; gap {
			continue
		}
		switch {
		case l.level == 0 || l.key != "":
		case section.MatchString(l.text) && !phaseTitle.MatchString(l.text):
			level, sections = l.level, true
		case l.level <= level:
			level = 0
		}
		l.inside = level > 0
		if n := len(lines); n > 0 && l.continues(lines[n-1]) {
			lines[n-1].text += " " + l.text
		} else {
			lines = append(lines, l)
		}
	}
	return lines, sections
}

// The text stays empty if the line only separates others.
func (l *line) strip(raw, text string) {
	raw = strings.ReplaceAll(raw, "\t", "    ")
	l.indent = len(raw) - len(strings.TrimLeft(raw, " "))
	if found := heading.FindStringSubmatch(text); found != nil && !l.marked {
		l.level, text = len(found[1]), found[2]
	} else if mark := listMark.FindString(text); mark != "" {
		l.marked, text = true, text[len(mark):]
	}
	text = strong.ReplaceAllStringFunc(strings.ReplaceAll(text, "`", ""), func(s string) string { return strings.Trim(s, "*") })
	if strings.Trim(text, "-=*_ \t") == "" {
		return
	}
	text = strings.Join(strings.Fields(text), " ")
	if found := keyword.FindStringSubmatch(text); found != nil {
		l.key, text = found[1]+found[2], strings.TrimSpace(text[len(found[0]):])
	}
	l.text = text
}

// A wrapped contract goes on with its arrow, or with a deeper line that has none.
func (l line) continues(above line) bool {
	if l.gap || l.level+above.level > 0 || l.key+above.key != "" {
		return false
	}
	arrow := arrowMark.FindStringIndex(l.text)
	if arrowMark.MatchString(above.text) {
		return arrow == nil && l.indent > above.indent
	}
	return arrow != nil && arrow[0] == 0
}
