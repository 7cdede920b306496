package reply

import (
	"strings"

	"hone/internal/lazyregexp"
)

// omission finds a line of text, from 1, that stands for omitted code and is not in
// the old text. A line with an ellipsis that says so ("... rest unchanged ...") counts
// anywhere in a program, except in a string of several lines. In strings, documents and
// test data it counts only if lines of the old text are missing at that place, and so does
// one without an ellipsis ("keep existing handlers" may be a remark), a line that is
// only an ellipsis, or a block with a comment such as "unchanged" as its body: it can be a
// Python body or an empty comment.
func omission(name, old, text string) (line int, found string, ok bool) {
	k := kindOf(name)
	if k.ext == ".pyi" || !hints.MatchString(text) {
		return 0, "", false
	}
	before := lineSet(old)
	var gaps *gapFinder
	list := pieces(k.ext, text)
	for i, p := range list {
		if p.text == "" || before[p.line] || !hints.MatchString(p.text) || i > 0 && continues(list[i-1].text, p.text) {
			continue
		}
		certain, possible := placeholder(p.text)
		if certain && !p.inString && !k.prose && !k.fixture {
			return p.number, p.line, true
		}
		if !possible || len(before) == 0 {
			continue
		}
		if gaps == nil {
			gaps = newGapFinder(pieces(k.ext, old), list)
		}
		if gaps.lost(i) > 0 {
			return p.number, p.line, true
		}
	}
	return 0, "", false
}

// continues reports whether a comment without an ellipsis is the rest of a sentence, which began in
// the line before.
func continues(last, line string) bool {
	if !isComment(last) || !isComment(line) || ellipsis.MatchString(line) {
		return false
	}
	last, _, _ = uncomment(last)
	return last != "" && !strings.ContainsAny(last[len(last)-1:], ".:;!?)]-=")
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
	ellipsis = lazyregexp.New(`\.\.\.|…`)
	// block matches a line that is a block with an ellipsis or a comment as its body.
	block = lazyregexp.New(`^(\S.*?(?:[:={>)]|\b(?:do|then|begin)))\s*((?:pass\b|\.{3}|…)?\s*(?:#|//|/\*|--|\(\*|<!--|\{/\*).*?|\.{3}|…|(?i:todo|unimplemented|panic|fatalError)!?\(["'\x60].*?["'\x60]\);?|undefined\s*--.*?|throw new \w+\(["'\x60].*?["'\x60]\);?)\s*((?:[});,\]]|</[\w.-]+>|\bend\b)*)$`)
	// declared matches the beginning of a function or type, to the end of its name.
	declared = lazyregexp.New(`^\(?(?:[\w()]+ )*?(?:def|defn|defun|define|class|func|fun|fn|function|sub|interface|struct|trait|module)\s+(?:\(.*?\) ?)?[\w.:$]+`)
)

var (
	// leader matches what begins a comment in any language, and brackets, ornaments and
	// empty statements before a placeholder; trailer matches what ends one.
	leader = lazyregexp.New(`^(?:(?:pass|return(?: None| null| nil)?|raise NotImplementedError(?:\(\))?|(?:todo|unimplemented)!\(\)|undefined|:)[;\s]*(?:#+|//+|/\*+|--+)|` +
		`(?:raise NotImplementedError|(?i:todo|unimplemented|panic|fatalError)!?|throw new \w+)\(["'\x60]|"""|\x27{3}|` +
		`\{/\*+|/\*+|//+!?|#+!?|--+(?:\[\[)?|;+|%+|<!--+|<%#|<%--|\{\{!(?:--)?|\{#|\(\*|\{-|["']\s|!|\*+|(?i:rem)\b|\.\.(?: |$)|@\*|dnl\b)\s*`)
	trailer = lazyregexp.New(`\s*(?:\*+/\}|\*+/|--+>|--%>|%>|--\}\}|\}\}|#\}|\*\)|-\}|\*@|\]\]|["'\x60]\);?|"""|\x27{3})$`)
	// remark matches a comment after an ellipsis.
	remark = lazyregexp.New(`^(?:#|//|/\*)`)
	// dotsFirst and dotsLast match an ellipsis at the ends of a placeholder.
	dotsFirst = lazyregexp.New(`^[\[({<*_~=\s-]*(?:\.{3,}|…|(?:\. ){2,}\.)[\])}>*_~=\s-]*`)
	dotsLast  = lazyregexp.New(`[\[({<*_~=\s-]*(?:\.{3,}|…)[\])}>*_~=;,.\s-]*$`)
)

