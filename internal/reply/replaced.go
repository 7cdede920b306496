package reply

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"hone/internal/lazyregexp"
)

// replaced recognizes a line in place of a large part of a file, whatever it says: it is
// the whole text, and a sentence or a word; or it is a short comment exactly where the
// lines were. The error says how to remove them without it.
func replaced(name, old, text string) error {
	k := kindOf(name)
	was, now := filled(old), filled(text)
	const few = 5 // lines that may be replaced by one
	switch {
	case k.fixture || len(was) < few:
		return nil
	case len(now) == 1 && !slices.Contains(was, now[0]) && isWords(now[0]):
		return fmt.Errorf("it is only %s, and the file has %d lines; write the complete file, or delete it if it is not needed", brief(now[0]), len(was))
	case k.prose || k.ext == ".pyi":
		return nil
	}
	before, list := lineSet(old), pieces(k.ext, text)
	var gaps *gapFinder
	for i, p := range list {
		if before[p.line] || p.inString || !isRemark(p.text) || !standsAlone(list, i, before) {
			continue
		}
		if gaps == nil {
			gaps = newGapFinder(pieces(k.ext, old), list)
		}
		const large = 20 // lines, in a file of any size
		if lost := gaps.lost(i); lost >= few-1 && (lost*3 >= len(was) || lost >= large) && gaps.atEdge(i) {
			return fmt.Errorf("line %d, %s, stands where %d lines of the file were; write the complete file, with these lines, or without this one if they are to be removed", p.number, brief(p.line), lost)
		}
	}
	return nil
}

var (
	// sentence matches a line that begins with a capital letter, or one without case, and has no sign of code, or one in brackets.
	sentence = lazyregexp.New(`^(?:[\p{Lu}\p{Lo}][\pL\pN\s.,;:!?'’…-]*|[<\[({][^<>\[\](){}="/]*[>\])}])$`)
	// refers matches the beginning of a line that refers to another file.
	refers  = lazyregexp.New(`^(?:import|use|using|include|require|from|export|package|module|mod)\b`)
	letters = lazyregexp.New(`\pL{2}`)
)

func isWords(line string) bool {
	return letters.MatchString(line) && (isRemark(line) || sentence.MatchString(line))
}

var (
	// mark matches what begins a comment that has no code in it.
	mark = lazyregexp.New(`^(?:\{?/\*+|//+!?|(?:#+|--+|;+|%+|!|["'])(?:\s|[\[(<.…])|<!--+|<%#|<%--|\{\{!-*|\{#|\(\*+|\{-|@\*|(?i:rem|dnl)\s|\.\.\.|…|[\[<]\pL+ )`)
	// signs matches what code has, and a remark about code has not.
	signs = lazyregexp.New("[=;{}$\\\\@]|://|^\\s*[\\w-]+:\\S")
	// heading matches a heading in a comment.
	heading = lazyregexp.New(`^\W*[=*~#+-]{3,} `)
)

// isRemark reports whether a line is only a short comment in words, or words in brackets.
func isRemark(line string) bool {
	const longest = 100
	if len([]rune(line)) > longest || !mark.MatchString(line) || spread.MatchString(line) || heading.MatchString(line) {
		return false
	}
	text, _, example := uncomment(line)
	text = strings.TrimFunc(text, unicode.IsSpace)
	return !example && letters.MatchString(text) && !signs.MatchString(text)
}

// standsAlone reports whether a comment does not introduce what follows it: it has at most three
// lines, and after it is a blank line or the end, or it is between two lines of the old text
// without a blank line around it.
func standsAlone(list []piece, i int, before map[string]bool) bool {
	const most = 3
	next := i + 1
	for next < len(list) && next-i <= most && isComment(list[next].text) {
		next++
	}
	if next-i > most || i > 0 && isComment(list[i-1].text) {
		return false
	}
	if next == len(list) || emptyBody.MatchString(list[next].line) {
		return true
	}
	return i > 0 && list[i-1].line != "" && before[list[i-1].line] && before[list[next].line]
}

// isComment reports whether a line is only a comment, of any length.
func isComment(line string) bool { return mark.MatchString(line) && !spread.MatchString(line) }

// atEdge reports whether no new code lies between a line and one of the lines around it that
// both texts have. Only the first lines of a text are no edge if new code follows.
func (g *gapFinder) atEdge(i int) bool {
	const far = 20 // lines
	first, last := i-1, i+1
	for first >= 0 && i-first < far && (g.text[first] == "" || isComment(g.text[first])) {
		first--
	}
	for last < len(g.text) && last-i < far && (g.text[last] == "" || isComment(g.text[last])) {
		last++
	}
	return last == len(g.text) || g.anchor(last) >= 0 || first >= 0 && g.anchor(first) >= 0
}
