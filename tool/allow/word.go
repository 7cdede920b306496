package allow

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// pieceKind is what is known of a part of a word.
type pieceKind int

const (
	asWritten  pieceKind = iota // exactly its text
	globbed                     // text in which *, ? or [ find names
	someName                    // some relative path inside, with no dash, ~ or .. in front
	someNumber                  // some integer
	anything                    // anything
)

// piece is a part of a word, after unquoting and expansion.
type piece struct {
	kind   pieceKind
	text   string
	quoted bool
}

// field is one argument, as far as it is known.
type field []piece

// arg is a field as programs' rules look at it.
type arg struct {
	text    string // with x for a name and 0 for a number
	head    string // the text up to what is not known for sure
	fixed   bool   // the text is all there is to it
	exact   bool   // so it is, but for numbers
	unknown bool   // anything may stand in it
	vague   bool   // anything may stand at its beginning
	found   bool   // it begins with what a pattern finds, which may look like an option
	active  bool   // it may be several arguments
}

func (f field) arg() arg {
	a := arg{fixed: true, exact: true, active: f.active()}
	var b strings.Builder
	for i, p := range f {
		a.fixed = a.fixed && p.kind == asWritten
		a.exact = a.exact && (p.kind == asWritten || p.kind == someNumber)
		a.unknown = a.unknown || p.kind == anything
		a.found = a.found || i == 0 && p.kind == globbed
		a.vague = a.vague || i == 0 && p.kind == anything
		b.WriteString(p.text)
		if a.exact {
			a.head = b.String()
		}
	}
	a.text = b.String()
	return a
}

func (f field) active() bool {
	return slices.ContainsFunc(f, func(p piece) bool { return p.kind == globbed && !p.quoted })
}

var digits = regexp.MustCompile(`^-?[0-9]{1,18}$`)

// integer reports whether it can only be a number.
func (f field) integer() bool {
	a := f.arg()
	return digits.MatchString(a.text) && !slices.ContainsFunc(f, func(p piece) bool { return p.kind != asWritten && p.kind != someNumber })
}

// plain reports whether it is a path inside, to which nothing is wrong however
// it is put together with others.
func (f field) plain() bool {
	a := f.arg()
	return !a.unknown && a.text != "" && a.text != "." && !strings.ContainsAny(a.text[:1], "-~/.") &&
		path.Clean(a.text) == a.text && !strings.ContainsAny(a.text, "=:@, \t\n\\")
}

// value is what a variable may hold.
type value struct {
	fields  []field
	unknown bool
}

// piece is the value inside of a word.
func (v value) pieces() field {
	all := func(ok func(field) bool) bool {
		return !slices.ContainsFunc(v.fields, func(f field) bool { return !ok(f) })
	}
	switch {
	case v.unknown || len(v.fields) == 0:
		return field{{kind: anything, quoted: true}}
	case len(v.fields) == 1:
		held := slices.Clone(v.fields[0])
		for i := range held {
			held[i].quoted = true
		}
		return held
	case all(field.integer):
		return field{{kind: someNumber, text: "0", quoted: true}}
	case all(func(f field) bool { return f.plain() && !f.arg().found }):
		return field{{kind: someName, text: "x", quoted: true}}
	case all(field.plain):
		return field{{kind: globbed, text: "*", quoted: true}}
	}
	return field{{kind: anything, quoted: true}}
}

// bare reports whether it stays one argument without quotes.
func (f field) bare() bool {
	text := f.arg().text
	return text != "" && !strings.ContainsAny(text, " \t\n*?[\\") &&
		!slices.ContainsFunc(f, func(p piece) bool { return p.kind == anything || p.kind == globbed })
}

// literalWord is a word that says exactly what it says: no expansion, no
// pattern, no brace, no ~.
func literalWord(w *syntax.Word) (string, bool) {
	if w == nil {
		return "", false
	}
	c := &checker{vars: scope{}}
	if braces(w) {
		return "", false
	}
	f, err := c.resolve(w, false)
	if err != nil {
		return "", false
	}
	a := f.arg()
	tilde := len(f) > 0 && !f[0].quoted && strings.HasPrefix(f[0].text, "~")
	return a.text, a.fixed && !tilde
}

// data is a word of which the shell makes one argument: no patterns are
// looked for, and nothing is split.
func (c *checker) data(w *syntax.Word) (field, error) {
	return c.resolve(w, false)
}

// operands are the arguments that the shell makes of a word. Where it looks
// for names, it does so inside.
func (c *checker) operands(w *syntax.Word) ([]field, error) {
	words, err := spread(w)
	if err != nil {
		return nil, err
	}
	var list []field
	for _, w := range words {
		f, err := c.resolve(w, true)
		if err != nil {
			return nil, err
		}
		if f.active() {
			if err := c.inside(f.arg()); err != nil {
				return nil, err
			}
		}
		list = append(list, f)
	}
	return list, nil
}

