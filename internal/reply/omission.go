package reply

import (
	"strings"

	"hone/internal/lazyregexp"
)

// omission finds a line of text, from 1, that stands for omitted code and is not in
// the old text. A line that says so ("... rest unchanged ...") counts anywhere in a
// program, except in a string of several lines. In strings, documents and test data
// it counts only if lines of the old text are missing at that place, and so does a
// line that is only an ellipsis: it can be a Python body or an empty comment.
func omission(name, old, text string) (line int, found string, ok bool) {
	k := kindOf(name)
	if !strings.Contains(text, "...") && !strings.Contains(text, "…") && !mention.MatchString(text) {
		return 0, "", false
	}
	before := lineSet(old)
	var gaps *gapFinder
	quoted := stringTracker{ext: k.ext}
	for l := range strings.Lines(text) {
		line++
		inString := quoted.next(l)
		t := strings.TrimSpace(l)
		if t == "" || before[t] {
			continue
		}
		certain, possible := placeholder(t)
		if !certain && !possible || k.ext == ".pyi" {
			continue
		}
		if certain && !inString && !k.prose && !k.fixture {
			return line, t, true
		}
		if len(before) == 0 {
			continue
		}
		if gaps == nil {
			gaps = newGapFinder(old, text)
		}
		if gaps.hasGap(line - 1) {
			return line, t, true
		}
	}
	return 0, "", false
}

// mention matches what every placeholder without an ellipsis mentions.
var mention = lazyregexp.New(`(?i)\b(?:rest of|existing|remaining|unchanged|omitted|snip|as before|no changes?)\b`)

var (
	// leader matches what begins a comment in any language, and brackets and
	// ornaments around a placeholder; trailer matches what ends one.
	leader  = lazyregexp.New(`^(?:\{/\*+|/\*+|//+!?|#+!?|--+(?:\[\[)?|;+|%+|<!--+|<%#|<%--|\{\{!(?:--)?|\{#|\(\*|\{-|["']\s|!|\*+|(?i:rem)\b|\.\.(?: |$)|@\*|dnl\b)\s*`)
	trailer = lazyregexp.New(`\s*(?:\*+/\}|\*+/|--+>|--%>|%>|--\}\}|\}\}|#\}|\*\)|-\}|\*@|\]\])$`)
	// dotsFirst and dotsLast match an ellipsis at the ends of a placeholder.
	dotsFirst = lazyregexp.New(`^[\[({<*_~=\s-]*(?:\.{3,}|…|(?:\. ){2,}\.)[\])}>*_~=\s-]*`)
	dotsLast  = lazyregexp.New(`[\[({<*_~=\s-]*(?:\.{3,}|…)[\])}>*_~=;,.\s-]*$`)
	// body matches a line of code that ends in an elided body.
	body = lazyregexp.New(`(?:\{\s*(?:/\*+\s*|//\s*)?(?:\.{3}|…)(?:\s*\*+/)?\s*\}?[;,)]*|[:=]\s*\.{3}|:\s*#\s*(?:\.{3}|…))$`)
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
	// plain matches what a comment without an ellipsis says.
	plain = lazyregexp.New(`^(?:keep )?` + some + `(?:rest|remainder) of (?:the |this |your |our |my )?(?:[\w.-]+ )?` + things + ` (?:` + be + same + `|here|goes here|remains?|stays?|continues?(?: here)?|unchanged.*)$` +
		`|^(?:keep )?` + some + `(?:existing|remaining) (?:[\w-]+ )?` + things + ` (?:` + be + same + `|here|goes here|go here|remains?|stays?|continues?(?: here)?)$` +
		`|^keep ` + some + `(?:existing|remaining) (?:[\w-]+ )?` + things + `(?: here)?$` +
		`|^(?:[\w-]+ )?` + things + ` ` + be + `(?:omitted|elided|truncated|unchanged)(?: for brevity| for clarity| here)$`)
	// bare matches words that mean an omission only where something is missing.
	bare = lazyregexp.New(`^(?:` + some + core + ` ` + things + `|` + same + `|` + some + `rest|snip|no changes?(?: (?:here|below|above|needed))?|` + some + `(?:rest|remainder) of .{2,40})$`)
	// spread matches JavaScript's spread and Python's and C's uses of an ellipsis
	// before a name.
	spread = lazyregexp.New(`^\.\.\.[\w$({\[]`)
)

// placeholder reports whether a line certainly or possibly stands for omitted
// code.
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
	rest = strings.ToLower(strings.Trim(rest, " \t[](){}<>*_~=-:;,.!\"'`"))
	switch {
	case rest == "":
		return false, first || last
	case len(rest) > 100:
		return false, false
	case first && last:
		return anyCore.MatchString(rest), bare.MatchString(rest)
	case first, last && commented:
		return oneSided.MatchString(rest), bare.MatchString(rest)
	case commented || strings.ContainsAny(line[:1], "[(<"):
		return plain.MatchString(rest), bare.MatchString(rest)
	}
	return false, body.MatchString(line)
}

// uncomment returns a line without the marks of a comment, and whether there were
// any. A comment whose text is indented is an example in a documentation.
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

// next reports whether a line begins in such a string.
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
	count      map[string]int  // how often a line is in the new text
	oldAt      map[string]int  // where a line is in the old text; -1 if more than once
	startAfter []int           // for each new line, the old line after the nearest anchor before it
	endBefore  []int           // for each new line, the old line of the nearest anchor after it
	known      map[[2]int]bool // results of lost, by the lines of the gap
}

func newGapFinder(old, text string) *gapFinder {
	g := &gapFinder{old: trimmedLines(old), text: trimmedLines(text), count: map[string]int{}, oldAt: map[string]int{}, known: map[[2]int]bool{}}
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

// anchor returns the place in the old text of a line that is unique in both; -1
// otherwise.
func (g *gapFinder) anchor(i int) int {
	line := g.text[i]
	if a, ok := g.oldAt[line]; ok && line != "" && g.count[line] == 1 {
		return a
	}
	return -1
}

// hasGap reports whether more lines are missing from the old text, between the lines
// around line i that both texts have, than are new there.
func (g *gapFinder) hasGap(i int) bool {
	gap := [2]int{g.startAfter[i], g.endBefore[i]}
	lost, known := g.known[gap]
	if !known {
		lost = g.missingLines(i) > 0
		g.known[gap] = lost
	}
	return lost
}

// missingLines returns how many more lines are missing around line i than are new.
func (g *gapFinder) missingLines(i int) int {
	missing := 0
	for at := g.startAfter[i]; at < g.endBefore[i]; at++ {
		line := g.old[at]
		if line != "" && g.count[line] == 0 && line != "pass" && !strings.HasPrefix(line, "raise NotImplemented") {
			missing++
		}
	}
	for j := i - 1; j >= 0 && g.anchor(j) < 0; j-- {
		missing -= g.isNew(j)
	}
	for j := i + 1; j < len(g.text) && g.anchor(j) < 0; j++ {
		missing -= g.isNew(j)
	}
	return missing
}

// isNew is 1 if line j of the new text is not in the old one, and 0 otherwise.
func (g *gapFinder) isNew(j int) int {
	if _, known := g.oldAt[g.text[j]]; known || g.text[j] == "" {
		return 0
	}
	if certain, possible := placeholder(g.text[j]); certain || possible {
		return 0
	}
	return 1
}

func trimmedLines(text string) []string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return lines
}
