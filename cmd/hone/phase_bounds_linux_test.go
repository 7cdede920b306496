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

	"hone/internal/crashtest"
	"hone/model"
	"hone/model/modeltest"
	"hone/sandbox"
)

// The tests in this file try, as every party of a phase, to reach what belongs
// to another party (rulings A7 to A10, A13), behind every wall that works here.
// They read the expected outcomes from testdata/phase-bounds.md.

//go:embed testdata/phase-bounds.md
var boundsTable string

// boundsWalls are the columns of the table, in their order.
var boundsWalls = []sandbox.Wall{sandbox.Hidden, sandbox.Bubblewrap, sandbox.Landlock, sandbox.Firejail, sandbox.NoWall}

// boundsGroups are the groups of actors that the table names.
var boundsGroups = map[string][]string{
	"building":  {"builder", "builder-2", "agent-builder"},
	"writing":   {"writer", "agent-writer"},
	"verifying": {"verifier", "verifier-2", "agent-verifier"},
	"hooks":     {"health_check", "map_deps", "start_dev", "reset_state", "stop_dev", "check"},
	"server":    {"server"},
}

// boundsRow is a line of the table: the outcome of an attempt behind each wall.
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

// boundsNeeds skips a test if it cannot run here, and logs why.
func boundsNeeds(t *testing.T, wall sandbox.Wall) {
	t.Helper()
	if raceEnabled() {
		t.Skipf("NOT PROVED %s: the race detector is at work, whose memory is more than commands may have; make unit runs this without it", wall)
	}
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skipf("NOT PROVED %s: %v", wall, err)
	}
	if !wallWorks(t, wall) {
		t.Skipf("NOT PROVED %s: it cannot be had here", wall)
	}
}

// TestPhaseBounds: hone's own agent in both roles, with the hooks, the server
// and a check.
func TestPhaseBounds(t *testing.T) {
	skipRace(t)
	t.Parallel()
	for _, wall := range boundsWalls {
		t.Run(string(wall), func(t *testing.T) {
			t.Parallel()
			boundsNeeds(t, wall)
			s := setScene(t, false)
			s.arm(t)
			// Neither what walls are built from nor how depends on the round.
			again := wall == sandbox.Hidden || wall == sandbox.Landlock || crashtest.All()
			s.provider.Script(boundsTurns(s, again)...)
			exit, out := s.hone(t, "phase", "1", "--sandbox", string(wall), "--builder-model", "openai/b-model", "--verifier-model", "openai/v-model", "--wire", "chat",
				"--dev-url", fmt.Sprintf("http://127.0.0.1:%s", s.port), "--check", "bash src/probe.sh check hooks src tests . > tests/results/check.tried 2>&1", "--approve", "none", "-v")
			if exit != 0 {
				t.Fatalf("exit status %d\n%s", exit, out)
			}
			actors := []string{"builder", "writer", "verifier", "health_check", "map_deps", "start_dev", "reset_state", "stop_dev", "server", "check"}
			if again {
				actors = append(actors, "builder-2", "verifier-2")
			}
			s.checkOutcomes(t, wall, out, actors...)
			s.checkTools(t)
		})
	}
}

// TestPhaseBoundsOfAgents: a command-line agent in both roles. Unless HONE_TEST_ALL is set,
// it omits firejail, whose walls [TestPhaseBounds] and [TestForwarderBehindWalls] try, and the
// attempts without walls.
func TestPhaseBoundsOfAgents(t *testing.T) {
	skipRace(t)
	t.Parallel()
	for _, wall := range boundsWalls {
		if (wall == sandbox.Firejail || wall == sandbox.NoWall) && !crashtest.All() {
			continue
		}
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
			s.checkOutcomes(t, wall, out, "agent-builder", "agent-writer", "agent-verifier")
		})
	}
}

// boundsTurns returns the replies of both roles: a first round that fails, and a
// second round, which makes every attempt again if again is true.
func boundsTurns(s *scene, again bool) []modeltest.Turn {
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
	if again {
		calls(try("builder-2", "builder", "src", "tests"))
	}
	say("It is mended.")
	if again {
		calls(try("verifier-2", "verifier", "tests", "src"))
	}
	calls(bash("exec 3<>/dev/tcp/127.0.0.1/${DEV_URL##*:}; printf 'GET /canary HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3; rm -f failed_specs.md"))
	say("All hold.")
	return turns
}

// astray is the prefix of the ids of forbidden calls.
const astray = "astray-"

// toolCalls returns a forbidden call of every tool. All of them must fail.
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
	// This one finds what commands left in the directory itself. That is not a
	// fault of the tool: behind weak walls commands can do that.
	call("grep", map[string]any{"pattern": "canary-(" + other + "|results|makefile|config|env)"})
	list[len(list)-1].ID = "everywhere-"
	return list
}

var boundsCanary = regexp.MustCompile(`(canary|kept-by)-[a-z0-9-]+`)

// phrases maps the errors of programs to the words of the table.
var phrases = []struct{ word, phrase string }{
	{"EROFS", "Read-only file system"}, {"EACCES", "Permission denied"}, {"EPERM", "Operation not permitted"}, {"EBUSY", "Device or resource busy"},
	{"EXDEV", "Invalid cross-device link"}, {"ECONNREFUSED", "Connection refused"}, {"ENOENT", "No such file or directory"}, {"ENOENT", "cannot be found"}, {"ENOENT", "does not exist"},
}

