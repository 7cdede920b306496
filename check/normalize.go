package check

import (
	"slices"
	"strings"

	"hone/internal/excerpt"
	"hone/internal/lazyregexp"
)

// Parts of times.
const (
	monthName = `(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*`
	clockTime = `\d\d?:\d\d:\d\d(?:[.,]\d+)?(?: ?[AP]M\b)?`
	timeZone  = `(?: ?(?:Z|UTC|GMT|C?EST|[+-]\d\d:?\d\d)\b)*`
)

// oneOf are texts of which a line must have one for an expression to be tried: that is
// what makes Normalize fast.
type oneOf []string

func (w oneOf) in(line string) bool {
	return w == nil || slices.ContainsFunc(w, func(word string) bool { return strings.Contains(line, word) })
}

var months = oneOf{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"}

// volatile are what differs between two runs of the same failure, with what replaces it.
// Each is applied to single lines. What replaces a match has no digits, so that it does
// not match again.
var volatile = []struct {
	has  oneOf // one of them is in every match; nil if nothing is
	re   *lazyregexp.Regexp
	with string
}{
	// What programs generate: UUIDs, checksums, names of temporary files.
	{oneOf{"-"}, lazyregexp.New(`\b[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b`), "<uuid>"},
	{nil, lazyregexp.New(`\b[0-9A-Fa-f]{32,}\b`), "<hex>"},
	{oneOf{"/"}, lazyregexp.New(`(^|[^\w./>-]|file://)(?:(?:/private)?(?:/var)?/tmp|/dev/shm|(?:/private)?/var/folders/\w+/\w+/T)/+[^\s/'":;,()<>\[\]]+(?:/\d{3}\b)?`), "$1<tmp>"},
	{oneOf{`:\`, ":/"}, lazyregexp.New(`(?i)\b[a-z]:[\\/]+(?:[^\\/:*?"<>|\r\n]+[\\/]+){0,6}?te?mp[\\/]+[^\\/\s'":;,()<>]+(?:[\\/]+\d{3}\b)?`), "<tmp>"},
	{oneOf{"/"}, lazyregexp.New(`/(?:go-(?:build|link-)\d+|(?:Test|Benchmark|Fuzz)\w*\d{5,}/\d{3}|tmp\.\w{6,}|pytest-\d+|run-\d{8}-\d{6}-[0-9a-f]+-\d+)\b`), "/<tmp>"},
	// Times.
	{oneOf{"19", "20"}, lazyregexp.New(`\b(?:19|20)\d\d[-/](?:0[1-9]|1[0-2])[-/][0-3]\d(?:[T_ ]` + clockTime + timeZone + `(?: m=[+-]\d+\.\d+)?)?\b`), "<time>"},
	{months, lazyregexp.New(`\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? +)?(?:\d\d?[ /-]` + monthName + `[ /-]\d{2,4}|` + monthName + ` +\d\d?(?:, \d{4})?)[ :,]+` + clockTime + timeZone + `(?: \d{4}\b)?`), "<time>"},
	{oneOf{"20"}, lazyregexp.New(`\b20\d{6}[-_T]\d{6}\b`), "<time>"},
	{oneOf{":0", ":1", ":2", ":3", ":4", ":5"}, lazyregexp.New(`(^|[^\w:.])` + clockTime + `\b`), "$1<time>"},
	{oneOf{"time", "ts", "TS", "epoch"}, lazyregexp.New(`(?i)\b((?:time|ts|timestamp|epoch)["']? ?[=:] ?["']?)1\d{9}(?:\.?\d+)?\b`), "$1<time>"},
	// Durations. Whole minutes and hours stay: a measured duration is never whole.
	{nil, lazyregexp.New(`\b(?:\d+h ?)?(?:\d+m ?)?\d+(?:[.,]\d+)*(?:e[+-]?\d+)?(?:(?: ?(?:ns|us|µs|μs|ms|(?:msec|sec|second|minute|hour)s?)|s)\b)`), "<duration>"},
	{oneOf{" s"}, lazyregexp.New(`\b\d+\.\d+ s\b`), "<duration>"},
	{oneOf{" s"}, lazyregexp.New(`\b((?:in|took|after|estimated) )\d+ s\b`), "$1<duration>"},
	{oneOf{" min"}, lazyregexp.New(`\b\d+:\d\d min\b`), "<duration>"},
	{oneOf{"."}, lazyregexp.New(`(?i)\b((?:time|elapsed|duration)["']?[=: ]+["']?)\d+\.\d+\b`), "$1<duration>"},
	{oneOf{"_ms"}, lazyregexp.New(`\b((?:elapsed|duration)_ms["']?[=: ]+)\d+(?:\.\d+)?\b`), "$1<duration>"},
	{oneOf{"time="}, lazyregexp.New(`\b(time=["'])\d+(?:\.\d+)?\b`), "$1<duration>"},
	{oneOf{"(cached)"}, lazyregexp.New(`\(cached\)`), "<duration>"}, // of go test, in place of one
	// Addresses, and the numbers of processes, threads and ports.
	{oneOf{"0x"}, lazyregexp.New(`(\+)0x[0-9a-f]+\b|\b0x[0-9a-f]{6,16}\b`), "$1<address>"},
	{oneOf{"@"}, lazyregexp.New(`([\w;]@)[0-9a-f]{5,8}\b`), "$1<address>"},
	{oneOf{"oroutine ", "pid", "PID", "thread '"}, lazyregexp.New(`(?i)\b(goroutine |p?pid["']?[ =:#]{1,3}|thread '[^'\n]{0,100}' \()\d+\b`), "$1<id>"},
	{oneOf{"(node:"}, lazyregexp.New(`\(node:\d+\)`), "(node:<id>)"},
	{oneOf{"=="}, lazyregexp.New(`==\d+==`), "==<id>=="},
	{oneOf{"]:"}, lazyregexp.New(`\b([\w-]+\[)\d{3,7}\]:`), "$1<id>]:"},
	{oneOf{"127.", "localhost:", "[::1]:"}, lazyregexp.New(`(\b127\.\d+\.\d+\.\d+:|\blocalhost:|\[::1\]:)\d+\b`), "$1<port>"},
	// What fits around a duration or an omitted text.
	{oneOf{"========"}, lazyregexp.New(`={8,}`), "========"},
	{oneOf{"[... "}, lazyregexp.New(`\[\.\.\. \d+ ((?:more )?bytes)`), "[... <size> $1"},
}

// Normalize returns a text without what usually differs between two runs of the same
// failure: colors, times, durations, addresses, numbers of processes, threads and ports,
// generated names and checksums. It is for the output of a command that no Reader
// understood; a finding with an ID is recognized by that.
//
// It is a guess. What it does not recognize makes two texts different, so that a circle
// is found later or not at all; what it replaces wrongly matters only between two checks
// of the same tree. No verdict depends on it. Show the user the text itself.
//
// Normalize takes linear time, and normalizing twice changes nothing more. The result is at
// most five times as long as the text.
func Normalize(text string) string {
	lines := strings.Split(excerpt.Screen(text), "\n")
	for i, line := range lines {
		lines[i] = normalizeLine(line)
	}
	return strings.TrimRight(strings.Join(lines, "\n"), " \t\r\n")
}

// longestLine is the length in bytes of the longest line that is normalized: a longer one
// is data.
const longestLine = 4 << 10

func normalizeLine(line string) string {
	if len(line) > longestLine || !strings.ContainsAny(line, "0123456789=/\\(") {
		return strings.TrimRight(line, " \t\r")
	}
	for range 8 { // one, and one to see that nothing is left
		before := line
		for _, v := range volatile {
			if v.has.in(line) {
				line = v.re.ReplaceAllString(line, v.with)
			}
		}
		if line = strings.TrimRight(line, " \t\r"); line == before || !strings.ContainsAny(line, "0123456789") {
			break
		}
	}
	return line
}
