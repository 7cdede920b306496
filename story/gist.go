package story

import (
	"fmt"
	"slices"
	"strings"

	"hone/check"
	"hone/internal/lazyregexp"
)

// The number of findings comes before it, and how they differ from those of the round before.
func gist(findings, before []check.Finding) string {
	text, tally := FindingLine(findings[0]), check.Tally(findings)
	more := check.Count(findings) - 1
	if more > 0 && strings.Contains(tally, " in ") {
		if difference := check.Difference(before, findings); difference != "" {
			tally += " (" + difference + ")"
		}
		return fmt.Sprintf("%s: %s", tally, text)
	}
	if more > 0 {
		text += fmt.Sprintf(" (+%d)", more)
	}
	return text
}

// FindingLine returns a finding in one line: where it is, and what it says. The line is not
// safe to print.
func FindingLine(f check.Finding) string {
	text := tellingLine(f.Text)
	if f.File != "" && !strings.Contains(text, f.File) {
		text = f.Place() + ": " + text
	}
	return text
}

// maxFindings is how many findings are named where a run begins or ends.
const maxFindings = 3

// FirstFindings returns the first of the findings that block, in a line each that is not safe
// to print, and how many more there are.
func FirstFindings(findings []check.Finding) (lines []string, more int) {
	all := check.BlockingOf(findings)
	first := all[:min(len(all), maxFindings)]
	for _, f := range first {
		lines = append(lines, FindingLine(f))
	}
	return lines, check.Count(all) - check.Count(first)
}

// tellingLine returns the line of a text, or of the output in it, that best says what is
// wrong: the first error of pytest; or else the first line that names an error, starts
// with a position, as a failed test of Go prints it, or is a heading, in this order. If
// there is none, it returns the last line of an output, or else the first line.
func tellingLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	output := slices.IndexFunc(lines, func(line string) bool { // checks and builds write it before the output of a program
		return line == "STDOUT:" || line == "STDERR:" || strings.HasPrefix(line, "Its ") && strings.HasSuffix(line, ":")
	})
	if output < 0 || output == len(lines)-1 {
		return strings.TrimSpace(lines[0])
	}
	var rest []string
	for i, line := range lines[output+1:] { // a traceback of Python quotes source, such as a failed assertion; the error follows it
		if i == 0 || !tracebackPlace.MatchString(lines[output+i]) {
			rest = append(rest, line)
		}
	}
	namesError := func(line string) bool { return !headsFailure.MatchString(line) && errorWords.MatchString(line) }
	for _, tells := range []func(string) bool{pytestError.MatchString, namesError, position.MatchString, headsFailure.MatchString} {
		if i := slices.IndexFunc(rest, tells); i >= 0 {
			return strings.TrimSpace(rest[i])
		}
	}
	return strings.TrimSpace(rest[len(rest)-1])
}

var (
	pytestError    = lazyregexp.New(`^E {2,}\S`)
	tracebackPlace = lazyregexp.New(`^\s*File ".*", line [0-9]+`)
	position       = lazyregexp.New(`^\s*[^\s:]+\.[A-Za-z]+:[0-9]+: `)
	// headsFailure matches the lines of go test, pytest and cargo test that say only that
	// something failed.
	headsFailure = lazyregexp.New(`^\s*(--- FAIL|FAIL\b|={3,} |_{3,} |failures:|test .* FAILED$)`)
	errorWords   = lazyregexp.New(`(?i)error|undefined|panic:|assert|fail|expected|exception|cannot `)
)
