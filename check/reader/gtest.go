package reader

import (
	"strings"

	"hone/internal/lazyregexp"
)

var (
	gtestHead  = lazyregexp.New(`^\[(?: RUN      |       OK |  SKIPPED |  FAILED  |[-=]{10})\].*$`)
	gtestRun   = lazyregexp.New(`^\[ RUN      \] (\S+)`)
	gtestEnd   = lazyregexp.New(`^\[  FAILED  \] (\S+?),? .*\(\d+ ms\)$`)
	gtestPlace = lazyregexp.New(`^(?:\S+:\d+|unknown file): Failure$`)

	ctestHead = lazyregexp.New(`^ *Start +\d+: .*$|^ *\d+/\d+ Test +#\d+: .*$|^\d+% tests passed, .*$`)
	ctestEnd  = lazyregexp.New(`^ *\d+/\d+ Test +#\d+: (.*?) \.*\*\*\*(.*?) +[\d.]+ sec`)
)

// It reads the output of GoogleTest.
func readGTest(text string, l *list) {
	running := ""
	var said []string
	for _, s := range sections(text, func(line string) (string, bool) { return line, gtestHead.MatchString(line) }) {
		if m := gtestRun.FindStringSubmatch(s.head); m != nil {
			running, said = m[1], s.body
			continue
		}
		if m := gtestEnd.FindStringSubmatch(s.head); m != nil && running != "" {
			l.add(gtestItems(running, said)...)
		}
		running = ""
	}
	if running != "" { // it is the last line of a program that died
		l.add(item{rank: crash, test: running}.told(running, "it did not end", dedent(said)))
	}
}

// Each failure of a test is one. Its message goes on in further lines, which have the values.
func gtestItems(test string, said []string) (items []item) {
	for n, s := range sections(strings.Join(said, "\n"), func(line string) (string, bool) { return line, gtestPlace.MatchString(line) }) {
		if n == 0 {
			continue // what the test printed
		}
		var message []string
		for _, line := range s.body {
			if line = strings.TrimSpace(line); line != "" {
				message = append(message, line)
			}
		}
		text := strings.ReplaceAll(strings.Join(message, ", "), ":, ", ": ")
		items = append(items, item{rank: failure, test: test}.told(test, text, s.head+"\n"+dedent(s.body)))
	}
	return items
}

// It reads what CTest says of each test; of a test of GoogleTest, what that says.
func readCTest(text string, l *list) {
	for _, s := range sections(text, func(line string) (string, bool) { return line, ctestHead.MatchString(line) }) {
		m := ctestEnd.FindStringSubmatch(s.head)
		if m == nil {
			continue
		}
		before := len(l.items)
		if readGTest(strings.Join(s.body, "\n"), l); len(l.items) > before {
			continue
		}
		i := item{rank: failure, test: m[1]}
		if m[2] != "Failed" {
			i.rank = crash
		}
		l.add(i.told(m[1], m[2], dedent(s.body)))
	}
}
