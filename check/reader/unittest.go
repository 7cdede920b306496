package reader

import (
	"strings"

	"hone/internal/lazyregexp"
)

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
