package render

import "strings"

// Colours colours texts for a terminal; false leaves them as they are. It uses
// only the base colours of a terminal, which are legible on any background.
type Colours bool

const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	cyan   = "\x1b[36m"
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	reset  = "\x1b[0m"
)

// HasColours reports whether a stream gets colours: a terminal does, unless NO_COLOR is
// set or TERM is dumb, and so does any stream if CLICOLOR_FORCE is set.
func HasColours(getenv func(string) string, terminal bool) Colours {
	force := getenv("CLICOLOR_FORCE")
	switch {
	case getenv("NO_COLOR") != "":
		return false
	case force != "" && force != "0":
		return true
	}
	return Colours(terminal && getenv("TERM") != "dumb")
}

// Red, Green, Yellow, Bold and Dim return a coloured text.
func (c Colours) Red(s string) string    { return c.in(red, s) }
func (c Colours) Green(s string) string  { return c.in(green, s) }
func (c Colours) Yellow(s string) string { return c.in(yellow, s) }
func (c Colours) Bold(s string) string   { return c.in(bold, s) }
func (c Colours) Dim(s string) string    { return c.in(dim, s) }

func (c Colours) in(colour, s string) string {
	if !c || s == "" {
		return s
	}
	return colour + s + reset
}

// Diff colours the lines of a diff.
func (c Colours) Diff(diff string) string {
	if !c {
		return diff
	}
	var b strings.Builder
	for line := range strings.Lines(diff) {
		body, end := strings.TrimSuffix(line, "\n"), line[len(strings.TrimSuffix(line, "\n")):]
		switch {
		case strings.HasPrefix(body, "---"), strings.HasPrefix(body, "+++"):
			b.WriteString(c.Bold(body) + end)
		case strings.HasPrefix(body, "@@"):
			b.WriteString(c.in(cyan, body) + end)
		case strings.HasPrefix(body, "+"):
			b.WriteString(c.Green(body) + end)
		case strings.HasPrefix(body, "-"):
			b.WriteString(c.Red(body) + end)
		default:
			b.WriteString(line)
		}
	}
	return b.String()
}
