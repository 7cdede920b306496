// Package verdict reads failed_specs.md, in which the verifier lists the
// contracts that failed. [Parse] never fails: a file that is not as it should be
// is read for what it says, with warnings for the user.
package verdict

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Failure is one entry of failed_specs.md.
type Failure struct {
	// Spec is the contract that failed, Input the exact input, and Observed
	// what the system did, each as the verifier put it; empty where it did not.
	Spec     string `json:"spec,omitempty"`
	Input    string `json:"input,omitempty"`
	Observed string `json:"observed,omitempty"`
	// Text is the entry as it was written.
	Text string `json:"text"`
	// Line is where the entry begins, counted from 1.
	Line int `json:"line"`
}

// Report is what failed_specs.md says.
type Report struct {
	// Failures are the entries in their order. Empty means that the verifier
	// reports nothing, which is a pass only together with the evidence that
	// ruling A4 asks for.
	Failures []Failure `json:"failures,omitempty"`
	// Text is the file as text: line feeds between lines, and U+FFFD in place
	// of what is not UTF-8 or NUL.
	Text string `json:"text,omitempty"`
	// Warnings say what is odd about the file, for people, each without the
	// file's name.
	Warnings []string `json:"warnings,omitempty"`
}

// Parse reads failed_specs.md (ruling A5). A line that begins with SPEC:
// in capitals begins an entry, whatever Markdown stands before it; INPUT: and
// OBSERVED: begin its parts, which may have many lines. A text that says SPEC:
// only within its lines is one failure as a whole, as the seed looks for
// SPEC: anywhere.
func Parse(text string) Report {
	v := Report{Text: plainText(text)}
	if v.Text != strings.TrimPrefix(strings.ReplaceAll(text, "\r\n", "\n"), "\ufeff") {
		v.Warnings = append(v.Warnings, "it is not plain UTF-8 text; invalid bytes were replaced")
	}
	e := entries{lines: strings.Split(v.Text, "\n")}
	e.pairFences()
	starts := e.starts()
	switch {
	case len(starts) > 0:
		for i, start := range starts {
			end := len(e.lines)
			if i+1 < len(starts) {
				end = starts[i+1]
			}
			v.Failures = append(v.Failures, e.failure(start, e.trim(start, end, i+1 < len(starts))))
		}
		v.Warnings = append(v.Warnings, incomplete(v.Failures)...)
	case strings.Contains(v.Text, "SPEC:"):
		v.Failures = []Failure{undivided(v.Text)}
		v.Warnings = append(v.Warnings, "it contains SPEC:, but no line starts with it; the whole text counts as one failure")
	case strings.TrimSpace(v.Text) != "":
		v.Warnings = append(v.Warnings, passNote(v.Text))
	}
	return v
}

// plainText makes a text of whatever a verifier may have written.
func plainText(text string) string {
	text = strings.TrimPrefix(text, "\ufeff")
	text = strings.ToValidUTF8(text, "\ufffd")
	return strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "\ufffd").Replace(text)
}

// ornaments are what Markdown puts before a label: quote marks, headings, list
// marks, boxes and emphasis.
const ornaments = "^((?:\\s|[>#*_`•–+-]|[0-9]+[.)]\\s|\\[[ xX]?\\]\\s)*)"

var (
	entryLabel = regexp.MustCompile(ornaments + "(SPEC|INPUT|OBSERVED)[*_`\\s]*[:：](.*)$")
	anyCase    = regexp.MustCompile(`(?i)\bspec\b[*_\x60\s]*[:：]`)
	bareFence  = regexp.MustCompile("^\\s*(?:>\\s*)*(`{3,}|~{3,})([^`]*)$")
	ruler      = regexp.MustCompile(`^\s*(?:[-*_=]\s*){3,}$`)
	anyHeading = regexp.MustCompile(`^\s*#{1,6}\s`)
)

// entries are the lines of failed_specs.md.
type entries struct {
	lines   []string
	partner []int // of a line that opens or closes a code fence; else -1
}

// pairFences finds which fence closes which, as one that was opened before an
// entry is no part of it.
func (e *entries) pairFences() {
	e.partner = make([]int, len(e.lines))
	open := -1
	var mark string
	for i, line := range e.lines {
		e.partner[i] = -1
		found := bareFence.FindStringSubmatch(line)
		switch {
		case found == nil:
		case open < 0:
			open, mark = i, found[1]
		case strings.TrimSpace(found[2]) == "" && closes(found[1], mark):
			e.partner[i], e.partner[open] = open, i
			open = -1
		}
	}
}

