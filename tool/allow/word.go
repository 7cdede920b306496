package allow

import (
	"slices"
	"strings"

	"hone/internal/lazyregexp"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// arg is one argument of a program, as far as the line shows it.
type arg struct {
	text string // contains unknown in place of each value that the line does not show
	glob bool   // the text is a pattern, and the argument stands for matching names
}

// unknown stands for an unknown part of a text. No line contains it.
const unknown = "\x00"

// known reports whether the text is exactly what the program receives.
func (a arg) known() bool { return !a.glob && !strings.Contains(a.text, unknown) }

// single reports whether the shell makes exactly one argument of it if it is not
// quoted.
func (a arg) single() bool {
	return a.known() && a.text != "" && !strings.ContainsAny(a.text, " \t\n*?[\\")
}

// literal returns the text of a word without expansions, patterns or braces; ok is
// false for other words.
func literal(w *syntax.Word) (text string, ok bool) {
	for n := range syntax.Preorder(w) {
		switch n.(type) {
		case *syntax.ParamExp, *syntax.ArithmExp:
			return "", false
		}
	}
	args, err := (&checker{}).words([]*syntax.Word{w})
	if err != nil || len(args) != 1 || !args[0].known() {
		return "", false
	}
	return args[0].text, true
}

// words returns the arguments that the shell makes of the words of a command. It
// refuses patterns that match paths outside the working directory.
func (c *checker) words(list []*syntax.Word) (args []arg, err error) {
	for _, w := range list {
		for _, part := range w.Parts {
			if p, ok := part.(*syntax.ParamExp); ok && !c.value(p).single() {
				return nil, refuse(shellText(p)+" without quotes", "it can become several words or a pattern", "put it in double quotes")
			}
		}
		expanded, ok := expandBraces(w)
		if !ok {
			return nil, refuse("the braces in "+shellText(w), "they stand for too many words", "write out the words, or use a pattern")
		}
		for _, w := range expanded {
			a := c.word(w.Parts, false)
			if a.glob {
				err = c.path(a)
			}
			if err != nil {
				return nil, err
			}
			args = append(args, a)
		}
	}
	return args, nil
}

// expandBraces returns the words that a word with braces stands for; ok is false if
// there are too many.
func expandBraces(w *syntax.Word) (list []*syntax.Word, ok bool) {
	const maxBraces, maxWords = 10, 100
	open := 0
	for _, part := range w.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			open += strings.Count(lit.Value, "{")
		}
	}
	split := &syntax.Word{Parts: slices.Clone(w.Parts)}
	if open > maxBraces || !syntax.SplitBraces(split) {
		return []*syntax.Word{w}, open <= maxBraces
	}
	for one, err := range expand.BracesSeq(nil, split) {
		if err != nil || len(list) == maxWords {
			return nil, false
		}
		list = append(list, one)
	}
	return list, true
}

// word returns what the shell makes of the parts of a word; if quoted is set, they
// are in double quotes.
func (c *checker) word(parts []syntax.WordPart, quoted bool) (whole arg) {
	for _, part := range parts {
		a := c.part(part, quoted)
		whole.text += a.text
		whole.glob = whole.glob || a.glob
	}
	return whole
}

var quotedEscape = lazyregexp.New("\\\\(?:([\"$`\\\\])|\n)")

func (c *checker) part(part syntax.WordPart, quoted bool) arg {
	switch part := part.(type) {
	case *syntax.Lit:
		if quoted {
			return arg{text: quotedEscape.ReplaceAllString(part.Value, "$1")}
		}
		return unescaped(part.Value)
	case *syntax.SglQuoted:
		return arg{text: part.Value}
	case *syntax.DblQuoted:
		return c.word(part.Parts, true)
	case *syntax.ParamExp:
		return c.value(part)
	case *syntax.ArithmExp:
		return anyNumber
	}
	return arg{text: unknown}
}

// unescaped returns what the shell makes of a text without quotes.
func unescaped(lit string) (a arg) {
	var b strings.Builder
	for i := 0; i < len(lit); i++ {
		switch {
		case lit[i] != '\\' || i+1 == len(lit):
			a.glob = a.glob || lit[i] == '*' || lit[i] == '?' || lit[i] == '[' && strings.Contains(lit[i:], "]")
			b.WriteByte(lit[i])
		case lit[i+1] != '\n':
			b.WriteByte(lit[i+1])
			i++
		default:
			i++
		}
	}
	a.text = b.String()
	return a
}

// shellText returns the source text of a node on one line, for messages.
func shellText(n syntax.Node) string {
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.SingleLine(true)).Print(&b, n); err != nil {
		return "this part of the line"
	}
	return b.String()
}
