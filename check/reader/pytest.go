package reader

import (
	"path"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

var (
	pytestBlock   = lazyregexp.New(`^=+ (\S.*?) =+$`)
	pytestSection = lazyregexp.New(`^_+ (.+?) _+$`)
	pytestEnd     = lazyregexp.New(`^\d+ (?:failed|passed|errors?|skipped)\b.* in \d[\d.]*s`)
	pytestVerdict = lazyregexp.New(`^(FAILED|ERROR) ([^\s(].*)$`)
	pytestLive    = lazyregexp.New(`^(?:\[gw\d+\] (?:\[ *\d+%\] )?)?(?:(FAILED|ERROR) )?(\S+\.py::\S.*?)(?: (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b.*)?\s*$`)
	pytestLine    = lazyregexp.New(`^((?:[A-Za-z]:)?[^\s:][^:\n]*\.py):(\d{1,9}): (\S.*)$`)
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
	known   bool
	block   string
	reports []*pytestReport
	open    *pytestReport
	// bySection has the reports that the summary did not name yet, by name.
	bySection map[string][]*pytestReport
	loose     []item   // lines of --tb=line
	failed    []string // nodes of the summary, for these lines
	live      []string // nodes that failed, as they were printed while running
	running   string
	death     pyDeath
	said      []string // lines outside of blocks that explain an abort
}

// Any --tb is read.
func readPytest(text string, l *list) bool {
	p := &pytestOutput{bySection: map[string][]*pytestReport{}}
	forEachLine(text, p.line)
	if !p.known {
		return false
	}
	for _, r := range p.reports {
		l.add(r.item())
	}
	before := len(l.items)
	p.death.finish(l, p.running)
	died := len(l.items) > before
	if p.running != "" && !died && len(p.reports) == 0 {
		l.addInterrupted(p.running, nodeName(p.running), nil)
	}
	if died || len(p.reports) == 0 {
		for _, node := range p.live {
			l.add(item{rank: failure, test: node, file: nodeFile(node), text: nodeName(node) + " failed"})
		}
	}
	if len(p.said) > 0 && len(p.reports) == 0 && !died {
		file, line := locate(strings.Join(p.said, "\n"))
		said := pytestMessage(p.said)
		if said == "" {
			said = p.said[0]
		}
		l.add(item{rank: crash, rule: "pytest", file: file, line: line, text: headed(said, dedent(p.said))})
	}
	return true
}

func (p *pytestOutput) line(line string) {
	if m := pytestBlock.FindStringSubmatch(line); m != nil && len(line) >= pytestWidth {
		p.open, p.block = nil, m[1]
		switch m[1] {
		case "test session starts", "FAILURES", "ERRORS", "short test summary info":
			p.known = true
		}
		return
	}
	if p.block != "" && pytestEnd.MatchString(line) { // with -q there are no rulers
		p.open, p.block = nil, ""
		return
	}
	switch p.block {
	case "FAILURES", "ERRORS":
		p.section(line)
	case "short test summary info":
		p.verdict(line)
	default:
		p.progress(line)
	}
}

func (p *pytestOutput) section(line string) {
	if m := pytestSection.FindStringSubmatch(line); m != nil && len(line) >= pytestWidth && strings.Trim(m[1], "_ ") != "" {
		r := &pytestReport{name: strings.TrimPrefix(m[1], "[doctest] ")}
		for _, phase := range []string{"ERROR collecting ", "ERROR at setup of ", "ERROR at teardown of "} {
			if name, ok := strings.CutPrefix(m[1], phase); ok {
				r.name, r.phase = name, strings.Fields(phase + "x")[1]
				if r.phase == "at" {
					r.phase = strings.Fields(phase)[2]
				}
			}
		}
		p.open = r
		p.reports = append(p.reports, r)
		p.bySection[r.name] = append(p.bySection[r.name], r)
		return
	}
	if p.open != nil {
		p.open.text = append(p.open.text, line)
		return
	}
	if m := pytestLine.FindStringSubmatch(line); m != nil {
		i := item{text: m[3]}
		if isUserFile(m[1]) {
			i.file, i.line = m[1], number(m[2])
		}
		p.loose = append(p.loose, i)
	}
}

func (p *pytestOutput) verdict(line string) {
	m := pytestVerdict.FindStringSubmatch(line)
	if m == nil {
		return
	}
	node, said := cutNode(m[2])
	name := nodeName(node)
	if queue := p.bySection[name]; len(queue) > 0 {
		queue[0].node, queue[0].said = node, said
		p.bySection[name] = queue[1:]
		return
	}
	r := &pytestReport{name: name, node: node, said: said}
	if m[1] == "FAILED" && len(p.failed) < len(p.loose) {
		i := p.loose[len(p.failed)]
		if r.text = []string{"E   " + i.text}; i.file != "" {
			r.text = append(r.text, placeText(i.file, i.line)+": ")
		}
		p.failed = append(p.failed, node)
	} else if m[1] == "ERROR" {
		r.phase = "collecting"
		if strings.Contains(node, "::") {
			r.phase = "error"
		}
	}
	p.reports = append(p.reports, r)
}

// The line is before the failures, or of a process that died.
func (p *pytestOutput) progress(line string) {
	p.death.line(line)
	if strings.HasPrefix(line, "ImportError while loading conftest") {
		p.known = true
		p.said = []string{line}
		return
	}
	if p.known && strings.HasPrefix(line, "ERROR: ") {
		p.said = []string{line}
		return
	}
	if p.known && strings.HasPrefix(line, "INTERNALERROR> ") || len(p.said) > 0 && len(p.said) < 200 && p.block == "" {
		p.said = append(p.said, strings.TrimPrefix(line, "INTERNALERROR> "))
		return
	}
	if !strings.Contains(line, ".py::") {
		return
	}
	if m := pytestLive.FindStringSubmatch(line); m != nil {
		switch verdict := m[1] + m[3]; verdict {
		case "FAILED", "ERROR":
			p.live = append(p.live, m[2])
			p.running = ""
		case "":
			p.running = m[2]
		default:
			p.running = ""
		}
	}
}

func cutNode(text string) (node, said string) {
	from := 0
	if i := strings.IndexByte(text, '['); i >= 0 && i < max(strings.Index(text, " - "), 0) {
		from = max(strings.Index(text, "] - "), 0)
	}
	i := strings.Index(text[from:], " - ")
	if i < 0 {
		return text, ""
	}
	return text[:from+i], text[from+i+3:]
}

// It has no file, and dots.
func nodeName(node string) string {
	_, name, ok := strings.Cut(node, "::")
	if !ok {
		return node
	}
	params := ""
	if i := strings.IndexByte(name, '['); i >= 0 {
		name, params = name[:i], name[i:]
	}
	return strings.ReplaceAll(name, "::", ".") + params
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
		if m == nil || !isUserFile(m[1]) {
			continue
		}
		name, params := r.name, ""
		if i := strings.IndexByte(name, '['); i >= 0 {
			name, params = name[:i], name[i:]
		}
		return path.Clean(m[1]) + "::" + strings.ReplaceAll(name, ".", "::") + params
	}
	return r.name
}

func (r *pytestReport) item() item {
	i := item{rank: failure, test: r.node}
	if r.phase == "collecting" {
		i.rank, i.test = crash, r.name
	}
	if i.test == "" {
		i.test = r.nodeOf()
	}
	node := i.test
	said := pytestMessage(r.text)
	switch {
	case said == "" && slices.Contains(r.text, "Expected:"):
		said = "doctest failed"
	case said == "":
		said = r.said
	}
	if said == "" {
		said = pyMessage(r.text)
	}
	head := r.name
	switch r.phase {
	case "setup", "teardown", "error":
		head += ", " + r.phase
		i.test += " (error)" // and the test may fail as well
	case "collecting":
		head = "collecting " + r.name
	}
	if said == "" {
		said = "failed"
	}
	if i.file, i.line = locate(strings.Join(r.text, "\n")); i.file == "" {
		i.file, i.line = nodeFile(node), 0
	}
	i.text = headed(head+": "+said, dedent(withoutSource(r.text)))
	return i
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
