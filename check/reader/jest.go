package reader

import (
	"strings"

	"hone/internal/excerpt"
	"hone/internal/lazyregexp"
)

var (
	jestFile    = lazyregexp.New(`^ ?(FAIL|PASS) +(\S.*?)(?: \(\d[\d.]* m?s\))?$`)
	jestTest    = lazyregexp.New(`^  ● (.+)$`)
	vitestRuler = lazyregexp.New(`^⎯+(?: ?(.*?) ?⎯*)?(?:\[\d+/\d+\]⎯+)?$`)
	vitestSuite = lazyregexp.New(`^(\S.*?) +\[ .* \]$`)
	jestSyntax  = lazyregexp.New(`^\s*(SyntaxError: (/\S+|[A-Za-z]:\S+?): .*\((\d{1,9}):\d+\))$`)
)

// The output is plain or of --json and --reporter=json.
func readJest(text string, l *list) bool {
	j := &jestOutput{list: l}
	known := j.json(text)
	if !known && (strings.Contains(text, "FAIL ") || strings.Contains(text, "PASS ") || strings.Contains(text, "●  process.exit called")) {
		forEachLine(text, j.line)
		j.close()
	}
	return known || j.known
}

type jestResult struct {
	Name       string
	Status     string
	Message    string
	Assertions []struct {
		Ancestors []string `json:"ancestorTitles"`
		Title     string
		Status    string
		Failures  []string `json:"failureMessages"`
		Location  *struct{ Line int }
	} `json:"assertionResults"`
}

type jestOutput struct {
	*list
	known  bool
	file   string // of the open tests
	tests  []string
	suite  bool // the open tests are a file that could not run
	vitest bool
	text   []string
	over   bool // what follows is a repetition
}

func (j *jestOutput) json(text string) bool {
	return strings.Contains(text, `"testResults"`) && forEachValue(text, []string{"testResults", "*"}, j.result)
}

// It reports whether r is a file.
func (j *jestOutput) result(r jestResult) bool {
	if r.Name == "" {
		return false
	}
	failed := false
	for _, a := range r.Assertions {
		if a.Status != "failed" {
			continue
		}
		failed = true
		name := strings.Join(append(a.Ancestors, a.Title), " > ")
		i := jestItem(r.Name, name, strings.Split(excerpt.Screen(strings.Join(a.Failures, "\n")), "\n"))
		if i.line == 0 && a.Location != nil {
			i.line = a.Location.Line
		}
		j.add(i)
	}
	if !failed && r.Status == "failed" {
		i := jestItem(r.Name, "", strings.Split(excerpt.Screen(r.Message), "\n"))
		i.rank = crash
		j.add(i)
	}
	return true
}

// It is the failure of a file if the test has no name.
func jestItem(file, test string, text []string) item {
	i := item{rank: failure, test: cleanFile(file), file: file}
	name := i.test
	if test != "" {
		i.test += " > " + test
		name = test
	}
	if f, line := locate(strings.Join(text, "\n")); f != "" {
		i.file, i.line = f, line
	}
	said := ""
	for _, line := range text {
		trimmed := strings.TrimSpace(line)
		if said == "" && !strings.HasPrefix(trimmed, "● ") {
			said = trimmed
		}
		if m := jestSyntax.FindStringSubmatch(line); m != nil {
			said, i.file, i.line = m[1], m[2], number(m[3])
			break
		}
	}
	i.text = headed(name+": "+said, dedent(text))
	return i
}

func (j *jestOutput) line(line string) {
	if j.over {
		return
	}
	if m := jestFile.FindStringSubmatch(line); m != nil {
		j.begin(m[1], m[2], line[0] == ' ')
		return
	}
	switch m := jestTest.FindStringSubmatch(line); {
	case m != nil && strings.HasPrefix(m[1], " process.exit called"):
		j.close()
		j.known, j.file, j.tests, j.suite = true, "", []string{strings.TrimSpace(m[1])}, true
	case m != nil && j.file != "" && !j.vitest:
		j.close()
		j.known = true
		j.tests, j.suite = []string{strings.ReplaceAll(m[1], " › ", " > ")}, m[1] == "Test suite failed to run"
		if m[1] == "Console" {
			j.tests = nil
		}
	case strings.HasPrefix(line, "⎯"):
		j.ruler(line)
	case strings.HasPrefix(line, "Summary of all failing tests"):
		j.close()
		j.over = true
	case strings.HasPrefix(line, " › ") || line == "Snapshot Summary":
		j.close()
	case strings.HasPrefix(line, "Test Suites: ") || strings.HasPrefix(line, " Test Files "):
		j.known = true
		j.close()
	case len(j.tests) > 0:
		j.text = append(j.text, line)
	}
}

// jest prints the line before the file's failures, vitest before each of them, with the test.
func (j *jestOutput) begin(verdict, name string, vitest bool) {
	if vitest && len(j.tests) > 0 && len(j.text) == 0 {
		j.tests = append(j.tests, name) // with the same error
		return
	}
	j.close()
	j.file, j.tests, j.vitest = "", nil, vitest
	if verdict != "FAIL" {
		return
	}
	j.file = name
	if vitest {
		j.tests = []string{name}
	}
}

// vitest prints it between failures.
func (j *jestOutput) ruler(line string) {
	j.known = true
	j.close()
	j.tests = nil
	if m := vitestRuler.FindStringSubmatch(line); m != nil && (strings.HasPrefix(m[1], "Uncaught") || strings.HasPrefix(m[1], "Unhandled Rej")) {
		j.file, j.tests, j.suite, j.vitest = "", []string{m[1]}, true, false
	}
}

func (j *jestOutput) close() {
	tests, text := j.tests, j.text
	j.tests, j.text = nil, nil
	for _, test := range tests {
		if !j.vitest {
			j.add(j.item(j.file, test, text))
			continue
		}
		if m := vitestSuite.FindStringSubmatch(test); m != nil {
			i := jestItem(m[1], "", text)
			i.rank = crash
			j.add(i)
			continue
		}
		if strings.HasPrefix(test, "|") {
			_, test, _ = strings.Cut(strings.TrimPrefix(test, "|"), "| ")
		}
		file, name, _ := strings.Cut(test, " > ")
		j.add(jestItem(file, name, text))
	}
}

func (j *jestOutput) item(file, test string, text []string) item {
	if j.suite {
		if file != "" {
			test = ""
		}
		i := jestItem(file, test, text)
		i.rank = crash
		if file == "" {
			i.test = ""
		}
		if strings.HasPrefix(test, "process.exit") { // a complete message
			i.text = headed(test, dedent(text))
		}
		return i
	}
	return jestItem(file, test, text)
}
