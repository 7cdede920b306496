package reader

import (
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

var (
	numberedHead = lazyregexp.New(`^ {0,2}\d+\) (\S.*)$`)
	// numberedGroup begins failures, or what is none.
	numberedGroup = lazyregexp.New(`^(?:Failures:|Pending:.*|There (?:was|were) \d+ .*:| *\d+ (?:failing|pending))$`)
	numberedNone  = lazyregexp.New(`^Pending:|skipped|incomplete|risky|pending$`)
	// numberedEnd ends a failure, and numberedSure is a line that only these runners print.
	numberedEnd  = lazyregexp.New(`^(?:--|Finished in .*|(?:ERRORS|FAILURES|WARNINGS)!+|\d+ (?:runs|tests?|doctests?), .*)$`)
	numberedSure = lazyregexp.New(`(?m)^(?: *\d+ failing|Failures:|Run options: .*|PHPUnit \d.*|JUnit version .*|\d+ (?:doctests?, \d+ )?tests?, \d+ failures?.*) *$`)
	// numberedPlace is where ExUnit's test begins, and numberedDots is what a runner prints meanwhile.
	numberedPlace = lazyregexp.New(`^\S+\.exs?:\d+$`)
	numberedDots  = lazyregexp.New(`^[.FEWRSIN*]+$`)
)

// Many runners count the failures in their reports: mocha, Jasmine, RSpec, minitest, PHPUnit, JUnit 4 and ExUnit.
func readNumbered(text string, l *list) {
	if !numberedSure.MatchString(text) {
		return
	}
	none, titled := false, false
	for _, s := range sections(text, func(line string) (string, bool) {
		line = strings.TrimRight(line, " ")
		return line, numberedHead.MatchString(line) || numberedGroup.MatchString(line) || numberedEnd.MatchString(line) || numberedSure.MatchString(line)
	}) {
		switch m := numberedHead.FindStringSubmatch(s.head); {
		case numberedGroup.MatchString(s.head):
			if none = numberedNone.MatchString(s.head); strings.HasSuffix(s.head, " failing") {
				l.items, titled = nil, true // mocha has listed the names before
			}
		case m != nil && !none && m[1] != "Skipped:": // minitest's
			l.add(numberedItem(m[1], s.body, titled))
		}
	}
}

// titled says that the titles of the suites and the test are a line each, of which the last ends with a colon.
func numberedItem(name string, body []string, titled bool) item {
	body = slices.DeleteFunc(body, func(line string) bool {
		return numberedDots.MatchString(line) || numberedPlace.MatchString(strings.TrimSpace(line)) // only of the test
	})
	switch {
	case (name == "Failure:" || name == "Error:") && len(body) > 0: // minitest's
		name, _, _ = strings.Cut(strings.TrimSuffix(body[0], ":"), " [")
	case titled:
		for !strings.HasSuffix(name, ":") && len(body) > 0 && strings.TrimSpace(body[0]) != "" {
			name, body = name+" "+strings.TrimSpace(body[0]), body[1:]
		}
		name = strings.TrimSuffix(name, ":")
	}
	return item{rank: failure, test: name}.told(name, numberedMessage(name, body), dedent(body))
}

// It is the first line that says what is wrong; empty if the values say it.
func numberedMessage(name string, body []string) string {
	code := false // up to the next empty line
	head := ""    // goes on in the next line
	for _, line := range body {
		switch line = strings.TrimSpace(line); {
		case line == "":
			code = false
		case code || strings.HasPrefix(line, "Failure/Error:"): // RSpec's
			code = true
		case line == "Message:", strings.HasPrefix(line, name):
		case labels[0].got.MatchString(line), labels[0].want.MatchString(line):
			return ""
		case strings.HasSuffix(line, ":") && head == "":
			head = line + " "
		default:
			return head + line
		}
	}
	return head
}

var (
	gtestHead  = lazyregexp.New(`^\[(?: RUN      |       OK |  SKIPPED |  FAILED  |[-=]{10})\].*$`)
	gtestRun   = lazyregexp.New(`^\[ RUN      \] (\S+)`)
	gtestEnd   = lazyregexp.New(`^\[  FAILED  \] (\S+?),? .*\(\d+ ms\)$`)
	gtestPlace = lazyregexp.New(`^(?:\S+:\d+|unknown file): Failure$`)

	ctestHead = lazyregexp.New(`^ *Start +\d+: .*$|^ *\d+/\d+ Test +#\d+: .*$|^\d+% tests passed, .*$`)
	ctestEnd  = lazyregexp.New(`^ *\d+/\d+ Test +#\d+: (.*?) \.*\*\*\*(.*?) +[\d.]+ sec`)
)

// It reads the output of GoogleTest.
func readGTest(text string, l *list) {
	running := ""
	var said []string
	for _, s := range sections(text, func(line string) (string, bool) { return line, gtestHead.MatchString(line) }) {
		if m := gtestRun.FindStringSubmatch(s.head); m != nil {
			running, said = m[1], s.body
			continue
		}
		if m := gtestEnd.FindStringSubmatch(s.head); m != nil && running != "" {
			l.add(gtestItems(running, said)...)
		}
		running = ""
	}
	if running != "" { // it is the last line of a program that died
		l.add(item{rank: crash, test: running}.told(running, "it did not end", dedent(said)))
	}
}

// Each failure of a test is one. Its message goes on in further lines, which have the values.
func gtestItems(test string, said []string) (items []item) {
	for n, s := range sections(strings.Join(said, "\n"), func(line string) (string, bool) { return line, gtestPlace.MatchString(line) }) {
		if n == 0 {
			continue // what the test printed
		}
		var message []string
		for _, line := range s.body {
			if line = strings.TrimSpace(line); line != "" {
				message = append(message, line)
			}
		}
		text := strings.ReplaceAll(strings.Join(message, ", "), ":, ", ": ")
		items = append(items, item{rank: failure, test: test}.told(test, text, s.head+"\n"+dedent(s.body)))
	}
	return items
}

// It reads what CTest says of each test; of a test of GoogleTest, what that says.
func readCTest(text string, l *list) {
	for _, s := range sections(text, func(line string) (string, bool) { return line, ctestHead.MatchString(line) }) {
		m := ctestEnd.FindStringSubmatch(s.head)
		if m == nil {
			continue
		}
		before := len(l.items)
		if readGTest(strings.Join(s.body, "\n"), l); len(l.items) > before {
			continue
		}
		i := item{rank: failure, test: m[1]}
		if m[2] != "Failed" {
			i.rank = crash
		}
		l.add(i.told(m[1], m[2], dedent(s.body)))
	}
}
