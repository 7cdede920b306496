package gitdir

import "strings"

// Setting is one setting of a file of git's.
type Setting struct {
	Section string // in lower case
	Sub     string // the subsection; empty if there is none
	Name    string // in lower case
	Value   string // empty also for a name without a value, which means true
}

// Settings returns the settings of a file of git's, in order. ok is false if git would
// refuse the file; then the settings are those before the place.
func Settings(text string) (all []Setting, ok bool) {
	p := configParser{rest: strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")}
	var at Setting
	for p.rest != "" {
		switch c := p.next(); {
		case c == '#' || c == ';':
			_, p.rest, _ = strings.Cut(p.rest, "\n")
		case isSpace(c):
		case c == '[':
			if at.Section, at.Sub, ok = p.section(); !ok {
				return all, false
			}
		case isLetter(c):
			at.Name = string(c) + p.word("-")
			p.rest = strings.TrimLeft(p.rest, " \t")
			at.Name, at.Value, ok = strings.ToLower(at.Name), "", true
			switch c := p.next(); c {
			case '\n':
			case '=':
				at.Value, ok = p.value()
			default:
				ok = false
			}
			if !ok {
				return all, false
			}
			all = append(all, at)
		default:
			return all, false
		}
	}
	return all, true
}

type configParser struct{ rest string }

// The end counts as a newline.
func (p *configParser) next() byte {
	if p.rest == "" {
		return '\n'
	}
	c := p.rest[0]
	p.rest = p.rest[1:]
	return c
}

func (p *configParser) word(also string) string {
	n := 0
	for n < len(p.rest) && (isLetter(p.rest[n]) || p.rest[n] >= '0' && p.rest[n] <= '9' || strings.IndexByte(also, p.rest[n]) >= 0) {
		n++
	}
	word := p.rest[:n]
	p.rest = p.rest[n:]
	return word
}

// Sections are [a], [a.sub] or [a "sub"].
func (p *configParser) section() (name, sub string, ok bool) {
	name, sub, _ = strings.Cut(strings.ToLower(p.word("-.")), ".")
	c := p.next()
	if c == ']' {
		return name, sub, true
	}
	p.rest = strings.TrimLeft(p.rest, " \t")
	if c != ' ' && c != '\t' || p.next() != '"' {
		return "", "", false
	}
	var quoted strings.Builder
	for {
		switch c := p.next(); c {
		case '\n':
			return "", "", false
		case '"':
			return name, quoted.String(), p.next() == ']'
		case '\\':
			quoted.WriteByte(p.next())
		default:
			quoted.WriteByte(c)
		}
	}
}

func (p *configParser) value() (string, bool) {
	var value, space strings.Builder
	for quoted := false; ; {
		c := p.next()
		switch {
		case c == '\n':
			return value.String(), !quoted
		case !quoted && isSpace(c):
			if value.Len() > 0 {
				space.WriteByte(c)
			}
			continue
		case !quoted && (c == '#' || c == ';'):
			_, p.rest, _ = strings.Cut(p.rest, "\n")
			return value.String(), true
		}
		value.WriteString(space.String())
		space.Reset()
		switch c {
		case '"':
			quoted = !quoted
		case '\\':
			switch c = p.next(); c {
			case '\n':
			case 't', 'b', 'n':
				value.WriteByte(map[byte]byte{'t': '\t', 'b': '\b', 'n': '\n'}[c])
			case '\\', '"':
				value.WriteByte(c)
			default:
				return "", false
			}
		default:
			value.WriteByte(c)
		}
	}
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
