package harness

import (
	"context"
	"time"

	"hone"
	"hone/harness/internal/state"
	"hone/sandbox"
	"hone/sandbox/prove"
)

// proofRecord is the proof of one kind of walls, as stored in the state folder.
type proofRecord struct {
	Conditions string    `json:"conditions"` // see [prove.Conditions]
	When       time.Time `json:"when"`
}

// proveOnce returns when walls of a grade were proved under the present conditions: earlier, or
// now, by attempts to cross them. An attempt that succeeds is an error. The time is
// zero for walls that prevent nothing. tree is that of [prove.Wall].
func proveOnce(ctx context.Context, g sandbox.Grade, tree string) (time.Time, error) {
	if g.Wall == sandbox.NoWall {
		return time.Time{}, nil
	}
	conditions, unknown := prove.Conditions(g.Wall, tree)
	file := string(g.Wall) + ".json"
	var p proofRecord
	if unknown == nil && state.Load(&p, "proofs", file) == nil && p.Conditions == conditions {
		return p.When, nil
	}
	report, err := prove.Short(ctx, g.Wall, tree)
	if err != nil {
		return time.Time{}, err
	}
	if err := report.Err(); err != nil {
		return time.Time{}, &hone.Stop{Kind: hone.KindFailed, Why: err.Error(),
			Next: hone.Next{Verb: hone.Doctor, Or: &hone.Next{Flags: []hone.Flag{{Name: "sandbox", Value: "bwrap or landlock"}}}}}
	}
	p = proofRecord{Conditions: conditions, When: time.Now().UTC()}
	if unknown == nil {
		_ = state.Save(p, "proofs", file) // otherwise the next start proves them again
	}
	return p.When, nil
}
