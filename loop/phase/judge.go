package phase

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hone/check"
	"hone/history"
	"hone/internal/lazyregexp"
	"hone/internal/tap"
	"hone/loop"
	"hone/loop/phase/spec"
)

// results are the points of one run of the suite, by what each tests.
type results struct {
	names  []string // of the points: the contract's text, or the description
	points []tap.Point
	// faults say why the output is no result: it is incomplete, or a contract has no
	// point or two, or a point is skipped.
	faults []string
}

// The first points are those of the contracts and flows that are due, in their order; then come points of no contract.
func resultsOf(due []spec.Item, run suiteRun) (o results) {
	if run.Broken != "" {
		o.faults = append(o.faults, run.Broken)
	}
	report := tap.Parse(run.Output)
	o.faults = append(o.faults, report.Problems...)
	stopped := len(report.Points) < report.Planned
	if stopped && run.Broken == "" {
		text := fmt.Sprintf("%s ended with exit status %d before it printed all points; every point must be printed, whatever the server answers", suitePath, run.Exit)
		if run.Log != "" {
			text += ". Its standard error:\n" + loop.Indented(run.Log)
		}
		o.faults = append(o.faults, text)
	}
	o.points = make([]tap.Point, len(due))
	plain := plainOf(due)
	for _, item := range due {
		o.names = append(o.names, item.String())
	}
	count := make([]int, len(due))
	for _, p := range report.Points {
		i := testedBy(plain, p.Description)
		if i >= 0 {
			count[i]++
			o.points[i] = p
		} else {
			i = len(o.points)
			o.names, o.points = append(o.names, p.Description), append(o.points, p)
		}
		if p.Directive != "" {
			o.faults = append(o.faults, fmt.Sprintf("the point “%s” is marked %s, which never counts as a pass", o.names[i], p.Directive))
		}
	}
	for i, n := range count {
		if n > 1 || n == 0 && !stopped {
			o.faults = append(o.faults, fmt.Sprintf("there are %d points whose description contains “%s”; there must be exactly one", n, o.names[i]))
		}
	}
	return o
}

func plainOf(due []spec.Item) (plain []string) {
	for _, item := range due {
		plain = append(plain, spec.Plain(item.String()))
	}
	return plain
}

// If one contract contains another, the longer one counts.
func testedBy(plain []string, description string) int {
	found, length := -1, 0
	description = spec.Plain(description)
	for i, text := range plain {
		if len(text) > length && strings.Contains(description, text) {
			found, length = i, len(text)
		}
	}
	return found
}

func (o results) failures() (all []failedSpec) {
	for i, p := range o.points {
		if p.Number > 0 && !p.Passed() && p.Directive == "" {
			all = append(all, failedSpec{Spec: o.names[i], Input: p.Value("input"), Observed: p.Value("observed")})
		}
	}
	return all
}

// Without them the builder would not know what was sent or what came back.
func (f failedSpec) missingDiagnostics() string {
	if f.Input != "" && f.Observed != "" {
		return ""
	}
	return fmt.Sprintf("the failing point “%s” has no input: or no observed: in its diagnostics", f.Spec)
}

// Further lines are marked, so that what a server sent starts no entry.
func (f failedSpec) entry() string {
	part := func(text string) string {
		if text == "" {
			text = "(the suite does not say)"
		}
		return strings.ReplaceAll(text, "\n", "\n  | ")
	}
	return fmt.Sprintf("SPEC: %s\nINPUT: %s\nOBSERVED: %s\n", part(f.Spec), part(f.Input), part(f.Observed))
}

// broken says why the run is no evidence (ruling A14). Without a suite there is neither.
func verdictOf(due []spec.Item, run suiteRun) (failed []failedSpec, broken []string) {
	if run.Absent {
		return nil, nil
	}
	o := resultsOf(due, run)
	failed, broken = o.failures(), o.faults
	if len(failed) > 0 || len(broken) > 0 {
		return failed, broken
	}
	if run.Exit != 0 {
		broken = append(broken, fmt.Sprintf("all points are ok, but the exit status is %d", run.Exit))
	}
	if run.Requests < len(due) {
		broken = append(broken, fmt.Sprintf("only %s reached the server, but there are %s", plural(run.Requests, "request", "requests"), plural(len(due), "contract or flow", "contracts and flows")))
	}
	return failed, broken
}

// The verifier must look at a verdict before it counts if the suite itself broke, a failure has no diagnostics, or it also
// failed in the previous verification, so that the test may be wrong.
func doubts(failed []failedSpec, broken []string, prior []check.Finding) (why []string) {
	why = slices.Clone(broken)
	for _, f := range failed {
		again := slices.ContainsFunc(prior, func(p check.Finding) bool {
			return p.Source == sourceContract && strings.HasPrefix(p.Text, "SPEC: "+f.Spec+"\n")
		})
		switch {
		case f.missingDiagnostics() != "":
			why = append(why, f.missingDiagnostics())
		case again:
			why = append(why, fmt.Sprintf("the point “%s” has failed in two rounds. The code or the test may be wrong: compare the test with the contract, and correct it only if it checks something else. Input: %s; observed: %s", f.Spec, f.Input, f.Observed))
		}
	}
	return why
}

