package phase

import (
	"fmt"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

// failedSpec is a contract that does not hold, as the suite observed it or as an entry of failed_specs.md has it.
type failedSpec struct {
	// Spec is the contract that failed, Input the exact input, and Observed
	// what the system did, in the verifier's words; empty if they are missing.
	Spec, Input, Observed string
	// Text is the complete entry, and Line its first line, counted from 1; zero if the suite observed it.
	Text string
	Line int
}

// readFailed reads failed_specs.md, in which the verifier lists the contracts that failed (ruling A5): the entries in their
// order, and for the user what is malformed, without the file's name. It never fails: it reads malformed files as well as
// it can. A line that starts with SPEC: in capitals, after any Markdown marks, starts an entry; INPUT: and OBSERVED: start
// its parts, which may have several lines. A text that contains SPEC: only within lines is one failure, because the seed
// looks for SPEC: anywhere. If there are no entries the verifier reports no failure, which is a pass only with the evidence
// that ruling A4 requires.
func readFailed(text string) (failures []failedSpec, warnings []string) {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(text, "\ufeff"))
	e := entries{lines: strings.Split(text, "\n")}
	e.pairFences()
	starts := e.starts()
	for i, start := range starts {
		end := len(e.lines)
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		failures = append(failures, e.failure(start, e.trim(start, end, i+1 < len(starts))))
	}
	switch at := slices.IndexFunc(e.lines, func(l string) bool { return strings.Contains(l, "SPEC:") }); {
	case len(starts) > 0:
		return failures, missingParts(failures)
	case at >= 0:
		return []failedSpec{{Spec: strings.TrimSpace(e.lines[at]), Text: strings.TrimRight(text, "\n"), Line: at + 1}},
			[]string{"it contains SPEC:, but no line starts with it; the whole text counts as one failure"}
	case strings.TrimSpace(text) != "":
		return nil, []string{passNote(text)}
	}
	return nil, nil
}

// ornaments match the Markdown before a label: quote marks, headings, list marks,
// boxes and emphasis.
const ornaments = "^((?:\\s|[>#*_`•–+-]|[0-9]+[.)]\\s|\\[[ xX]?\\]\\s)*)"

var (
	entryLabel = lazyregexp.New(ornaments + "(SPEC|INPUT|OBSERVED)[*_`\\s]*[:：](.*)$")
	anyCase    = lazyregexp.New(`(?i)\bspec\b[*_\x60\s]*[:：]`)
	bareFence  = lazyregexp.New("^\\s*(?:>\\s*)*(`{3,}|~{3,})([^`]*)$")
	ruler      = lazyregexp.New(`^\s*(?:[-*_=]\s*){3,}$`)
	anyHeading = lazyregexp.New(`^\s*#{1,6}\s`)
)

// entries are the lines of failed_specs.md.
type entries struct {
	lines   []string
	partner []int // of a line that opens or closes a code fence; else -1
}

// A fence that is opened before an entry is not part of it.
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
		case strings.TrimSpace(found[2]) == "" && len(found[1]) >= len(mark) && strings.Trim(found[1], mark[:1]) == "":
			e.partner[i], e.partner[open] = open, i
			open = -1
		}
	}
}

func (e *entries) starts() []int {
	var starts []int
	for i, line := range e.lines {
		if label, _ := splitLabel(line); label == "SPEC" {
			starts = append(starts, i)
		}
	}
	return starts
}

func splitLabel(line string) (label, value string) {
	found := entryLabel.FindStringSubmatch(line)
	if found == nil {
		return "", ""
	}
	return found[2], unwrapped(found[1], found[3])
}

// unwrapped removes emphasis and backquotes that are opened before a label and
// closed after it or at the end of the line.
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

// The separator before the next entry and fences around this one are left out.
func (e *entries) trim(start, end int, more bool) int {
	for end > start+1 {
		line, partner := e.lines[end-1], e.partner[end-1]
		fence := bareFence.MatchString(line) && (partner < start || partner >= end)
		heading := more && anyHeading.MatchString(line)
		if label, _ := splitLabel(line); label != "" {
			break
		}
		if strings.TrimSpace(line) != "" && !fence && !heading && !ruler.MatchString(line) {
			break
		}
		end--
	}
	return end
}

func (e *entries) failure(start, end int) failedSpec {
	parts := map[string][]string{}
	label := ""
	for _, line := range e.lines[start:end] {
		if next, value := splitLabel(line); next != "" {
			label = next
			line = value
		}
		parts[label] = append(parts[label], line)
	}
	part := func(label string) string { return strings.TrimSpace(strings.Join(parts[label], "\n")) }
	return failedSpec{
		Spec:     part("SPEC"),
		Input:    part("INPUT"),
		Observed: part("OBSERVED"),
		Text:     strings.Join(e.lines[start:end], "\n"),
		Line:     start + 1,
	}
}

func missingParts(failures []failedSpec) []string {
	var warnings []string
	check := func(what string, part func(failedSpec) string) {
		var lines []int
		for _, f := range failures {
			if part(f) == "" {
				lines = append(lines, f.Line)
			}
		}
		if lines != nil {
			warnings = append(warnings, fmt.Sprintf("%s in the entry of %s", what, lineList(lines)))
		}
	}
	check("no contract after SPEC:", func(f failedSpec) string { return f.Spec })
	check("no INPUT:, which the builder has to guess,", func(f failedSpec) string { return f.Input })
	check("no OBSERVED:", func(f failedSpec) string { return f.Observed })
	return warnings
}

func lineList(lines []int) string {
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

// A text without entries counts as a pass.
func passNote(text string) string {
	if at := anyCase.FindString(text); at != "" {
		return fmt.Sprintf("it contains %q, which does not count: only a line that starts with SPEC: in capitals is a failure", at)
	}
	return "it contains text but no SPEC: entry; it counts as a note that everything passed"
}
