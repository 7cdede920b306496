package reader

import (
	"cmp"
	"strings"

	"hone/internal/excerpt"
	"hone/internal/lazyregexp"
)

var (
	// jestHead is a file's verdict, which vitest prints before each failure, with the test; a failure of jest's; a ruler of
	// vitest's; or what ends a failure.
	jestHead    = lazyregexp.New(`^(?:( ?)(FAIL|PASS) +(\S.*?)(?: \(\d[\d.]* m?s\))?|  ● (.+)|⎯+(?: ?(.*?) ?⎯*)?(?:\[\d+/\d+\]⎯+)?|(Summary of all failing tests).*| › .*|Snapshot Summary|(Test Suites: | Test Files ).*)$`)
	vitestSuite = lazyregexp.New(`^(\S.*?) +\[ .* \]$`)
	jestSyntax  = lazyregexp.New(`^\s*(?P<text>SyntaxError: (?P<file>/\S+|[A-Za-z]:\S+?): .*\((?P<line>\d{1,9}):\d+\))$`)
)

// The output is plain or of --json and --reporter=json.
func readJest(text string, l *list) {
	if strings.Contains(text, `"testResults"`) {
		forEachValue(text, []string{"testResults", "*"}, l.addJest)
	}
	if len(l.items) > 0 {
		return // what follows says it again
	}
	ruled := strings.Contains(text, "⎯") || strings.Contains(text, " Test Files ") // it is vitest's
	file := ""
	var tests []string // of vitest, with the same error
	for _, s := range sections(text, func(line string) (string, bool) { return line, jestHead.MatchString(line) }) {
		m := jestHead.FindStringSubmatch(s.head)
		if m == nil {
			continue
		}
		test, thrown := m[4], m[5]
		switch {
		case m[6] != "":
			return
		case ruled && m[1] != "" && m[2] == "FAIL":
			if file, tests = "", append(tests, m[3]); len(s.body) > 0 {
				for _, t := range tests {
					l.add(vitestItem(t, s.body))
				}
				tests = nil
			}
		case m[2] != "":
			if file, tests = "", nil; m[2] == "FAIL" {
				file = m[3]
			}
		case strings.HasPrefix(test, " process.exit called"):
			l.add(item{rank: crash}.told(strings.TrimSpace(test), "", dedent(s.body)))
		case test == "Test suite failed to run" && file != "":
			l.add(jestItem(file, "", s.body))
		case test != "" && test != "Console" && file != "":
			l.add(jestItem(file, strings.ReplaceAll(test, " › ", " > "), s.body))
		case strings.HasPrefix(thrown, "Uncaught"), strings.HasPrefix(thrown, "Unhandled Rej"):
			i := jestItem("", thrown, s.body)
			i.rank, i.test = crash, ""
			l.add(i)
		}
	}
}

func vitestItem(test string, text []string) item {
	if m := vitestSuite.FindStringSubmatch(test); m != nil {
		return jestItem(m[1], "", text)
	}
	if project, ok := strings.CutPrefix(test, "|"); ok {
		_, test, _ = strings.Cut(project, "| ")
	}
	file, name, _ := strings.Cut(test, " > ")
	return jestItem(file, name, text)
}

// A file that could not run has no test.
func jestItem(file, test string, text []string) item {
	i := item{rank: failure, test: cleanFile(file), file: file}
	name := cmp.Or(test, i.test)
	if test == "" {
		i.rank = crash
	} else {
		i.test += " > " + test
	}
	said := ""
	for _, line := range text {
		if wrong, ok := matched(jestSyntax, line); ok {
			i = i.told(name, wrong.text, dedent(text))
			i.file, i.line = wrong.file, wrong.line
			return i
		}
		if trimmed := strings.TrimSpace(line); said == "" && !strings.HasPrefix(trimmed, "● ") {
			said = trimmed
		}
	}
	return i.told(name, said, dedent(text))
}

type jestFile struct {
	Name       string
	Status     string
	Message    string
	Assertions []struct {
		Ancestors []string `json:"ancestorTitles"`
		Title     string
		Status    string
		Failures  []string `json:"failureMessages"`
	} `json:"assertionResults"`
}

