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
