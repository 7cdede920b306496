package reader

import (
	"fmt"
	"strings"

	"hone/internal/lazyregexp"
)

var (
	sanitizerHead = lazyregexp.New(`^(?:==\d+==)?(?:ERROR|WARNING): (\w+Sanitizer: [\w-]+(?: [a-z][\w-]*)*?)(?: on (?:unknown )?address\b.*| \(.*|:.*| in .*)?$`)
	sanitizerLeak = lazyregexp.New(`^(Direct|Indirect) (leak of \d+ byte\(s\) in \d+ object\(s\)) allocated from:$`)
	undefined     = lazyregexp.New(`^(?P<file>\S[^:\n]*):(?P<line>\d{1,9}):\d{1,9}: (?P<text>runtime error: \S.*)$`)
	memoryFrame   = lazyregexp.New(`^ +(?:#\d+ (?:0x[0-9a-f]+ in )?(\S.*?) \(?([^\s:()]+):(\d{1,9})(?::\d{1,9})?\)?(?: \(.*\))?|(?:at|by) 0x[0-9A-F]+: (.+) \(([^\s:()]+):(\d{1,9})\))$`)
	anyFrame      = lazyregexp.New(`^ +(?:#\d+|(?:at|by) 0x)`)
	valgrindLine  = lazyregexp.New(`^==\d+== ?`)
	address       = lazyregexp.New(`^0x[0-9a-f]+ is located |(?:(?: at| on) address|(?: at)?) 0x[0-9a-fA-F]+| \(p?tid=\d+[^)]*\)| [\[(][^\])]*0x[^\])]*[\])]`)
)

type memoryReports struct {
	*list
	open   *item // the report that is being read; nil if there is none
	head   string
	frames int // in its current stack
	known  bool
	direct bool // there are direct leaks, which cause the indirect ones
	spare  string
}

// The place of a finding is the first frame in the user's code.
func readSanitizer(text string, l *list) bool {
	if !strings.Contains(text, "Sanitizer") && !strings.Contains(text, ": runtime error: ") {
		return false
	}
	r := &memoryReports{list: l}
	forEachLine(text, func(line string) {
		leak := sanitizerLeak.FindStringSubmatch(line)
		if i, ok := matched(undefined, line); ok {
			r.begin(item{rank: failure, file: i.file, line: i.line}, i.text)
		} else if strings.HasSuffix(line, "Sanitizer: detected memory leaks") {
			r.close()
			r.known = true
		} else if m := sanitizerHead.FindStringSubmatch(line); m != nil {
			i := item{rank: crash}
			if strings.HasPrefix(m[1], "Thread") {
				i.rank = failure
			}
			r.begin(i, m[1])
		} else if leak != nil && (leak[1] == "Direct" || !r.direct) {
			r.direct = r.direct || leak[1] == "Direct"
			r.begin(item{rank: failure}, "LeakSanitizer: "+leak[2])
		} else if leak != nil || strings.HasPrefix(line, "SUMMARY: ") {
			r.close()
		} else {
			r.more(line)
		}
	})
	r.close()
	return r.known
}

// Each error goes up to an empty line.
func readValgrind(text string, l *list) bool {
	if !strings.Contains(text, "== ") {
		return false
	}
	r := &memoryReports{list: l}
	forEachLine(text, func(line string) {
		prefix := valgrindLine.FindString(line)
		said := line[len(prefix):]
		switch {
		case prefix == "": // of the program itself
		case strings.TrimSpace(said) == "":
			r.close()
			r.spare = ""
		case r.open == nil && anyFrame.MatchString(said) && r.spare != "":
			i := item{rank: failure}
			if strings.Contains(r.spare, " still reachable ") || strings.Contains(r.spare, " indirectly lost ") {
				i.rank = note
			}
			head, _, _ := strings.Cut(r.spare, " in loss record ")
			r.begin(i, head)
			r.more(said)
		case r.open != nil:
			r.more(said)
		case r.spare == "":
			r.spare = said
		}
	})
	r.close()
	return r.known
}

func (r *memoryReports) begin(i item, head string) {
	r.close()
	r.known, r.open, r.head, r.frames = true, &i, head, 0
}

// Of its stacks the frames with a place in the user's code are kept, and ten of each at most.
func (r *memoryReports) more(line string) {
	m := memoryFrame.FindStringSubmatch(line)
	switch {
	case r.open == nil || len(r.open.text) > maxText || strings.HasPrefix(line, "====="):
	case m != nil && isUserFile(m[2]+m[5]):
		call, file, at := m[1]+m[4], m[2]+m[5], m[3]+m[6]
		if r.open.file == "" {
			r.open.file, r.open.line = file, number(at)
			r.head += " in " + call
		}
		if r.frames++; r.frames <= 10 {
			r.open.text += fmt.Sprintf("\n    at %s (%s:%s)", call, file, at)
		}
	case !anyFrame.MatchString(line) && !strings.HasPrefix(r.head, "runtime error"): // after which the program goes on
		r.frames = 0
		r.open.text += "\n" + address.ReplaceAllString(strings.TrimSpace(line), "")
	}
}

// A report that only says what another one at the same place does is left out.
func (r *memoryReports) close() {
	i := r.open
	if r.open = nil; i == nil {
		return
	}
	dies := strings.HasPrefix(r.head, "Process terminating")
	for _, other := range r.items {
		if dies && i.file != "" && other.file == i.file && other.line == i.line {
			return
		}
	}
	i.text = r.head + i.text
	r.add(*i)
}
