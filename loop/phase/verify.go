package phase

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/artifact"
	"hone/loop"
	"hone/loop/phase/spec"
)

// verification is what the suite and the verifier say of the server (ruling A16).
type verification struct {
	found    []check.Finding // what fails
	down     string          // why the server did not come up; then nothing was verified
	unproved string          // why what was found is no verdict; empty if it is one
}

// If nothing is proved, hone's run ends (ruling A4); when it is resumed it tries again.
func (l *Loop) verify(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
	due, err := l.dueItems(r)
	if err != nil {
		return nil, err
	}
	// The failures of the last verification stay until there is another.
	old := fromSource(prior, sourceContract)
	for attempt := 1; ; attempt++ {
		v, err := l.verifyOnce(ctx, r, due, prior)
		switch {
		case hone.OutOfBudget(err) && len(v.found) > 0:
			return v.found, err
		case hone.OutOfBudget(err):
			return append([]check.Finding{{Source: sourceUnpaid, Text: "Nothing was verified: the budget was too small."}}, old...), err
		case err != nil:
			return nil, err
		case v.down != "":
			return append([]check.Finding{{Source: sourceServer, Text: v.down}}, old...), nil
		case v.unproved == "":
			return v.found, l.conclude(ctx, r, due, v.found, attempt)
		}
		if err := l.giveUp(ctx, r, v.unproved); err != nil {
			return nil, err
		}
	}
}

// The suite comes first. What it finds is the verdict, unless the suite itself is in doubt. Otherwise the verifier has its
// session, in which it attacks the server anew and refines the suite; if it changed the suite, that is seen to fail, and runs again.
func (l *Loop) verifyOnce(ctx context.Context, r *hone.Run, due []spec.Item, prior []check.Finding) (v verification, err error) {
	run, err := l.runSuite(ctx, r)
	if err != nil || run.Down != "" {
		return verification{down: run.Down}, err
	}
	failed, broken := verdictOf(due, run)
	doubts := doubts(failed, broken, prior)
	if len(broken) == 0 {
		v.found = contractFindings(failed, run.Left)
	}
	if len(v.found) > 0 && doubts == nil {
		return v, nil
	}
	var seen []check.Finding // what hone saw of the suite, for the verifier
	switch {
	case run.Absent:
	case doubts == nil:
		seen = []check.Finding{{Source: sourceSuite, Text: "hone has just run it: every point passed. Look for what it misses."}}
	default:
		seen = []check.Finding{{Source: sourceSuite, Text: "- " + strings.Join(doubts, "\n- ")}}
	}
	report, err := l.attack(ctx, r, len(due), append(seen, prior...))
	if v.down, v.unproved = report.down, report.unproved; err != nil || v.down != "" || v.unproved != "" {
		return v, err
	}
	suite, err := l.seeSuiteFail(ctx, r, due)
	if err != nil {
		return v, err
	}
	if suite != run.Suite {
		if run, err = l.runSuite(ctx, r); err != nil || run.Down != "" {
			return verification{down: run.Down}, err
		}
		failed, broken = verdictOf(due, run)
	}
	if len(broken) > 0 {
		v.unproved = "the suite is broken: " + strings.Join(broken, "; ")
	}
	v.found = append(report.findings(), contractFindings(failed, run.Left)...)
	return v, nil
}

// In a resumed run it returns nil, and what was tried is tried again.
func (l *Loop) giveUp(ctx context.Context, r *hone.Run, why string) error {
	now := false
	if err := loop.Do(ctx, r, "unverified", why, func(context.Context) error {
		now = true
		return nil
	}); err != nil || !now {
		return err
	}
	return &hone.Stop{Kind: hone.KindFailed, Why: "nothing was verified: " + why, Next: hone.Next{Verb: hone.Resume}}
}

// report is failed_specs.md as the verifier's session left it.
type report struct {
	Text   string `json:"text"`
	Bad    string `json:"bad,omitempty"`    // why it is unreadable
	Absent bool   `json:"absent,omitempty"` // there is no tests/run, so that it alone decides
	history.Report

	down, unproved string // as in a verification
}

// The verifier has its session while the server is up. Removing the old report, the session, and reading the new one are three steps (ruling A4).
func (l *Loop) attack(ctx context.Context, r *hone.Run, due int, prior []check.Finding) (got report, err error) {
	if err := l.clear(ctx, r); err != nil {
		return got, err
	}
	server := l.Server.instance(ctx, r, l.Hooks, stepClear, due)
	defer func() { err = errors.Join(err, server.stop()) }()
	up, err := repeatable(ctx, r, "server", func(ctx context.Context) (started, error) {
		up, err := server.start(ctx)
		up.Log = l.readable(up.Why, up.Log)
		return up, err
	})
	if err != nil || !up.Up {
		return report{down: up.Log}, err
	}
	messages, err := l.compose(ctx, r, toVerify, prior)
	if err != nil {
		return got, err
	}
	talk, err := l.talkIn(ctx, r, server.role(l.Verifier), messages)
	if err != nil {
		return got, err
	}
	got, err = hone.Step(ctx, r, "read verdict", nil, func(context.Context) (got report, err error) {
		got.Text, got.Bad = readVerdicts(r.Tree.Dir())
		got.Text = l.Guard.Redact(got.Text)
		got.Absent = !hasSuite(r)
		failures, warnings := readFailed(got.Text)
		got.Said = strings.Join(append([]string{verdictText("the verifier reports", len(failures))}, warnings...), "\n")
		return got, nil
	})
	if err == nil {
		got.unproved = l.proofGap(server.countRecorded(history.Reached), due, talk, got)
	}
	return got, err
}

