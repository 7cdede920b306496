package phase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/artifact"
	"hone/loop/phase/devserver"
	"hone/loop/phase/verdict"
	"hone/tool"
)

// verify has the suite run against the server, and returns the contracts that fail.
// If a run of the suite proves nothing, hone's run ends (ruling A4); when it is
// resumed it tries again.
func (l Loop) verify(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
	for attempt := 1; ; attempt++ {
		v, err := l.suite(ctx, r, prior)
		if hone.OutOfBudget(err) {
			v.down = []check.Finding{{Source: sourceUnpaid, Text: "Nothing was verified: the budget was too small."}}
		}
		if err != nil || v.down != nil {
			// The failures of the last verification stay until there is another.
			return append(v.down, from(prior, sourceContract)...), err
		}
		if v.unproved == "" {
			return v.read.findings(), l.commit(ctx, r, Tests, fmt.Sprintf("verify/step-%d/results", r.Round()), attempt)
		}
		now := false
		if _, err := hone.Step(ctx, r, "unverified", v.unproved, func(context.Context) (done, error) {
			now = true
			return done{}, nil
		}); err != nil {
			return nil, err
		}
		if now {
			return nil, &hone.Stop{Kind: hone.KindFailed, Why: "nothing was verified: " + v.unproved, Next: hone.Next{Verb: hone.Resume}}
		}
	}
}

// done is the record of a step without a result.
type done struct{}

// verification is the outcome of one run of the suite.
type verification struct {
	down     []check.Finding // why the suite did not run: the server did not come up
	read     verdictFile
	unproved string // why the verdict does not count; empty if it counts
}

// verdictFile is failed_specs.md as the verifier left it.
type verdictFile struct {
	Text string `json:"text"`
	Bad  string `json:"bad,omitempty"` // why it is unreadable
	history.Report
}

// newVerdictFile returns the record of a readable file, with a report for the user.
func newVerdictFile(text string) verdictFile {
	v := verdict.Parse(text)
	said := "the verifier reports no failure"
	if n := len(v.Failures); n > 0 {
		said = fmt.Sprintf("the verifier reports %s, see %s", plural(n, "failure", "failures"), failedPath)
	}
	for _, w := range v.Warnings {
		said += "\n" + w
	}
	return verdictFile{Text: text, Report: history.Report{Said: said}}
}

// suite has the suite run once. Removing the old verdict, the session, and reading
// the new verdict are three steps (ruling A4).
func (l Loop) suite(ctx context.Context, r *hone.Run, prior []check.Finding) (v verification, err error) {
	if err := l.clear(ctx, r); err != nil {
		return v, err
	}
	server := l.Server.Instance(ctx, r, l.Hooks, stepClear)
	defer func() { err = errors.Join(err, server.Stop()) }()
	up, err := repeatable(ctx, r, "server", func(ctx context.Context) (devserver.Started, error) {
		up, err := server.Start(ctx)
		up.Log = l.readable(up.Why, up.Log)
		return up, err
	})
	if err != nil {
		return v, err
	}
	if !up.Up {
		v.down = []check.Finding{{Source: sourceServer, Text: up.Log}}
		return v, nil
	}
	messages, err := l.compose(ctx, r, toVerify, prior)
	if err != nil {
		return v, err
	}
	talk, err := r.Talk(ctx, server.Role(l.Verifier), messages)
	if err != nil {
		return v, err
	}
	if v.read, err = l.read(ctx, r); err != nil {
		return v, err
	}
	v.unproved = l.unproved(server.Reached(), talk, v.read)
	return v, nil
}

// stepClear is the step after which evidence counts.
const stepClear = "clear verdict"

// clear removes the verdict of an earlier run of the suite.
func (l Loop) clear(ctx context.Context, r *hone.Run) error {
	// Like a command it records a manifest, so that the removal is not taken for
	// another program's change.
	_, err := repeatable(ctx, r, stepClear, func(context.Context) (done, error) {
		root, err := os.OpenRoot(r.Tree.Dir())
		if err != nil {
			return done{}, err
		}
		defer root.Close()
		return done{}, artifact.Remove(root, failedPath)
	})
	return err
}

// maxVerdict limits the size of a verdict, in bytes.
const maxVerdict = 1 << 20

// read reads the verdict. An unreadable file does not count as one.
func (l Loop) read(ctx context.Context, r *hone.Run) (verdictFile, error) {
	return hone.Step(ctx, r, "read verdict", nil, func(context.Context) (verdictFile, error) {
		root, err := os.OpenRoot(r.Tree.Dir())
		if err != nil {
			return verdictFile{}, err
		}
		defer root.Close()
		text, err := artifact.Read(root, failedPath, maxVerdict)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return newVerdictFile(""), nil
		case err != nil:
			return verdictFile{Bad: err.Error()}, nil
		case bytes.IndexByte(text, 0) >= 0:
			return verdictFile{Bad: failedPath + " is not UTF-8 text"}, nil
		}
		return newVerdictFile(l.redact(strings.ToValidUTF8(string(text), "\uFFFD"))), nil
	})
}

// unproved returns why a verification does not count; empty if it counts. Failures
// count as the verifier reports them; a pass needs evidence.
func (l Loop) unproved(reached bool, talk hone.Conversation, read verdictFile) string {
	switch {
	case read.Bad != "":
		return "its verdict is unreadable: " + read.Bad
	case len(verdict.Parse(read.Text).Failures) > 0:
	case talk.Ended != hone.EndedAnswer || strings.TrimSpace(talk.Reply.Text()) == "":
		return fmt.Sprintf("the verifier gave no final answer (its session ended with: %s)", talk.Ended)
	case !l.Verifier.Agent && !ranCommand(talk, l.Verifier.Tools):
		return "the verifier ran no command"
	case !reached:
		return fmt.Sprintf("no request of the verifier reached the server at %s", l.Server.URL())
	}
	return ""
}

// ranCommand reports whether a command ran in a session.
func ranCommand(talk hone.Conversation, tools []tool.Tool) bool {
	for _, c := range talk.Calls {
		for _, one := range tools {
			if one.Name == c.Name && one.RunsCommands && c.Refused == "" && c.Result.Exit != nil {
				return true
			}
		}
	}
	return false
}

// findings returns the failures as findings, and the warnings as advisory ones.
func (f verdictFile) findings() []check.Finding {
	v := verdict.Parse(f.Text)
	var found []check.Finding
	for _, f := range v.Failures {
		found = append(found, check.Finding{Source: sourceContract, Text: f.Text})
	}
	for _, w := range v.Warnings {
		found = append(found, check.Finding{Source: sourceVerdict, Advisory: true, Text: failedPath + ": " + w})
	}
	return found
}
