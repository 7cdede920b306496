package main

import (
	"bytes"
	_ "embed" // the table
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hone/model"
	"hone/model/modeltest"
	"hone/sandbox"
)

// The tests in this file try, from the place of everybody who takes part in a
// phase, to get at what is somebody else's (rulings A7 to A10, A13), behind
// every wall that can be had. What has to come out stands in
// testdata/phase-bounds.md, which they read.

//go:embed testdata/phase-bounds.md
var boundsTable string

// boundsWalls are the columns of the table, in their order.
var boundsWalls = []sandbox.Wall{sandbox.Hidden, sandbox.Bubblewrap, sandbox.Landlock, sandbox.Firejail, sandbox.NoWall}

// The groups of those who try, as the table names them.
var boundsGroups = map[string][]string{
	"building":  {"builder", "builder-2", "agent-builder"},
	"writing":   {"writer", "agent-writer"},
	"verifying": {"verifier", "verifier-2", "agent-verifier"},
	"hooks":     {"health_check", "map_deps", "start_dev", "reset_state", "stop_dev", "check"},
	"server":    {"server"},
}

// boundsRow is a line of the table: what comes of an attempt behind each wall.
type boundsRow struct {
	attempt string
	who     []string
	words   map[sandbox.Wall][]string
}

// readBounds reads the table.
func readBounds(t *testing.T) []boundsRow {
	t.Helper()
	var rows []boundsRow
	for i, line := range strings.Split(boundsTable, "\n") {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		if len(cells) != 3+len(boundsWalls) {
			t.Fatalf("phase-bounds.md:%d: %d columns", i+1, len(cells))
		}
		row := boundsRow{attempt: strings.Trim(cells[0], " `"), words: map[sandbox.Wall][]string{}}
		for group := range strings.SplitSeq(strings.TrimSpace(cells[1]), ", ") {
			who := boundsGroups[group]
			if group == "all" {
				who = slices.Concat(slices.Collect(maps.Values(boundsGroups))...)
			}
			if who == nil {
				t.Fatalf("phase-bounds.md:%d: there is nobody %q", i+1, group)
			}
			row.who = append(row.who, who...)
		}
		for w, wall := range boundsWalls {
			row.words[wall] = strings.Split(strings.TrimSpace(cells[3+w]), " or ")
		}
		rows = append(rows, row)
	}
	return rows
}

// boundsNeeds skips a test where it cannot be made, and says so.
func boundsNeeds(t *testing.T, wall sandbox.Wall) {
	t.Helper()
	if raced() {
		t.Skipf("NOT PROVED %s: the race detector is at work, whose memory is more than commands may have; make unit runs this without it", wall)
	}
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skipf("NOT PROVED %s: %v", wall, err)
	}
	if !canHave(t, wall) {
		t.Skipf("NOT PROVED %s: it cannot be had here", wall)
	}
}

// TestPhaseBounds: hone's own agent in both roles, with the hooks, the server
// and a check.
func TestPhaseBounds(t *testing.T) {
	for _, wall := range boundsWalls {
		t.Run(string(wall), func(t *testing.T) {
			t.Parallel()
			boundsNeeds(t, wall)
			s := setScene(t, false)
			s.arm(t)
			s.provider.Script(boundsTurns(s)...)
			exit, out := s.hone(t, "phase", "1", "--sandbox", string(wall), "--builder-model", "openai/b-model", "--verifier-model", "openai/v-model", "--wire", "chat",
				"--dev-url", fmt.Sprintf("http://127.0.0.1:%s", s.port), "--check", "bash src/probe.sh check hooks src tests . > tests/results/check.tried 2>&1", "--approve", "none", "-v")
			if exit != 0 {
				t.Fatalf("exit status %d\n%s", exit, out)
			}
			s.judge(t, wall, out, "builder", "builder-2", "writer", "verifier", "verifier-2", "health_check", "map_deps", "start_dev", "reset_state", "stop_dev", "server", "check")
			s.judgeTools(t)
		})
	}
}

