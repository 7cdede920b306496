package reply

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"hone/internal/lazyregexp"
)

// fault is why contents cannot be meant.
type fault struct {
	line    int    // from 1
	text    string // the line
	missing int    // lines of the old text where a line that says nothing of it stands; 0 if the line says that something is left out
}

// omission finds a line that stands for omitted code and is not in the old text; nil if there is none.
//
//   - A comment with an ellipsis that says so ("... rest unchanged ...") counts anywhere in a program, except in a string
//     of several lines.
//   - In strings, documents and test data it counts only where lines of the old text are missing, and so does one
//     without an ellipsis ("keep existing handlers" may be a remark), a line that is only an ellipsis, or a block with a
//     comment such as "unchanged" as its body: it can be a Python body or an empty comment.
//   - Any short comment, or words in brackets, counts exactly where a large part of the old text was.
func omission(name, old, text string) *fault {
	k := kindOf(name)
	if k.ext == ".pyi" {
		return nil
	}
	const few, large = 5, 20 // lines that may be replaced by one, in a small file and in any
	before, was, list := lineSet(old), filled(old), pieces(k.ext, text)
	var g *gaps
	for i, p := range list {
		if p.text == "" || before[p.line] {
			continue
		}
		certain, possible := placeholder(p.text)
		if i > 0 && isComment(p.text) && isComment(list[i-1].text) && !ellipsis.MatchString(p.text) {
			certain, possible = false, false // the rest of a sentence, which began in the line before
		}
		if certain && !p.inString && !k.prose && !k.fixture {
			return &fault{p.number, p.line, 0}
		}
		remark := !k.prose && !k.fixture && len(was) >= few && !p.inString && isRemark(p.text) && standsAlone(list, i, before)
		if len(before) == 0 || !possible && !remark {
			continue
		}
		if g == nil {
			g = newGaps(pieces(k.ext, old), list)
		}
		switch lost := g.lost[i]; {
		case possible && lost > 0:
			return &fault{p.number, p.line, 0}
		case remark && lost >= few-1 && (lost*3 >= len(was) || lost >= large) && g.atEdge(i):
			return &fault{p.number, p.line, lost}
		}
	}
	return nil
}

func onlyWords(name, old, text string) string {
	was, now := filled(old), filled(text)
	if len(was) < 5 || len(now) != 1 || kindOf(name).fixture || slices.Contains(was, now[0]) || !letters.MatchString(now[0]) || !isRemark(now[0]) && !sentence.MatchString(now[0]) {
		return ""
	}
	return fmt.Sprintf("it is only %s, and the file has %d lines", brief(now[0]), len(was))
}

// piece is a line without white space around it; or one of the parts of a line that is a
// whole block with a placeholder as its body: its beginning, the placeholder, its end.
type piece struct {
	number   int // of the line, from 1
	line     string
	text     string
	inString bool // begins in a string of several lines
}

func pieces(ext, text string) (list []piece) {
	quoted := stringTracker{ext: ext}
	number := 0
	for l := range strings.Lines(text) {
		number++
		p := piece{number: number, line: strings.TrimSpace(l), inString: quoted.next(l)}
		parts := []string{p.line}
		if m := block.FindStringSubmatch(p.line); m != nil && hints.MatchString(m[2]) && isHead(m[1]) {
			parts = m[1:]
		}
		for _, p.text = range parts {
			list = append(list, p)
		}
	}
	return list
}

func isHead(text string) bool {
	quotes := strings.Count(text, `"`)%2 + strings.Count(text, "'")%2 + strings.Count(text, "`")%2
	return quotes == 0 && (!strings.HasSuffix(text, ")") || declared.MatchString(text))
}

