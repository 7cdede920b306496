package reader

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"hone/check"
	"hone/internal/excerpt"
	"hone/internal/lazyregexp"
)

var (
	// place is file:line:col: or file:line:, and tsc's file(line,col):.
	place = lazyregexp.New(`^((?:[A-Za-z]:)?[^\s:(\[][^:\n(]*?)(?::(\d{1,9})(?::(\d{1,9}))?(?:[-–][\d:]+)?(?::| -)|\((\d{1,9})(?:,(\d{1,9}))?\):)[ \t]+(\S.*)$`)
	// severity starts a message, with a rule: "warning:", "error[E0308]:", "error TS2304:".
	severity = lazyregexp.New(`^(?i:(fatal error|error|err|failure|warning|warn|note|info|hint|style|remark))(?:[\[(]([\w./@-]+)[\])]| ([A-Z]{1,6}\d{1,5}))?:\s+`)
	// ruleAt is a rule's name at a message's end, as (SA4006), [no-any-return] or [-Wunused].
	ruleAt = lazyregexp.New(`\s[\[(]([A-Za-z@-][\w./@+=-]*)[\])]$`)
	// ruleFirst is a rule's name at a message's start, such as E501.
	ruleFirst = lazyregexp.New(`^([A-Z]{1,6}\d{1,5})\b`)
)

// countLine is a line that only counts, or says nothing in words.
var countLine = lazyregexp.New(`^(?:[^\pL]*|(?:Found )?\d+ \w+.*)$`)

// Warnings do not explain why a compiler failed: what else it printed, such as the linker's error, does.
func (l *list) addEnd(others []string) {
	others = slices.DeleteFunc(others, countLine.MatchString)
	if l.exit != 0 && len(l.items) > 0 && len(others) > 0 && !slices.ContainsFunc(l.items, func(i item) bool { return i.rank < warning }) {
		l.add(item{rank: failure, rule: "end", text: "the command failed, and no warning says why: " + others[len(others)-1] + "\n" + excerpt.End(strings.Join(others, "\n"), 1<<10)})
	}
}

// It reads "file:line:col: message" and "file:line: message", with the deeper lines that compilers print below. sure are those
// that can hardly be anything else.
func readPlaces(text string, l *list, sure bool) {
	open := false // the last line belongs to the last item
	var others []string
	forEachLine(text, func(line string) {
		i, ok := placedItem(line, sure)
		switch {
		case ok:
			l.add(i)
			open = true
		case open && line != "" && (line[0] == ' ' || line[0] == '\t'):
			l.more(line)
		default:
			open = false
			others = append(others, line)
		}
	})
	l.addEnd(others)
}

func placedItem(line string, sure bool) (item, bool) {
	m := place.FindStringSubmatch(line)
	if m == nil || strings.HasSuffix(m[1], "/") {
		return item{}, false
	}
	i := item{rank: failure, file: m[1], text: m[6]}
	i.line, _ = strconv.Atoi(m[2] + m[4])
	hasColumn := m[3]+m[5] != ""
	said := severity.FindStringSubmatch(i.text)
	if sure && (!hasColumn && said == nil || strings.Contains(i.file, "://") || !strings.ContainsAny(i.file, "./")) {
		return item{}, false
	}
	if said != nil && len(said[0]) < len(i.text) {
		i.explicit = hasColumn
		i.rank, i.rule = rankOf(said[1]), said[2]+said[3]
		i.text = withRule(i.text[len(said[0]):], i.rule)
	}
	i.rule = ruleIn(i.text, i.rule)
	return i, true
}

func ruleIn(message, rule string) string {
	if m := ruleAt.FindStringSubmatch(message); m != nil {
		return m[1]
	}
	if m := ruleFirst.FindStringSubmatch(message); m != nil {
		return m[1]
	}
	return rule
}

// Linters have different names for a severity.
func rankOf(severity string) rank {
	switch strings.ToLower(severity) {
	case "fatal", "fatal error", "blocker", "critical":
		return crash
	case "warning", "warn", "minor", "w":
		return warning
	case "note", "info", "n", "i", "information", "hint", "help", "style", "remark", "none", "ignored":
		return note
	}
	return failure
}

// Pattern returns the reader of lines that a pattern fits, such as "%f:%l:%c: %m". It
// knows a small part of Vim's errorformat:
//
//	%f  the file, at least one character and as few as possible
//	%l  the line, a number
//	%c  the column, a number, which is not used
//	%t  the severity: the first letter of error, warning, info or note, in any case
//	%m  the message; as much as possible at the end, as little as possible before
//	%%  a percent sign
//	%*  any text, which is not used
//
// Everything else stands for itself; a space also fits several spaces or tabs. The
// complete line must fit, but for white space at both ends. %m is required. A message of
// several lines is not supported: the lines that do not fit are ignored.
func Pattern(pattern string) (check.Reader, error) {
	re, err := compilePattern(pattern)
	if err != nil {
		return nil, fmt.Errorf("output format %q: %w (example: %q)", pattern, err, "%f:%l:%c: %m")
	}
	read := func(text string, l *list) {
		var others []string
		forEachLine(text, func(line string) {
			if i, ok := matched(re, strings.TrimSpace(line)); ok {
				i.rule = ruleIn(i.text, "")
				l.add(i)
			} else {
				others = append(others, line)
			}
		})
		l.addEnd(others)
	}
	return format{read: read}.reader(), nil
}

// finder is an expression whose groups have the names that matched knows.
type finder interface {
	FindStringSubmatch(string) []string
	SubexpNames() []string
}

// The groups are file, line, severity, rule and text. Without a severity it is a failure.
func matched(re finder, line string) (item, bool) {
	m := re.FindStringSubmatch(line)
	if m == nil {
		return item{}, false
	}
	i := item{rank: failure}
	for n, name := range re.SubexpNames() {
		switch {
		case m[n] == "":
		case name == "file":
			i.file = m[n]
		case name == "line":
			i.line = number(m[n])
		case name == "severity":
			i.rank = rankOf(m[n])
		case strings.HasPrefix(name, "rule"): // or rule2, in another branch
			i.rule = m[n]
		case name == "text":
			i.text = m[n]
		}
	}
	i.text = withRule(i.text, i.rule)
	return i, true
}

var patternParts = map[string]string{
	"%f": `(?P<file>.+?)`, "%l": `(?P<line>\d{1,9})`, "%c": `\d{1,9}`, "%t": `(?P<severity>[EWINewin])\w*`, "%m": `(?P<text>.+?)`, "%%": `%`, "%*": `.*?`, " ": `[ \t]+`,
}

func compilePattern(pattern string) (*regexp.Regexp, error) {
	var wrong error
	times := map[string]int{}
	expression := regexp.MustCompile(`%\\?(?s:.)?| `).ReplaceAllStringFunc(regexp.QuoteMeta(pattern), func(found string) string {
		name := strings.ReplaceAll(found, `\`, "")
		times[name]++
		part, ok := patternParts[name]
		switch {
		case name == "%":
			wrong = fmt.Errorf("it ends with a single %%; write %%%% for a percent sign")
		case !ok:
			wrong = fmt.Errorf("%s is unknown; use %%f, %%l, %%c, %%t, %%m, %%* or %%%%", name)
		case times[name] > 1 && strings.Contains("%f %l %c %t %m", name) && name != " ":
			wrong = fmt.Errorf("%s occurs twice", name)
		}
		return part
	})
	if wrong == nil && times["%m"] == 0 {
		wrong = fmt.Errorf("%%m, the message, is missing")
	}
	if wrong != nil {
		return nil, wrong
	}
	return regexp.Compile("^" + expression + "$")
}