// TestPhaseBoundsOfAgents: a command-line agent in both roles.
func TestPhaseBoundsOfAgents(t *testing.T) {
	for _, wall := range boundsWalls {
		t.Run(string(wall), func(t *testing.T) {
			t.Parallel()
			boundsNeeds(t, wall)
			s := setScene(t, true)
			s.arm(t)
			exit, out := s.hone(t, "phase", "1", "--sandbox", string(wall), "--model", "command/prober",
				"--dev-url", fmt.Sprintf("http://127.0.0.1:%s", s.port), "--approve", "none", "-v")
			if exit != 0 {
				t.Fatalf("exit status %d\n%s", exit, out)
			}
			s.judge(t, wall, out, "agent-builder", "agent-writer", "agent-verifier")
		})
	}
}

// boundsTurns are what both roles' models say: a first round that fails, and a
// second in which all is tried again.
func boundsTurns(s *scene) []modeltest.Turn {
	var turns []modeltest.Turn
	say := func(text string) { turns = append(turns, modeltest.Turn{Text: text}) }
	calls := func(list ...model.Call) {
		for some := range slices.Chunk(list, 10) {
			for i := range some {
				some[i].ID = fmt.Sprintf("%scall-%d-%d", some[i].ID, len(turns), i)
			}
			turns = append(turns, modeltest.Turn{Calls: some})
		}
	}
	bash := func(command string) model.Call {
		args, _ := json.Marshal(map[string]string{"command": command})
		return model.Call{Name: "bash", Args: string(args)}
	}
	try := func(who, party, own, other string) model.Call {
		return bash(fmt.Sprintf("bash probe.sh %s %s %s %s .. > %[1]s.tried; cat %[1]s.tried", who, party, own, other))
	}
	calls(try("writer", "verifier", "tests", "src"), bash("ln -sfn results link; mkdir -p x"))
	calls(s.toolCalls("tests")...)
	say("The suite is written.")
	calls(try("builder", "builder", "src", "tests"))
	calls(s.toolCalls("src")...)
	say("It is built.")
	calls(try("verifier", "verifier", "tests", "src"))
	calls(s.toolCalls("tests")...)
	calls(bash(`printf 'SPEC: GET /canary → 200\nINPUT: GET /canary\nOBSERVED: 500\n' > failed_specs.md`))
	say("One contract fails.")
	calls(try("builder-2", "builder", "src", "tests"))
	say("It is mended.")
	calls(try("verifier-2", "verifier", "tests", "src"))
	calls(bash("rm -f failed_specs.md"))
	say("All hold.")
	return turns
}

// astray begins the ids of calls that go astray.
const astray = "astray-"

// toolCalls are calls of every tool that go astray. All of them are in vain.
func (s *scene) toolCalls(own string) []model.Call {
	other := map[string]string{"src": "tests", "tests": "src"}[own]
	paths := []string{"../Makefile", s.at("project/Makefile"), "x/../../Makefile", "./../" + other + "/main.txt", s.at("project/" + other + "/main.txt"), "planted", "planted-folder/main.txt",
		"../.env", "../abl.config.sh", "../specs/phase2.md", "../.hone", "~/.ssh/id_ed25519", s.at("home/.ssh/id_ed25519"), "/proc/1/environ", "/proc/self/environ", "..", "../..",
		s.at("project"), "planted-folder", ".git/config", ".GIT/config", "../tests/failed_specs.md"}
	if own == "tests" {
		paths = append(paths, "results/secret.log", "RESULTS/secret.log", "./results/secret.log", "x/../results/secret.log", s.at("project/tests/results/secret.log"), "link/secret.log", "link",
			"results", "results/", "../tests/results/secret.log", "x/../results")
	}
	var list []model.Call
	call := func(name string, args map[string]any) {
		text, _ := json.Marshal(args)
		list = append(list, model.Call{ID: astray, Name: name, Args: string(text)})
	}
	for _, p := range paths {
		call("read", map[string]any{"path": p})
		call("grep", map[string]any{"pattern": "canary", "path": p})
		call("glob", map[string]any{"pattern": "**", "root": p})
		if p != "../tests/failed_specs.md" || own == "src" {
			call("write", map[string]any{"path": p, "content": "forged-by-tool"})
			call("edit", map[string]any{"path": p, "edits": []map[string]any{{"oldText": "canary", "newText": "forged-by-tool"}}})
		}
	}
	call("glob", map[string]any{"pattern": "../**"})
	call("glob", map[string]any{"pattern": "planted-folder/**"})
	// This one finds what commands left in the folder itself, which is no fault
	// of the tool's: behind weak walls they can.
	call("grep", map[string]any{"pattern": "canary-(" + other + "|results|makefile|config|env)"})
	list[len(list)-1].ID = "everywhere-"
	return list
}

