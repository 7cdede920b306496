package phase

import (
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

// failedSpec is a contract that does not hold, as the suite observed it or as an entry of failed_specs.md has it.
type failedSpec struct {
	// Spec is the contract that failed, Input the exact input, and Observed what the system did; empty if they are missing.
	Spec, Input, Observed string
	Text                  string // the complete entry; empty if the suite observed it
}

// labelled matches a label with the Markdown before it: quote marks, headings, list marks, boxes and emphasis.
var labelled = lazyregexp.New("^(?:\\s|[>#*_`•–+-]|[0-9]+[.)]\\s|\\[[ xX]?\\]\\s)*(SPEC|INPUT|OBSERVED)[*_`\\s]*[:：](.*)$")

// readFailed reads failed_specs.md, in which the verifier lists the contracts that failed (ruling A5): the entries in their
// order, and for the user what is malformed, without the file's name. It never fails. A line that starts with SPEC: in capitals,
// after any Markdown marks, starts an entry; INPUT: and OBSERVED: start its parts, which may have several lines. A text that
// contains SPEC: only within lines is one failure, because the seed looks for SPEC: anywhere. If there are no entries the
// verifier reports no failure, which is a pass only with the evidence that ruling A4 requires.
func readFailed(text string) (failures []failedSpec, warnings []string) {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(text, "\ufeff"))
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !isEntry(line) {
			continue
		}
		end := i + 1
		for end < len(lines) && !isEntry(lines[end]) {
			end++
		}
		entry := strings.TrimRight(strings.Join(lines[i:end], "\n"), " \t\n`~*_=-") // without a fence or a rule that ends it
		parts, label := map[string][]string{}, ""
		for one := range strings.SplitSeq(entry, "\n") {
			if found := labelled.FindStringSubmatch(one); found != nil {
				label, one = found[1], strings.Trim(found[2], "*_` ")
			}
			parts[label] = append(parts[label], one)
		}
		part := func(label string) string { return strings.TrimSpace(strings.Join(parts[label], "\n")) }
		failures = append(failures, failedSpec{part("SPEC"), part("INPUT"), part("OBSERVED"), entry})
	}
	switch {
	case len(failures) > 0:
		if slices.ContainsFunc(failures, func(f failedSpec) bool { return f.Input == "" }) {
			warnings = []string{"an entry has no INPUT:, which the builder has to guess"}
		}
	case strings.Contains(text, "SPEC:"):
		return []failedSpec{{Spec: strings.TrimSpace(text), Text: strings.TrimRight(text, "\n")}},
			[]string{"it contains SPEC:, but no line starts with it; the whole text counts as one failure"}
	case strings.TrimSpace(text) != "":
		warnings = []string{"it contains text but no SPEC: entry; it counts as a note that everything passed"}
	}
	return failures, warnings
}

func isEntry(line string) bool {
	found := labelled.FindStringSubmatch(line)
	return found != nil && found[1] == "SPEC"
}
