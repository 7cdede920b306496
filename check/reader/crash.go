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

const signals = `Segmentation fault|Aborted|Abort trap|Bus error|Illegal instruction|Floating point exception|Trace/breakpoint trap|Killed`

var (
	// died is how a shell or make says that a signal ended a program.
	died = lazyregexp.New(`^(?:\S*sh: line \d+: +\d+ |\S+: line \d+: +\d+ |make(?:\[\d+\])?: \*\*\* \[(?:\S+: )?([^\]\n]+)\] )?(` + signals + `)(?:: \d+)?(?: *\(core dumped\))?(?: +(\S.*))?$`)
	// asserted are the failed assertions of glibc, musl, and macOS or Windows.
	asserted = []*lazyregexp.Regexp{
		lazyregexp.New("^(?:[^:\n]+: )?(?P<file>[^:\\s]+):(?P<line>\\d{1,9}): .+: Assertion `(?P<text>.+)' failed\\.$"),
		lazyregexp.New(`^Assertion failed: (?P<text>.+) \((?P<file>[^:\s]+): .+: (?P<line>\d{1,9})\)$`),
		lazyregexp.New(`^Assertion failed: \(?(?P<text>.+?)\)?,(?: function .+?,)? file (?P<file>.+), line (?P<line>\d{1,9})\.?$`),
	}
	// aborts is what the C and C++ libraries print before they abort.
	aborts = lazyregexp.New(`^(?:terminate called .*|libc\+\+abi: .*|\*\*\* .* \*\*\*: terminated|(?:free|malloc|realloc|calloc|munmap_chunk)\(\): .+|double free or corruption .*|corrupted (?:size|double).*)$`)
)

// maxBefore is how many lines before a death its finding has, if nothing else says why.
const maxBefore = 10

// The shell or make says that the program died of a signal, and the libraries why it aborted. Of formats that have findings,
// Auto does not ask it.
func readDeath(text string, l *list) {
	var before []string
	explained := false // the next signal is that of the last item
	forEachLine(text, func(line string) {
		for _, re := range asserted {
			if i, ok := matched(re, line); ok {
				i.rank, i.text, explained = crash, "assertion failed: "+i.text, true
				l.add(i)
				return
			}
		}
		if what, ok := strings.CutPrefix(line, "  what():  "); ok && explained {
			l.items[len(l.items)-1].text += ": " + what
			return
		}
		if aborts.MatchString(line) {
			explained = true
			l.add(item{rank: crash, text: strings.Replace(line, "terminate called after throwing an instance of ", "uncaught ", 1)})
			return
		}
		m := died.FindStringSubmatch(line)
		switch {
		case m == nil:
			before = append(before[max(0, len(before)-maxBefore+1):], line)
		case explained:
			explained = false
		default:
			program := strings.TrimSpace(m[1] + m[3])
			l.add(item{rank: crash, text: headed(strings.TrimSuffix(m[2]+": "+program, ": "), dedent(before))})
			before = nil
		}
	})
}
