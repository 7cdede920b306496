// Package proof proves walls before they are used, and remembers that.
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

// record is the record in the state folder that walls of a kind were proved. There is
// one for each kind.
type record struct {
	Conditions string    `json:"conditions"` // see [prove.Conditions]
	When       time.Time `json:"when"`
}

// Of tries briefly to cross walls of the kind, and returns an error if that
// works although it should not. It does not try again what did not work under the same
// conditions, and returns when that was tried; zero for walls that prevent nothing.
func Of(ctx context.Context, g sandbox.Grade) (time.Time, error) {
	if g.Level == sandbox.LevelOpen {
		return time.Time{}, nil
	}
	conditions, err := prove.Conditions(g.Wall)
	file, stateless := recordFile(g.Wall)
	recorded := err == nil && stateless == nil
	if recorded {
		if p := read(file); p.Conditions == conditions {
			return p.When, nil
		}
	}
	report, err := prove.Short(ctx, g.Wall)
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

// read returns a recorded proof; zero if there is none that can be read.
func read(file string) (p record) {
	b, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(b, &p) != nil {
		return record{}
	}
	return p
}
