package main

import (
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

// The parts of SARIF 2.1.0 that code scanning uses.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		Results     []sarifResult     `json:"results"`
		ColumnKind  string            `json:"columnKind"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID    string    `json:"id"`
		Short sarifText `json:"shortDescription"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifInvocation struct {
		CommandLine   string              `json:"commandLine"`
		Successful    bool                `json:"executionSuccessful"`
		Notifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
	}
	sarifNotification struct {
		Level   string    `json:"level"`
		Message sarifText `json:"message"`
	}
	sarifResult struct {
		RuleID       string            `json:"ruleId"`
		RuleIndex    int               `json:"ruleIndex"`
		Level        string            `json:"level"`
		Message      sarifText         `json:"message"`
		Locations    []sarifLocation   `json:"locations"`
		Fingerprints map[string]string `json:"partialFingerprints"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI  string `json:"uri"`
		Base string `json:"uriBaseId"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
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
	run := sarifRun{ColumnKind: "utf16CodeUnits", Results: []sarifResult{},
		Tool:        sarifTool{sarifDriver{Name: "hone", Version: r.Version, Rules: []sarifRule{}}},
		Invocations: []sarifInvocation{{CommandLine: r.Command, Successful: !r.Broken()}}}
	times := map[string]int{}
	for _, f := range r.Findings {
		text := sarifText{excerpt.Middle(strings.TrimRight(f.Text, "\n"), sarifMessage)}
		if f.Broken || f.ID == "" && f.Advisory {
			n := sarifNotification{Level: sarifLevel(f), Message: text}
			run.Invocations[0].Notifications = append(run.Invocations[0].Notifications, n)
			continue
		}
		key := fmt.Sprintf("%x", sha256.Sum256([]byte(check.Key(f))))[:32]
		times[key]++
		run.Results = append(run.Results, sarifResult{RuleID: ruleOf(f), RuleIndex: run.Tool.Driver.rule(ruleOf(f)), Level: sarifLevel(f), Message: text,
			Locations:    []sarifLocation{{sarifPhysical{sarifArtifact{uriOf(prefix, f.File), "%SRCROOT%"}, sarifRegion{max(1, f.Line)}}}},
			Fingerprints: map[string]string{"primaryLocationLineHash": fmt.Sprintf("%s:%d", key, times[key])}})
	}
	return writeLine(w, sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}})
}

func (d *sarifDriver) rule(id string) int {
	i := slices.IndexFunc(d.Rules, func(r sarifRule) bool { return r.ID == id })
	if i < 0 {
		i = len(d.Rules)
		d.Rules = append(d.Rules, sarifRule{ID: id, Short: sarifText{sarifRuleText(id)}})
	}
	return i
}

// The rules of findings that name none.
const (
	ruleTest  = "test"
	ruleBuild = "build"
	ruleCheck = "check"
)

func sarifRuleText(id string) string {
	return map[string]string{ruleTest: "A test fails", ruleBuild: "The code does not build, or it crashes", ruleCheck: "The check fails"}[id] + map[bool]string{true: id}[!slices.Contains([]string{ruleTest, ruleBuild, ruleCheck}, id)]
}

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

func sarifLevel(f check.Finding) string {
	if f.Blocks() {
		return "error"
	}
	return "warning"
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
