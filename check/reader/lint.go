package reader

import (
	"cmp"
	"strings"

	"hone/internal/lazyregexp"
)

// lintMessage is a message of eslint, ruff or staticcheck, or eslint's messages about one file.
type lintMessage struct {
	FilePath          string
	Messages          []lintMessage
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

// The messages are elements of an array, or each is a document.
func (l *list) addMessages(text, mark string, is func(lintMessage) bool) {
	if !strings.Contains(text, mark) {
		return
	}
	for _, path := range [][]string{{"*"}, nil} {
		forEachValue(text, path, func(m lintMessage) {
			switch i := m.item(""); {
			case !is(m):
			case m.FilePath != "":
				for _, one := range m.Messages {
					l.add(one.item(m.FilePath))
				}
			default:
				l.addCompiled(i, m.Message)
			}
		})
	}
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
	l.addMessages(text, `"filePath"`, func(m lintMessage) bool { return m.FilePath != "" })
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
	l.addMessages(text, `"row"`, func(m lintMessage) bool { return m.Filename != "" && m.Location.Row > 0 })
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
	l.addMessages(text, `"location"`, func(m lintMessage) bool {
		severity, named := m.Severity.(string)
		return named && severity != "ignored" && m.Code != "" && m.Filename == ""
	})
}
