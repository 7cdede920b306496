package phase

import (
	"slices"
	"strings"

	"hone/check"
	"hone/history"
	"hone/journal"
	"hone/loop/phase/spec"
	"hone/loop/phase/verdict"
)

// Verified is a contract or flow that a run has to verify, with what each round found.
type Verified struct {
	Text   string // as the specification states it; a flow by its name
	Place  string // such as "specs/phase2.md:14"
	Rounds map[int]Verdict
}

// Verdict is what a round found of a contract. A round that has none did not verify it.
type Verdict string

// The verdicts.
const (
	Passed Verdict = "passed"
	// PassedUnseen is a pass of a test that hone has not seen fail: it may test nothing.
	PassedUnseen Verdict = "passed, but the test was not seen failing"
	Failed       Verdict = "failed"
)

// Verdicts returns the contracts and flows that a recorded run has to verify, in the order
// of the specifications; nil if it has not read them. Get reads the run's objects.
func Verdicts(past *history.Past, get history.Get) ([]Verified, error) {
	records := past.Records(stepSpecs)
	if len(records) == 0 {
		return nil, nil
	}
	specs, err := history.ReadResult[specList](records[0].Event, get)
	if err != nil {
		return nil, err
	}
	due := spec.Due(specs.Specs)
	var all []Verified
	for _, item := range due {
		all = append(all, Verified{Text: item.String(), Place: item.Place(), Rounds: map[int]Verdict{}})
	}
	if len(past.Records(stepSuite)) == 0 {
		addReports(all, past.States())
		return all, nil
	}
	return all, addSuites(all, due, past, get)
}

// addSuites adds what the runs of the suite found. The last one of a round counts.
func addSuites(all []Verified, due []spec.Item, past *history.Past, get history.Get) error {
	var unseen []string
	for _, e := range past.Events() {
		if e.Step == nil || e.Phase != journal.Record {
			continue
		}
		switch e.Step.Name {
		case stepSeeFail:
			seen, err := history.ReadResult[seenFailing](e.Event, get)
			if err != nil {
				return err
			}
			_, unseen = seen.faults(due)
		case stepSuite:
			run, err := history.ReadResult[suiteRun](e.Event, get)
			if err != nil {
				return err
			}
			points := resultsOf(due, run).points
			for i := range all {
				all[i].add(e.Step.Round, points[i].Number > 0, points[i].Passed(), slices.Contains(unseen, all[i].Text))
			}
		}
	}
	return nil
}

// add adds the verdict of a round, in place of an earlier one.
func (v Verified) add(round int, ran, passed, unseen bool) {
	switch {
	case !ran:
		delete(v.Rounds, round)
	case !passed:
		v.Rounds[round] = Failed
	case unseen:
		v.Rounds[round] = PassedUnseen
	default:
		v.Rounds[round] = Passed
	}
}

// addReports adds what the verifier reported in its sessions. A round that did not get so
// far keeps the failures of an earlier one, and verified nothing.
func addReports(all []Verified, states []history.State) {
	var plain []string
	for _, v := range all {
		plain = append(plain, spec.Plain(v.Text))
	}
	earlier := func(f check.Finding) bool {
		return slices.Contains([]string{sourceHealth, sourceServer, sourceUnpaid}, f.Source)
	}
	for _, st := range states {
		if st.Round == 0 || st.Decision == history.StopNow && st.Kind == history.KindFailed || slices.ContainsFunc(st.Findings, earlier) {
			continue
		}
		failed := map[int]bool{}
		for _, f := range from(st.Findings, sourceContract) {
			for _, one := range verdict.Parse(f.Text).Failures {
				failed[testedBy(plain, strings.TrimSpace(one.Spec))] = true
			}
		}
		for i := range all {
			all[i].add(st.Round, true, !failed[i], false)
		}
	}
}