// Words of placeholders.
const (
	things = `(?:code|codes|file|contents?|implementations?|functions?|methods?|class|classes|lines?|imports?|logic|body|bodies|tests?|test cases|cases|fields?|` +
		`definitions?|declarations?|modules?|sections?|parts?|statements?|items?|entries|entry|routes?|handlers?|properties|props|components?|styles?|rules?|` +
		`config|configuration|settings|setup|variables?|constants?|types?|structs?|markup|html|script|program|stuff|options?|columns?|rows?|members?|attributes?|helpers?|exports?|state|hooks?|jsx|elements?|fixtures?|assertions?|steps?)`
	same = `(?:unchanged|unmodified|untouched|omitted|elided|truncated|snipped|skipped|the same|as (?:it )?(?:is|was|before|above)|identical|intact|left out|same as (?:before|above|original(?:ly)?|previous(?:ly)?))(?: (?:for|due) [a-z ]{3,20}| here| below| above)?`
	be   = `(?:(?:goes|go|is|are|was|were|remains?|stays?|kept|continues?|follows?) )?`
	some = `(?:(?:the|all|all the|all of the|keep|keep the|keep all|with|and|and the|insert|include|your|my|our|any|some|of|of the|of this|of your|of our|put|rest of|rest of the|plus|same) )*`
	core = `(?:rest|remainder|remaining|existing|unchanged|previous|original|other|others|same|omitted|unmodified|old|current|more)`
)

var (
	// anyCore matches what a placeholder between two ellipses says.
	anyCore = lazyregexp.New(`^(?:[\w().,'/&-]+ ){0,6}?(?:rest|remainder|remaining|existing|unchanged|previous|others?|same as|as before|omitted|elided|truncated|unmodified|snip|snipped|skipped|continue[sd]?|for brevity)\b(?: [\w().,'/&-]+){0,8}$`)
	// oneSided matches what follows or precedes a single ellipsis.
	oneSided = lazyregexp.New(`^` + some + core + `(?: (?:of|the|of the|of this|of your|of our|[\w-]+)){0,3} ` + things + `(?: [\w-]+(?:\(\))?)?(?: ` + be + same + `| here| goes here| go here| below| above| remains?| stays?| continues?| follows?| for .{3,20})?$` +
		`|^(?:[\w().,'/&-]+ ){0,6}` + be + `(?:unchanged|unmodified|omitted|elided|truncated)(?: for brevity| here)?$|^` + some + `rest(?: ` + be + same + `)?$|^` + be + same + `$|^snip$`)
	// ahead matches what a comment without an ellipsis says of code that its writer has not written yet.
	ahead = lazyregexp.New(`\b(?:omitted|elided|truncated|shortened|skipped|left out) for (?:brevity|clarity)|^` + some + core + ` .{3,40} go(?:es)? here$`)
	// bare matches words that mean an omission only where something is missing.
	bare = lazyregexp.New(`^(?:(?:[\w.()]+,? ){1,6}(?:unchanged|unmodified|omitted|elided)|` + some + `(?:rest|remainder) of .{2,40}|(?:(?:` + core + `|` + things + `|the|all|of|keep|with|and|insert|include|your|my|our|any|some|put|plus|is|are|was|were|goes?|remains?|stays?|kept|leave|continues?|continued|follows?|` +
		`here|below|above|before|brevity|clarity|for|as|it|its|in|from|to|this|that|not?|nothing|changes?|changed|needed|todo|fixme|see|copy|untouched|elided|truncated|snip|snipped|skipped|identical|intact|left|out|` +
		`previously|originally|etc|\w+\(\))(?:[:;,.]? |[:;,.]?$)){1,10})$`)
	// spread matches JavaScript's spread and Python's and C's uses of an ellipsis
	// before a name.
	spread = lazyregexp.New(`^\.\.\.[\w$({\[]`)
)