func verdictText(by string, failures int) string {
	if failures == 0 {
		return by + " no failure"
	}
	return fmt.Sprintf("%s %s, see %s", by, plural(failures, "failure", "failures"), failedPath)
}

// Failures count as the verifier reports them; a pass needs evidence, at least one request for each contract among it if there is no suite.
func (l *Loop) proofGap(reached, due int, talk hone.Conversation, got report) string {
	commands := map[string]bool{}
	for _, one := range l.Verifier.Tools {
		commands[one.Name] = one.RunsCommands
	}
	ran := slices.ContainsFunc(talk.Calls, func(c hone.Called) bool { return commands[c.Name] && c.Refused == "" && c.Result.Exit != nil })
	switch failures, _ := readFailed(got.Text); {
	case got.Bad != "":
		return "its verdict is unreadable: " + got.Bad
	case len(failures) > 0:
	case talk.Ended != hone.EndedAnswer || strings.TrimSpace(talk.Reply.Text()) == "":
		return fmt.Sprintf("the verifier gave no final answer (its session ended with: %s)", talk.Ended)
	case refusedReport(talk) != "":
		return "the verifier's report could not be written: " + refusedReport(talk)
	case !l.Verifier.Agent && !ran:
		return "the verifier ran no command"
	case reached == 0:
		return fmt.Sprintf("no request of the verifier reached the server at %s", l.Server.URL())
	case got.Absent && reached < due:
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

func (got report) findings() (found []check.Finding) {
	found = contractFindings(nil, got.Text)
	_, warnings := readFailed(got.Text)
	for _, w := range warnings {
		found = append(found, check.Finding{Source: sourceVerdict, Advisory: true, Text: failedPath + ": " + w})
	}
	return found
}

// stepClear is the step after which evidence counts.
const stepClear = "clear verdict"

func (l *Loop) clear(ctx context.Context, r *hone.Run) error {
	// Like a command it records a manifest, so that the removal is not taken for
	// another program's change.
	_, err := repeatable(ctx, r, stepClear, func(context.Context) (struct{}, error) {
		return struct{}{}, removeVerdicts(r.Tree.Dir())
	})
	return err
}

// maxVerdict limits the size of a verdict, in bytes.
const maxVerdict = 1 << 20

// A verifier may take its directory for the project's root, so that the file may be anywhere below tests/ (ruling A14).
func verdictPaths(dir string) (names []string) {
	eachTest(dir, func(name string, e fs.DirEntry) {
		if e.Name() == failedName {
			names = append(names, name)
		}
	})
	return names
}

// Logs, repositories, and what is in a directory called failed_specs.md are left out.
func eachTest(dir string, visit func(name string, e fs.DirEntry)) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return
	}
	defer root.Close()
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

func removeVerdicts(dir string) (err error) {
	for _, name := range verdictPaths(dir) {
		err = cmp.Or(err, artifact.Remove(dir, name))
	}
	return err
}

func readVerdicts(dir string) (text, bad string) {
	var texts []string
	for _, name := range verdictPaths(dir) {
		text, err := artifact.Read(dir, name, maxVerdict)
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

// It writes failed_specs.md, commits it, and records the verdict of each contract.
func (l *Loop) conclude(ctx context.Context, r *hone.Run, due []spec.Item, found []check.Finding, attempt int) error {
	failures := fromSource(found, sourceContract)
	_, err := repeatable(ctx, r, "write verdict", func(context.Context) (history.Report, error) {
		said := history.Report{Said: verdictText("the verification found", len(failures))}
		if len(failures) == 0 {
			return said, removeVerdicts(r.Tree.Dir())
		}
		return said, artifact.Write(r.Tree.Dir(), failedPath, strings.NewReader(l.Guard.Redact(loop.FindingTexts(failures))+"\n"))
	})
	if err != nil {
		return err
	}
	unseen, err := l.unseen(r, due)
	if err != nil {
		return err
	}
	all, plain := l.verified(due), plainOf(due)
	for i := range all {
		all[i].Verdict = loop.Passed
	}
	for _, name := range unseen {
		if i := testedBy(plain, name); i >= 0 {
			all[i].Verdict = loop.PassedUnseen
		}
	}
	for _, f := range failures {
		entries, _ := readFailed(f.Text)
		for _, one := range entries {
			if i := testedBy(plain, strings.TrimSpace(one.Spec)); i >= 0 {
				all[i].Verdict = loop.Failed
			}
		}
	}
	if err := loop.RecordVerified(ctx, r, all); err != nil {
		return err
	}
	return l.commit(ctx, r, Tests, fmt.Sprintf("verify/step-%d/results", r.Round()), attempt)
}

func (l *Loop) verified(due []spec.Item) (all []loop.Contract) {
	for _, item := range due {
		all = append(all, loop.Contract{Text: item.String(), Place: item.Place()})
	}
	return all
}
