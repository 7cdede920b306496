package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"hone"
)

// replayExceptions is what a script excludes from the replay of its runs.
type replayExceptions struct {
	directories []string // whose runs cannot be replayed
	files       []string // changed outside a run
}

type replaysKey struct{}

// replayAll replays every run that a script leaves, with the environment that
// the script started with. Each must have the same result, and every change must
// be recorded.
func replayAll(e *testscript.Env) {
	if raceEnabled() {
		return // twice the processes, and the race detector has already seen them
	}
	except := e.Values[replaysKey{}].(*replayExceptions)
	homes := homesOutside(e.Getenv("XDG_STATE_HOME"))
	for _, dir := range workspacesIn(e.WorkDir) {
		if homes[dir] == "" { // otherwise .hone is not read
			homes[dir] = filepath.Join(dir, ".hone")
		}
	}
	for dir, home := range homes {
		if slices.Contains(except.directories, dir) {
			continue
		}
		runs, _ := filepath.Glob(filepath.Join(home, "runs", "*.jsonl"))
		for _, run := range runs {
			if err := replayRun(e, dir, strings.TrimSuffix(filepath.Base(run), ".jsonl"), except.files); err != nil {
				e.T().Log(err)
				e.T().FailNow()
			}
		}
	}
}

// unexplained matches what a replay prints about a file whose change is not
// recorded.
var unexplained = regexp.MustCompile(`(?m)^(?:changed outside the run|not compared)[^:]*: (.*)$`)

// replayRun replays one run. A run without a recorded start has nothing to
// replay.
func replayRun(e *testscript.Env, dir, run string, except []string) error {
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
		if !slices.Contains(except, string(m[1])) {
			return fmt.Errorf("hone replay %s in %s: %s", run, dir, m[0])
		}
	}
	return nil
}

// homesOutside returns the homes in a state folder, by their workspaces. It omits
// those of workspaces that no longer exist.
func homesOutside(base string) map[string]string {
	homes := map[string]string{}
	journals, _ := filepath.Glob(filepath.Join(base, "hone", "homes", "*", "runs", "*.jsonl"))
	for _, file := range journals {
		b, _ := os.ReadFile(file)
		line, _, _ := bytes.Cut(b, []byte("\n"))
		var start hone.Start
		if json.Unmarshal(line, &start) != nil {
			continue
		}
		if _, err := os.Stat(start.Dir); err == nil {
			homes[start.Dir] = filepath.Dir(filepath.Dir(file))
		}
	}
	return homes
}

// workspacesIn returns the directories below top that hone has worked in.
func workspacesIn(top string) []string {
	var dirs []string
	_ = filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == ".hone" {
			dirs = append(dirs, filepath.Dir(path))
			return filepath.SkipDir
		}
		return nil // an unreadable directory has no readable runs
	})
	return dirs
}

// unreplayed excludes the runs in a directory.
func unreplayed(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: unreplayed DIR WHY")
	}
	except := ts.Value(replaysKey{}).(*replayExceptions)
	except.directories = append(except.directories, ts.MkAbs(args[0]))
}

// unaccounted excludes files that change outside a run.
func unaccounted(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: unaccounted WHY FILE...")
	}
	except := ts.Value(replaysKey{}).(*replayExceptions)
	except.files = append(except.files, args[1:]...)
}
