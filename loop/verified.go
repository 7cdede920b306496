package loop

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