// braces reports whether a shell could see a brace expansion in a word.
func braces(w *syntax.Word) bool {
	open := false
	for _, part := range w.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			continue
		}
		text := escapes.ReplaceAllString(lit.Value, "")
		if i := strings.Index(text, "{"); i >= 0 && !open {
			open, text = true, text[i:]
		}
		if open && (strings.Contains(text, ",") || strings.Contains(text, "..")) {
			return true
		}
	}
	return false
}

var escapes = regexp.MustCompile(`(?s)\\.`)

// mostBraces is how many words a brace expansion may be.
const mostBraces = 100

// spread does the brace expansion.
func spread(w *syntax.Word) ([]*syntax.Word, error) {
	if !braces(w) {
		return []*syntax.Word{w}, nil
	}
	parts := &syntax.Word{Parts: slices.Clone(w.Parts)}
	if !syntax.SplitBraces(parts) {
		return nil, disallow(shellText(w), "it is not clear what the braces mean", "quote the word, or write it out")
	}
	if n := countBraces(parts); n == 0 || n > mostBraces {
		return nil, disallow(shellText(w), "it stands for too many words", "write it out, or use a pattern")
	}
	var words []*syntax.Word
	for one, err := range expand.BracesSeq(nil, parts) {
		if err != nil {
			return nil, disallow(shellText(w), "its braces cannot be read: "+err.Error(), "write it out")
		}
		words = append(words, one)
	}
	return words, nil
}

// countBraces is how many words come of a word; 0 stands for too many, or for
// what shells do not agree on.
func countBraces(w *syntax.Word) int {
	n := 1
	for _, part := range w.Parts {
		if b, ok := part.(*syntax.BraceExp); ok {
			n *= countBrace(b)
		}
		if n > mostBraces {
			return 0
		}
	}
	return n
}

func countBrace(b *syntax.BraceExp) int {
	if !b.Sequence {
		n := 0
		for _, w := range b.Elems {
			one := countBraces(w)
			if one == 0 {
				return 0
			}
			n += one
		}
		return n
	}
	var ends [2]int
	for i := range ends {
		n, err := strconv.Atoi(b.Elems[i].Lit())
		if err != nil || n < -9999 || n > 9999 {
			return 0
		}
		ends[i] = n
	}
	return max(ends[0]-ends[1], ends[1]-ends[0]) + 1
}

// resolve is what is known of a word. Where it may be split, what an
// expansion without quotes gives must be one argument for sure.
func (c *checker) resolve(w *syntax.Word, split bool) (field, error) {
	if w.Lit() == "[" {
		return field{{text: "["}}, nil
	}
	var f field
	for _, part := range w.Parts {
		got, err := c.part(part, split)
		if err != nil {
			return nil, err
		}
		f = append(f, got...)
	}
	return f.trimmed(), nil
}

func (c *checker) part(part syntax.WordPart, split bool) (field, error) {
	switch part := part.(type) {
	case *syntax.Lit:
		return unquoted(part.Value), nil
	case *syntax.SglQuoted:
		if part.Dollar {
			return nil, disallow("$'…'", "it hides what it says", "write '…'")
		}
		return field{{text: part.Value, quoted: true}}, nil
	case *syntax.DblQuoted:
		return c.doubleQuoted(part)
	case *syntax.ParamExp:
		return c.expansion(part, split)
	case *syntax.ArithmExp:
		if part.Bracket || part.Unsigned {
			return nil, disallow("$[…]", "it is not among what is checked here", "write $((…))")
		}
		if err := c.arithmetic(part.X); err != nil {
			return nil, err
		}
		return field{{kind: someNumber, text: "0"}}, nil
	}
	return nil, refusedPart(part)
}

func refusedPart(part syntax.WordPart) error {
	switch part.(type) {
	case *syntax.CmdSubst:
		return disallow("command substitution ("+shellText(part)+")", "what it prints would become part of the line", "run it as a call of its own, and write its result into the next one")
	case *syntax.ProcSubst:
		return disallow("process substitution ("+shellText(part)+")", "it runs commands on the side", "use a pipe, or a file in the working directory")
	case *syntax.ExtGlob:
		return disallow("the pattern "+shellText(part), "the shell does not know it", "use *, ? and […]")
	}
	return disallow("this word", "it is not among what is checked here", "write it out")
}