var boundsCanary = regexp.MustCompile(`(canary|kept-by)-[a-z0-9-]+`)

// phrases are the errors of programs, as words.
var phrases = []struct{ word, phrase string }{
	{"EROFS", "Read-only file system"}, {"EACCES", "Permission denied"}, {"EPERM", "Operation not permitted"}, {"EBUSY", "Device or resource busy"},
	{"EXDEV", "Invalid cross-device link"}, {"ECONNREFUSED", "Connection refused"}, {"ENOENT", "No such file or directory"}, {"ENOENT", "cannot be found"}, {"ENOENT", "does not exist"},
}

// judge holds what came of the attempts against the table, and looks for
// canaries where there must be none.
func (s *scene) judge(t *testing.T, wall sandbox.Wall, output string, actors ...string) {
	t.Helper()
	rows := readBounds(t)
	for _, who := range actors {
		tried := s.tried(t, who)
		for _, a := range attempts(s) {
			said, ok := tried[a.name]
			if !ok {
				t.Errorf("%s did not try %s", who, a.name)
				continue
			}
			want, found := expected(rows, wall, who, a.name)
			if !found {
				t.Errorf("the table says nothing of %s by %s", a.name, who)
			}
			if got := s.outcome(who, a, said); !slices.Contains(want, got) {
				t.Errorf("%s by %s: %s, want %s\n%s", a.name, who, got, strings.Join(want, " or "), said[:min(len(said), 600)])
			}
		}
	}
	s.judgeTraces(t, wall, output)
}

func expected(rows []boundsRow, wall sandbox.Wall, who, name string) (words []string, ok bool) {
	for _, r := range rows {
		if r.attempt == name && slices.Contains(r.who, who) {
			words, ok = append(words, r.words[wall]...), true
		}
	}
	return words, ok
}

// party is whose folder and home somebody shares.
func party(who string) (own []string) {
	switch {
	case strings.Contains(who, "builder"):
		return []string{"canary-src", "canary-history-src", "kept-by-builder"}
	case strings.Contains(who, "writer"), strings.Contains(who, "verifier"):
		return []string{"canary-tests", "canary-history-tests", "kept-by-verifier"}
	}
	return []string{"canary-src", "canary-history-src", "kept-by-hooks"}
}

// outcome is what came of an attempt, in one word.
func (s *scene) outcome(who string, a attempt, said string) string {
	if a.leaves != "" {
		place := strings.ReplaceAll(a.leaves, "@OTHER", map[bool]string{true: "src", false: "tests"}[strings.Contains(who, "writer") || strings.Contains(who, "verifier")])
		text, err := os.ReadFile(s.at(place))
		if err == nil && (strings.HasPrefix(a.leaves, "sprung") || bytes.Contains(text, []byte(forged(who, a.name)+"\n"))) {
			return "open"
		}
	}
	for _, found := range boundsCanary.FindAllString(said, -1) {
		if !slices.Contains(party(who), found) {
			return "open"
		}
	}
	for _, p := range phrases {
		if strings.Contains(said, p.phrase) {
			return p.word
		}
	}
	return "held"
}

