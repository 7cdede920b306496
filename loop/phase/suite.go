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
	Absent   bool   `json:"absent,omitempty"` // there is no suite
	Suite    string `json:"suite,omitempty"`  // its digest, after the run
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
func (l *Loop) execute(ctx context.Context, dir string) (suiteRun, error) {
	why := ""
	info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(suitePath)))
	if wrong := artifact.Check(dir, suitePath, false); wrong != nil {
		why = wrong.Error()
	} else if err != nil {
		why = "there is no " + suitePath
	} else if info.Mode()&0o100 == 0 {
		why = suitePath + " is not executable: chmod +x run"
	}
	if why != "" {
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
	run := suiteRun{Exit: got.Exit, Output: l.Guard.Redact(excerpt.Output(got.Stdout))}
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

func filepathIn(r *hone.Run, name string) string {
	return filepath.Join(r.Tree.Dir(), filepath.FromSlash(name))
}

func hasSuite(r *hone.Run) bool {
	_, err := os.Lstat(filepathIn(r, suitePath))
	return err == nil
}

// stepSuite is the step in which the suite runs against the server.
const stepSuite = "suite"

func (l *Loop) runSuite(ctx context.Context, r *hone.Run) (suiteRun, error) {
	if err := l.clear(ctx, r); err != nil {
		return suiteRun{}, err
	}
	return repeatable(ctx, r, stepSuite, func(ctx context.Context) (run suiteRun, err error) {
		if !hasSuite(r) {
			return suiteRun{Absent: true, Report: history.Report{Said: "there is no " + suitePath + ": the verifier's report alone decides"}}, nil
		}
		server := l.Server.instance(ctx, r, l.Hooks, stepClear, 1)
		defer func() { err = errors.Join(err, server.stop()) }()
		up, err := server.start(ctx)
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
		run.Requests = int(server.requests.Load())
		left, bad := readVerdicts(r.Tree.Dir())
		run.Left, run.Broken = l.Guard.Redact(left), cmp.Or(run.Broken, bad)
		run.Said += "; " + plural(run.Requests, "request", "requests") + " reached the server"
		run.Suite, err = suiteDigest(ctx, r.Tree)
		return run, err
	})
}

// stepSeeFail is the step in which hone sees a suite fail. The last one is about the
// suite as it is.
const stepSeeFail = "see the suite fail"

// It runs against each of hone's own servers.
func (l *Loop) seeItFail(ctx context.Context, r *hone.Run, due []spec.Item) (seenFailing, error) {
	return repeatable(ctx, r, stepSeeFail, func(ctx context.Context) (s seenFailing, err error) {
		last, seen, err := hone.Last[seenFailing](r, stepSeeFail)
		if err != nil {
			return s, err
		}
		wrong, _ := last.faults(due)
		usable := seen && !last.Absent && len(wrong) == 0
		if s.Points = last.Points; usable {
			s.Points = resultsOf(due, last.Unimplemented).names
		}
		if !hasSuite(r) && s.Points == nil {
			return seenFailing{Absent: true}, nil
		}
		if s.Suite, err = suiteDigest(ctx, r.Tree); err != nil {
			return s, err
		}
		if usable && last.Suite == s.Suite {
			last.Unchanged, last.Report = true, history.Report{Said: "the suite has not changed since then"}
			return last, nil
		}
		against := func(status int) suiteRun {
			end := l.Server.stub(status)
			run, failed := l.execute(ctx, r.Tree.Dir())
			run.Requests, err = end(), errors.Join(err, failed)
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
	var paths []string
	eachTest(tree.Dir(), func(name string, e fs.DirEntry) {
		if !e.IsDir() && e.Name() != failedName {
			paths = append(paths, name)
		}
	})
	files, err := tree.ManifestOf(ctx, paths, nil)
	return files.Digest(), err
}

// The verifier corrects the suite until each point has been seen to fail. What no answer of hone's own servers certainly breaks
// goes back once, and is then reported as not seen failing. It returns the suite's digest; empty if there is no suite.
func (l *Loop) seeSuiteFail(ctx context.Context, r *hone.Run, due []spec.Item) (suite string, err error) {
	for try, told := 1, false; ; try++ {
		seen, err := l.seeItFail(ctx, r, due)
		if err != nil || seen.Unchanged || seen.Absent {
			return seen.Suite, err
		}
		wrong, unseen := seen.faults(due)
		switch {
		case len(wrong) > 0 && try >= suiteTries:
			if err := l.giveUp(ctx, r, fmt.Sprintf("after %d tries the suite is still unusable: %s", try, strings.Join(wrong, "; "))); err != nil {
				return "", err
			}
			try, told = 0, false
		case len(wrong) == 0 && (len(unseen) == 0 || told):
			return seen.Suite, nil
		}
		told = told || len(unseen) > 0
		for _, name := range unseen {
			wrong = append(wrong, fmt.Sprintf("the point “%s” passes against a server that answers every request with 501 or with 200 and an empty body; if the contract allows a stricter test, make it stricter, otherwise leave it", name))
		}
		if len(wrong) > len(unseen) {
			wrong = append(wrong, fmt.Sprintf("this is try %d of %d; if the suite is not usable after the last one, the run ends", try+1, suiteTries))
		}
		if err := l.write(ctx, r, toCorrect, []check.Finding{{Source: sourceSuite, Text: "- " + strings.Join(wrong, "\n- ")}}); err != nil {
			return "", err
		}
	}
}

// There is no server while the verifier writes the suite.
func (l *Loop) write(ctx context.Context, r *hone.Run, e assignment, prior []check.Finding) error {
	messages, err := l.compose(ctx, r, e, prior)
	if err == nil {
		_, err = l.talkIn(ctx, r, l.Writer, messages)
	}
	return err
}

// The specifications count as they were when the run began.
func (l *Loop) dueItems(r *hone.Run) ([]spec.Item, error) {
	specs, _, err := hone.First[specList](r, stepSpecs)
	return spec.DueItems(specs.Specs), err
}

// unseen are the points of the last suite that hone did not see fail.
func (l *Loop) unseen(r *hone.Run, due []spec.Item) ([]string, error) {
	seen, ok, err := hone.Last[seenFailing](r, stepSeeFail)
	if err != nil || !ok || seen.Absent {
		return nil, err
	}
	_, names := seen.faults(due)
	return names, nil
}
