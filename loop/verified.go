package loop

// Verified is one of the things that a run has to verify, such as a contract, with what
// each round found.
type Verified struct {
	Text   string // as the user's file states it
	Place  string // such as "specs/phase2.md:14"
	Rounds map[int]Verdict
}

// Verdict is what a round found of a [Verified]. A round that has none did not verify it.
type Verdict string

// The verdicts.
const (
	Passed Verdict = "passed"
	// PassedUnseen is a pass of a test that hone has not seen fail: it may test nothing.
	PassedUnseen Verdict = "passed, but the test was not seen failing"
	Failed       Verdict = "failed"
)
