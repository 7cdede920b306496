package reader

import (
	"cmp"
	"strings"

	"hone/internal/lazyregexp"
)

type lintMessage struct {
	RuleID, Code      string
	Severity          any // a number for eslint
	Message, Filename string
	Line              int
	Fatal             bool
	Location          struct {
		File      string
		Line, Row int
	}
}

// The message may name the file itself.
func (m lintMessage) item(file string) item {
	rule := cmp.Or(m.RuleID, m.Code)
	i := item{rank: failure, rule: rule, file: cmp.Or(file, m.Filename, m.Location.File), line: cmp.Or(m.Line, m.Location.Line, m.Location.Row), text: withRule(m.Message, rule)}
	severity, named := m.Severity.(string)
	switch {
	case m.Fatal, m.Filename != "" && (rule == "" || rule == "invalid-syntax"):
		i.rank = crash
	case named && severity != "":
		i.rank = rankOf(severity)
	case m.Severity == 1.0:
		i.rank = warning
	}
	return i
}

var eslintLine = lazyregexp.New(`^ +(?P<line>\d{1,9}):\d{1,9} +(?P<severity>error|warning) +(?P<text>\S.*?)(?:  +(?P<rule>\S+))?$`)

// eslintOops is how eslint begins to say that it crashed: a rule did, in its code, or the configuration is wrong.
const eslintOops = "Oops! Something went wrong! :(\n\nESLint: "

var eslintRule = lazyregexp.New(`(?m)^Rule: "(?P<rule>[^"\n]+)"$`)

// The output may be plain, JSON, or that of a crash.
func readESLint(text string, l *list) {
	for _, exception := range strings.Split(text, eslintOops)[1:] {
		_, exception, _ = strings.Cut(exception, "\n\n") // after the version
		exception, _, _ = strings.Cut(exception, "\n\n")
		i, _ := matched(eslintRule, exception)
		i.rank, i.text = crash, withRule("eslint crashed: "+exception, i.rule)
		i.file, i.line = locate(exception)
		l.add(i)
	}
	if strings.Contains(text, `"filePath"`) {
		forEachValue(text, []string{"*"}, func(f struct {
			FilePath string
			Messages []lintMessage
		}) {
			for _, m := range f.Messages {
				l.add(m.item(f.FilePath))
			}
		})
	}
	file := ""
	forEachLine(text, func(line string) {
		if line != "" && line[0] != ' ' {
			file = line
		} else if i, ok := matched(eslintLine, line); ok && file != "" {
			i.file = file
			l.add(i)
		}
	})
}

// ruffHead is the first line of a message in ruff's full output, with a rule's code or,
// with --preview, its name.
var ruffHead = lazyregexp.New(`^(?:(?P<severity>error|warning|info)\[(?P<rule>[\w-]+)\]:|(?P<rule2>[A-Z]{1,6}\d{1,5}|[a-z][a-z0-9-]*-[a-z0-9-]*):?) (?:\[[*-]\] )?(?P<text>\S.*)$`)

// The output may be JSON, lines of JSON, or ruff's full output.
func readRuff(text string, l *list) {
	if strings.Contains(text, `"filename"`) && strings.Contains(text, `"row"`) {
		for _, path := range [][]string{{"*"}, nil} {
			forEachValue(text, path, func(m lintMessage) {
				if m.Filename != "" && m.Location.Row > 0 {
					l.add(m.item(""))
				}
			})
		}
	}
	for _, s := range sections(text, func(line string) (string, bool) { return line, ruffHead.MatchString(line) }) {
		if i, ok := pointed(ruffHead, s); ok {
			if i.rule == "invalid-syntax" {
				i.rank = crash
			}
			l.add(i)
		}
	}
}

// It is the output of staticcheck -f json.
func readStaticcheck(text string, l *list) {
	if !strings.Contains(text, `"severity"`) || !strings.Contains(text, `"location"`) {
		return
	}
	forEachValue(text, nil, func(m lintMessage) {
		severity, named := m.Severity.(string)
		if !named || severity == "ignored" || m.Code == "" || m.Filename != "" {
			return
		}
		if m.Location.File == "" {
			if compiled := goBuildItems(m.Message); len(compiled) > 0 {
				l.add(compiled...)
				return
			}
		}
		l.add(m.item(""))
	})
}
