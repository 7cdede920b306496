package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// replays are what a script said of the runs that it leaves behind.
type replays struct {
	excused []string // folders whose runs cannot be gone through again
	beside  []string // files that somebody changed beside a run
}

type replaysKey struct{}

// replayAll goes through every run again that a script leaves behind, with
// nothing of the script's environment but what it began with: each has to come
// out the same, and nothing may have changed that nobody is on record for.
func replayAll(e *testscript.Env) {
	if raced() {
		return // as many processes again, and the race detector has seen them
	}
	said := e.Values[replaysKey{}].(*replays)
	for _, dir := range workspacesIn(e.WorkDir) {
		if slices.Contains(said.excused, dir) {
			continue
		}
		runs, _ := filepath.Glob(filepath.Join(dir, ".hone", "runs", "*.jsonl"))
		for _, run := range runs {
			if err := replayed(e, dir, strings.TrimSuffix(filepath.Base(run), ".jsonl"), said.beside); err != nil {
				e.T().Log(err)
				e.T().FailNow()
			}
		}
	}
}

// unexplained is what a replay says of a file that it cannot account for.
var unexplained = regexp.MustCompile(`(?m)^(?:changed outside the run|not compared)[^:]*: (.*)$`)

// replayed goes through one run again. One that ended before its start was on
// record has nothing to go through.
func replayed(e *testscript.Env, dir, run string, beside []string) error {
	cmd := exec.Command("hone", "replay", run)
	cmd.Dir, cmd.Env = dir, e.Vars
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "it has no recorded start") {
		return nil
	}
	if err != nil {
		return fmt.Errorf("hone replay %s in %s: %w\n%s", run, dir, err, out)
	}
	for _, m := range unexplained.FindAllSubmatch(out, -1) {
		if !slices.Contains(beside, string(m[1])) {
			return fmt.Errorf("hone replay %s in %s: %s", run, dir, m[0])
		}
	}
	return nil
}

// workspacesIn are the folders below one that hone has worked in.
func workspacesIn(top string) []string {
	var dirs []string
	_ = filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == ".hone" {
			dirs = append(dirs, filepath.Dir(path))
			return filepath.SkipDir
		}
		return nil // what cannot be read holds no run that could be
	})
	return dirs
}

// unreplayed excuses the runs in a folder.
func unreplayed(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: unreplayed DIR WHY")
	}
	said := ts.Value(replaysKey{}).(*replays)
	said.excused = append(said.excused, ts.MkAbs(args[0]))
}

// unaccounted excuses files that change beside a run.
func unaccounted(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: unaccounted WHY FILE...")
	}
	said := ts.Value(replaysKey{}).(*replays)
	said.beside = append(said.beside, args[1:]...)
}
