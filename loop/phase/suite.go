package phase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/artifact"
	"hone/internal/excerpt"
	"hone/loop"
	"hone/loop/phase/spec"
	"hone/sandbox"
	"hone/workspace"
)

// suitePath is the program that runs the suite (ruling A14).
const suitePath = Tests + "/run"

// Bounds of the suite.
const (
	suiteTries = 3                // sessions that may write it, before the run ends
	suiteTime  = 10 * time.Minute // of one run, unless the hooks have a time
	maxSuite   = 4 << 20          // bytes of its output
	maxSaid    = 4 << 10          // bytes of its standard error in a report
)

type suiteRun struct {
	Down     string `json:"down,omitempty"`   // why the server did not come up; empty if it did
	Broken   string `json:"broken,omitempty"` // why the suite could not run to its end
	Exit     int    `json:"exit"`
	Output   string `json:"output,omitempty"` // its standard output
	Requests int    `json:"requests"`         // that reached the server
	Left     string `json:"left,omitempty"`   // what it left in files named failed_specs.md
	// The report's Log is its standard error, shortened.
	history.Report
}

// It runs behind the verifier's walls.
func (l Loop) execute(ctx context.Context, dir string) (suiteRun, error) {
	if why := notExecutable(dir); why != "" {
		return suiteRun{Broken: why, Report: history.Report{Said: why}}, nil
	}
	limit := cmp.Or(l.Hooks.Time, suiteTime)
	got, err := l.Suite.Run(ctx, sandbox.Command{Argv: []string{"sh", "-c", "exec ./" + path.Base(suitePath)}, Dir: filepath.Join(dir, Tests), Timeout: limit, MaxOutput: maxSuite})
	if ctx.Err() != nil {
		return suiteRun{}, context.Cause(ctx)
	}
	if err != nil {
		return suiteRun{}, err
	}
	run := suiteRun{Exit: got.Exit, Output: l.redact(excerpt.Output(got.Stdout))}
	switch {
	case got.TimedOut:
		run.Broken = fmt.Sprintf("%s did not finish within %s and was stopped", suitePath, limit)
	case got.OverLimit != "":
		run.Broken = fmt.Sprintf("%s exceeded the limit of %s and was stopped", suitePath, got.OverLimit)
	case got.Signal != "":
		run.Broken = fmt.Sprintf("%s was killed by a signal (%s)", suitePath, got.Signal)
	case got.Discarded > 0:
		run.Broken = fmt.Sprintf("%s printed more than %d bytes", suitePath, maxSuite)
	case got.Exit == 126 || got.Exit == 127:
		run.Broken = fmt.Sprintf("%s cannot run (exit status %d)", suitePath, got.Exit)
	}
	run.Said = fmt.Sprintf("%s ended with exit status %d", suitePath, got.Exit)
	run.Log = l.shortened(maxSaid, excerpt.Output(got.Stderr))
	return run, nil
}

func notExecutable(dir string) string {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err.Error()
	}
	defer root.Close()
	if err := artifact.Check(root, suitePath); err != nil {
		return err.Error()
	}
	switch info, err := root.Lstat(suitePath); {
	case err != nil:
		return "there is no " + suitePath
	case info.Mode()&0o100 == 0:
		return suitePath + " is not executable: chmod +x run"
	}
	return ""
}

// stepSuite is the step in which the suite runs against the server.
const stepSuite = "suite"