func (c *checker) doubleQuoted(q *syntax.DblQuoted) (field, error) {
	if q.Dollar {
		return nil, disallow(`$"…"`, "it is translated by the shell", `write "…"`)
	}
	f := field{{quoted: true}}
	for _, part := range q.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			f = append(f, piece{text: dquoted.ReplaceAllString(lit.Value, "$1"), quoted: true})
			continue
		}
		got, err := c.part(part, false)
		if err != nil {
			return nil, err
		}
		for i := range got {
			got[i].quoted = true
		}
		f = append(f, got...)
	}
	return f, nil
}

var dquoted = regexp.MustCompile("\\\\(?:([\"$`\\\\])|\n)")

// trimmed is the field without empty pieces in front.
func (f field) trimmed() field {
	for len(f) > 1 && f[0].text == "" && f[0].kind == asWritten {
		f = f[1:]
	}
	return f
}

// unquoted reads a literal part outside of quotes.
func unquoted(text string) field {
	var f field
	var run []byte
	var now piece
	add := func(kind pieceKind, quoted bool, b byte) {
		if len(run) > 0 && (now.kind != kind || now.quoted != quoted) {
			now.text, run = string(run), nil
			f = append(f, now)
		}
		now.kind, now.quoted = kind, quoted
		run = append(run, b)
	}
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b == '\\' && i+1 < len(text):
			if i++; text[i] != '\n' {
				add(asWritten, true, text[i])
			}
		case strings.IndexByte("*?[", b) >= 0:
			add(globbed, false, b)
		default:
			add(asWritten, false, b)
		}
	}
	if len(run) > 0 {
		now.text = string(run)
		f = append(f, now)
	}
	return f
}

// expansion is $NAME.
func (c *checker) expansion(p *syntax.ParamExp, split bool) (field, error) {
	if err := c.simple(p); err != nil {
		return nil, err
	}
	f := c.lookup(p)
	if !split {
		return f, nil
	}
	if !f.bare() {
		return nil, disallow(shellText(p)+" without quotes", "it may become several words, or another pattern", `write "`+shellText(p)+`"`)
	}
	return f, nil
}

// simple refuses expansions that do something, or run something.
func (c *checker) simple(p *syntax.ParamExp) error {
	assigns := p.Exp != nil && (p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull || p.Exp.Op == syntax.OtherParamOps)
	if p.Param == nil || p.Excl || p.Width || p.IsSet || p.Flags != nil || p.NestedParam != nil || p.Index != nil || p.Names != 0 ||
		len(p.Modifiers) > 0 || p.Slice != nil || assigns {
		return disallow("the expansion "+shellText(p), "it can set variables, or run what they hold", "write $NAME, or the value itself")
	}
	var inner []*syntax.Word
	if p.Exp != nil {
		inner = append(inner, p.Exp.Word)
	}
	if p.Repl != nil {
		inner = append(inner, p.Repl.Orig, p.Repl.With)
	}
	for _, w := range inner {
		if w == nil {
			continue
		}
		if _, err := c.data(w); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) lookup(p *syntax.ParamExp) field {
	switch {
	case p.Length, p.Param.Value == "?", p.Param.Value == "#", p.Param.Value == "$":
		return field{{kind: someNumber, text: "0"}}
	case p.Exp != nil, p.Repl != nil:
		return field{{kind: anything}}
	case p.Param.Value == "PWD":
		return field{{text: c.Dir, quoted: true}}
	}
	v, ok := c.vars[p.Param.Value]
	if !ok {
		v.unknown = true
	}
	return v.pieces()
}

// arithmetic lets numbers and variables that hold numbers be calculated with:
// a shell runs what other variables hold.
func (c *checker) arithmetic(x syntax.ArithmExpr) error {
	switch x := x.(type) {
	case *syntax.ParenArithm:
		return c.arithmetic(x.X)
	case *syntax.UnaryArithm:
		if x.Op != syntax.Inc && x.Op != syntax.Dec {
			return c.arithmetic(x.X)
		}
	case *syntax.BinaryArithm:
		if strings.HasSuffix(x.Op.String(), "=") && !slices.Contains([]string{"==", "!=", "<=", ">="}, x.Op.String()) {
			break
		}
		if err := c.arithmetic(x.X); err != nil {
			return err
		}
		return c.arithmetic(x.Y)
	case *syntax.Word:
		if v, ok := c.vars[x.Lit()]; ok && v.pieces().integer() {
			return nil
		}
		if f, err := c.data(x); err == nil && f.integer() {
			return nil
		}
		return disallow("arithmetic with "+shellText(x), "a shell calculates, and can run, what the variable holds", "use numbers, or variables that were set to numbers in the same line")
	}
	return disallow("arithmetic that sets variables", "it has side effects", "write NAME=$((NAME + 1))")
}
