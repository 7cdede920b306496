// Package phase builds and verifies one phase of a project (the seed
// "Autonomous Build Loop", rulings A1 to A13): a builder that sees src/ alone
// writes code, a health check that is no model looks at it, and a verifier that
// sees tests/ alone tests the running server against the contracts, round after
// round, until no contract fails.
//
// It promises that neither role is told what only the other may know: the
// builder learns of a verification what failed_specs.md says and nothing else,
// the verifier of the code the names of its files. That they cannot find out by
// themselves is the affair of the walls that their tools, agents and hooks run
// behind, which the caller builds; see [devserver.Hooks] and [devserver.Server]. A verification
// passes only on evidence: an answer of the verifier's, a command that ran, a
// request that reached the server, and no failed contract in a file that was
// removed before.
//
// What it does not promise is that the tests are good: they are the
// verifier's, and whoever audits the phase looks at them.
package phase

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"hone"
	"hone/check"
	"hone/internal/artifact"
	"hone/internal/git"
	"hone/loop/phase/devserver"
	"hone/loop/phase/spec"
	"hone/workspace"
	"hone/workspace/secret"
)

// The seed's numbers.
const (
	Rounds         = 3
	HealthAttempts = 1
)

// Where things are in a project.
const (
	Src     = "src"
	Tests   = "tests"
	Results = Tests + "/results"
	MapName = "project_map.txt"

	failedName  = "failed_specs.md"
	failedPath  = Tests + "/" + failedName
	lintLog     = Results + "/lint.log"
	projectName = "project.md"
)

// Loop is one phase, resolved: it asks nobody for settings.
type Loop struct {
	// Phase is its number, from 1. There must be a specification of it.
	Phase int
	// Builder writes the code, behind walls around src/. Writer writes the
	// suite and Verifier runs it, both behind walls around tests/, of which the
	// Verifier's have a door to the Server. Their System is usually
	// [BuilderSystem] and [VerifierSystem]. Writer and Verifier are one role in
	// two places and have one Name, another than the Builder's.
	Builder, Writer, Verifier hone.Role
	// HealthAttempts is how often the builder may try to satisfy the health check
	// within a round; 0 means 1 (ruling A3).
	HealthAttempts int
	Hooks          devserver.Hooks
	Server         *devserver.Server
	Git            *git.Git
	// Guard finds what is withheld; nil withholds nothing.
	Guard *secret.Guard
}

// Rules are what the engine reviews the roles' changes by. Each role can name
// only what lies in its own folder; that the rest is refused here as well
// stands behind that.
func (l Loop) Rules() workspace.Rules {
	return workspace.Rules{Guard: l.Guard, Immutable: []string{devserver.Config, MapName, "Makefile", projectName, "specs/**", "prompts/**", Results + "/**"}}
}

// Own reports whether a file is one that the loop or a hook writes for people.
func Own(name string) bool { return name == MapName || strings.HasPrefix(name, Results+"/") }

// Prepare makes the folders and repositories that a project needs and lacks,
// before any walls stand around them. It can be done again.
func Prepare(ctx context.Context, g *git.Git, root string) error {
	for _, dir := range []string{Src, Tests, Results} {
		if err := artifact.MakeDir(root, dir); err != nil {
			return &hone.Stop{Kind: hone.KindFailed, Why: err.Error(), Next: hone.Next{First: "move it away", Verb: hone.Resume}}
		}
	}
	for dir, exclude := range map[string][]string{Src: nil, Tests: {path.Base(Results) + "/"}} {
		if _, err := g.Init(ctx, filepath.Join(root, dir), exclude...); err != nil {
			return &hone.Stop{Kind: hone.KindFailed, Why: err.Error(), Next: hone.Next{First: "fix this", Verb: hone.Resume}}
		}
	}
	return nil
}

// Where the findings of this loop come from.
const (
	sourceHealth   = "health"   // the health check failed
	sourceServer   = "server"   // the server did not answer
	sourceContract = "contract" // a contract that does not hold, as the verifier words it
	sourceVerdict  = "verdict"  // the verifier's list of those is not as it should be
	sourceUnpaid   = "unpaid"   // the verifier could not be paid
)

// Round is one round: build until the code is healthy, then verify it.
func (l Loop) Round(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
	if r.Round() == 1 {
		if err := l.begin(ctx, r); err != nil {
			return nil, err
		}
	}
	if !built(prior) {
		sick, err := l.build(ctx, r, prior)
		if sick != nil {
			// What failed in the last verification is not verified again, and stands.
			return slices.Concat(sick, from(prior, sourceServer), from(prior, sourceContract)), err
		}
		if err != nil {
			return nil, err
		}
	}
	return l.verify(ctx, r, prior)
}

// built reports whether there is nothing for the builder to do: the code was
// healthy in the round before, and only the verifier could not be paid. What
// failed before that round, the builder was told in it.
func built(prior []check.Finding) bool {
	return len(without(without(prior, sourceUnpaid), sourceContract)) == 0 && len(from(prior, sourceUnpaid)) > 0
}

// begin is what is done once: people are told what is wrong with the
// specifications, and the suite is written.
func (l Loop) begin(ctx context.Context, r *hone.Run) error {
	specs, err := hone.Step(ctx, r, "specs", l.Phase, func(context.Context) (specList, error) {
		specs, err := l.specs(r.Tree.Dir())
		return specList{specs}, err
	})
	if err != nil {
		return err
	}
	for _, w := range spec.Check(specs.Specs) {
		if err := r.Notice(w.String()); err != nil {
			return err
		}
	}
	messages, err := l.compose(ctx, r, toWrite, nil)
	if err != nil {
		return err
	}
	if _, err := r.Talk(ctx, l.Writer, messages); err != nil {
		return err
	}
	return l.commit(ctx, r, Tests, "verify/suite-written", 1)
}

// specList is a step's record.
type specList struct {
	Specs []spec.Phase `json:"specs"`
}

// from are the findings of a source.
func from(findings []check.Finding, source string) []check.Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f check.Finding) bool { return f.Source != source })
}

// without are the findings that are not of a source.
func without(findings []check.Finding, source string) []check.Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f check.Finding) bool { return f.Source == source })
}
