package check

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"hone/internal/excerpt"
	"hone/internal/lazyregexp"
	"hone/sandbox"
)

// Report is a file in which a command reports what it found, such as JUnit's XML.
type Report struct {
	Path    string // relative to the tree's root
	Content []byte
	// Omitted is why the report was not read; empty if Content is complete.
	Omitted string
}

const (
	// maxRead is how much of an output Readers get, in bytes. Each of them may need
	// several times as much memory.
	maxRead = 4 << 20
	// maxSecret is the length in bytes of the longest secret that a cut may divide.
	maxSecret = 64 << 10
)

// It is redacted and valid UTF-8. The middle of a very long output is left out.
func (c CommandConfig) output(r sandbox.Result) string {
	out := r.Stdout
	if len(r.Stderr) > 0 {
		out = slices.Concat(bytes.TrimSuffix(out, []byte("\n")), []byte("\n"), r.Stderr)
	}
	clean := func(b []byte) string { return applyRedact(c.Redact, excerpt.Output(b)) }
	if len(out) <= maxRead {
		return clean(out)
	}
	// Half of a secret is not recognized, so what is close to the cut is left out, too.
	head, tail := clean(out[:maxRead/2]), clean(out[len(out)-maxRead/2:])
	return strings.ToValidUTF8(head[:max(0, len(head)-maxSecret)]+"\n[...]\n"+tail[min(len(tail), maxSecret):], "\uFFFD")
}

// The worst come first. The reports count, or if these have nothing that blocks, the output: both usually describe the same
// failures in different words.
func (c CommandConfig) read(out string, r sandbox.Result, reports []Report) []Finding {
	exit := r.Exit
	switch {
	case r.TimedOut:
		exit = -1
	case c.FailOnFindings:
		exit = max(exit, 1) // whatever it is, the command fails if there are findings
	}
	var found []Finding
	for _, report := range reports {
		if report.Omitted != "" {
			found = append(found, Finding{Advisory: true, Text: fmt.Sprintf("The report %s was not read: %s.", report.Path, report.Omitted)})
			continue
		}
		text := applyRedact(c.Redact, strings.ToValidUTF8(string(report.Content), "\uFFFD"))
		found = append(found, readWith(c.ReportReader, text, exit)...)
	}
	if !Blocking(found) {
		found = append(found, readWith(c.Reader, out, exit)...)
	}
	for i := range found {
		found[i].Source = SourceCommand
	}
	if c.Place != nil {
		c.Place(found)
	}
	slices.SortStableFunc(found, func(f, g Finding) int { return f.rank() - g.rank() })
	return distinct(found)
}

// It is nil if r is the zero Reader, or if the output is not of its format.
func readWith(r Reader, out string, exit int) []Finding {
	if r.Read == nil {
		return nil
	}
	found, ok := r.Read([]byte(out), exit)
	if !ok {
		return nil
	}
	return slices.Clone(found)
}

func distinct(findings []Finding) []Finding {
	seen := map[Finding]bool{}
	return slices.DeleteFunc(findings, func(f Finding) bool {
		again := seen[f]
		seen[f] = true
		return again
	})
}

// The command passed.
func advisory(findings []Finding) []Finding {
	for i := range findings {
		findings[i].Advisory = true
	}
	return findings
}

// maxAdvisory is how many advisory findings of one command are kept: a build may print
// hundreds of warnings, and a model needs none of them.
const maxAdvisory = 20

func (c CommandConfig) bounded(findings []Finding) []Finding {
	if c.AllNotes {
		return findings
	}
	var b bounded
	n := 0
	findings = slices.DeleteFunc(findings, func(f Finding) bool {
		if f.Blocks() {
			return false
		}
		if n++; n > maxAdvisory {
			b.omit(f)
		}
		return n > maxAdvisory
	})
	for _, c := range b.rest {
		findings = append(findings, c.finding())
	}
	return findings
}

// What findings already say is left out; nil if nothing is left. A failure that no Reader knows is here.
func (c CommandConfig) restFindings(r sandbox.Result, timeout time.Duration, out string, found []Finding) []Finding {
	rest, hidden := restOf(out, found), hiddenNote(r)
	if rest == "" && hidden == "" {
		return nil
	}
	text := strings.TrimPrefix(hidden, "\n")
	if rest != "" {
		text = section("The check command ended with "+outcome(r, timeout)+". "+restTitle, rest)[1:] + hidden
	}
	return []Finding{{Source: SourceCommand, Advisory: true, Text: text}}
}

