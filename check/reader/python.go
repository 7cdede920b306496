package reader

import (
	"cmp"
	"path"
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

var (
	unittestHead = lazyregexp.New(`^(?:FAIL|ERROR): (\S.*)$`)
	unittestName = lazyregexp.New(`^(\S+) \(([\w.<>]+)\)(.*)$`)
	unittestLive = lazyregexp.New(`^\s*(\S+ \([\w.<>]+\)[^.]*?) \.\.\. (.*)$`)
	unittestRan  = lazyregexp.New(`^Ran \d+ tests? in `)
)

// Django's tests print it too. A double rule is before each report, and a single one below its head and at its end.
func readUnittest(text string, l *list) {
	double, single := strings.Repeat("=", 70), strings.Repeat("-", 70)
	known, reported := false, false
	var run pyRun
	progress := func(line string) {
		run.line(line)
		m := unittestLive.FindStringSubmatch(line)
		if known = known || m != nil || unittestRan.MatchString(line); m != nil {
			run.test(unittestFullName(m[1]), m[2])
		}
	}
	for n, s := range sections(text, func(line string) (head string, ok bool) { return "", line == double }) {
		rest := strings.Join(s.body, "\n")
		if m := unittestHead.FindStringSubmatch(firstLine(rest)); n > 0 && m != nil {
			known = true
			said, body, complete := strings.Cut(strings.TrimPrefix(rest, m[0]), "\n"+single+"\n")
			if body, rest, _ = strings.Cut(body, "\n"+single+"\n"); complete {
				reported = true
				l.add(unittestItem(m[1], strings.Split(said+"\n"+body, "\n")))
			}
		}
		forEachLine(rest, progress)
	}
	if known && !reported {
		run.finish(l, func(test string) string { return test }, func(string) string { return "" })
	}
}

func unittestItem(head string, text []string) item {
	i := item{rank: failure, test: unittestFullName(head)}
	name := i.test
	if m := unittestName.FindStringSubmatch(head); m != nil {
		name = m[1] + m[3]
	}
	if strings.Contains(head, "._FailedTest") {
		i.rank = crash
	}
	return i.told(name, pyMessage(text), dedent(text))
}

// "test_x (m.Case.test_x) (n=1)" becomes "m.Case.test_x (n=1)", as does "test_x (m.Case) (n=1)" of older versions.
func unittestFullName(head string) string {
	m := unittestName.FindStringSubmatch(head)
	switch {
	case m == nil:
		return head
	case strings.Contains(m[2], "._FailedTest"):
		return m[1] // a module that cannot be imported
	}
	if !strings.HasSuffix(m[2], "."+m[1]) {
		m[2] += "." + m[1]
	}
	return m[2] + m[3]
}

var (
	pytestBlock   = lazyregexp.New(`^=+ (\S.*?) =+$`)
	pytestSection = lazyregexp.New(`^_+ (?:\[doctest\] )?(?:ERROR (?:at )?(collecting|setup|teardown) (?:of )?)?(.+?) _+$`)
	pytestEnd     = lazyregexp.New(`^\d+ (?:failed|passed|errors?|skipped)\b.* in \d[\d.]*s`)
	pytestVerdict = lazyregexp.New(`^(FAILED|ERROR) ([^\s([][^[]*?(?:\[.*?\])?)(?: - (.*))?$`)
	pytestLive    = lazyregexp.New(`^(?:\[gw\d+\] (?:\[ *\d+%\] )?)?(?:(FAILED|ERROR) )?(\S+\.py::\S.*?)(?: (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b.*)?\s*$`)
)

// pytestWidth is the length of the shortest header, which pytest fits to the terminal. What
// tests print themselves is usually shorter.
const pytestWidth = 40

// It is the first line that pytest marks with E, or the last one of a syntax error, which starts with its place.
func pytestMessage(lines []string) string {
	message, last := "", false
	for _, line := range lines {
		said, ok := strings.CutPrefix(line, "E   ")
		if !ok {
			continue
		}
		said = strings.TrimSpace(said)
		if message == "" {
			last = strings.HasPrefix(said, "File \"")
		}
		if message == "" || last && said != "" {
			message = said
		}
	}
	return message
}

type pytestReport struct {
	name  string // as in the section's header
	phase string // "collecting", "setup", "teardown", "error"; empty for a failure
	text  []string
	node  string // the test's full name, from the summary
	said  string // its message, from the summary
}

type pytestOutput struct {
	reports []*pytestReport
	// bySection has the reports that the summary did not name yet, by name.
	bySection map[string][]*pytestReport
	run       pyRun    // outside of blocks
	said      []string // lines outside of blocks that explain an abort
}

func readPytest(text string, l *list) {
	p, known := &pytestOutput{bySection: map[string][]*pytestReport{}}, false
	for _, block := range sections(text, func(line string) (string, bool) {
		if m := pytestBlock.FindStringSubmatch(line); m != nil && len(line) >= pytestWidth {
			return m[1], true
		}
		return "", pytestEnd.MatchString(line) // with -q there is no ruler at the end
	}) {
		switch block.head {
		case "FAILURES", "ERRORS":
			known = true
			p.addSections(block.body)
		case "short test summary info":
			known = true
			for _, line := range block.body {
				p.verdict(line)
			}
		default:
			known = known || block.head == "test session starts" || slices.ContainsFunc(block.body, func(line string) bool { return strings.HasPrefix(line, "ImportError while loading conftest") })
			for _, line := range block.body {
				p.progress(line)
			}
		}
	}
	for _, r := range p.reports {
		l.add(r.item())
	}
	if before := len(l.items); known && len(p.reports) == 0 {
		if p.run.finish(l, nodeName, nodeFile); len(l.items) == before && len(p.said) > 0 {
			l.add(item{rank: crash, rule: "pytest"}.told(cmp.Or(pytestMessage(p.said), p.said[0]), "", dedent(p.said)))
		}
	}
}

func (p *pytestOutput) addSections(lines []string) {
	for n, s := range sections(strings.Join(lines, "\n"), func(line string) (string, bool) {
		m := pytestSection.FindStringSubmatch(line)
		return line, m != nil && len(line) >= pytestWidth && strings.Trim(m[2], "_ ") != ""
	}) {
		if n == 0 {
			continue
		}
		m := pytestSection.FindStringSubmatch(s.head)
		r := &pytestReport{name: m[2], phase: m[1], text: s.body}
		p.reports = append(p.reports, r)
		p.bySection[r.name] = append(p.bySection[r.name], r)
	}
}

// The line is of the summary. With --tb=line or no, failures have no section.
func (p *pytestOutput) verdict(line string) {
	m := pytestVerdict.FindStringSubmatch(line)
	if m == nil {
		return
	}
	node, said := m[2], m[3]
	name := nodeName(node)
	if queue := p.bySection[name]; len(queue) > 0 {
		queue[0].node, queue[0].said = node, said
		p.bySection[name] = queue[1:]
		return
	}
	r := &pytestReport{name: name, node: node, said: said}
	switch {
	case m[1] == "ERROR" && strings.Contains(node, "::"):
		r.phase = "error"
	case m[1] == "ERROR":
		r.phase = "collecting"
	}
	p.reports = append(p.reports, r)
}

// The line is before the failures, or of a process that died.
func (p *pytestOutput) progress(line string) {
	p.run.line(line)
	internal, ok := strings.CutPrefix(line, "INTERNALERROR> ")
	switch {
	case strings.HasPrefix(line, "ImportError while loading conftest"), strings.HasPrefix(line, "ERROR: "):
		p.said = []string{line}
	case ok, len(p.said) > 0 && len(p.said) < 200:
		p.said = append(p.said, internal)
	case strings.Contains(line, ".py::"):
		if m := pytestLive.FindStringSubmatch(line); m != nil {
			p.run.test(m[2], m[1]+m[3])
		}
	}
}

// It has no file, and dots.
func nodeName(node string) string {
	_, name, ok := strings.Cut(node, "::")
	if !ok {
		return node
	}
	return beforeParameters(name, "::", ".")
}

// old is replaced in the name of a test, not in its parameters.
func beforeParameters(name, old, with string) string {
	params := ""
	if i := strings.IndexByte(name, '['); i >= 0 {
		name, params = name[:i], name[i:]
	}
	return strings.ReplaceAll(name, old, with) + params
}

func nodeFile(node string) string {
	file, _, _ := strings.Cut(node, "::")
	return file
}

// The first file is the test's.
func (r *pytestReport) nodeOf() string {
	for _, line := range r.text {
		m := pytestFrame.FindStringSubmatch(line)
		if m == nil {
			m = pyFrame.FindStringSubmatch(line)
		}
		if m != nil && isUserFile(m[1]) {
			return path.Clean(m[1]) + "::" + beforeParameters(r.name, ".", "::")
		}
	}
	return r.name
}

func (r *pytestReport) item() item {
	i := item{rank: failure, test: cmp.Or(r.node, r.nodeOf())}
	node, head := i.test, r.name
	switch r.phase {
	case "":
	case "collecting":
		i.rank, i.test, head, node = crash, r.name, "collecting "+r.name, r.name
	default:
		head += ", " + r.phase
		i.test += " (error)" // and the test may fail as well
	}
	said := pytestMessage(r.text)
	if said == "" && slices.Contains(r.text, "Expected:") {
		said = "doctest failed"
	}
	said = cmp.Or(said, r.said, pyMessage(r.text), "failed")
	i.file = nodeFile(node)
	return i.told(head, said, dedent(withoutSource(r.text)))
}

// keptSource is how many lines of source are kept before a line that pytest marks.
const keptSource = 4

// pytest prints all of the source between the head of a function and the line that it marks.
func withoutSource(lines []string) []string {
	var kept []string
	run := 0 // the first line of the source
	for _, line := range lines {
		if strings.HasPrefix(line, ">") && len(kept)-run > keptSource+2 {
			kept = slices.Replace(kept, run+1, len(kept)-keptSource, "    ...")
		}
		kept = append(kept, line)
		if blank := strings.TrimSpace(line) == ""; blank && run == len(kept)-1 || !blank && !strings.HasPrefix(line, "    ") {
			run = len(kept)
		}
	}
	return kept
}
