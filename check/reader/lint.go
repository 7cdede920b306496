package reader

import (
	"encoding/json"
	"strings"

	"hone/internal/lazyregexp"
)

type eslintFile struct {
	FilePath string
	Messages []struct {
		RuleID   string
		Severity int
		Message  string
		Line     int
		Fatal    bool
	}
}

var eslintLine = lazyregexp.New(`^ +(?P<line>\d{1,9}):\d{1,9} +(?P<severity>error|warning) +(?P<text>\S.*?)(?:  +(?P<rule>\S+))?$`)

// readESLint reads what eslint prints, plain or as JSON, also if it crashes.
func readESLint(text string, l *list) bool {
	crashed := readESLintCrash(text, l)
	add := func(f eslintFile) bool { return f.add(l) }
	if strings.Contains(text, `"filePath"`) && forEachValue(text, []string{"*"}, add) {
		return true
	}
	return readESLintLines(text, l) || crashed
}

// readESLintLines reads what eslint prints for people.
func readESLintLines(text string, l *list) bool {
	known, file := false, ""
	forEachLine(text, func(line string) {
		if line != "" && line[0] != ' ' {
			file = line
			return
		}
		if i, ok := matched(eslintLine, line); ok && file != "" {
			known, i.file = true, file
			l.add(i)
		}
	})
	return known
}

// eslintOops is how eslint begins to say that it crashed.
const eslintOops = "Oops! Something went wrong! :(\n\nESLint: "

var eslintRule = lazyregexp.New(`(?m)^Rule: "([^"\n]+)"$`)

// readESLintCrash reads the exceptions that ended eslint: of a rule, in the code of that
// rule, or of its configuration.
func readESLintCrash(text string, l *list) bool {
	_, text, known := strings.Cut(text, eslintOops)
	for more := known; more; {
		var exception string
		exception, text, more = strings.Cut(text, eslintOops)
		_, exception, _ = strings.Cut(exception, "\n\n") // after the version
		exception, _, _ = strings.Cut(exception, "\n\n")
		i := item{rank: crash}
		if m := eslintRule.FindStringSubmatch(exception); m != nil {
			i.rule = m[1]
		}
		i.file, i.line = locate(exception)
		i.text = withRule("eslint crashed: "+exception, i.rule)
		l.add(i)
	}
	return known
}

// add adds the messages of a file, and reports whether it is one.
func (f eslintFile) add(l *list) bool {
	if f.FilePath == "" {
		return false
	}
	for _, m := range f.Messages {
		i := item{rank: failure, rule: m.RuleID, file: f.FilePath, line: m.Line, text: withRule(m.Message, m.RuleID)}
		switch {
		case m.Fatal:
			i.rank = crash
		case m.Severity == 1:
			i.rank = warning
		}
		l.add(i)
	}
	return true
}

type ruffMessage struct {
	Code     *string
	Filename string
	Location struct{ Row int }
	Message  string
	Severity string
}

// ruffHead is the first line of a message in ruff's full output, with a rule's code or,
// with --preview, its name.
var ruffHead = lazyregexp.New(`^(?:(?P<severity>error|warning|info)\[(?P<rule>[\w-]+)\]:|(?P<rule2>[A-Z]{1,6}\d{1,5}|[a-z][a-z0-9-]*-[a-z0-9-]*):?) (?:\[[*-]\] )?(?P<text>\S.*)$`)

// readRuff reads what ruff prints: as JSON, as lines of JSON, or its full output.
func readRuff(text string, l *list) bool {
	add := func(m ruffMessage) bool {
		known := m.Filename != "" && m.Location.Row > 0
		if known {
			l.add(m.item())
		}
		return known
	}
	if strings.Contains(text, `"filename"`) && strings.Contains(text, `"row"`) && (forEachValue(text, []string{"*"}, add) || forEachValue(text, nil, add)) {
		return true
	}
	a := arrows{head: ruffHead, crash: "invalid-syntax", files: []string{".py", ".pyi", ".ipynb"}}
	forEachLine(text, func(line string) { a.line(line, l) })
	return a.known
}

func (m ruffMessage) item() item {
	i := item{rank: failure, file: m.Filename, line: m.Location.Row}
	if m.Severity != "" {
		i.rank = rankOf(m.Severity)
	}
	if m.Code != nil {
		i.rule = *m.Code
	}
	if m.Code == nil || i.rule == "invalid-syntax" {
		i.rank = crash
	}
	i.text = withRule(m.Message, i.rule)
	return i
}

type staticcheckMessage struct {
	Code     string
	Severity string
	Location *struct {
		File string
		Line int
	}
	Message string
}

// readStaticcheck reads what staticcheck -f json prints.
func readStaticcheck(text string, l *list) bool {
	if !strings.Contains(text, `"severity"`) || !strings.Contains(text, `"location"`) {
		return false
	}
	known := false
	forEachLine(text, func(line string) {
		var m staticcheckMessage
		if !strings.HasPrefix(line, `{"code"`) || json.Unmarshal([]byte(line), &m) != nil || m.Location == nil {
			return
		}
		known = true
		if m.Severity == "ignored" {
			return
		}
		if m.Location.File == "" {
			if compiled := goBuildItems(m.Message); len(compiled) > 0 {
				l.add(compiled...)
				return
			}
		}
		l.add(item{rank: rankOf(m.Severity), rule: m.Code, file: m.Location.File, line: m.Location.Line, text: withRule(m.Message, m.Code)})
	})
	return known
}