func (l Loop) runSuite(ctx context.Context, r *hone.Run) (suiteRun, error) {
	if err := l.clear(ctx, r); err != nil {
		return suiteRun{}, err
	}
	return repeatable(ctx, r, stepSuite, func(ctx context.Context) (run suiteRun, err error) {
		server := l.Server.Instance(ctx, r, l.Hooks, stepClear, 1)
		defer func() { err = errors.Join(err, server.Stop()) }()
		up, err := server.Start(ctx)
		if err != nil {
			return run, err
		}
		if !up.Up {
			up.Log = l.readable(up.Why, up.Log)
			return suiteRun{Down: up.Log, Report: up.Report}, nil
		}
		if run, err = l.execute(ctx, r.Tree.Dir()); err != nil {
			return run, err
		}
		run.Requests = server.Requests()
		left, bad := readVerdicts(r.Tree.Dir())
		run.Left, run.Broken = l.redact(left), cmp.Or(run.Broken, bad)
		run.Said += "; " + plural(run.Requests, "request", "requests") + " reached the server"
		return run, nil
	})
}

// stepSeeFail is the step in which hone sees a suite fail. The last one is about the
// suite as it is.
const stepSeeFail = "see the suite fail"

// It runs against each of hone's own servers.
func (l Loop) seeItFail(ctx context.Context, r *hone.Run, due []spec.Item) (seenFailing, error) {
	return repeatable(ctx, r, stepSeeFail, func(ctx context.Context) (s seenFailing, err error) {
		suite, err := suiteDigest(ctx, r.Tree)
		if err != nil {
			return s, err
		}
		last, ok, err := hone.Last[seenFailing](r, stepSeeFail)
		if wrong, _ := last.faults(due); err != nil || ok && last.Suite == suite && len(wrong) == 0 {
			last.Unchanged, last.Report = true, history.Report{Said: "the suite has not changed since then"}
			return last, err
		}
		s.Suite = suite
		against := func(status int) suiteRun {
			stub := l.Server.StartStub(status)
			defer stub.Stop()
			run, failed := l.execute(ctx, r.Tree.Dir())
			run.Requests, err = stub.Requests(), errors.Join(err, failed)
			return run
		}
		s.Unimplemented, s.Empty = against(501), against(200)
		if err != nil {
			return s, err
		}
		s.Said = fmt.Sprintf("exit status %d against a server that answers 501, %d against one that answers 200 with an empty body", s.Unimplemented.Exit, s.Empty.Exit)
		if _, unseen := s.faults(due); len(unseen) > 0 {
			s.Said += "\nnot seen failing: " + strings.Join(unseen, "\nnot seen failing: ")
		}
		return s, nil
	})
}

func suiteDigest(ctx context.Context, tree *workspace.Tree) (string, error) {
	root, err := os.OpenRoot(tree.Dir())
	if err != nil {
		return "", err
	}
	defer root.Close()
	var paths []string
	eachTest(root, func(name string, e fs.DirEntry) {
		if !e.IsDir() && e.Name() != failedName {
			paths = append(paths, name)
		}
	})
	files, err := tree.ManifestOf(ctx, paths, nil)
	return files.Digest(), err
}

// The verifier writes or corrects the suite until each point has been seen to fail. What no answer of hone's own servers
// certainly breaks goes back once, and is then reported as not seen failing. It returns the verifier's last words.
func (l Loop) prepareSuite(ctx context.Context, r *hone.Run, e errand, why []string) (words string, err error) {
	due, err := l.dueItems(r)
	if err != nil {
		return "", err
	}
	for try, told := 1, false; ; try++ {
		if words, err = l.talk(ctx, r, e, suiteFindings(why)); err != nil {
			return "", err
		}
		seen, err := l.seeItFail(ctx, r, due)
		if err != nil || seen.Unchanged {
			return words, err
		}
		wrong, unseen := seen.faults(due)
		switch {
		case len(wrong) > 0 && try >= suiteTries:
			if err := l.giveUp(ctx, r, fmt.Sprintf("after %d tries the suite is still unusable: %s", try, strings.Join(wrong, "; "))); err != nil {
				return "", err
			}
			try, told = 0, false
		case len(wrong) == 0 && (len(unseen) == 0 || told):
			return words, nil
		}
		told = told || len(unseen) > 0
		for i, name := range unseen {
			unseen[i] = fmt.Sprintf("the point “%s” passes against a server that answers every request with 501 or with 200 and an empty body; if the contract allows a stricter test, make it stricter, otherwise leave it", name)
		}
		if why = append(wrong, unseen...); len(wrong) > 0 {
			why = append(why, fmt.Sprintf("this is try %d of %d; if the suite is not usable after the last one, the run ends", try+1, suiteTries))
		}
		if e == toWrite {
			e = toCorrect
		}
	}
}