func (e *entries) starts() []int {
	var starts []int
	for i, line := range e.lines {
		if label, _ := labelled(line); label == "SPEC" {
			starts = append(starts, i)
		}
	}
	return starts
}

// labelled is the label that a line begins with, and what stands behind it.
func labelled(line string) (label, value string) {
	found := entryLabel.FindStringSubmatch(line)
	if found == nil {
		return "", ""
	}
	return found[2], unwrapped(found[1], found[3])
}

// unwrapped takes away emphasis and backquotes that were opened before a label
// and closed behind it, or at the line's end.
func unwrapped(before, value string) string {
	value = strings.TrimSpace(value)
	for _, mark := range []string{"**", "__", "`", "*", "_"} {
		if !strings.HasSuffix(before, mark) {
			continue
		}
		if rest, ok := strings.CutPrefix(value, mark); ok {
			return strings.TrimSpace(rest)
		}
		if rest, ok := strings.CutSuffix(value, mark); ok && strings.Count(value, mark)%2 == 1 {
			return strings.TrimSpace(rest)
		}
		return value
	}
	return value
}

// trim is where an entry really ends: what separates it from the next one, and
// fences around it, are no part of it.
func (e *entries) trim(start, end int, more bool) int {
	for end > start+1 {
		line, partner := e.lines[end-1], e.partner[end-1]
		fence := bareFence.MatchString(line) && (partner < start || partner >= end)
		heading := more && anyHeading.MatchString(line)
		if label, _ := labelled(line); label != "" {
			break
		}
		if strings.TrimSpace(line) != "" && !fence && !heading && !ruler.MatchString(line) {
			break
		}
		end--
	}
	return end
}

// failure reads the entry of the lines from start to before end.
func (e *entries) failure(start, end int) Failure {
	parts := map[string][]string{}
	label := ""
	for _, line := range e.lines[start:end] {
		if next, value := labelled(line); next != "" {
			label = next
			line = value
		}
		parts[label] = append(parts[label], line)
	}
	part := func(label string) string { return strings.TrimSpace(strings.Join(parts[label], "\n")) }
	return Failure{
		Spec:     part("SPEC"),
		Input:    part("INPUT"),
		Observed: part("OBSERVED"),
		Text:     strings.Join(e.lines[start:end], "\n"),
		Line:     start + 1,
	}
}

// undivided is a text that has SPEC: somewhere as one failure.
func undivided(text string) Failure {
	lines := strings.Split(text, "\n")
	at := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "SPEC:") })
	return Failure{Spec: strings.TrimSpace(lines[at]), Text: strings.TrimRight(text, "\n"), Line: at + 1}
}

// incomplete says which entries lack a part.
func incomplete(failures []Failure) []string {
	var warnings []string
	check := func(what string, part func(Failure) string) {
		var lines []int
		for _, f := range failures {
			if part(f) == "" {
				lines = append(lines, f.Line)
			}
		}
		if lines != nil {
			warnings = append(warnings, fmt.Sprintf("%s in the entry of %s", what, counted(lines)))
		}
	}
	check("no contract behind SPEC:", func(f Failure) string { return f.Spec })
	check("no INPUT:, so that the builder has to guess it,", func(f Failure) string { return f.Input })
	check("no OBSERVED:", func(f Failure) string { return f.Observed })
	return warnings
}

// counted names lines, the first few of them.
func counted(lines []int) string {
	const most = 8
	if len(lines) == 1 {
		return fmt.Sprintf("line %d", lines[0])
	}
	shown := strings.Trim(fmt.Sprint(lines[:min(most, len(lines))]), "[]")
	text := "lines " + strings.ReplaceAll(shown, " ", ", ")
	if len(lines) > most {
		text += fmt.Sprintf(" and %d more", len(lines)-most)
	}
	return text
}

// passNote says that a text without entries is taken as a pass.
func passNote(text string) string {
	if at := anyCase.FindString(text); at != "" {
		return fmt.Sprintf("it contains %q, which does not count: only a line that starts with SPEC: in capitals is a failure", at)
	}
	return "it contains text but no SPEC: entry; it counts as a note that everything passed"
}

// closes reports whether a line ends the code that a fence opened.
func closes(line, fence string) bool {
	return len(line) >= len(fence) && strings.Trim(line, fence[:1]) == ""
}
