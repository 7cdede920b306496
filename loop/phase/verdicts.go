package phase

import (
	"slices"
	"strings"

	"hone/check"
	"hone/history"
	"hone/loop"
	"hone/loop/phase/spec"
	"hone/loop/phase/verdict"
)

// It is nil if the run has not read the specifications. get reads the run's objects.
func verdicts(past *history.Past, get history.Get) ([]loop.Verified, error) {
	records := past.Records(stepSpecs)
	if len(records) == 0 {
		return nil, nil
	}
	specs, err := history.ReadResult[specList](records[0].Event, get)
	if err != nil {
		return nil, err
	}
	due := spec.DueItems(specs.Specs)
	var all []loop.Verified
	for _, item := range due {
		all = append(all, loop.Verified{Text: item.String(), Place: item.Place(), Rounds: map[int]loop.Verdict{}})
	}
	if len(past.Records(stepSuite)) == 0 {
		addReports(all, past.States())
		return all, nil
	}
	return all, addSuites(all, due, past, get)
}

// The last run of the suite in a round counts.
func addSuites(all []loop.Verified, due []spec.Item, past *history.Past, get history.Get) error {
	var unseen []string
	for _, e := range past.Records(stepSeeFail, stepSuite) {
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
				add(all[i], e.Step.Round, points[i].Number > 0, points[i].Passed(), slices.Contains(unseen, all[i].Text))
			}
		}
	}
	return nil
}

func add(v loop.Verified, round int, ran, passed, unseen bool) {
	switch {
	case !ran:
		delete(v.Rounds, round)
	case !passed:
		v.Rounds[round] = loop.Failed
	case unseen:
		v.Rounds[round] = loop.PassedUnseen
	default:
		v.Rounds[round] = loop.Passed
	}
}

// A round that stopped before the verifier verified nothing: its findings come from an earlier round.
func addReports(all []loop.Verified, states []history.State) {
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
		for _, f := range fromSource(st.Findings, sourceContract) {
			for _, one := range verdict.Parse(f.Text).Failures {
				failed[testedBy(plain, strings.TrimSpace(one.Spec))] = true
			}
		}
		for i := range all {
			add(all[i], st.Round, true, !failed[i], false)
		}
	}
}
