package allow

import (
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/pattern"
	"mvdan.cc/sh/v3/syntax"
)

// arg is one argument of a program, as far as the line shows it.
type arg struct {
	text string // contains unknown in place of each value that the line does not show
	glob bool   // the text is a pattern, and the argument stands for matching names
}

// unknown stands for an unknown part of a text. No line contains it.
const unknown = "\x00"

// home stands for the home directory of the user.
const home = "~" + unknown

// known reports whether the text is exactly what the program receives.
func (a arg) known() bool { return !a.glob && !strings.Contains(a.text, unknown) }

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
		for _, p := range unquoted(w) {
			if c.isAmbiguous(p) {
				return nil, refuse(shellText(p)+" without quotes", "it can become several words or a pattern", "put it in double quotes")
			}
		}
		fields, err := c.fields(w)
		if err == nil {
			err = c.step(len(fields))
		}
		if err != nil {
			return nil, err
		}
		text, _ := expand.Pattern(c.expansion(), w)
		for _, field := range fields {
			a := arg{field, pattern.HasMeta(text, 0)}
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

// word returns what the shell makes of a word where it expects exactly one.
func (c *checker) word(w *syntax.Word) arg {
	if fields, err := c.fields(w); err == nil && len(fields) == 1 {
		return arg{text: fields[0]}
	}
	return arg{text: unknown}
}

// fields returns the texts that a word stands for.
func (c *checker) fields(w *syntax.Word) ([]string, error) {
	const maxBraces = 10
	braces := 0
	for _, part := range w.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			braces += strings.Count(lit.Value, "{")
		}
	}
	for n := range syntax.Preorder(w) {
		if p, ok := n.(*syntax.ParamExp); ok && edits(p) && c.isAmbiguous(p) {
			return []string{unknown}, nil
		}
	}
	if braces <= maxBraces {
		if fields, err := expand.Fields(c.expansion(), w); err == nil {
			return fields, nil
		}
	}
	return nil, refuse(shellText(w), "hone cannot expand it, or it stands for too many words", "write out the words, or use a pattern")
}

// edits reports whether an expansion returns something else than the value of its variable.
func edits(p *syntax.ParamExp) bool {
	return p.Repl != nil || p.Exp != nil && !strings.HasSuffix(p.Exp.Op.String(), "-")
}

// isAmbiguous reports whether a variable can hold other texts than the one that the line
// shows.
func (c *checker) isAmbiguous(p *syntax.ParamExp) bool {
	return strings.ContainsAny(c.value(p.Param.Value), unknown+"*?[")
}

// unquoted returns the expansions of variables outside of quotes whose values the shell
// splits into words, with those in the words of other expansions.
func unquoted(w *syntax.Word) (list []*syntax.ParamExp) {
	for _, part := range w.Parts {
		p, ok := part.(*syntax.ParamExp)
		if !ok || p.Length {
			continue
		}
		for n := range syntax.Preorder(p) {
			if p, ok := n.(*syntax.ParamExp); ok && !p.Length {
				list = append(list, p)
			}
		}
	}
	return list
}

func (c *checker) expansion() *expand.Config {
	return &expand.Config{Env: variables(c.value), ProcSubst: func(*syntax.ProcSubst) (string, error) { return unknown, nil }}
}

// variables returns the value of each variable. Unlike expand.FuncEnviron, it says that an
// empty one is set, too.
type variables func(name string) string

func (v variables) Get(name string) expand.Variable {
	return expand.Variable{Set: true, Kind: expand.String, Str: v(name)}
}

func (variables) Each(func(string, expand.Variable) bool) {}

// shellText returns the source text of a node on one line, for messages.
func shellText(n syntax.Node) string {
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.SingleLine(true)).Print(&b, n); err != nil {
		return "this part of the line"
	}
	return b.String()
}
