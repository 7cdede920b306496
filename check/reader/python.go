package reader

import (
	"strings"

	"hone/internal/lazyregexp"
)

// pyCall is a line of a Python stack, with its function.
var pyCall = lazyregexp.New(`^\s*File "([^"\n]+)", line (\d{1,9}),? in (\S+)`)

// The program died of an exception or crashed.
func readPython(text string, l *list) bool {
	var p pyDeath
	forEachLine(text, p.line)
	p.finish(l, "")
	return p.known
}

// pyDeath is what kills a Python process: an uncaught exception, a crash of the
// interpreter, or a timeout of faulthandler or of pytest-timeout.
type pyDeath struct {
	known bool
	kind  string // the first line
	stack []string
	open  bool
	said  string // the exception's line
}

func (p *pyDeath) line(line string) {
	begins := p.begins(line)
	switch {
	case begins != "":
		p.known, p.open, p.kind, p.stack, p.said = true, true, begins, nil, ""
	case !p.open:
	case p.kind == "Traceback" && p.said != "":
		// A message may have several lines, but no empty ones.
		p.open = line != "" && len(p.stack) < 400
		p.stack = append(p.stack, line)
	case p.kind == "Traceback" && line != "" && line[0] != ' ':
		p.said = line
		p.stack = append(p.stack, line)
	default:
		p.stack = append(p.stack, line)
	}
}

func (p *pyDeath) begins(line string) string {
	if i := strings.Index(line, "Fatal Python error: "); i >= 0 {
		return line[i:]
	}
	if i := strings.Index(line, "Timeout (0:"); i >= 0 && strings.HasSuffix(line, ")!") {
		return "timed out: " + line[i:]
	}
	switch {
	case p.open && p.kind != "Traceback":
		return ""
	case line == "Traceback (most recent call last):":
		return "Traceback"
	case strings.HasPrefix(line, "+++") && strings.Contains(line, " Timeout +"):
		return "timed out"
	}
	return ""
}

// running is the test that was running, if that is known.
func (p *pyDeath) finish(l *list, running string) {
	if !p.known || len(p.stack) == 0 || p.kind == "Traceback" && p.said == "" {
		return
	}
	i := item{rank: crash, test: running}
	message := p.said
	if p.kind != "Traceback" {
		message = p.kind
	}
	first := strings.Contains(strings.Join(p.stack[:min(3, len(p.stack))], ""), "(most recent call first)")
	var kept []string
	for _, line := range p.stack {
		if m := pyFrame.FindStringSubmatch(line); m != nil && !isUserFile(m[1]) {
			continue
		}
		kept = append(kept, line)
		m := pyCall.FindStringSubmatch(line)
		if m == nil || first && i.file != "" {
			continue
		}
		i.file, i.line = m[1], number(m[2])
	}
	if i.test == "" {
		i.test = testIn(kept)
	}
	if file, line := locate(strings.Join(kept, "\n")); i.file == "" || !first {
		i.file, i.line = file, line
	}
	head := message
	if i.test != "" {
		head = i.test + ": " + message
	} else if i.test = ""; p.kind != "Traceback" {
		i.rule = "crash"
	}
	i.text = headed(head, dedent(kept))
	l.add(i)
}

func testIn(stack []string) string {
	for _, line := range stack {
		if m := pyCall.FindStringSubmatch(line); m != nil && strings.HasPrefix(m[3], "test") {
			return cleanFile(m[1]) + "::" + m[3]
		}
	}
	return ""
}

// It is in the text's last stack.
func pyMessage(text []string) string {
	message, inside := "", false
	for _, line := range text {
		switch {
		case line == "Traceback (most recent call last):":
			inside = true
		case inside && line != "" && line[0] != ' ':
			message, inside = line, false
		}
	}
	if message == "" {
		for _, line := range text {
			if strings.TrimSpace(line) != "" {
				return strings.TrimSpace(line)
			}
		}
	}
	return message
}