const restTitle = "The end of its output, without what the findings say already"

// The bounds of the end of an output: in bytes, and in lines.
const (
	restSearched = 32 << 10
	restText     = 1 << 10
	restLines    = 10
)

// summaryLine matches lines that only say that something failed or passed, or where, and
// those of a format for programs.
var summaryLine = lazyregexp.New(`^(?:[{}<\[]|ok\b|not ok\b|FAIL\b|PASS\b|PASSED\b|FAILED\b|--- |=== |\? |exit status \d|make(?:\[\d+\])?: \*\*\*|Ran \d+ tests? in |[.FEsxu]+$|\S+ \([\w.<>]+\) \.\.\. (?:ok|FAIL|ERROR|skipped\b.*)$|File ".*", line \d+|\S+\.py:\d+:(?: in .*)?|at .*:\d+:\d+\)?$|[^\pL\d]*$)`)

// formatLine matches lines of formats whose findings say it in other words, or that say
// nothing: of pytest, of node and TAP, of sanitizers and valgrind, and of programs that crash.
var formatLine = lazyregexp.New(`^(?:` + strings.Join([]string{
	`=+ \S.* =+`, `_+ \S.* _+`, `ERROR: \w+ \([\w.<>]+\).*`, `[.FEsxX]+ +\[ *\d+%\]`, `\d+ (?:failed|passed|errors?|skipped).* in \d[\d.]*s.*`,
	`(?:ℹ )?(?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+`, `1\.\.\d+`, `\{ total: .*\}`, `failed \d+ (?:of \d+ )?tests?`, `time=.*`, `Subtest: .*`, `No coverage generated`, `Node\.js v[\d.]+`, `TAP version \d+`,
	`[✔✖▶﹣⚠] (?:.* \(\d[\d.]*ms\).*|failing tests:)`, `test at \S+:\d+:\d+`, `▶ .*`, `(?:at )?(?:.*[ (])?(?:node:[\w/]+:\d+:\d+|<anonymous>)\)?(?: \{)?`, `at async Promise.*`, `'test failed'`,
	`(?:generatedMessage: (?:true|false)|code: 'ERR_\w+'|operator: '.*'|diff: '\w+'),?`, `(?:actual|expected): .*,`, `(?:\w*Error(?: \[\w+\])?: )?(?:Expected values to be .* ?equal:|expect\(received\).*)`,
	`==\d+==.*`, `(?:SUMMARY: |WARNING: )?\w+Sanitizer: ?.*`, `#\d+ .*(?::\d+|\+0x[0-9a-f]+\))(?: \(.*\))?`, `(?:=>)?0x[0-9a-f]+: .*`, `[A-Z][A-Za-z ]+: +(?:[0-9a-f]{2} ?)+`, `(?:[0-9a-f]{2} *)+`,
	`Shadow byte.*`, `(?:Direct|Indirect) leak of .*`, `(?:Thread T\d+|Location is|Read of|Write of|Previous|READ of|WRITE of) .*`, `0x[0-9a-f]+ is located .*`,
	`\S+: line \d+: +\d+ .*`, `(?:Segmentation fault|Aborted|Killed|Bus error)(?: \(core dumped\))?`, `terminate called .*`, `what\(\): .*`, ".*: Assertion `.*' failed\\.",
}, "|") + `)$`)

// yamlBlock matches what TAP says of a point.
var yamlBlock = lazyregexp.New(`(?ms)^ +---$.*?^ +\.\.\.$`)

// pytestSource matches the source that pytest prints up to the line that it marks.
var pytestSource = lazyregexp.New(`(?m)(?:^(?: {4}.*)?\n)*^>.*$`)

func restOf(out string, found []Finding) string {
	if len(out) > restSearched {
		out = out[len(out)-restSearched:]
		_, out, _ = strings.Cut(out, "\n")
	}
	told := newSaid(found)
	out = pytestSource.ReplaceAllString(yamlBlock.ReplaceAllString(out, ""), "")
	var lines []string
	for _, line := range slices.Backward(strings.Split(out, "\n")) {
		trimmed := strings.TrimPrefix(strings.TrimSpace(line), "# ") // of TAP
		if summaryLine.MatchString(trimmed) || formatLine.MatchString(trimmed) || told.has(trimmed) {
			continue
		}
		if lines = append(lines, excerpt.Middle(strings.TrimRight(line, " \t\r"), restText/2)); len(lines) == restLines {
			break
		}
	}
	slices.Reverse(lines)
	return excerpt.End(strings.Join(lines, "\n"), restText)
}
