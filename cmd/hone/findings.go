package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"hone/check"
	"hone/internal/render"
)

// checkResult is what one check found. Its texts were redacted when they were found; [checkResult.Text]
// is safe to print on a terminal, and the other forms are JSON.
type checkResult struct {
	Command  string // the command line
	Version  string // of hone
	Findings []check.Finding
	Took     time.Duration
}

// Broken reports whether the check could not run.
func (r checkResult) Broken() bool {
	return slices.ContainsFunc(r.Findings, func(f check.Finding) bool { return f.Broken })
}

// Exit returns the exit status for a loop's user: 0 if the check passed, 1 if it failed,
// 5 if it could not run.
func (r checkResult) Exit() int {
	switch {
	case r.Broken():
		return 5
	case check.Blocking(r.Findings):
		return 1
	}
	return 0
}

// Summary returns the result in a few words.
func (r checkResult) Summary() string {
	text := "the check passed"
	if blocking := check.BlockingOf(r.Findings); len(blocking) > 0 {
		text = check.Tally(blocking)
	}
	notes := 0
	for _, f := range r.Findings {
		if !f.Blocks() && (f.ID != "" || f.More > 0) {
			notes += max(1, f.More)
		}
	}
	if notes > 0 {
		text += fmt.Sprintf(", and %s", render.Count(notes, "note"))
	}
	return text
}

// The files are in the order in which they first occur.
func (r checkResult) byFile() []check.Finding {
	order := map[string]int{}
	for _, f := range r.Findings {
		if _, ok := order[f.File]; !ok {
			order[f.File] = len(order)
		}
	}
	sorted := slices.Clone(r.Findings)
	slices.SortStableFunc(sorted, func(f, g check.Finding) int { return order[f.File] - order[g.File] })
	return sorted
}

// wholeLines is how many lines are printed of an output in which no findings were found.
const wholeLines = 40

// Text prints the findings, one line each. If all is set it prints complete findings.
func (r checkResult) Text(w io.Writer, all bool) error {
	var b strings.Builder
	for _, f := range r.byFile() {
		lines := strings.Split(strings.TrimRight(f.Text, "\n"), "\n")
		head := ""
		if f.File != "" {
			head = f.Place() + ": "
		}
		if f.Advisory {
			head += "note: "
		}
		b.WriteString(render.Line(head+lines[0]) + "\n")
		rest := lines[1:]
		switch whole := f.ID == "" && f.More == 0; {
		case all:
		case !whole:
			rest = nil
		case len(rest) > wholeLines:
			b.WriteString(fmt.Sprintf("    … %s before; add -v to see all\n", render.Count(len(rest)-wholeLines, "line")))
			rest = rest[len(rest)-wholeLines:]
		}
		for _, line := range rest {
			if strings.TrimSpace(line) == "" && !all {
				continue
			}
			b.WriteString(strings.TrimRight("    "+render.Line(line), " ") + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// JSON prints the result as one object on one line.
func (r checkResult) JSON(w io.Writer) error {
	result := map[int]string{0: "passed", 1: "failed", 5: "broken"}[r.Exit()]
	files := map[string]bool{}
	for _, f := range check.BlockingOf(r.Findings) {
		if f.File != "" {
			files[f.File] = true
		}
	}
	return writeLine(w, struct {
		V        int             `json:"v"`
		Result   string          `json:"result"`
		Exit     int             `json:"exit"`
		Command  string          `json:"command"`
		Took     int64           `json:"took_ms"`
		Blocking int             `json:"blocking"`
		Files    int             `json:"files"`
		Findings []check.Finding `json:"findings"`
	}{1, result, r.Exit(), r.Command, r.Took.Milliseconds(), check.Count(check.BlockingOf(r.Findings)), len(files), append([]check.Finding{}, r.byFile()...)})
}

// Bork prints the blocking findings as a correctness checker of Bork does. A check that
// could not run prints an empty object of the form, because its exit status is what counts.
func (r checkResult) Bork(w io.Writer) error {
	type finding struct {
		Provenance string `json:"provenance"`
		File       string `json:"file,omitempty"`
		Finding    string `json:"finding"`
	}
	out := struct {
		PerFile []finding `json:"per_file_findings"`
		Overall []finding `json:"overall_findings"`
	}{[]finding{}, []finding{}}
	for _, f := range (checkResult{Findings: check.BlockingOf(r.Findings)}).byFile() {
		one := finding{Provenance: "code-review", File: f.File, Finding: f.Text}
		if f.Line > 0 {
			one.Finding = fmt.Sprintf("line %d: %s", f.Line, f.Text)
		}
		if f.File == "" {
			out.Overall = append(out.Overall, one)
		} else {
			out.PerFile = append(out.PerFile, one)
		}
	}
	return writeLine(w, out)
}

// One call lets a writer see complete lines.
func writeLine(w io.Writer, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}