func placeholder(line string) (certain, possible bool) {
	text, commented, example := uncomment(line)
	if !commented && spread.MatchString(text) && !strings.Contains(strings.TrimRight(text, ",;) "), " ") {
		return false, false
	}
	defer func() { certain, possible = certain && !example, possible || certain }()
	words := dotsFirst.ReplaceAllString(text, "")
	first := len(words) < len(text)
	rest := dotsLast.ReplaceAllString(words, "")
	last := len(rest) < len(words)
	rest = strings.ToLower(strings.Trim(rest, " \t[](){}<>*_~=-:;,.!\"'`#/%"))
	switch {
	case rest == "":
		return false, first || last
	case len(rest) > 100:
		return false, false
	case first && last:
		return anyCore.MatchString(rest), means(rest)
	case first && remark.MatchString(words):
		return oneSided.MatchString(rest), true
	case first, last && commented:
		return oneSided.MatchString(rest), means(rest)
	case commented || strings.ContainsAny(line[:1], "[(<"):
		return ahead.MatchString(rest), means(rest)
	}
	return false, false
}

// means reports whether words say nothing but that something is left out.
func means(words string) bool { return hints.MatchString(words) && bare.MatchString(words) }

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

// gapFinder finds lines of the old text that are missing where a line of the new
// text stands.
type gapFinder struct {
	old, text  []string
	count      map[string]int // how often a line is in the new text
	oldAt      map[string]int // where a line is in the old text; -1 if more than once
	startAfter []int          // for each new line, the old line after the nearest anchor before it
	endBefore  []int          // for each new line, the old line of the nearest anchor after it
	known      map[[2]int]int // results of lost, by the lines of the gap
}

func newGapFinder(old, text []piece) *gapFinder {
	g := &gapFinder{old: keys(old), text: keys(text), count: map[string]int{}, oldAt: map[string]int{}, known: map[[2]int]int{}}
	for _, line := range g.text {
		g.count[line]++
	}
	for i, line := range g.old {
		if _, twice := g.oldAt[line]; twice {
			i = -1
		}
		g.oldAt[line] = i
	}
	n := len(g.text)
	g.startAfter, g.endBefore = make([]int, n), make([]int, n)
	at := 0
	for i := range n {
		g.startAfter[i] = at
		if a := g.anchor(i); a >= at {
			at = a + 1
		}
	}
	at = len(g.old)
	for i := n - 1; i >= 0; i-- {
		g.endBefore[i] = at
		if a := g.anchor(i); a >= 0 && a < at {
			at = a
		}
	}
	return g
}

// An anchor is a line that is unique in both texts; -1 otherwise.
func (g *gapFinder) anchor(i int) int {
	line := g.text[i]
	if a, ok := g.oldAt[line]; ok && line != "" && g.count[line] == 1 {
		return a
	}
	return -1
}

// lost returns how many more lines are missing from the old text, between the lines
// around line i that both texts have, than are new there.
func (g *gapFinder) lost(i int) int {
	gap := [2]int{g.startAfter[i], g.endBefore[i]}
	if lost, known := g.known[gap]; known {
		return lost
	}
	missing := 0
	for at := gap[0]; at < gap[1]; at++ {
		line := g.old[at]
		if g.count[line] == 0 && !emptyBody.MatchString(line) {
			missing++
		}
	}
	for j := i - 1; j >= 0 && g.anchor(j) < 0; j-- {
		missing -= g.isNew(j)
	}
	for j := i + 1; j < len(g.text) && g.anchor(j) < 0; j++ {
		missing -= g.isNew(j)
	}
	g.known[gap] = missing
	return missing
}

// emptyBody matches lines whose loss is none.
var emptyBody = lazyregexp.New(`^(?:|pass|raise NotImplemented.*|"""[^"]*"""|[})\];,]+|end)$`)

func (g *gapFinder) isNew(j int) int {
	if _, known := g.oldAt[g.text[j]]; known || emptyBody.MatchString(g.text[j]) || isComment(g.text[j]) {
		return 0
	}
	if certain, possible := placeholder(g.text[j]); certain || possible {
		return 0
	}
	return 1
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
