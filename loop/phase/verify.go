package phase

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/artifact"
	"hone/loop/phase/devserver"
	"hone/loop/phase/verdict"
	"hone/tool"
)

// If nothing is proved, hone's run ends (ruling A4); when it is resumed it tries again.
func (l Loop) verify(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
	if l.Session {
		return l.verifySession(ctx, r, prior)
	}
	return l.verifySuite(ctx, r, prior)
}

func (l Loop) verifySession(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
	for attempt := 1; ; attempt++ {
		v, err := l.suite(ctx, r, prior)
		if hone.OutOfBudget(err) {
			v.down = unpaidFinding()
		}
		if err != nil || v.down != nil {
			// The failures of the last verification stay until there is another.
			return append(v.down, fromSource(prior, sourceContract)...), err
		}
		if v.unproved == "" {
			return v.read.findings(), l.commit(ctx, r, Tests, fmt.Sprintf("verify/step-%d/results", r.Round()), attempt)
		}
		if err := l.giveUp(ctx, r, v.unproved); err != nil {
			return nil, err
		}
	}
}

func unpaidFinding() []check.Finding {
	return []check.Finding{{Source: sourceUnpaid, Text: "Nothing was verified: the budget was too small."}}
}

// In a resumed run it returns nil, and what was tried is tried again.
func (l Loop) giveUp(ctx context.Context, r *hone.Run, why string) error {
	now := false
	if _, err := hone.Step(ctx, r, "unverified", why, func(context.Context) (done, error) {
		now = true
		return done{}, nil
	}); err != nil || !now {
		return err
	}
	return &hone.Stop{Kind: hone.KindFailed, Why: "nothing was verified: " + why, Next: hone.Next{Verb: hone.Resume}}
}

// done is the record of a step without a result.
type done struct{}

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

func verdictText(by string, failures int) string {
	if failures == 0 {
		return "the " + by + " reports no failure"
	}
	return fmt.Sprintf("the %s reports %s, see %s", by, plural(failures, "failure", "failures"), failedPath)
}

func newVerdictFile(text string) verdictFile {
	v := verdict.Parse(text)
	said := verdictText("verifier", len(v.Failures))
	for _, w := range v.Warnings {
		said += "\n" + w
	}
	return verdictFile{Text: text, Report: history.Report{Said: said}}
}

// Removing the old verdict, the session, and reading the new verdict are three steps (ruling A4).
func (l Loop) suite(ctx context.Context, r *hone.Run, prior []check.Finding) (v verification, err error) {
	if err := l.clear(ctx, r); err != nil {
		return v, err
	}
	due, err := l.dueItems(r)
	if err != nil {
		return v, err
	}
	server := l.Server.Instance(ctx, r, l.Hooks, stepClear, len(due))
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
	v.unproved = l.proofGap(server.RecordedRequests(), len(due), talk, v.read)
	return v, nil
}

// stepClear is the step after which evidence counts.
const stepClear = "clear verdict"

func (l Loop) clear(ctx context.Context, r *hone.Run) error {
	// Like a command it records a manifest, so that the removal is not taken for
	// another program's change.
	_, err := repeatable(ctx, r, stepClear, func(context.Context) (done, error) {
		root, err := os.OpenRoot(r.Tree.Dir())
		if err != nil {
			return done{}, err
		}
		defer root.Close()
		for _, name := range verdictPaths(root) {
			if err := artifact.Remove(root, name); err != nil {
				return done{}, err
			}
		}
		return done{}, nil
	})
	return err
}

// maxVerdict limits the size of a verdict, in bytes.
const maxVerdict = 1 << 20

// A verifier may take its directory for the project's root, so that the file may be anywhere below tests/ (ruling A14).
func verdictPaths(root *os.Root) (names []string) {
	eachTest(root, func(name string, e fs.DirEntry) {
		if e.Name() == failedName {
			names = append(names, name)
		}
	})
	return names
}

// Logs, repositories, and what is in a directory called failed_specs.md are left out.
func eachTest(root *os.Root, visit func(name string, e fs.DirEntry)) {
	// What cannot be listed contains nothing that could be read.
	_ = fs.WalkDir(root.FS(), Tests, func(name string, e fs.DirEntry, err error) error {
		closed := err != nil || name == Results || e.Name() == ".git"
		if !closed {
			visit(name, e)
		}
		if e != nil && e.IsDir() && (closed || e.Name() == failedName) {
			return fs.SkipDir
		}
		return nil
	})
}

func readVerdicts(dir string) (text, bad string) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err.Error()
	}
	defer root.Close()
	var texts []string
	for _, name := range verdictPaths(root) {
		text, err := artifact.Read(root, name, maxVerdict)
		switch {
		case err != nil:
			return "", err.Error()
		case bytes.IndexByte(text, 0) >= 0:
			return "", name + " is not UTF-8 text"
		}
		texts = append(texts, strings.ToValidUTF8(string(text), "\uFFFD"))
	}
	return strings.Join(texts, "\n"), ""
}

// An unreadable file does not count as a verdict.
func (l Loop) read(ctx context.Context, r *hone.Run) (verdictFile, error) {
	return hone.Step(ctx, r, "read verdict", nil, func(context.Context) (verdictFile, error) {
		text, bad := readVerdicts(r.Tree.Dir())
		if bad != "" {
			return verdictFile{Bad: bad}, nil
		}
		return newVerdictFile(l.redact(text)), nil
	})
}

// Failures count as the verifier reports them; a pass needs evidence, at least one request for each contract among it.
func (l Loop) proofGap(reached, due int, talk hone.Conversation, read verdictFile) string {
	switch {
	case read.Bad != "":
		return "its verdict is unreadable: " + read.Bad
	case len(verdict.Parse(read.Text).Failures) > 0:
	case talk.Ended != hone.EndedAnswer || strings.TrimSpace(talk.Reply.Text()) == "":
		return fmt.Sprintf("the verifier gave no final answer (its session ended with: %s)", talk.Ended)
	case refusedReport(talk) != "":
		return "the verifier's report could not be written: " + refusedReport(talk)
	case !l.Verifier.Agent && !ranCommand(talk, l.Verifier.Tools):
		return "the verifier ran no command"
	case reached == 0:
		return fmt.Sprintf("no request of the verifier reached the server at %s", l.Server.URL())
	case reached < due:
		return fmt.Sprintf("the verifier sent only %s to %s, but there are %s", plural(reached, "request", "requests"), l.Server.URL(), plural(due, "contract or flow", "contracts and flows"))
	}
	return ""
}

// refusedReport returns why the last attempt to write failed_specs.md with a tool did
// nothing; empty if there was none, or if it wrote the file.
func refusedReport(talk hone.Conversation) (why string) {
	for _, c := range talk.Calls {
		var args struct{ Path string }
		if json.Unmarshal([]byte(c.Args), &args) != nil || path.Base(args.Path) != failedName || c.Name == "read" {
			continue
		}
		why = c.Refused
		if c.Result.Failed {
			why = strings.TrimPrefix(c.Result.Text, "Error: ")
		}
	}
	return why
}

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
