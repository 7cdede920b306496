package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"hone/check"
	"hone/internal/excerpt"
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

// noFile is the place of a finding that has no file: where the check is configured. Code
// scanning refuses a whole log with one result that has no place.
const noFile = ".config/hone.toml"

// sarifMessage is the length of the longest message, in bytes.
const sarifMessage = 8 << 10

// SARIF prints the findings as a log of SARIF 2.1.0. Their files are relative to a
// directory above, from which prefix leads to that of the check; it is empty if they are
// the same.
func (r checkResult) SARIF(w io.Writer, prefix string) error {
	type object map[string]any
	rules, results, notes, times := []object{}, []object{}, []object{}, map[string]int{}
	for _, f := range r.Findings {
		level := "warning"
		if f.Blocks() {
			level = "error"
		}
		said := object{"level": level, "message": object{"text": excerpt.Middle(strings.TrimRight(f.Text, "\n"), sarifMessage)}}
		if f.Broken || f.ID == "" && f.Advisory {
			notes = append(notes, said)
			continue
		}
		id := ruleOf(f)
		rule := slices.IndexFunc(rules, func(known object) bool { return known["id"] == id })
		if rule < 0 {
			rule, rules = len(rules), append(rules, object{"id": id, "shortDescription": object{"text": cmp.Or(ruleTexts[id], id)}})
		}
		key := fmt.Sprintf("%x", sha256.Sum256([]byte(check.Key(f))))[:32]
		times[key]++
		said["ruleId"], said["ruleIndex"] = id, rule
		said["locations"] = []object{{"physicalLocation": object{
			"artifactLocation": object{"uri": uriOf(prefix, f.File), "uriBaseId": "%SRCROOT%"}, "region": object{"startLine": max(1, f.Line)}}}}
		said["partialFingerprints"] = object{"primaryLocationLineHash": fmt.Sprintf("%s:%d", key, times[key])}
		results = append(results, said)
	}
	return writeLine(w, object{"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": []object{{
		"tool":        object{"driver": object{"name": "hone", "version": r.Version, "rules": rules}},
		"invocations": []object{{"commandLine": r.Command, "executionSuccessful": !r.Broken(), "toolExecutionNotifications": notes}},
		"results":     results, "columnKind": "utf16CodeUnits"}}})
}

// The rules of findings that name none.
const (
	ruleTest  = "test"
	ruleBuild = "build"
	ruleCheck = "check"
)

var ruleTexts = map[string]string{ruleTest: "A test fails", ruleBuild: "The code does not build, or it crashes", ruleCheck: "The check fails"}

// A linter's rule is in the text, and the ID begins with it; else the rule is what kind of finding it is.
func ruleOf(f check.Finding) string {
	first, _, _ := strings.Cut(f.Text, "\n")
	rule, _, named := strings.Cut(f.ID, ": ")
	switch {
	case named && rule != f.File && !strings.ContainsAny(rule, " \t") && strings.Contains(first, rule):
		return rule
	case f.Partial:
		return ruleBuild
	case f.ID != "" && !named:
		return ruleTest
	}
	return ruleCheck
}

func uriOf(prefix, file string) string {
	if file == "" {
		file = noFile
	}
	parts := strings.Split(path.Join(prefix, file), "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	if strings.Contains(parts[0], ":") {
		return "./" + strings.Join(parts, "/") // not a scheme
	}
	return strings.Join(parts, "/")
}
