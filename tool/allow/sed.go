package allow

import (
	"slices"
	"strings"
)

// sed checks the options of sed, and its script: it may look at and print
// lines, but neither run programs nor touch other files.
func (c *checker) sed(program string, args []arg) error {
	g := grammar{texts: "e", values: "l", free: []string{"expression"}, long: []string{"line-length"},
		refuse: []string{"f", "file", "i", "in-place", "I"}, known: []string{"follow-symlinks"}}
	p, err := g.parse(program, args)
	if err != nil {
		if slices.ContainsFunc(args, func(a arg) bool { return strings.HasPrefix(a.text, "-i") || strings.HasPrefix(a.text, "--in") }) {
			return disallow("sed -i", "files are not changed behind the tools' back", "use the edit tool")
		}
		return err
	}
	scripts := p.values("e")
	for _, o := range p.options {
		if o.given && len(o.name) > 1 && strings.HasPrefix("expression", o.name) {
			scripts = append(scripts, o.value)
		}
	}
	if len(scripts) == 0 && len(p.operands) > 0 {
		scripts, p.operands = p.operands[:1], p.operands[1:]
	}
	for _, script := range scripts {
		if !script.exact || script.active {
			return disallow("a sed script that is not written out", "it could run programs", "write the script in single quotes")
		}
		if err := sedScript(script.text); err != nil {
			return err
		}
	}
	return c.sorted(p)
}

// sedScript reads a script command by command. What it does not know is
// refused.
func sedScript(script string) error {
	s := &sedReader{text: script}
	for {
		s.skip(" \t\n;{}")
		if s.text == "" {
			return nil
		}
		if err := s.command(); err != nil {
			return err
		}
	}
}

type sedReader struct{ text string }

func (s *sedReader) skip(cutset string) { s.text = strings.TrimLeft(s.text, cutset) }

func (s *sedReader) take() byte {
	b := s.text[0]
	s.text = s.text[1:]
	return b
}

// rest takes what is left of the line.
func (s *sedReader) rest() string {
	line, left, _ := strings.Cut(s.text, "\n")
	s.text = left
	return line
}

func sedRefused(what string) error {
	return disallow("the sed script "+what, "w, r, W, R and e reach other files or run programs, and so could what is not understood here", "use s///, p, d, q, addresses and y///, or the edit tool")
}

func (s *sedReader) command() error {
	at := s.text
	if err := s.addresses(); err != nil {
		return err
	}
	if s.text == "" {
		return sedRefused(at)
	}
	switch b := s.take(); b {
	case '{':
		return nil
	case '}', '=', 'F', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z':
		return s.ended(at)
	case 'l', 'L', 'q', 'Q':
		s.skip(" \t0123456789")
		return s.ended(at)
	case 'b', 't', 'T', ':', 'v':
		s.skip(" \t")
		s.skip(sedLabel)
		return s.ended(at)
	case '#':
		s.rest()
		return nil
	case 'a', 'i', 'c':
		return s.added(at)
	case 's':
		return s.substitution(at)
	case 'y':
		if err := s.delimited(2); err != nil {
			return err
		}
		return s.ended(at)
	}
	return sedRefused(at)
}

const sedLabel = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

// added takes the text of a, i or c, whose lines but the last end in one
// backslash.
func (s *sedReader) added(at string) error {
	for s.text != "" {
		line := s.rest()
		if strings.HasSuffix(line, `\\`) {
			return sedRefused(at)
		}
		if !strings.HasSuffix(line, `\`) {
			break
		}
	}
	return nil
}

// ended wants the end of a command.
func (s *sedReader) ended(at string) error {
	s.skip(" \t")
	if s.text == "" || strings.IndexByte("\n;}#{", s.text[0]) >= 0 {
		return nil
	}
	return sedRefused(at)
}

// addresses takes those in front of a command.
func (s *sedReader) addresses() error {
	for range 2 {
		if err := s.address(); err != nil {
			return err
		}
		s.skip(" \t")
		if !strings.HasPrefix(s.text, ",") {
			break
		}
		s.take()
		s.skip(" \t")
	}
	s.skip(" \t!")
	return nil
}

func (s *sedReader) address() error {
	if s.text == "" {
		return nil
	}
	switch b := s.text[0]; {
	case b >= '0' && b <= '9' || b == '$' || b == '+' || b == '~':
		s.take()
		s.skip("0123456789~")
	case b == '/':
		return s.pattern()
	case b == '\\':
		s.take()
		return s.pattern()
	}
	return nil
}

func (s *sedReader) pattern() error {
	if err := s.delimited(1); err != nil {
		return err
	}
	s.skip("IM")
	return nil
}

func (s *sedReader) substitution(at string) error {
	if err := s.delimited(2); err != nil {
		return err
	}
	s.skip("gpiI0123456789mM")
	return s.ended(at)
}

// delimited takes a delimiter, n texts and the delimiters behind them. Where
// seds do not agree on what ends a text it is refused.
func (s *sedReader) delimited(n int) error {
	if s.text == "" {
		return sedRefused("without an end")
	}
	at := s.text
	d := s.take()
	if d >= 0x80 || d == '\\' || d == '\n' || d == '[' || d == ' ' {
		return sedRefused("with an odd delimiter " + at)
	}
	for i := range n {
		if !s.until(d, i == 0) {
			return sedRefused(at)
		}
	}
	return nil
}

// until takes a text up to its delimiter. In a regular expression no delimiter
// may stand in brackets, where some seds see the end.
func (s *sedReader) until(d byte, regexp bool) bool {
	for s.text != "" {
		switch b := s.take(); {
		case b == d:
			return true
		case b == '\\' && s.text != "":
			s.take()
		case b == '[' && regexp:
			if !s.bracket(d) {
				return false
			}
		}
	}
	return false
}

// bracket takes what stands in brackets.
func (s *sedReader) bracket(d byte) bool {
	s.text = strings.TrimPrefix(s.text, "^")
	for first := true; s.text != ""; first = false {
		b := s.take()
		switch {
		case b == ']' && !first:
			return true
		case b == d || b == '\n' || b == '\\' && strings.HasPrefix(s.text, "]"):
			return false
		case b == '\\' && s.text != "" && s.text[0] == d:
			s.take()
		case b == '[' && s.text != "" && strings.IndexByte(":.=", s.text[0]) >= 0:
			end := strings.Index(s.text[1:], s.text[:1]+"]")
			if end < 0 || strings.IndexByte(s.text[:end+3], d) >= 0 {
				return false
			}
			s.text = s.text[end+3:]
		}
	}
	return false
}
