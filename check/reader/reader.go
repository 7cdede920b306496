// Package reader reads the output of test runners, compilers and linters.
//
// [Named] returns the [check.Reader] of a format or of a user's pattern, [Auto] one that
// recognizes the format, and [Names] the names of all formats. [Place] makes the files of
// findings relative to a tree, and [Source] adds the source around crashes.
//
// # Findings
//
// A reader only says why a program failed; the exit status decides whether it did. In the
// output of another format it finds nothing. The source of a finding is [check.SourceCommand]. Its text starts with a line that says what is wrong,
// without the place; lines of the output that belong to it follow, at most 4 KiB.
//
// Crashes and compile errors are Partial. They come first, then failures, then what a
// linter calls a warning, then its notes, each in the order of the output. Warnings and
// notes are advisory if the status is 0, or if there is something worse, which explains
// the status.
//
// A test that failed only because a subtest did is not a finding. A crash or a timeout is
// a finding about the test that was running, if the output names it.
//
// An ID is a test's full name, or else the rule, the file and the first line of the
// message without numbers, addresses and temporary paths. The second finding with the
// same ID gets " #2", and so on. IDs do not depend on the order of tests, on line numbers
// or, after [Place], on where the tree is. They identify findings of one command. Without
// names of tests, the same message twice in a file is told apart by its order alone: in
// crash, lines, sanitizer and valgrind, and by node-tap after a time-out.
//
// # Files
//
// A file has the name that the program prints, with slashes: relative to where the program
// ran, or absolute. For tests, Go prints only base names: these get the import path of
// their package, such as example.com/m/calc/calc_test.go. [Place] finds both in a tree.
//
// # Formats
//
//	go           go test, go build, go vet and gotestsum
//	go-json      go test -json
//	junit        JUnit's XML, one or several documents, with any text around them
//	tap          the Test Anything Protocol 13 and 14, with subtests
//	node         node --test with the spec reporter; tap and junit have the others
//	sarif        SARIF 2.1: failures that are not suppressed, and errors of the tool itself
//	pytest       pytest, also if it crashes or pytest-timeout ends it
//	unittest     Python's unittest, and Django's tests
//	python       a Python program that dies of an exception or crashes
//	jest, vitest both, plain or as JSON
//	numbered     failures with numbers, as mocha, Jasmine, RSpec, minitest, PHPUnit, JUnit 4 on the
//	             console and ExUnit print them
//	gtest, ctest GoogleTest, and the tests of CMake
//	cargo        cargo build, check, clippy and test, plain or with --message-format=json
//	eslint       eslint, plain or as JSON, also if it crashes
//	ruff         ruff's full output, JSON and lines of JSON; lines has the concise one
//	staticcheck  staticcheck -f json; go and lines have the plain one
//	sanitizer    the reports of AddressSanitizer, LeakSanitizer, MemorySanitizer,
//	             ThreadSanitizer and UndefinedBehaviorSanitizer
//	valgrind     the errors that valgrind reports
//	crash        a program that a signal ended, in the words of a shell or of make, and the
//	             assertion of C or the exception of C++ that did it
//	lines        file:line:col: message, file:line: message, file(line,col): message
//
// # Limits
//
// An output may be cut off at any byte, or in its middle; what is complete is found. A
// reader takes linear time and never fails. It removes colors, and replaces what is not
// UTF-8.
package reader

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"hone/check"
	"hone/internal/excerpt"
	"hone/internal/near"
)

// AutoName is the name of [Auto] in a configuration.
const AutoName = "auto"

// format is one format. read adds what it finds, which is nothing in a text of another format.
type format struct {
	name string
	read func(text string, l *list)
	// fallback says that Auto does not try the format like others: it is another name,
	// or counts only if no other format has findings.
	fallback bool
}

// They are in the order in which Auto joins what they find.
func formats() []format {
	return []format{
		{"go", readGo, false},
		{"go-json", readGoJSON, false},
		{"junit", readJUnit, false},
		{"tap", readTAP, false},
		{"node", readNodeSpec, false},
		{"sarif", readSARIF, false},
		{"pytest", readPytest, false},
		{"unittest", readUnittest, false},
		{"python", func(text string, l *list) { readPython(text, l) }, true},
		{"jest", readJest, false},
		{"numbered", readNumbered, false},
		{"gtest", readGTest, false},
		{"ctest", readCTest, false},
		{"vitest", readJest, true},
		{"cargo", readCargo, false},
		{"eslint", readESLint, false},
		{"ruff", readRuff, false},
		{"staticcheck", readStaticcheck, false},
		{"sanitizer", readSanitizer, false},
		{"valgrind", readValgrind, false},
		{"crash", readDeath, true},
		{"lines", func(text string, l *list) { readPlaces(text, l, false) }, true},
	}
}

// Names returns the names of all formats, "auto" first.
func Names() []string {
	names := []string{AutoName}
	for _, f := range formats() {
		names = append(names, f.name)
	}
	return names
}

// Named returns the reader of a format ([Names]), or of a pattern: a text with a %, such
// as "%f:%l:%c: %m" (see [Pattern]).
func Named(name string) (check.Reader, error) {
	if name == AutoName {
		return Auto(), nil
	}
	if strings.Contains(name, "%") {
		return Pattern(name)
	}
	for _, f := range formats() {
		if f.name == name {
			return f.reader(), nil
		}
	}
	meant := ""
	if n := near.Name(name, Names()); n != "" {
		meant = fmt.Sprintf("; did you mean %q?", n)
	}
	return nil, fmt.Errorf("there is no output format %q%s (formats: %s, or a pattern such as %q)",
		name, meant, strings.Join(Names(), ", "), "%f:%l:%c: %m")
}

