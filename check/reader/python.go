package reader

import (
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

// pyCall is a line of a Python stack, with its function.
var pyCall = lazyregexp.New(`^\s*File "(?P<file>[^"\n]+)", line (?P<line>\d{1,9}),? in (?P<text>\S+)`)

// The program died of an exception or crashed. It reports whether it did.
func readPython(text string, l *list) bool {
	var p pyRun
	forEachLine(text, p.line)
	return p.died(l)
}

// pyRun is what tests printed while they ran, for the case that they did not get to a report: which failed, which one was
// running, and what killed the process: an uncaught exception, a crash of the interpreter, or a timeout of faulthandler or
// of pytest-timeout.
type pyRun struct {
	failed  []string
	running string
	kind    string // of death: its first line
	said    string // the exception's line
	stack   []string
	open    bool // the stack is
}

const traceback = "Traceback (most recent call last):"

func (p *pyRun) line(line string) {
	if kind := p.begins(line); kind != "" {
		p.open, p.kind, p.stack, p.said = true, kind, nil, ""
		return
	}
	if !p.open {
		return
	}
	p.stack = append(p.stack, line)
	switch {
	case p.kind != traceback:
	case p.said != "": // a message may have several lines, but no empty ones
		p.open = line != "" && len(p.stack) < 400
	case line != "" && line[0] != ' ':
		p.said = line
	}
}

var pyPassed = lazyregexp.New(`^(?:ok|skipped .*|(?:un)?expected (?:success|failure)|PASSED|SKIPPED|XFAIL|XPASS)$`)

// A test without a verdict is running, whatever it prints.
func (p *pyRun) test(name, verdict string) {
	p.running = ""
	switch {
	case verdict == "FAIL" || verdict == "FAILED" || verdict == "ERROR":
		p.failed = append(p.failed, name)
	case !pyPassed.MatchString(verdict):
		p.running = name
	}
}

func (p *pyRun) begins(line string) string {
	if i := strings.Index(line, "Fatal Python error: "); i >= 0 {
		return line[i:]
	}
	if i := strings.Index(line, "Timeout (0:"); i >= 0 && strings.HasSuffix(line, ")!") {
		return "timed out: " + line[i:]
	}
	switch {
	case p.open && p.kind != traceback:
	case line == traceback:
		return traceback
	case strings.HasPrefix(line, "+++") && strings.Contains(line, " Timeout +"):
		return "timed out"
	}
	return ""
}

// It is for tests that have no report.
func (p *pyRun) finish(l *list, name func(test string) string, file func(test string) string) {
	if !p.died(l) && p.running != "" {
		l.addInterrupted(p.running, name(p.running), nil)
	}
	for _, test := range p.failed {
		l.add(item{rank: failure, test: test, file: file(test), text: name(test) + " failed"})
	}
}

// The process died, of what is now the last item.
func (p *pyRun) died(l *list) bool {
	message := p.kind
	if message == traceback {
		message = p.said
	}
	if message == "" || len(p.stack) == 0 {
		return false
	}
	kept := slices.DeleteFunc(slices.Clone(p.stack), func(line string) bool {
		m := pyFrame.FindStringSubmatch(line)
		return m != nil && !isUserFile(m[1])
	})
	i := item{rank: crash, test: p.running}
	i.file, i.line = locate(strings.Join(kept, "\n"))
	firstCall := strings.Contains(strings.Join(p.stack[:min(3, len(p.stack))], ""), "(most recent call first)")
	for _, line := range kept {
		call, ok := matched(pyCall, line)
		if ok && firstCall {
			i.file, i.line, firstCall = call.file, call.line, false
		}
		if ok && i.test == "" && strings.HasPrefix(call.text, "test") {
			i.test = cleanFile(call.file) + "::" + call.text
		}
	}
	switch {
	case i.test != "":
		message = i.test + ": " + message
	case p.kind != traceback:
		i.rule = "crash"
	}
	i.text = headed(message, dedent(kept))
	l.add(i)
	return true
}

// It is in the text's last stack.
func pyMessage(text []string) string {
	message, inside := "", false
	for _, line := range text {
		if inside = inside || line == traceback; inside && line != traceback && line != "" && line[0] != ' ' {
			message, inside = line, false
		}
	}
	if message == "" {
		message = firstLine(strings.TrimSpace(strings.Join(text, "\n")))
	}
	return message
}