// tried reads what somebody's attempts printed.
func (s *scene) tried(t *testing.T, who string) map[string]string {
	t.Helper()
	for _, folder := range []string{"project/src/", "project/tests/", "project/tests/results/"} {
		text, err := os.ReadFile(s.at(folder + who + ".tried"))
		if err != nil {
			continue
		}
		tried := map[string]string{}
		for part := range strings.SplitSeq(string(text), "\n@@ ") {
			name, said, _ := strings.Cut(part, "\n")
			tried[name] = said
		}
		if _, ended := tried["end"]; !ended {
			t.Errorf("the attempts of %s were cut short", who)
		}
		return tried
	}
	t.Errorf("%s tried nothing", who)
	return nil
}

// judgeTraces looks for canaries in what was sent to models, in what was
// committed and in what hone keeps and prints.
func (s *scene) judgeTraces(t *testing.T, wall sandbox.Wall, output string) {
	t.Helper()
	s.holdsNo(t, "what hone printed", []byte(output), boundsKey)
	for path, text := range s.files(t, "project/.hone") {
		s.holdsNo(t, path, text, boundsKey)
	}
	hides := wall == sandbox.Hidden || wall == sandbox.Bubblewrap
	for i, r := range s.provider.Received() {
		s.holdsNo(t, fmt.Sprintf("request %d", i+1), r.Body, boundsKey)
		if hides {
			own := append(party("verifier"), "canary-prompt-verifier", "canary-server")
			if bytes.Contains(r.Body, []byte("b-model")) {
				own = append(party("builder"), "canary-prompt-builder")
			}
			s.holdsOnly(t, fmt.Sprintf("request %d", i+1), r.Body, own)
		}
	}
	if !hides {
		return
	}
	for repo, own := range map[string][]string{"src": party("builder"), "tests": append(party("verifier"), "canary-server")} {
		objects := gitIn(t, s.at("project/"+repo), "cat-file", "--batch", "--batch-all-objects")
		s.holdsOnly(t, "the repository "+repo, []byte(objects), own)
	}
}

// judgeTools: what tools were asked to do astray, none of them did, behind
// whatever wall.
func (s *scene) judgeTools(t *testing.T) {
	t.Helper()
	answers := 0
	for i, r := range s.provider.Received() {
		own := party("verifier")
		if bytes.Contains(r.Body, []byte("b-model")) {
			own = party("builder")
		}
		for id, text := range s.answers(t, r.Body) {
			answers++
			s.holdsOnly(t, fmt.Sprintf("the answer to %s in request %d", id, i+1), text, own)
		}
	}
	if answers < 100 {
		t.Errorf("there are %d answers to tools' calls", answers)
	}
	for _, place := range []string{"project", "home", "second"} {
		for path, text := range s.files(t, place) {
			if bytes.Contains(text, []byte("forged-by-tool")) && !strings.HasPrefix(path, s.at("project/.hone")) && filepath.Ext(path) != ".tried" {
				t.Errorf("a tool wrote %s", path)
			}
		}
	}
}

// answers are the results of calls that went astray, in a request over chat
// completions.
func (s *scene) answers(t *testing.T, body []byte) map[string][]byte {
	t.Helper()
	var request struct {
		Messages []struct {
			Call    string `json:"tool_call_id"`
			Content json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &request); err != nil {
		t.Fatal(err)
	}
	found := map[string][]byte{}
	for _, m := range request.Messages {
		if strings.HasPrefix(m.Call, astray) {
			found[m.Call] = m.Content
		}
	}
	return found
}

// TestPhaseBoundsTable holds the table and the attempts together: everybody's
// attempts stand in it, each in one line, and nothing else does.
func TestPhaseBoundsTable(t *testing.T) {
	lines := map[string]int{}
	for _, r := range readBounds(t) {
		for _, who := range r.who {
			lines[r.attempt+" by "+who]++
		}
	}
	everybody := slices.Concat(slices.Collect(maps.Values(boundsGroups))...)
	list := attempts(&scene{})
	for _, a := range list {
		for _, who := range everybody {
			if n := lines[a.name+" by "+who]; n != 1 {
				t.Errorf("%s by %s stands in %d lines", a.name, who, n)
			}
		}
	}
	if len(lines) != len(list)*len(everybody) {
		t.Errorf("the table has %d attempts of somebody's, and there are %d", len(lines), len(list)*len(everybody))
	}
}
