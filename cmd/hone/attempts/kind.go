// Package attempts runs a loop several times side by side, and applies the result of the
// first run whose check passes.
//
// [Kind] is a loop without a command of its own: "hone fix --attempts 3" starts it. Its one
// round copies the tree for each attempt, lets a group of runs work in the copies (package
// group), and applies the changes of the first that is done. [TakeKind] is the loop of "hone take": it applies the changes of
// another attempt in place of those.
//
// An attempt is an ordinary run, with its own journal in its copy; the user can show and
// resume it there. The run of the attempts records what it lends and what an attempt used
// of it ([paid.Account.Lend]), so that its ledger counts all tokens, and the limits of its
// budget hold for all attempts together. A resumed run resumes its attempts.
//
// Of what an attempt changed in files that git ignores, only the model's own edits reach the
// tree; what its commands changed there stays in the copy, and is named.
// They are applied as one change of the run, all or none, and only if the tree has the
// files as the attempts found them.
//
// The package is below cmd/hone because it words command lines and needs the harness,
// which no loop may know.
package attempts

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"hone/harness"
	"hone/loop"
	"hone/workspace"
)

// Name is the name of the loop in the journal.
const Name = "attempts"

// Most is the maximum number of attempts.
const Most = 32

// Kind returns the loop that makes attempts at another one. kinds are the loops that it
// can start.
func Kind(kinds []loop.Kind) loop.Kind {
	return loop.Kind{Name: Name, New: func() loop.Loop { return New(kinds) }}
}

// New returns an invocation of that loop without settings.
func New(kinds []loop.Kind) *Invocation { return &Invocation{kinds: kinds} }

// Invocation is a run of attempts with all its settings resolved.
type Invocation struct {
	loop.Settings
	Loop    string         `json:"loop_of_attempts"` // its name
	Count   int            `json:"attempts"`
	Named   []string       `json:"models,omitempty"` // as typed, for the attempts in turn; nil means the settings' model
	Asked   [][]loop.Model `json:"asked"`            // by the roles of an attempt, for the attempts in turn
	Args    []string       `json:"args"`             // the flags of an attempt but for its directory, model and limits, as --NAME=VALUE
	Text    []string       `json:"text,omitempty"`   // its other arguments
	Cwd     string         `json:"cwd"`              // where relative paths in Args begin
	Trusted string         `json:"trusted"`          // HONE_TRUST of an attempt

	kinds []loop.Kind
}

// Models returns the models of all attempts, each once.
func (v *Invocation) Models() []loop.RoleModel {
	var all []loop.RoleModel
	for i := range v.Asked {
		for j := range v.Asked[i] {
			m := &v.Asked[i][j]
			if !slices.ContainsFunc(all, func(o loop.RoleModel) bool { return o.Model.Names() == m.Names() && o.Model.BaseURL == m.BaseURL }) {
				all = append(all, loop.RoleModel{Role: fmt.Sprintf("attempt %d", i+1), Model: m})
			}
		}
	}
	return all
}

func (v *Invocation) modelsOf(n int) []loop.Model {
	if len(v.Asked) == 0 {
		return nil
	}
	return v.Asked[(n-1)%len(v.Asked)]
}

// first returns the model of an attempt's first role; zero if it has none.
func (v *Invocation) first(n int) (m loop.Model) {
	if all := v.modelsOf(n); len(all) > 0 {
		m = all[0]
	}
	return m
}

// Limits are left out. Paths into the workspace become paths into the copy.
func (v *Invocation) line(n int, workspace, dir string) []string {
	line := []string{v.Loop, "--dir", dir}
	if len(v.Named) > 0 {
		line = append(line, "--model", v.Named[(n-1)%len(v.Named)])
	}
	for _, arg := range v.Args {
		flag, value, _ := strings.Cut(arg, "=")
		if flag == "--base-url" {
			value = v.first(n).KnownAddress() // the recorded one has no login, and resume may have set another
		}
		line = append(line, flag+"="+inCopy(value, workspace, dir))
	}
	line = append(line, "--")
	for _, text := range v.Text {
		line = append(line, inCopy(text, workspace, dir))
	}
	return line
}

func inCopy(text, workspace, dir string) string {
	if rel, err := filepath.Rel(workspace, text); err == nil && filepath.IsAbs(text) && filepath.IsLocal(rel) {
		return filepath.Join(dir, rel)
	}
	return text
}

// Build returns the run and its one round.
func (v *Invocation) Build(s loop.Session) (loop.Built, error) {
	h, ok := s.(*harness.Session)
	if !ok {
		return loop.Built{}, fmt.Errorf("attempts need a session of the harness, not %T", s)
	}
	g := &contest{Invocation: v, session: h, run: s.NewRun(workspace.Rules{Guard: s.Guard()})}
	g.run.Trust.Tools = false // the attempt has asked, or was refused
	return loop.Built{Run: g.run, Round: g.round, Rounds: 1, With: fmt.Sprintf("%d attempts of %s", v.Count, v.Loop), Summary: g.summary}, nil
}