func (l *list) addJest(f jestFile) {
	failed := false
	for _, a := range f.Assertions {
		if a.Status != "failed" {
			continue
		}
		failed = true
		l.add(jestItem(f.Name, strings.Join(append(a.Ancestors, a.Title), " > "), strings.Split(excerpt.Screen(strings.Join(a.Failures, "\n")), "\n")))
	}
	if !failed && f.Status == "failed" {
		l.add(jestItem(f.Name, "", strings.Split(excerpt.Screen(f.Message), "\n")))
	}
}

var (
	specPoint = lazyregexp.New(`^( *)([✔✖▶﹣⚠]) (\S.*?)( \(\d[\d.]*ms\))?(?: (# .*))?$`)
	specPlace = lazyregexp.New(`^test at (\S.*):(\d{1,9}):\d{1,9}$`)
	specNoise = lazyregexp.New(`(?m)^ *(?:generatedMessage|code|operator|diff): .*\n?`)
	specError = lazyregexp.New(`(?m)^\w*Error(?: \[\w+\])?: .*$`)
)

type specTest struct {
	name, last string // with the suites around it, and its own
	indent     int
	text       []string
	before     []string // what was printed before it: of a file, why it could not run
	file       string   // where the test begins
	line       int
	told       bool // in the list of failed tests
}

type specOutput struct {
	suites []specTest
	tests  []*specTest
	open   *specTest
	said   []string
	list   bool // what follows is the list of failed tests
	place  []string
}

// Newer versions print why a test failed only in the list at the end, older ones twice.
func readNodeSpec(text string, l *list) {
	s := &specOutput{}
	forEachLine(text, s.line)
	for _, t := range s.tests {
		l.add(t.item())
	}
}

func (s *specOutput) line(line string) {
	m := specPoint.FindStringSubmatch(line)
	switch {
	case line == "✖ failing tests:":
		s.list, s.open = true, nil
	case specPlace.MatchString(line):
		s.place, s.open = specPlace.FindStringSubmatch(line), nil
	case m != nil && m[2] == "▶" && m[4] == "" && !s.list:
		s.leave(len(m[1]), m[3])
		s.suites, s.open = append(s.suites, specTest{name: m[3], indent: len(m[1])}), nil
	case m != nil && m[4] != "":
		s.point(len(m[1]), m[2] == "✖" && m[5] == "", m[3])
		s.said = nil
	case s.open != nil && (line == "" || strings.HasPrefix(line, strings.Repeat(" ", s.open.indent+2))):
		s.open.text = append(s.open.text, line)
	default:
		s.open = nil
		if len(s.said) < 100 {
			s.said = append(s.said, line)
		}
	}
}

func (s *specOutput) point(indent int, failed bool, name string) {
	s.open = nil
	if s.list {
		for _, t := range s.tests {
			if failed && !t.told && t.last == name {
				t.told, t.text, t.indent, s.open = true, nil, indent, t
				if s.place != nil {
					t.file, t.line = s.place[1], number(s.place[2])
				}
				return
			}
		}
	}
	ended := s.leave(indent, name)
	if !failed || ended && len(s.tests) > 0 && strings.HasPrefix(s.tests[len(s.tests)-1].name, s.full(name)+" > ") {
		return
	}
	s.open = &specTest{name: s.full(name), last: name, indent: indent, before: s.said}
	s.tests = append(s.tests, s.open)
}

func (s *specOutput) full(name string) string {
	var names []string
	for _, suite := range s.suites {
		names = append(names, suite.name)
	}
	return strings.Join(append(names, name), " > ")
}

// Suites that are not around the line end. It reports whether the line is the result of one.
func (s *specOutput) leave(indent int, name string) (ended bool) {
	for n := len(s.suites) - 1; n >= 0 && s.suites[n].indent >= indent; n-- {
		ended = s.suites[n].indent == indent && s.suites[n].name == name
		s.suites = s.suites[:n]
	}
	return ended
}

func (t *specTest) item() item {
	i := item{rank: failure, test: t.name, file: t.file, line: t.line}
	text := strings.TrimPrefix(dedent(t.text), "AssertionError [ERR_ASSERTION]: ")
	said := firstLine(text)
	if strings.HasPrefix(said, "'") && strings.Index(said[1:], "'") == len(said)-2 { // a text that is not an error
		said = strings.Trim(said, "'")
	}
	if said == "test failed" {
		i.rank, text = crash, dedent(t.before)
		if why := specError.FindString(text); why != "" {
			said = why
		}
	}
	return i.told(t.name, said, strings.TrimSuffix(specNoise.ReplaceAllString(text, ""), "\n}"))
}
