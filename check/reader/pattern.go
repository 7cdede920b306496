package reader

import (
	"fmt"
	"regexp"
	"strings"

	"hone/check"
)

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
