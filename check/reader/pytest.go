package reader

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

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
