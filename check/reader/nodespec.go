package reader

import (
	"strings"

	"hone/internal/lazyregexp"
)

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
