package main

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"net/url"
	"path"
	"slices"
	"strings"

	"hone/check"
	"hone/internal/excerpt"
)

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