// The specifications count as they were when the run began.
func (l Loop) dueItems(r *hone.Run) ([]spec.Item, error) {
	specs, _, err := hone.First[specList](r, stepSpecs)
	return spec.DueItems(specs.Specs), err
}

func suiteFindings(why []string) (found []check.Finding) {
	for _, text := range why {
		found = append(found, check.Finding{Source: sourceSuite, Text: "- " + text})
	}
	return found
}

// The verifier is asked only if there are doubts about the suite itself.
func (l Loop) verifySuite(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
	due, err := l.dueItems(r)
	if err != nil {
		return nil, err
	}
	old := lastVerdict(prior)
	for attempt := 1; ; attempt++ {
		run, err := l.runSuite(ctx, r)
		failed, broken := verdictOf(due, run)
		words := ""
		if why := doubts(failed, broken, prior); err == nil && run.Down == "" && why != nil {
			words, err = l.prepareSuite(ctx, r, toReview, why)
			switch {
			case hone.OutOfBudget(err) && len(broken) == 0:
				return contractFindings(failed, run.Left), err
			case hone.OutOfBudget(err):
				return append(unpaidFinding(), old...), err
			case err == nil:
				run, err = l.runSuite(ctx, r)
				failed, broken = verdictOf(due, run)
			}
		}
		switch {
		case err != nil:
			return nil, err
		case run.Down != "":
			// The failures of the last verification stay until there is another.
			return append([]check.Finding{{Source: sourceServer, Text: run.Down}}, old...), nil
		case len(broken) == 0:
			found := append(reviewFinding(words, failed, prior), contractFindings(failed, run.Left)...)
			return found, l.conclude(ctx, r, found, attempt)
		}
		if err := l.giveUp(ctx, r, "the suite is broken: "+strings.Join(broken, "; ")); err != nil {
			return nil, err
		}
	}
}

// stepReview is the step at which a verifier's look at its suite begins.
const stepReview = "review suite"

// While the verifier reviews the suite the server is up. It returns the verifier's last words.
func (l Loop) talk(ctx context.Context, r *hone.Run, e errand, prior []check.Finding) (words string, err error) {
	messages, err := l.compose(ctx, r, e, prior)
	if err != nil {
		return "", err
	}
	role := l.Writer
	if e == toReview {
		if _, err := hone.Step(ctx, r, stepReview, nil, func(context.Context) (done, error) { return done{}, nil }); err != nil {
			return "", err
		}
		server := l.Server.Instance(ctx, r, l.Hooks, stepReview, 1)
		defer func() { err = errors.Join(err, server.Stop()) }()
		role = server.Role(l.Verifier)
	}
	talk, err := l.talkIn(ctx, r, role, messages)
	return talk.Reply.Text(), err
}

func (l Loop) conclude(ctx context.Context, r *hone.Run, found []check.Finding, attempt int) error {
	_, err := repeatable(ctx, r, "write verdict", func(context.Context) (history.Report, error) {
		said := history.Report{Said: verdictText("suite", len(fromSource(found, sourceContract)))}
		root, err := os.OpenRoot(r.Tree.Dir())
		if err != nil {
			return said, err
		}
		defer root.Close()
		if len(found) == 0 {
			return said, artifact.Remove(root, failedPath)
		}
		return said, artifact.Write(root, failedPath, strings.NewReader(l.redact(loop.FindingTexts(found))+"\n"))
	})
	if err != nil {
		return err
	}
	return l.commit(ctx, r, Tests, fmt.Sprintf("verify/step-%d/results", r.Round()), attempt)
}
