// Package phase builds and verifies one phase of a project (the seed
// "Autonomous Build Loop", rulings A1 to A16). A builder, which sees only src/,
// writes code; a health check, which is not a model, inspects it; and a verifier,
// which sees only tests/, tests the running server against the contracts, round
// after round, until no contract fails.
//
// It guarantees that neither role is sent what only the other may know: of a
// verification the builder gets the contents of failed_specs.md and nothing else, and
// of the code the verifier gets nothing. The walls around their
// tools, agents and hooks, which the caller builds, keep them from finding out more;
// see [Hooks] and [Server].
//
// After a build hone runs the suite, tests/run, which prints one TAP point for each contract and was seen to fail
// against servers that keep hardly any contract (ruling A14). If that finds nothing, the verifier has a session: it
// attacks the server anew, refines the suite and reports, and what it changed is seen to fail and runs, too (ruling A16). A
// pass needs the verifier's answer, a command that ran, and requests that reached the server: one for each contract.
//
// It does not guarantee that the tests are good: the verifier writes them, and the
// user should read them.
package phase

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"hone"
	"hone/check"
	"hone/internal/git"
	"hone/loop"
	"hone/loop/phase/spec"
	"hone/sandbox"
	"hone/workspace"
	"hone/workspace/secret"
)

// Where things are in a project.
const (
	Src     = "src"
	Tests   = "tests"
	Results = Tests + "/results"
	LogDir  = "logs" // of hooks that do not log into Results
	MapName = "project_map.txt"

	failedName  = "failed_specs.md"
	failedPath  = Tests + "/" + failedName
	lintLog     = Results + "/lint.log"
	projectName = "project.md"
)

// Loop is one phase. Its JSON is recorded; the specifications are read when they are needed. The other fields are set by Build.
type Loop struct {
	loop.Settings // Model is the builder's

	VerifierModel  loop.Model `json:"verifier_model"`
	Phase          int        `json:"phase"` // its number, from 1; it must have a specification
	BuilderSystem  string     `json:"builder_system"`
	VerifierSystem string     `json:"verifier_system"`
	// NamesRoot says, by a role's name, that its prompt calls its working directory the project root.
	NamesRoot map[string]bool `json:"names_root,omitempty"`
	HookRead  []string        `json:"hook_read,omitempty"` // absolute
	// Logs are the directories that the hooks write into beside Results, as those of ABL's later layouts.
	Logs []string `json:"log_dirs,omitempty"`

	// Builder writes the code, behind walls around src/. Writer writes the suite, and Verifier attacks the server and refines
	// it, both behind walls around tests/; the Verifier's walls have a door to the Server. Writer and Verifier are the same
	// role behind different walls: they have the same Name, which differs from the Builder's.
	Builder  hone.Role `json:"-"`
	Writer   hone.Role `json:"-"`
	Verifier hone.Role `json:"-"`
	// Suite runs tests/run behind the Verifier's walls (ruling A14).
	Suite sandbox.Runner `json:"-"`
	// HealthAttempts limits the builder's attempts to satisfy the health check within a
	// round; 0 means 1 (ruling A3).
	HealthAttempts int      `json:"-"`
	Hooks          Hooks    `json:"-"`
	Server         *Server  `json:"-"`
	Git            *git.Git `json:"-"`
	// Guard finds secrets; nil withholds nothing.
	Guard *secret.Guard `json:"-"`
}

// Rules returns the rules by which the engine reviews the roles' changes. The tools of
// a role already accept only paths in its own directory; these rules are a second
// safeguard.
func (l *Loop) Rules() workspace.Rules {
	return workspace.Rules{Guard: l.Guard, Immutable: []string{HooksName, MapName, "Makefile", projectName, "specs/**", ".abl/**", "prompts/**", Results + "/**", LogDir + "/**"}}
}

// Own reports whether a file is one that the loop or a hook writes for the user.
func Own(name string) bool { return name == MapName || strings.HasPrefix(name, Results+"/") }

// Prepare creates the directories and repositories that a project needs, and further
// directories for the hooks' logs, unless they exist. It must be called before there
// are walls around them.
func Prepare(ctx context.Context, g *git.Git, root string, logs ...string) error {
	for _, dir := range logs {
		if parent := path.Dir(dir); parent != "." {
			logs = append([]string{parent}, logs...)
		}
	}
	for _, dir := range append([]string{Src, Tests, Results}, logs...) {
		if err := loop.MakeDir(root, dir); err != nil {
			return err
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
	sourceContract = "contract" // a contract that does not hold, in the words of the suite or the verifier
	sourceVerdict  = "verdict"  // the verifier's list of those is malformed
	sourceUnpaid   = "unpaid"   // the budget did not pay for the verifier
	sourceSuite    = "suite"    // what hone saw of the suite, for the verifier
)

// Round is one round: build until the code is healthy, then verify it.
func (l *Loop) Round(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
	if r.Round() == 1 {
		if err := l.begin(ctx, r); err != nil {
			return nil, err
		}
	}
	// If in the previous round the code was healthy, and only the budget did not pay for the verifier, the builder got all earlier
	// failures in that round.
	unpaid := len(fromSource(prior, sourceUnpaid))
	if unpaid == 0 || len(prior) != len(fromSource(prior, sourceContract))+unpaid {
		unhealthy, err := l.build(ctx, r, prior)
		if unhealthy != nil {
			// The failures of the last verification were not verified again, and stay.
			return slices.Concat(unhealthy, fromSource(prior, sourceServer), fromSource(prior, sourceContract)), err
		}
		if err != nil {
			return nil, err
		}
	}
	return l.verify(ctx, r, prior)
}

// stepSpecs reads the specifications when a run begins.
const stepSpecs = "specs"

// It runs once, in round 1.
func (l *Loop) begin(ctx context.Context, r *hone.Run) error {
	specs, err := hone.Step(ctx, r, stepSpecs, l.Phase, func(context.Context) (specList, error) {
		specs, err := l.specs(r.Tree.Dir())
		return specList{specs}, err
	})
	if err != nil {
		return err
	}
	for _, s := range specs.Specs {
		if err := loop.Notices(r, s.Warnings...); err != nil {
			return err
		}
	}
	due := spec.DueItems(specs.Specs)
	if err := loop.RecordVerified(ctx, r, l.verified(due)); err != nil {
		return err
	}
	if err := l.write(ctx, r, toWrite, nil); err != nil {
		return err
	}
	if _, err := l.seeSuiteFail(ctx, r, due); err != nil {
		return err
	}
	return l.commit(ctx, r, Tests, "verify/suite-written", 1)
}

type specList struct {
	Specs []spec.Phase `json:"specs"`
}

func fromSource(findings []check.Finding, source string) []check.Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f check.Finding) bool { return f.Source != source })
}