var (
	// hints matches what every placeholder contains.
	hints = lazyregexp.New(`(?i)\.\.\.|…|(?:\. ){2}|\b(?:rest|remainder|remaining|existing|unchanged|previous(?:ly)?|original(?:ly)?|same|unmodified|untouched|omitted|elided|truncated|identical|intact|` +
		`snip|snipped|skipped|left out|as before|as above|as (?:it )?(?:is|was)|no changes?|(?:not|nothing) changed?|etc)\b`)
	// leftOut matches words that say that something is left out, whatever else they say.
	leftOut  = lazyregexp.New(`^(?:\S+ )+(?:unchanged|unmodified|omitted|elided)(?: for (?:brevity|clarity))?$|^(?:(?:the|all|keep|and|your|my|our|of) )*(?:rest|remainder) of .{2}`)
	ellipsis = lazyregexp.New(`\.\.\.|…`)
	// block matches a line that is a block with an ellipsis or a comment as its body.
	block = lazyregexp.New(`^(\S.*?(?:[:={>)]|\b(?:do|then|begin)))\s*((?:pass\b|\.{3}|…)?\s*(?:#|//|/\*|--|\(\*|<!--|\{/\*).*?|\.{3}|…|(?i:todo|unimplemented|panic|fatalError)!?\(["'\x60].*?["'\x60]\);?|undefined\s*--.*?|throw new \w+\(["'\x60].*?["'\x60]\);?)\s*((?:[});,\]]|</[\w.-]+>|\bend\b)*)$`)
	// declared matches the beginning of a function or type, to the end of its name.
	declared = lazyregexp.New(`^\(?(?:[\w()]+ )*?(?:def|defn|defun|define|class|func|fun|fn|function|sub|interface|struct|trait|module)\s+(?:\(.*?\) ?)?[\w.:$]+`)
	// leader matches what begins a comment in any language, and brackets, ornaments and
	// empty statements before a placeholder; trailer matches what ends one.
	leader = lazyregexp.New(`^(?:(?:pass|return(?: None| null| nil)?|raise NotImplementedError(?:\(\))?|(?:todo|unimplemented)!\(\)|undefined|:)[;\s]*(?:#+|//+|/\*+|--+)|` +
		`(?:raise NotImplementedError|(?i:todo|unimplemented|panic|fatalError)!?|throw new \w+)\(["'\x60]|"""|\x27{3}|` +
		`\{/\*+|/\*+|//+!?|#+!?|--+(?:\[\[)?|;+|%+|<!--+|<%#|<%--|\{\{!(?:--)?|\{#|\(\*|\{-|["']\s|!|\*+|(?i:rem)\b|\.\.(?: |$)|@\*|dnl\b)\s*`)
	trailer = lazyregexp.New(`\s*(?:\*+/\}|\*+/|--+>|--%>|%>|--\}\}|\}\}|#\}|\*\)|-\}|\*@|\]\]|["'\x60]\);?|"""|\x27{3})$`)
	// dotsFirst and dotsLast match an ellipsis at the ends of a placeholder; after the first there may be a comment.
	dotsFirst = lazyregexp.New(`^[\[({<*_~=\s-]*(?:\.{3,}|…|(?:\. ){2,}\.)[\])}>*_~=\s-]*(#|//|/\*)?`)
	dotsLast  = lazyregexp.New(`[\[({<*_~=\s-]*(?:\.{3,}|…)[\])}>*_~=;,.\s-]*$`)
	// spread matches JavaScript's spread and Python's and C's uses of an ellipsis
	// before a name.
	spread = lazyregexp.New(`^\.\.\.[\w$({\[]`)

	// mark matches what begins a comment that has no code in it.
	mark = lazyregexp.New(`^(?:\{?/\*+|//+!?|(?:#+|--+|;+|%+|!|["'])(?:\s|[\[(<.…])|<!--+|<%#|<%--|\{\{!-*|\{#|\(\*+|\{-|@\*|(?i:rem|dnl)\s|\.\.\.|…|[\[<]\pL+ )`)
	// signs matches what code has, and a remark about code has not; heading what a heading in a comment has.
	signs   = lazyregexp.New("[=;{}$\\\\@]|://|^\\s*[\\w-]+:\\S")
	heading = lazyregexp.New(`^\W*[=*~#+-]{3,} `)
	// sentence matches a line that begins with a capital letter, or one without case, and has no sign of code, or one in brackets.
	sentence = lazyregexp.New(`^(?:[\p{Lu}\p{Lo}][\pL\pN\s.,;:!?'’…-]*|[<\[({][^<>\[\](){}="/]*[>\])}])$`)
	letters  = lazyregexp.New(`\pL{2}`)
	// emptyBody matches lines whose loss is none.
	emptyBody = lazyregexp.New(`^(?:|pass|raise NotImplemented.*|"""[^"]*"""|[})\];,]+|end)$`)
)

// vocabulary are words that together say nothing but that something is left out. Any may have an s more.
var vocabulary = strings.Fields(`rest remainder remaining existing unchanged previous previously original originally other same omitted unmodified old current more
	code file content implementation function method class classe line import logic body bodie test case field definition declaration module section part statement item
	entry entrie route handler property propertie prop component style rule config configuration setting setup variable constant type struct markup html script program stuff option column row member
	attribute helper export state hook jsx element fixture assertion step
	the all of keep with and insert include your my our any some put plus is are was were go goe remain stay kept leave continue continued follow
	here below above before brevity clarity for as it in from to this that no not nothing change changed needed todo fixme see copy untouched elided truncated snip snipped skipped identical intact left out etc`)

// saysOmission reports whether words in lower case say nothing but that something is left out.
func saysOmission(words string) bool {
	list := strings.FieldsFunc(words, func(r rune) bool { return strings.ContainsRune(" :;,.", r) })
	if !hints.MatchString(words) || len(list) > 10 {
		return false
	}
	return leftOut.MatchString(words) || !slices.ContainsFunc(list, func(word string) bool {
		return !slices.Contains(vocabulary, word) && !slices.Contains(vocabulary, strings.TrimSuffix(word, "s")) && !strings.HasSuffix(word, "()")
	})
}