// checkOutcomes compares the outcomes of the attempts with the table, and looks
// for canaries where there must be none.
func (s *scene) checkOutcomes(t *testing.T, wall sandbox.Wall, output string, actors ...string) {
	t.Helper()
	rows := readBounds(t)
	for _, who := range actors {
		tried := s.outputs(t, who)
		for _, a := range escapes(s) {
			printed, ok := tried[a.name]
			if !ok {
				t.Errorf("%s did not try %s", who, a.name)
				continue
			}
			want, found := expected(rows, wall, who, a.name)
			if !found {
				t.Errorf("the table says nothing of %s by %s", a.name, who)
			}
			if got := s.outcome(who, a, printed); !slices.Contains(want, got) {
				t.Errorf("%s by %s: %s, want %s\n%s", a.name, who, got, strings.Join(want, " or "), printed[:min(len(printed), 600)])
			}
		}
	}
	s.checkTraces(t, wall, output)
}

func expected(rows []boundsRow, wall sandbox.Wall, who, name string) (words []string, ok bool) {
	for _, r := range rows {
		if r.attempt == name && slices.Contains(r.who, who) {
			words, ok = append(words, r.words[wall]...), true
		}
	}
	return words, ok
}

// ownCanaries returns the canaries that an actor may see.
func ownCanaries(who string) (own []string) {
	switch {
	case strings.Contains(who, "builder"):
		return []string{"canary-src", "canary-history-src", "kept-by-builder"}
	case strings.Contains(who, "writer"), strings.Contains(who, "verifier"):
		return []string{"canary-tests", "canary-history-tests", "kept-by-verifier"}
	}
	return []string{"canary-src", "canary-history-src", "kept-by-hooks"}
}

// outcome returns the outcome of an attempt, in one word.
func (s *scene) outcome(who string, a attempt, output string) string {
	if a.leaves != "" {
		place := strings.ReplaceAll(a.leaves, "@OTHER", map[bool]string{true: "src", false: "tests"}[strings.Contains(who, "writer") || strings.Contains(who, "verifier")])
		text, err := os.ReadFile(s.at(place))
		if err == nil && (strings.HasPrefix(a.leaves, "sprung") || bytes.Contains(text, []byte(forged(who, a.name)+"\n"))) {
			return "open"
		}
	}
	for _, found := range boundsCanary.FindAllString(output, -1) {
		if !slices.Contains(ownCanaries(who), found) {
			return "open"
		}
	}
	for _, p := range phrases {
		if strings.Contains(output, p.phrase) {
			return p.word
		}
	}
	return "held"
}

// outputs returns what an actor's attempts printed, by name.
func (s *scene) outputs(t *testing.T, who string) map[string]string {
	t.Helper()
	for _, folder := range []string{"project/src/", "project/tests/", "project/tests/results/"} {
		text, err := os.ReadFile(s.at(folder + who + ".tried"))
		if err != nil {
			continue
		}
		tried := map[string]string{}
		for part := range strings.SplitSeq(string(text), "\n@@ ") {
			name, output, _ := strings.Cut(part, "\n")
			tried[name] = output
		}
		if _, ended := tried["end"]; !ended {
			t.Errorf("the attempts of %s were cut short", who)
		}
		return tried
	}
	t.Errorf("%s tried nothing", who)
	return nil
}

// checkTraces looks for canaries in requests to models, in commits, and in what
// hone keeps and prints.
func (s *scene) checkTraces(t *testing.T, wall sandbox.Wall, output string) {
	t.Helper()
	s.checkNoCanary(t, "what hone printed", []byte(output), boundsKey)
	for path, text := range s.files(t, "project/.hone") {
		s.checkNoCanary(t, path, text, boundsKey)
	}
	hides := wall == sandbox.Hidden || wall == sandbox.Bubblewrap
	for i, r := range s.provider.Received() {
		s.checkNoCanary(t, fmt.Sprintf("request %d", i+1), r.Body, boundsKey)
		if hides {
			own := append(ownCanaries("verifier"), "canary-prompt-verifier", "canary-server")
			if bytes.Contains(r.Body, []byte("b-model")) {
				own = append(ownCanaries("builder"), "canary-prompt-builder")
			}
			s.checkOnlyOwn(t, fmt.Sprintf("request %d", i+1), r.Body, own)
		}
	}
	if !hides {
		return
	}
	for repo, own := range map[string][]string{"src": ownCanaries("builder"), "tests": append(ownCanaries("verifier"), "canary-server")} {
		objects := gitIn(t, s.at("project/"+repo), "cat-file", "--batch", "--batch-all-objects")
		s.checkOnlyOwn(t, "the repository "+repo, []byte(objects), own)
	}
}

// checkTools checks that no tool did what a forbidden call asked for, behind any
// wall.
func (s *scene) checkTools(t *testing.T) {
	t.Helper()
	answers := 0
	for i, r := range s.provider.Received() {
		own := ownCanaries("verifier")
		if bytes.Contains(r.Body, []byte("b-model")) {
			own = ownCanaries("builder")
		}
		for id, text := range s.strayResults(t, r.Body) {
			answers++
			s.checkOnlyOwn(t, fmt.Sprintf("the answer to %s in request %d", id, i+1), text, own)
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

// strayResults returns the results of forbidden calls in a chat completions
// request.
func (s *scene) strayResults(t *testing.T, body []byte) map[string][]byte {
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

// TestPhaseBoundsTable: the table contains every attempt of every actor in
// exactly one line, and no other attempt.
func TestPhaseBoundsTable(t *testing.T) {
	lines := map[string]int{}
	for _, r := range readBounds(t) {
		for _, who := range r.who {
			lines[r.attempt+" by "+who]++
		}
	}
	everybody := slices.Concat(slices.Collect(maps.Values(boundsGroups))...)
	list := escapes(&scene{})
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
