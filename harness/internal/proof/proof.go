// Package proof proves walls before they are used, and records when.
package proof

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"hone"
	"hone/harness/internal/state"
	"hone/sandbox"
	"hone/sandbox/prove"
)

// record is the proof of one kind of walls, as stored in the state folder.
type record struct {
	Conditions string    `json:"conditions"` // see [prove.Conditions]
	When       time.Time `json:"when"`
}

// Of returns when walls of a grade were proved under the present conditions: earlier, or
// now, by attempts to cross them. An attempt that succeeds is an error. The time is
// zero for walls that prevent nothing. tree is that of [prove.Wall].
func Of(ctx context.Context, g sandbox.Grade, tree string) (time.Time, error) {
	if g.Level == sandbox.LevelOpen {
		return time.Time{}, nil
	}
	conditions, err := prove.Conditions(g.Wall, tree)
	file, stateless := recordFile(g.Wall)
	recorded := err == nil && stateless == nil
	if recorded {
		if p := read(file); p.Conditions == conditions {
			return p.When, nil
		}
	}
	report, err := prove.Short(ctx, g.Wall, tree)
	if err != nil {
		return time.Time{}, err
	}
	if err := report.Err(); err != nil {
		return time.Time{}, &hone.Stop{Kind: hone.KindFailed, Why: err.Error(),
			Next: hone.Next{Verb: hone.Doctor, Or: &hone.Next{Flags: []hone.Flag{{Name: "sandbox", Value: "bwrap or landlock"}}}}}
	}
	p := record{Conditions: conditions, When: time.Now().UTC()}
	if b, err := json.Marshal(p); err == nil && recorded {
		_ = state.Write(file, append(b, '\n')) // otherwise the next start proves them again
	}
	return p.When, nil
}

func recordFile(wall sandbox.Wall) (string, error) {
	dir, err := state.Make("proofs")
	return filepath.Join(dir, string(wall)+".json"), err
}

func read(file string) (p record) {
	b, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(b, &p) != nil {
		return record{}
	}
	return p
}
