// Package tap reads the Test Anything Protocol, versions 13 and 14, as test programs
// print it. [Parse] never fails: whatever keeps the output from being a complete
// result is one of its Problems.
//
// Lines that are not TAP, indented subtests and pragmas are ignored. A test program
// that prints what it received can therefore print lines of its own results only by
// starting a line with them; points that come twice, or that the plan does not
// count, are problems.
package tap

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"hone/internal/lazyregexp"
)

// Point is one test point.
type Point struct {
	// Number is the point's number, from 1. If the output has none, it is the point's
	// place.
	Number int  `json:"number"`
	OK     bool `json:"ok"`
	// Description is the text after the number, without escapes and directive.
	Description string `json:"description,omitempty"`
	// Directive is SKIP or TODO; empty if there is none.
	Directive string `json:"directive,omitempty"`
	// Diagnostics are the lines of the point's YAML block, without its indentation,
	// and the comments that follow the point.
	Diagnostics string `json:"diagnostics,omitempty"`
}

// Passed reports whether a point is ok, and neither skipped nor to be done.
func (p Point) Passed() bool { return p.OK && p.Directive == "" }

// Report is what a test program printed.
type Report struct {
	Points []Point
	// Planned is how many points the plan announces; -1 if there is no plan.
	Planned int
	// Problems say why the points are not a complete result; nil if they are.
	Problems []string
}

var (
	version   = lazyregexp.New(`^TAP version (\d+)\s*$`)
	plan      = lazyregexp.New(`^1\.\.(0|[1-9]\d{0,6})\s*(?:#.*)?$`)
	point     = lazyregexp.New(`^(not )?ok\b(?:\s+(\d{1,7})\b)?(?:\s*-\s)?\s*(.*)$`)
	directive = lazyregexp.New(`(?i)^(.*?)(?:^|\s)#\s*(skip|todo)\b\S*(?:\s.*)?$`)
	block     = lazyregexp.New(`^(?:[|>][0-9+-]*)?$`) // the value is below
	bailOut   = lazyregexp.New(`(?i)^Bail out!\s*(.*)$`)
)

// Parse reads the standard output of a test program.
func Parse(text string) Report {
	r := reader{Report: Report{Planned: -1}, numbers: map[int]bool{}}
	for line := range strings.Lines(strings.ToValidUTF8(text, "\uFFFD")) {
		r.line(strings.TrimRight(line, "\r\n"))
	}
	r.complete()
	return r.Report
}

type reader struct {
	Report
	numbers map[int]bool
	yaml    bool // a YAML block is open
}

func (r *reader) addProblem(format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

func (r *reader) line(line string) {
	indented, deep := strings.CutPrefix(line, "  ")
	switch {
	case r.yaml && deep && strings.TrimSpace(line) == "...":
		r.yaml = false
	case r.yaml && (deep || line == ""):
		r.diagnose(indented)
	case deep && strings.TrimSpace(line) == "---" && !strings.HasPrefix(indented, " ") && len(r.Points) > 0:
		r.yaml = true
	case strings.HasPrefix(line, "#"):
		r.diagnose(strings.TrimSpace(strings.TrimLeft(line, "#")))
	default:
		r.yaml = false
		r.result(line)
	}
}

func (r *reader) diagnose(line string) {
	if len(r.Points) > 0 {
		r.Points[len(r.Points)-1].Diagnostics += line + "\n"
	}
}

func (r *reader) result(line string) {
	if found := point.FindStringSubmatch(line); found != nil {
		r.addPoint(found[1] == "", found[2], found[3])
		return
	}
	if found := plan.FindStringSubmatch(line); found != nil {
		if r.Planned >= 0 {
			r.addProblem("there is more than one plan")
		}
		r.Planned, _ = strconv.Atoi(found[1])
		return
	}
	if found := version.FindStringSubmatch(line); found != nil && found[1] != "13" && found[1] != "14" {
		r.addProblem("TAP version %s is not 13 or 14", found[1])
	}
	if found := bailOut.FindStringSubmatch(line); found != nil {
		r.addProblem("it bailed out: %s", found[1])
	}
}

func (r *reader) addPoint(ok bool, number, text string) {
	p := Point{Number: len(r.Points) + 1, OK: ok}
	if number != "" {
		p.Number, _ = strconv.Atoi(number)
	}
	// An escaped # starts no directive.
	text = strings.ReplaceAll(strings.ReplaceAll(text, `\\`, "\x00"), `\#`, "\x01")
	if found := directive.FindStringSubmatch(text); found != nil {
		text, p.Directive = found[1], strings.ToUpper(found[2])
	}
	p.Description = strings.NewReplacer("\x00", `\`, "\x01", "#").Replace(strings.TrimSpace(text))
	if r.numbers[p.Number] {
		r.addProblem("there is more than one point %d", p.Number)
	}
	r.numbers[p.Number] = true
	r.Points = append(r.Points, p)
}

func (r *reader) complete() {
	switch {
	case r.Planned < 0:
		r.addProblem("there is no plan, such as 1..%d", max(1, len(r.Points)))
	case r.Planned == 0:
		r.addProblem("the plan is 1..0: nothing was tested")
	case len(r.Points) != r.Planned:
		r.addProblem("the plan is 1..%d, but it printed %d", r.Planned, len(r.Points))
	default:
		for n := range r.Planned {
			if !r.numbers[n+1] {
				r.addProblem("there is no point %d", n+1)
			}
		}
	}
}

// Value returns a value of the point's diagnostics: the text after "key:", in any
// case, and the deeper lines below it. A quoted text is returned without quotes and
// escapes. The value is empty if there is none.
func (p Point) Value(key string) string {
	var value []string
	found, indent := false, 0
	for line := range strings.Lines(p.Diagnostics) {
		text := strings.TrimSpace(line)
		depth := len(line) - len(strings.TrimLeft(line, " "))
		name, rest, ok := strings.Cut(text, ":")
		switch {
		case found && text != "" && depth <= indent:
			return unquoted(value)
		case found:
			value = append(value, text)
		case ok && strings.EqualFold(name, key):
			found, indent = true, depth
			if rest = strings.TrimSpace(rest); !block.MatchString(rest) {
				value = append(value, rest)
			}
		}
	}
	return unquoted(value)
}

func unquoted(lines []string) string {
	text := strings.TrimSpace(strings.Join(lines, "\n"))
	var plain string
	if strings.HasPrefix(text, `"`) && json.Unmarshal([]byte(text), &plain) == nil {
		return plain
	}
	if len(text) > 1 && text[0] == '\'' && text[len(text)-1] == '\'' {
		return strings.ReplaceAll(text[1:len(text)-1], "''", "'")
	}
	return text
}
