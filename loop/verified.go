package loop

import (
	"context"

	"hone"
	"hone/history"
)

// Verified is something that a run must verify, such as a contract, with the verdict of each
// round.
type Verified struct {
	Text   string // as the user's file states it
	Place  string // such as "specs/phase2.md:14"
	Rounds map[int]Verdict
}

// Verdict is the result of a round for a [Verified]. A round without a verdict did not verify
// it.
type Verdict string

// The verdicts.
const (
	Passed Verdict = "passed"
	// PassedUnseen means that the test passed, but hone never saw it fail: it may test nothing.
	PassedUnseen Verdict = "passed, but the test was not seen failing"
	Failed       Verdict = "failed"
)

// Contract is what a loop records of one [Verified]. Its Verdict is that of the round; empty before there is one.
type Contract struct {
	Text    string  `json:"text"`
	Place   string  `json:"place"`
	Verdict Verdict `json:"verdict,omitempty"`
}

const stepVerified = "verified"

// RecordVerified records all that a run must verify, with the verdicts of this round.
func RecordVerified(ctx context.Context, r *hone.Run, all []Contract) error {
	_, err := hone.Step(ctx, r, stepVerified, nil, func(context.Context) ([]Contract, error) { return all, nil })
	return err
}

// VerifiedOf returns what a recorded run must verify, in the order of the user's files; nothing if its loop has only
// its check. The last verdict of a round counts. get reads the run's objects.
func VerifiedOf(past *history.Past, get history.Get) (all []Verified, err error) {
	for _, e := range past.Records(stepVerified) {
		contracts, err := history.ReadResult[[]Contract](e.Event, get)
		if err != nil {
			return nil, err
		}
		for i, c := range contracts {
			if i == len(all) {
				all = append(all, Verified{c.Text, c.Place, map[int]Verdict{}})
			}
			if c.Verdict != "" {
				all[i].Rounds[e.Step.Round] = c.Verdict
			}
		}
	}
	return all, nil
}
