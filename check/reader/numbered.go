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
