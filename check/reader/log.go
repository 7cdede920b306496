package reader

import (
	"strings"

	"hone/internal/lazyregexp"
)

// Part is the output of one step in the log of a CI system.
type Part struct {
	Text   string
	Failed bool
}

var (
	// logPrefix is what CI systems put before each line: a time, and GitHub's command line also the names of job and step before it.
	logPrefix = lazyregexp.New(`^(?:[^\t]*\t[^\t]*\t)?\x{FEFF}?\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)\]?(?: \d\d[OE][ +]?)?(?: |$)`)
	logMark   = lazyregexp.New(`^(?:##\[\w+\]|section_(?:start|end):\d+:\S*)`)
)

// Log returns the parts of a CI system's log as their programs printed them: without colors,
// and without what the system puts before each line. Another text is one part, which failed.
func Log(text string) []Part {
	plain := plainText(text)
	parts, said, cut, failures := []Part{{}}, 0, 0, 0
	var b strings.Builder
	end := func() { parts[len(parts)-1].Text = b.String() }
	for line := range strings.Lines(plain) {
		if strings.TrimSpace(line) != "" {
			said++
		}
		if at := logPrefix.FindStringIndex(strings.TrimSuffix(line, "\n")); at != nil {
			cut++
			line = line[at[1]:]
		}
		if at := logMark.FindStringIndex(line); at != nil {
			switch mark := line[:at[1]]; {
			case mark == "##[group]", strings.HasPrefix(mark, "section_start"):
				end()
				b.Reset()
				parts = append(parts, Part{})
			case mark == "##[error]":
				failures++
				parts[len(parts)-1].Failed = true
			}
			line = line[at[1]:]
		}
		b.WriteString(line)
	}
	end()
	if 2*cut <= said {
		return []Part{{plain, true}}
	}
	for i := range parts {
		parts[i].Failed = parts[i].Failed || failures == 0 // the system does not say which
	}
	return parts
}
