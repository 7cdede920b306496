package phase

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/check"
	"hone/history"
	"hone/loop/phase/spec"
)

// dueOf returns the contracts and flows of a spec.
func dueOf(text string) []spec.Item {
	return spec.DueItems([]spec.Phase{spec.Parse(1, "specs/phase1.md", "# Contracts\n"+text)})
}

const twoContracts = "GET /a → 200\nGET /a → 200 {b}\nFLOW: f\n  GET /a → 200\n"

// TestVerdict: what a run of the suite says (ruling A14).
func TestVerdict(t *testing.T) {
	const all = "1..3\nok 1 - GET /a → 200\nok 2 - `GET /a`  ->  200 { b }\nok 3 - FLOW: f\n"
	for name, tt := range map[string]struct {
		output         string
		exit, requests int
		failed, broken string // joined
	}{
		"all pass":              {all, 0, 3, "", ""},
		"too few requests":      {all, 0, 2, "", "only 2 requests reached the server, but there are 3 contracts and flows"},
		"exit status":           {all, 1, 3, "", "all points are ok, but the exit status is 1"},
		"one fails":             {strings.Replace(all, "ok 2", "not ok 2", 1), 1, 3, "GET /a → 200 {b}", ""},
		"one fails, and exit 0": {strings.Replace(all, "ok 2", "not ok 2", 1), 0, 0, "GET /a → 200 {b}", ""},
		"a skipped one":         {strings.Replace(all, "FLOW: f", "FLOW: f # SKIP later", 1), 0, 3, "", "the point “FLOW: f” is marked SKIP, which never counts as a pass"},
		"one to do":             {strings.Replace(all, "ok 3 - FLOW: f", "not ok 3 - FLOW: f # TODO", 1), 0, 3, "", "the point “FLOW: f” is marked TODO, which never counts as a pass"},
		"one is missing":        {strings.Replace(all, "FLOW: f", "the flow", 1), 0, 3, "", "there are 0 points whose description contains “FLOW: f”; there must be exactly one"},
		"one comes twice":       {strings.Replace(all, "FLOW: f", "GET /a → 200, again", 1), 0, 3, "", "there are 2 points whose description contains “GET /a → 200”; there must be exactly one; there are 0 points whose description contains “FLOW: f”; there must be exactly one"},
		"more than contracts":   {"1..4\n" + all[5:] + "not ok 4 - an id is never used again\n", 1, 4, "an id is never used again", ""},
	} {
		failed, broken := verdictOf(dueOf(twoContracts), suiteRun{Output: tt.output, Exit: tt.exit, Requests: tt.requests})
		var names []string
		for _, f := range failed {
			names = append(names, f.Spec)
		}
		if got := strings.Join(names, "; "); got != tt.failed || strings.Join(broken, "; ") != tt.broken {
			t.Errorf("%s: failed %q, broken %q", name, got, broken)
		}
	}
}

// TestFaults: what is wrong with a suite is said at once, and against which server; of
// a suite that stopped early it is said how, not which points are missing.
func TestFaults(t *testing.T) {
	const vacuous = "1..3\nok 1 - GET /a → 200\nnot ok 2 - GET /a → 200 {b}\n"
	crashed := suiteRun{Output: vacuous, Exit: 1, Requests: 3, Report: history.Report{Log: "Traceback\nJSONDecodeError\n"}}
	whole := suiteRun{Output: vacuous + "ok 3 - the flow\n", Exit: 1, Requests: 3}
	wrong, _ := seenFailing{Unimplemented: whole, Empty: crashed}.faults(dueOf(twoContracts))
	want := []string{
		to501 + ": there are 0 points whose description contains “FLOW: f”; there must be exactly one",
		toEmpty + ": the plan is 1..3, but it printed 2",
		toEmpty + ": tests/run ended with exit status 1 before it printed all points; every point must be printed, whatever the server answers. Its standard error:\n    Traceback\n    JSONDecodeError",
		"the failing point “GET /a → 200 {b}” has no input: or no observed: in its diagnostics",
		"the point “GET /a → 200” passes " + to501,
	}
	if diff := cmp.Diff(want, wrong); diff != "" {
		t.Error(diff)
	}
}

// TestRuledOut: which of hone's own servers certainly breaks a contract.
func TestRuledOut(t *testing.T) {
	for expected, want := range map[string][2]certainty{ // against 501, and against 200 with an empty body
		"200":                    {certainly, no},
		"200 (valid token)":      {certainly, no},
		"200 {token}":            {certainly, certainly},
		"200 ok":                 {certainly, maybe},
		`200 "ok"`:               {certainly, certainly},
		"200 {no password}":      {certainly, maybe},
		"200 with an empty body": {certainly, maybe},
		"204":                    {certainly, certainly},
		"4xx":                    {certainly, certainly},
		"2XX":                    {certainly, no},
		"5xx":                    {no, certainly},
		"501":                    {no, certainly},
		"200 or 404":             {certainly, maybe},
		"redirect /login":        {maybe, maybe},
		"must not reveal a name": {maybe, maybe},
		"{id}":                   {certainly, certainly},
		"429 after 100 requests": {certainly, certainly},
	} {
		item := spec.Item{Steps: []spec.Contract{{Action: "GET /", Expected: expected}}}
		if got := [2]certainty{ruledOut(item, 501), ruledOut(item, 200)}; got != want {
			t.Errorf("%q: %v, want %v", expected, got, want)
		}
	}
	flow := spec.Item{Flow: "f", Steps: []spec.Contract{{Expected: "200"}, {Expected: "404"}}}
	if got := ruledOut(flow, 200); got != certainly {
		t.Errorf("a flow with a 404: %v", got)
	}
}

// TestDoubts: the verifier is asked only if the suite may be at fault.
func TestDoubts(t *testing.T) {
	prior := []check.Finding{{Source: sourceContract, Text: failedSpec{Spec: "GET /a → 200", Input: "x", Observed: "y"}.entry()}, {Source: sourceHealth, Text: "SPEC: GET /b → 200\n"}}
	for name, tt := range map[string]struct {
		failed []failedSpec
		broken []string
		want   int
	}{
		"nothing":         {nil, nil, 0},
		"a new failure":   {[]failedSpec{{Spec: "GET /b → 200", Input: "x", Observed: "y"}}, nil, 0},
		"the same again":  {[]failedSpec{{Spec: "GET /a → 200", Input: "x", Observed: "z"}}, nil, 1},
		"says too little": {[]failedSpec{{Spec: "GET /b → 200", Input: "x", Observed: ""}}, nil, 1},
		"broken":          {nil, []string{"no plan", "exit status 1"}, 2},
	} {
		if got := doubts(tt.failed, tt.broken, prior); len(got) != tt.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestEntry: what a server sends starts no entry of its own.
func TestEntry(t *testing.T) {
	text := failedSpec{Spec: "GET /a → 200", Input: "GET /a", Observed: "500\nSPEC: forged\n  SPEC: forged\n- SPEC: forged"}.entry()
	if failures, warnings := readFailed(text); len(failures) != 1 || warnings != nil {
		t.Errorf("%q: %+v", text, failures)
	}
}
