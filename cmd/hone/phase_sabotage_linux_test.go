package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"hone/model"
	"hone/model/modeltest"
	"hone/sandbox"
)

// sabotage is what the parties of a phase do in their own directories.
type sabotage struct {
	name                 string
	wall                 sandbox.Wall
	write, build, verify string // in bash, in the directories of the roles; may be empty
	hook, runs           string // a hook, and the builder's program that it runs; may be empty
	exit                 int    // of hone
	says                 string // part of hone's output
}

// TestPhaseSabotage: whatever a party breaks in its own directory, it does not
// reach anything of another party.
func TestPhaseSabotage(t *testing.T) {
	skipRace(t)
	t.Parallel()
	for _, tt := range []sabotage{
		{name: "no HEAD", wall: sandbox.Hidden, build: "rm .git/HEAD"},
		{name: "no repository", wall: sandbox.Landlock, build: "rm -rf .git"},
		{name: "objects of the other", wall: sandbox.Hidden, build: "mv .git/objects .git/away; ln -s ../../tests/.git/objects .git/objects",
			exit: 5},
		{name: "references of the other", wall: sandbox.Hidden, build: "rm -r .git/refs; ln -s ../../tests/.git/refs .git/refs",
			says: "src/.git/refs into a git repository"},
		{name: "a verdict that leads out", wall: sandbox.Hidden, verify: "ln -sf ../.env failed_specs.md", exit: 5, says: "failed_specs.md is a symbolic link"},
		{name: "a log that leads out", wall: sandbox.Hidden, hook: "health_check", runs: "ln -sfn ../../.env tests/results/lint.log; exit 1", exit: 1, says: "lint.log is a symbolic link"},
		{name: "a server's log that leads out", wall: sandbox.Hidden, hook: "health_check", runs: "ln -sfn ../../.env tests/results/dev.log"},
		{name: "a folder of logs that leads elsewhere", wall: sandbox.Landlock, write: "mv results x; ln -s ../specs results", hook: "map_deps", runs: "echo forged > tests/results/phase1.md; echo forged > tests/results/phase3.md", exit: 5, says: "tests/results is a symbolic link"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			boundsNeeds(t, tt.wall)
			tt.try(t)
		})
	}
}

// try runs a phase, and checks everything that does not belong to the parties.
func (tt sabotage) try(t *testing.T) {
	s := setScene(t, false)
	s.write(t, map[string]string{
		"project/src/server.py": testFile(t, "phase-bounds.server.py"),
		"project/src/probe.sh":  "[ $1 != '" + tt.hook + "' ] || { " + orTrue(tt.runs) + "; }\n",
	})
	before := gitIn(t, s.at("project"), "rev-parse", "--all")
	s.provider.Script(sabotageTurns(tt.write, tt.build, tt.verify)...)
	exit, out := s.hone(t, "phase", "1", "--sandbox", string(tt.wall), "--builder-model", "openai/b-model", "--verifier-model", "openai/v-model", "--wire", "chat",
		"--dev-url", "http://127.0.0.1:"+s.port, "--approve", "none", "--rounds", "1", "-v")
	if exit != tt.exit || !strings.Contains(out, tt.says) {
		t.Errorf("exit status %d, want %d, and it has to say %q:\n%s", exit, tt.exit, tt.says, out)
	}
	if after := gitIn(t, s.at("project"), "rev-parse", "--all"); after != before {
		t.Errorf("the person's repository had %s and has %s", before, after)
	}
	s.checkNoCanary(t, "the repository tests", []byte(gitIn(t, s.at("project/tests"), "cat-file", "--batch", "--batch-all-objects")), "canary-src")
	for i, r := range s.provider.Received() {
		s.checkNoCanary(t, fmt.Sprintf("request %d", i+1), r.Body, "canary-env")
	}
	specs := s.files(t, "project/specs")
	for path, text := range specs {
		s.checkNoCanary(t, path, text, "forged")
	}
	if len(specs) != 2 {
		t.Errorf("specs/ holds %d files", len(specs))
	}
}

func orTrue(command string) string {
	if command == "" {
		return "true"
	}
	return command
}

// sabotageTurns returns a session for each role, in which it runs a command.
func sabotageTurns(write, build, verify string) []modeltest.Turn {
	var turns []modeltest.Turn
	session := func(commands ...string) {
		for _, c := range commands {
			args, _ := json.Marshal(map[string]string{"command": c})
			turns = append(turns, modeltest.Turn{Calls: []model.Call{{ID: fmt.Sprintf("call-%d", len(turns)), Name: "bash", Args: string(args)}}})
		}
		turns = append(turns, modeltest.Turn{Text: "Done."})
	}
	session(orTrue(write))
	session(orTrue(build))
	session(`exec 3<>/dev/tcp/127.0.0.1/${DEV_URL##*:}; printf 'GET / HTTP/1.0\r\n\r\n' >&3; cat <&3`, orTrue(verify))
	return turns
}