// Auto returns the reader that recognizes formats. An output may be of several, such as
// that of a linter and then that of tests: their findings are joined. A line
// "file:line: message" counts only if it has a column or says "error" or "warning", and
// if there are findings of other formats, only if it has both.
func Auto() check.Reader {
	return format{read: readAny}.reader()
}

func readAny(text string, l *list) {
	seen := map[string]bool{}
	for _, f := range formats() {
		if f.fallback {
			continue
		}
		own := &list{exit: l.exit}
		f.read(text, own)
		l.add(slices.DeleteFunc(own.items, func(i item) bool { return seen[i.key()] })...)
		for _, i := range own.items {
			seen[i.key()] = true
		}
	}
	if len(l.items) == 0 && !readPython(text, l) {
		readDeath(text, l)
	}
	addSureLines(text, l)
}

// No other format has these lines. If there are other formats, they must be those of a compiler, because tests print all kinds
// of lines.
func addSureLines(text string, l *list) {
	own, others := &list{}, len(l.items) > 0
	if !others {
		own.exit = l.exit
	}
	readPlaces(text, own, true)
	seen := map[string]bool{}
	for _, i := range l.items {
		seen[placeText(path.Base(cleanFile(i.file)), i.line)] = true
	}
	for _, i := range own.items {
		if !others || i.explicit && !seen[placeText(path.Base(cleanFile(i.file)), i.line)] {
			l.add(i)
		}
	}
}

func (f format) reader() check.Reader {
	return func(out string, exit int) []check.Finding {
		l := &list{exit: exit}
		f.read(plainText(out), l)
		return l.findings()
	}
}

type rank int

const (
	crash   rank = iota // it does not compile, or did not end
	failure             // a test failed, or a linter calls it an error
	warning
	note
)

// item is what a format reads: a finding without its ID and its final text.
type item struct {
	rank rank
	// test is a test's full name. If it is empty, the item is recognized by file, the
	// first line of text, and rule unless that line has it.
	test string
	rule string
	file string
	line int
	text string
	// explicit means that the line has a column and a severity.
	explicit bool
	// silent means that the text only says that the test failed.
	silent bool
}

type list struct {
	items []item
	exit  int // the program's exit status; -1 if it was stopped by a signal or by its time limit
}

func (l *list) addInterrupted(test, name string, said []string) {
	if l.exit < 0 {
		l.add(item{rank: crash, test: test, text: headed(name+": it was running when the command was stopped", dedent(said))})
	}
}

func (l *list) add(i ...item) { l.items = append(l.items, i...) }

func (l *list) more(line string) {
	if last := &l.items[len(l.items)-1]; len(last.text) < maxText {
		last.text += "\n" + line
	}
}

// maxText is the length of the longest text of a finding, in bytes.
const maxText = 4 << 10

func (l *list) findings() []check.Finding {
	slices.SortStableFunc(l.items, func(a, b item) int { return int(a.rank - b.rank) })
	advisory := l.exit == 0 || len(l.items) > 0 && l.items[0].rank < warning
	var found []check.Finding
	times := make(map[string]int, len(l.items))
	for _, i := range l.items {
		if i.file = cleanFile(i.file); i.file == "" {
			i.line = 0 // of nothing
		}
		if i.text = strings.Trim(i.text, " \t\n"); i.text == "" {
			i.text = "failed"
		}
		id := i.id()
		times[id]++
		if n := times[id]; n > 1 {
			id = fmt.Sprintf("%s #%d", id, n)
		}
		found = append(found, check.Finding{
			Source: check.SourceCommand, File: i.file, Line: i.line, ID: id,
			Text:     withValues(excerpt.Middle(withoutForeign(excerpt.Middle(i.text, 16*maxText)), maxText)),
			Partial:  i.rank == crash,
			Advisory: advisory && i.rank >= warning,
		})
	}
	return found
}

// told returns the item with what its program said about it: the first line has a name and what is wrong, and the place is the
// first in the user's code, if the text has one.
func (i item) told(name, said, text string) item {
	if file, line := locate(text); file != "" {
		i.file, i.line = file, line
	}
	i.text = headed(strings.TrimSuffix(name+": "+said, ": "), text)
	return i
}

// Two formats that find something in the same lines have equal keys.
func (i item) key() string { return fmt.Sprintf("%s\n%s:%d", i.id(), i.file, i.line) }

// maxID is the length of the longest first line in an ID, in bytes.
const maxID = 300

func (i item) id() string {
	if name := strings.Join(strings.Fields(i.test), " "); name != "" {
		return name
	}
	first, _, _ := strings.Cut(i.text, "\n")
	first = stableText(first)
	if len(first) > maxID {
		first = strings.ToValidUTF8(first[:maxID], "")
	}
	if strings.Contains(first, i.rule) {
		i.rule = ""
	}
	return strings.Join(slices.DeleteFunc([]string{i.rule, i.file, first}, func(s string) bool { return s == "" }), ": ")
}

// It lacks what differs between two runs.
func stableText(text string) string { return strings.Join(strings.Fields(check.Normalize(text)), " ") }
