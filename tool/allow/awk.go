package allow

import (
	"regexp"
	"slices"
	"strings"
)

// awk lets a program pass that prints from the files it is given.
func (c *checker) awk(program string, args []arg) error {
	g := grammar{early: true, texts: "Fv", free: []string{"field-separator", "assign"},
		refuse: []string{"f", "file", "i", "include", "l", "load", "e", "source", "E", "exec", "o", "pretty-print", "d", "dump-variables",
			"p", "profile", "D", "debug", "W"}}
	p, err := g.parse(program, args)
	if err != nil {
		return err
	}
	if len(p.operands) == 0 {
		return nil
	}
	script := p.operands[0]
	if !script.exact || script.active {
		return disallow("an awk program that is not written out", "it could run programs", "write it in single quotes, and hand values over with -v")
	}
	if err := awkScript(script.text); err != nil {
		return err
	}
	p.operands = p.operands[1:]
	return c.sorted(p)
}

var awkReaches = regexp.MustCompile(`system|getline|ARGV|ARGC|@|\\\n`)

func awkRefused(what string) error {
	return disallow("awk with "+what, "it can run programs, or reach other files", "print, and let the shell's pipes do the rest")
}

// awkScript looks for what reaches out: names anywhere, even in strings, and
// pipes and redirects outside of strings and regular expressions.
func awkScript(script string) error {
	if found := awkReaches.FindString(script); found != "" {
		return awkRefused(found)
	}
	r := &awkReader{text: script}
	for r.text != "" {
		if err := r.token(); err != nil {
			return err
		}
	}
	return nil
}

// awkReader reads token by token.
type awkReader struct {
	text  string
	last  string // the token before: a name, a number, "string" or a character
	print int    // brackets open since print, plus one; 0 where there is no print
}

var awkWord = regexp.MustCompile(`^(?:[A-Za-z_][A-Za-z0-9_]*|[0-9.]+)`)

func (r *awkReader) token() error {
	if word := awkWord.FindString(r.text); word != "" {
		r.text, r.last = r.text[len(word):], word
		if word == "print" || word == "printf" {
			r.print = 1
		}
		return nil
	}
	b := r.text[0]
	r.text = r.text[1:]
	switch b {
	case ' ', '\t':
		return nil
	case '#':
		_, r.text, _ = strings.Cut(r.text, "\n")
		b = '\n'
	case '"':
		return r.quoted('"')
	case '/':
		return r.slash()
	case '|':
		if !strings.HasPrefix(r.text, "|") {
			return awkRefused("a pipe")
		}
		r.text = r.text[1:]
	case '>':
		if r.print == 1 {
			return awkRefused("a redirect")
		}
	case '+', '-':
		if r.last == string(b) && strings.TrimLeft(r.text, " \t") != "" && strings.TrimLeft(r.text, " \t")[0] == '/' {
			return awkRefused(string(b) + string(b) + " before /")
		}
	}
	r.bracket(b)
	r.last = string(b)
	return nil
}

// bracket counts those behind print: within them > compares. A newline may
// go on with the statement.
func (r *awkReader) bracket(b byte) {
	switch {
	case b == ';' || b == '{' || b == '}':
		r.print = 0
	case r.print > 0 && (b == '(' || b == '['):
		r.print++
	case r.print > 1 && (b == ')' || b == ']'):
		r.print--
	}
}

// slash is a division behind what has a value, and begins a regular expression
// elsewhere.
func (r *awkReader) slash() error {
	switch {
	case r.last == "length":
		return awkRefused("length before /")
	case awkValue(r.last):
		r.last = "/"
		return nil
	}
	return r.quoted('/')
}

func awkValue(last string) bool {
	if slices.Contains([]string{"print", "printf", "return", "in", "else", "do", "case", "if", "while", "exit", "BEGIN", "END"}, last) {
		return false
	}
	return awkWord.MatchString(last) || last == ")" || last == "]" || last == `"` || last == "$"
}

// quoted takes a string or a regular expression.
func (r *awkReader) quoted(end byte) error {
	for i := 0; i < len(r.text); i++ {
		switch b := r.text[i]; {
		case b == '\\':
			i++
		case b == '\n', end == '/' && b == '[' && !clearBracket(r.text[i:]):
			return awkRefused("an end of a text that is not clear")
		case b == end:
			r.text, r.last = r.text[i+1:], `"`
			return nil
		}
	}
	return awkRefused("a text without an end")
}

// clearBracket reports whether every awk sees the same end of a bracket
// expression, and no / in it.
func clearBracket(text string) bool {
	inner := strings.TrimPrefix(text[1:], "^")
	i := strings.Index(inner, "]")
	return i > 0 && !strings.ContainsAny(inner[:i], "/\\[")
}