// left are other entries that the suite left in a failed_specs.md below tests/.
func contractFindings(failed []failedSpec, left string) (found []check.Finding) {
	others, _ := readFailed(left)
	for _, f := range slices.Concat(failed, others) {
		found = append(found, check.Finding{Source: sourceContract, Text: cmp.Or(f.Text, f.entry())})
	}
	return found
}

// seenFailing is a run of the suite against each of hone's own servers, which keep
// hardly any contract.
type seenFailing struct {
	Unimplemented suiteRun `json:"unimplemented"`       // every answer is 501
	Empty         suiteRun `json:"empty"`               // every answer is 200 with an empty body
	Absent        bool     `json:"absent,omitempty"`    // there is no suite, and was none before
	Suite         string   `json:"suite"`               // its digest
	Points        []string `json:"points,omitempty"`    // of the last suite without faults: none may be removed
	Unchanged     bool     `json:"unchanged,omitempty"` // the runs are those of an earlier step, which had no faults
	history.Report
}

// What hone's own servers answer, for the verifier.
const (
	to501   = "against the server that answers every request with 501"
	toEmpty = "against the server that answers every request with 200 and an empty body"
)

// unseen are the points that no server made fail although none of them certainly breaks their contract.
func (s seenFailing) faults(due []spec.Item) (wrong, unseen []string) {
	a, b := resultsOf(due, s.Unimplemented), resultsOf(due, s.Empty)
	for _, f := range a.faults {
		if !slices.Contains(b.faults, f) {
			f = to501 + ": " + f
		}
		wrong = append(wrong, f)
	}
	for _, f := range b.faults {
		if !slices.Contains(a.faults, f) {
			wrong = append(wrong, toEmpty+": "+f)
		}
	}
	if s.Unimplemented.Requests == 0 || s.Empty.Requests == 0 {
		return append(wrong, "no request reached the server at $DEV_URL"), nil
	}
	for _, name := range s.Points {
		if !slices.Contains(a.names, name) {
			wrong = append(wrong, fmt.Sprintf("the point “%s” was removed", name))
		}
	}
	failed := a.failures()
	if len(failed) > 0 && s.Unimplemented.Exit == 0 {
		wrong = append(wrong, "the exit status is 0 although points fail")
	}
	for _, f := range slices.Concat(failed, b.failures()) {
		if text := f.missingDiagnostics(); text != "" && !slices.Contains(wrong, text) {
			wrong = append(wrong, text)
		}
	}
	for i, name := range a.names {
		at := slices.Index(b.names, name)
		bare, empty := a.points[i].Passed(), at >= 0 && b.points[at].Passed()
		by501, by200 := no, no
		if i < len(due) {
			by501, by200 = ruledOut(due[i], 501), ruledOut(due[i], 200)
		}
		switch {
		case bare && by501 == certainly:
			wrong = append(wrong, fmt.Sprintf("the point “%s” passes %s", name, to501))
		case empty && by200 == certainly:
			wrong = append(wrong, fmt.Sprintf("the point “%s” passes %s", name, toEmpty))
		case bare && empty, empty && by200 == maybe:
			unseen = append(unseen, name)
		}
	}
	return wrong, unseen
}

// certainty is how sure it is that a contract rules an answer out.
type certainty int

const (
	no certainty = iota
	maybe
	certainly
)

var (
	statusCode = lazyregexp.New(`\b[1-5][0-9xX]{2}\b`)
	bodyMark   = lazyregexp.New(`[{\["“]`)
	negation   = lazyregexp.New(`(?i)\b(?:no|not|without|never|empty|nothing)\b`)
	remark     = lazyregexp.New(`^[\s,;:.-]*(?:\([^)]*\))?[\s,;:.-]*$`)
)

// An item may rule out that every answer has one status and an empty body. A flow does if one of its steps does.
func ruledOut(item spec.Item, status int) (sure certainty) {
	for _, c := range item.Steps {
		sure = max(sure, ruledOutBy(c.Expected, fmt.Sprint(status)))
	}
	return sure
}

func ruledOutBy(expected, status string) certainty {
	named := statusCode.FindAllString(expected, -1)
	same := func(s string) bool { return strings.EqualFold(s, status) || strings.EqualFold(s, status[:1]+"xx") }
	rest := expected
	if len(named) > 0 {
		_, rest, _ = strings.Cut(expected, named[0])
	}
	switch {
	case len(named) > 0 && !slices.ContainsFunc(named, same):
		return certainly
	case negation.MatchString(rest):
		return maybe
	case bodyMark.MatchString(rest):
		return certainly
	case len(named) > 0 && remark.MatchString(rest):
		return no
	}
	return maybe
}

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
