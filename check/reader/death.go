package reader

import (
	"strings"

	"hone/internal/lazyregexp"
)

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