// placeholder reports whether a line says that something is left out, and whether it may say so.
func placeholder(line string) (certain, possible bool) {
	text, commented, example := uncomment(line)
	if !hints.MatchString(line) || !commented && spread.MatchString(text) && !strings.Contains(strings.TrimRight(text, ",;) "), " ") {
		return false, false
	}
	dots := dotsFirst.FindStringSubmatch(text)
	words := strings.TrimPrefix(text, strings.Join(dots[:min(1, len(dots))], ""))
	rest := dotsLast.ReplaceAllString(words, "")
	first, last := dots != nil, len(rest) < len(words)
	rest = strings.ToLower(strings.Trim(rest, " \t[](){}<>*_~=-:;,.!\"'`#/%"))
	said := len(rest) <= 100 && saysOmission(rest)
	switch {
	case rest == "":
		return false, first || last
	case first || last && commented:
		return said && !example, said || first && dots[1] != ""
	}
	return false, said && (commented || strings.ContainsAny(line[:1], "[(<"))
}

// A comment whose text is indented is an example in a documentation.
func uncomment(line string) (text string, commented, example bool) {
	text = line
	for range 3 {
		mark := leader.FindString(text)
		if mark == "" {
			break
		}
		example = example || strings.HasSuffix(mark, "\t") || strings.HasSuffix(mark, "   ")
		text, commented = text[len(mark):], true
	}
	return strings.TrimSpace(trailer.ReplaceAllString(text, "")), commented, example
}

func isComment(line string) bool { return mark.MatchString(line) && !spread.MatchString(line) }

// isRemark reports whether a line is only a short comment in words, or words in brackets.
func isRemark(line string) bool {
	const longest = 100
	if len([]rune(line)) > longest || !isComment(line) || heading.MatchString(line) {
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

// stringTracker notes whether lines are inside a string of several lines, by the
// parity of the quotation marks before them.
type stringTracker struct {
	ext   string
	count int
}

func (s *stringTracker) next(line string) bool {
	inside := s.count%2 == 1
	switch s.ext {
	case ".go", ".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts", ".vue", ".svelte":
		s.count += strings.Count(line, "`") - strings.Count(line, "\\`")
	case ".py", ".java", ".kt", ".kts", ".scala", ".swift", ".groovy", ".ex", ".exs", ".jl", ".toml":
		s.count += strings.Count(line, `"""`) + strings.Count(line, `'''`)
	case ".rs":
		s.count += strings.Count(line, `r#"`) + strings.Count(line, `"#`)
	}
	return inside
}

// gaps compares two texts between their anchors: lines that are unique in both.
type gaps struct {
	text   []string
	anchor []bool // of each new line
	lost   []int  // of each new line: how many more lines are missing from the old text between the anchors around it than are new there
}

func newGaps(old, text []piece) *gaps {
	was, now := keys(old), keys(text)
	g := &gaps{text: now, anchor: make([]bool, len(now)), lost: make([]int, len(now))}
	count, oldAt := map[string]int{}, map[string]int{} // where a line is in the old text; -1 if more than once
	for _, line := range now {
		count[line]++
	}
	for i, line := range was {
		if _, twice := oldAt[line]; twice {
			i = -1
		}
		oldAt[line] = i
	}
	from, oldFrom := 0, 0
	end := func(to, oldTo int) {
		lost := 0
		for _, line := range was[oldFrom:oldTo] {
			if count[line] == 0 && !emptyBody.MatchString(line) {
				lost++
			}
		}
		for _, line := range now[from:to] {
			_, known := oldAt[line]
			certain, possible := placeholder(line)
			if !known && !certain && !possible && !isComment(line) && !emptyBody.MatchString(line) {
				lost--
			}
		}
		for i := from; i < to; i++ {
			g.lost[i] = lost
		}
	}
	for i, line := range now {
		if at, known := oldAt[line]; known && at >= oldFrom && line != "" && count[line] == 1 {
			end(i, at)
			g.anchor[i], from, oldFrom = true, i+1, at+1
		}
	}
	end(len(now), len(was))
	return g
}

// What declares a function or a type is compared by its beginning, so that one with other parameters is the same.
func keys(list []piece) []string {
	texts := make([]string, len(list))
	for i, p := range list {
		texts[i] = p.text
		if name := declared.FindString(p.text); name != "" {
			texts[i] = name
		}
	}
	return texts
}

// atEdge reports whether no new code lies between a line and one of the anchors around it, or the end of the text.
func (g *gaps) atEdge(i int) bool {
	const far = 20 // lines
	first, last := i-1, i+1
	for first >= 0 && i-first < far && (g.text[first] == "" || isComment(g.text[first])) {
		first--
	}
	for last < len(g.text) && last-i < far && (g.text[last] == "" || isComment(g.text[last])) {
		last++
	}
	return last == len(g.text) || g.anchor[last] || first >= 0 && g.anchor[first]
}
