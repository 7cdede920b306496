package reader

import (
	"slices"
	"strconv"
	"strings"

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
