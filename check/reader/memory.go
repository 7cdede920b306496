package reader

import (
	"fmt"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

var (
	// sanitizerHead begins a report, or ends the one before.
	sanitizerHead = lazyregexp.New(`^(?:(?P<file>\S[^:\n]*):(?P<line>\d{1,9}):\d{1,9}: (?P<text>runtime error: \S.*)|.*Sanitizer: detected memory leaks|` +
		`(?:==\d+==)?(?:ERROR|WARNING): (\w+Sanitizer: [\w-]+(?: [a-z][\w-]*)*?)(?: on (?:unknown )?address\b.*| \(.*|:.*| in .*)?|` +
		`(Direct|Indirect) (leak of \d+ byte\(s\) in \d+ object\(s\)) allocated from:|SUMMARY: .*)$`)
	memoryFrame  = lazyregexp.New(`^ +(?:#\d+ (?:0x[0-9a-f]+ in )?(\S.*?) \(?([^\s:()]+):(\d{1,9})(?::\d{1,9})?\)?(?: \(.*\))?|(?:at|by) 0x[0-9A-F]+: (.+) \(([^\s:()]+):(\d{1,9})\))$`)
	anyFrame     = lazyregexp.New(`^ +(?:#\d+|(?:at|by) 0x)`)
	valgrindLine = lazyregexp.New(`^==\d+== ?`)
	leaks        = lazyregexp.New(`^LeakSanitizer: | (?:lost|still reachable)$`)
	allocates    = lazyregexp.New(`(?i)alloc|strn?dup|^operator new`)
	address      = lazyregexp.New(`^0x[0-9a-f]+ is located |(?:(?: at| on) address|(?: at)?) 0x[0-9a-fA-F]+| \(p?tid=\d+[^)]*\)| [\[(][^\])]*0x[^\])]*[\])]`)
)

// The place of a finding is the first frame in the user's code.
func readSanitizer(text string, l *list) {
	direct := false // there are direct leaks, which cause the indirect ones
	for _, s := range sections(text, func(line string) (string, bool) { return line, sanitizerHead.MatchString(line) }) {
		i, ok := matched(sanitizerHead, s.head)
		if !ok || strings.HasPrefix(s.head, "SUMMARY: ") {
			continue
		}
		m := sanitizerHead.FindStringSubmatch(s.head)
		switch said, leak := m[4], m[5]; {
		case i.text != "": // after which the program goes on
			l.add(memoryItem(i, i.text, slices.DeleteFunc(s.body, func(line string) bool { return !anyFrame.MatchString(line) })))
		case said != "":
			if !strings.HasPrefix(said, "Thread") {
				i.rank = crash
			}
			l.add(memoryItem(i, said, s.body))
		case leak == "Direct" || leak == "Indirect" && !direct:
			direct = direct || leak == "Direct"
			l.add(memoryItem(i, "LeakSanitizer: "+m[6], s.body))
		}
	}
}

// Each error goes up to an empty line. The end of a process at the place of another error says nothing more.
func readValgrind(text string, l *list) {
	var own []string // lines that are not of the program itself
	forEachLine(text, func(line string) {
		if prefix := valgrindLine.FindString(line); prefix != "" {
			own = append(own, line[len(prefix):])
		}
	})
	for _, s := range sections(strings.Join(own, "\n"), func(line string) (string, bool) { return "", strings.TrimSpace(line) == "" }) {
		first := slices.IndexFunc(s.body, anyFrame.MatchString)
		if first < 1 {
			continue
		}
		head, _, _ := strings.Cut(s.body[0], " in loss record ")
		i := memoryItem(item{rank: failure}, head, s.body[first:])
		if !strings.HasPrefix(head, "Process terminating") || !slices.ContainsFunc(l.items, func(other item) bool { return i.file != "" && other.file == i.file && other.line == i.line }) {
			l.add(i)
		}
	}
}

// Of the stacks the frames with a place in the user's code are kept, and ten of each at most.
func memoryItem(i item, head string, body []string) item {
	i.text = ""
	frames, where := 0, "" // in the current stack, and of the place
	through := false       // the place is only a way to memory, which all leaks may have gone
	for _, line := range body {
		m := memoryFrame.FindStringSubmatch(line)
		switch {
		case len(i.text) > maxText:
		case m != nil && isUserFile(m[2]+m[5]):
			call, file, at := m[1]+m[4], m[2]+m[5], m[3]+m[6]
			if i.file == "" || through && !allocates.MatchString(call) {
				i.file, i.line, where = file, number(at), " in "+call
				through = leaks.MatchString(head) && allocates.MatchString(call)
			}
			if frames++; frames <= 10 {
				i.text += fmt.Sprintf("\n    at %s (%s:%s)", call, file, at)
			}
		case !anyFrame.MatchString(line):
			frames = 0
			i.text += "\n" + address.ReplaceAllString(strings.TrimSpace(line), "")
		}
	}
	i.text = head + where + i.text
	return i
}
