package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"hone/model"
	"hone/model/modeltest"
	"hone/sandbox"
)

// nightWork is a directory with long work for a loop, which only the right answers complete.
type nightWork struct {
	loop       string
	dir, cache string
	args       []string
	answer     func(body []byte) modeltest.Turn
	project    *phaseProject // of a phase
}

// nightLoops are the loops of [TestNight].
var nightLoops = []string{"fix", "task", "implement", "reconcile", "phase"}

// newNightWork returns the work of a loop in so many steps.
func newNightWork(t *testing.T, loop string, steps int) nightWork {
	t.Helper()
	w := nightWork{loop: loop}
	if loop == "phase" {
		p := newPhaseProject(t, sandbox.Hidden, true)
		w.dir, w.cache, w.args, w.project = p.dir, p.cache, p.args, &p
		w.answer = func(body []byte) modeltest.Turn { return answerNightPhase(p, body, steps) }
	} else {
		w.dir, w.cache = t.TempDir(), t.TempDir()
		w.args, w.answer = nightCounter(loop, steps)
		w.write(t, map[string]string{"counter": counterAt(0), "work.sh": nightScript, "check.sh": fmt.Sprintf(nightCheck, steps),
			"specs/s.md": "The counter ends well.\n"})
		if loop == "implement" {
			w.write(t, map[string]string{"query.txt": "Count.\n", "build.sh": "sh check.sh\n"})
			if err := os.Remove(filepath.Join(w.dir, "work.sh")); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.args = append(w.args, "--patience", "100", "--rounds", fmt.Sprint(3*steps+20), "--max-tokens", fmt.Sprint(nightBudget))
	w.write(t, map[string]string{"notes-of-mine.md": "first\n"})
	w.git(t, "init", "-q", "-b", "main", "--template=")
	w.git(t, "add", "-A")
	w.git(t, "commit", "-q", "-m", "first")
	return w
}

// nightBudget is enough tokens for the work, and for the calls of unknown outcome.
const nightBudget = 20_000_000

// nightScript does step $1 of the work, and can be repeated.
const nightScript = `mkdir -p parts
sleep 0.2
seq $1 $(($1 + 300)) >parts/$(($1 % 8))
test "$2" || echo "the counter is at $(($1 + 1))." >counter
echo "worked $1"
`

// nightCheck leaves a daemon behind, which must end with it.
const nightCheck = `at=$(sed 's/[^0-9]//g' counter)
echo "at tick $at"
setsid sh -c 'trap "" HUP TERM; sleep 900; true' >/dev/null 2>&1 </dev/null &
sleep 0.3
test "$at" -ge %d
`

func counterAt(n int) string { return fmt.Sprintf("the counter is at %d.\n", n) }

// nightCounter returns the arguments of a loop that counts, and its model.
func nightCounter(loop string, steps int) (args []string, answer func(body []byte) modeltest.Turn) {
	session := []string{"--check", "sh check.sh", "--approve", "all", "--allow", "sh,cat", "--turns", "500", "--max-tool-calls", "1000"}
	switch loop {
	case "fix":
		return append([]string{"fix", "-m", "openai/m"}, session...),
			func(body []byte) modeltest.Turn { return readNightTalk(body).fix(steps) }
	case "task":
		return append([]string{"task", "Count.", "-m", "openai/m"}, session...),
			func(body []byte) modeltest.Turn { return readNightTalk(body).task(steps) }
	case "implement":
		return []string{"implement", "-m", "openai/m", "--sandbox", "none"}, func(body []byte) modeltest.Turn {
			n := min(steps, readNightTalk(body).counter()+1)
			return modeltest.Turn{Text: "^^^counter\n" + counterAt(n) + "^^^end\n^^^parts/" + fmt.Sprint(n%8) + "\n" + nightPart(n) + "^^^end\n"}
		}
	}
	return []string{"reconcile", "-m", "openai/m", "--approve", "all", "--check", "sh check.sh", "--sandbox", "none"}, func(body []byte) modeltest.Turn {
		n := min(steps, readNightTalk(body).counter()+1)
		text, _ := json.Marshal(map[string]any{"create-or-update": map[string]string{
			"counter": counterAt(n), fmt.Sprintf("parts/%d", n%8): nightPart(n), "specs/s.md": fmt.Sprintf("The counter ends well. It was seen at %d.\n", n)}})
		return modeltest.Turn{Text: string(text)}
	}
}

func nightPart(n int) string { return strings.Repeat(fmt.Sprintf("part of step %d\n", n), 100) }

// nightTalk is what a request says.
type nightTalk struct {
	user    string   // all that is said to the model
	results []string // of its calls
	turns   int      // of the model
	fresh   int      // turns since the user said something
}

func readNightTalk(body []byte) (k nightTalk) {
	var sent struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if json.Unmarshal(body, &sent) != nil {
		return k
	}
	for _, m := range sent.Messages {
		var text string
		if json.Unmarshal(m.Content, &text) != nil {
			text = strings.NewReplacer(`\n`, "\n", `\"`, `"`).Replace(string(m.Content)) // in parts
		}
		switch m.Role {
		case "tool":
			k.results = append(k.results, text)
		case "assistant":
			k.turns++
			k.fresh++
		default:
			k.user += text
			k.fresh = 0
		}
	}
	return k
}

var (
	counterText = regexp.MustCompile(`the counter is at (\d+)\.`)
	workedText  = regexp.MustCompile(`worked (\d+)`)
	loopText    = regexp.MustCompile(`loop = (\d+)`)
)

// lastNumber returns the last number that a pattern finds; -1 if there is none.
func lastNumber(pattern *regexp.Regexp, text string) int {
	found := pattern.FindAllStringSubmatch(text, -1)
	if found == nil {
		return -1
	}
	n, _ := strconv.Atoi(found[len(found)-1][1])
	return n
}

// counter returns the counter that the model was last shown, or sent itself.
func (k nightTalk) counter() int { return lastNumber(counterText, k.user) }

// seen returns the counter that the first call returned; -1 if none did.
func (k nightTalk) seen() int {
	for _, r := range k.results {
		if n := lastNumber(counterText, r); n >= 0 {
			return n
		}
	}
	return -1
}

// fix does one step in a session.
func (k nightTalk) fix(steps int) modeltest.Turn {
	at := k.seen()
	switch {
	case at < 0:
		return k.calls("read", map[string]any{"path": "counter"})
	case at >= steps || lastNumber(workedText, strings.Join(k.results, "\n")) == at:
		return modeltest.Turn{Text: "That is done."}
	}
	return k.calls("bash", map[string]any{"command": fmt.Sprintf("sh work.sh %d keep", at)},
		"write", map[string]any{"path": "counter", "content": counterAt(at + 1)})
}

// task does ten steps, and then a reviewer looks at them.
func (k nightTalk) task(steps int) modeltest.Turn {
	if loop := lastNumber(loopText, k.user); loop >= 0 && strings.Contains(k.user, "review_output.toml") {
		if len(k.results) > 0 {
			return modeltest.Turn{Text: "Reviewed."}
		}
		return k.calls("write", map[string]any{"path": ".codescribe/loop/review_output.toml",
			"content": fmt.Sprintf("loop = %d\nsummary = \"\"\nblocker = \"\"\n\n[[pending]]\nitem = \"go on\"\n", loop)})
	}
	at := k.seen()
	if at < 0 {
		return k.calls("bash", map[string]any{"command": "cat counter"})
	}
	next := max(at, lastNumber(workedText, strings.Join(k.results, "\n"))+1)
	switch {
	case next >= steps:
		return modeltest.Turn{Text: "<final_answer>\nSTATUS: COMPLETE\nIt counts.\n</final_answer>"}
	case k.fresh >= 10:
		return modeltest.Turn{Text: "<final_answer>\nSTATUS: INCOMPLETE\nNEXT STEPS:\n- go on\n</final_answer>"}
	}
	return k.calls("bash", map[string]any{"command": fmt.Sprintf("sh work.sh %d", next)})
}

// calls returns a turn that calls tools: names and arguments alternate.
func (k nightTalk) calls(namesAndArgs ...any) (turn modeltest.Turn) {
	for i := 0; i < len(namesAndArgs); i += 2 {
		args, _ := json.Marshal(namesAndArgs[i+1])
		turn.Calls = append(turn.Calls, model.Call{ID: fmt.Sprintf("call_%d_%d", k.turns, i/2), Name: namesAndArgs[i].(string), Args: string(args)})
	}
	return turn
}

// downText is what the suite of a phase observes after step $1.
var downText = regexp.MustCompile(`down-(\d+) 500`)

// answerNightPhase is the model of a phase that passes after so many steps.
func answerNightPhase(p phaseProject, body []byte, steps int) modeltest.Turn {
	turn := p.answer(body)
	if turn.Calls == nil || !strings.Contains(turn.Calls[0].Args, "/health 200") && !strings.Contains(turn.Calls[0].Args, "/health 500") {
		return turn
	}
	if n := lastNumber(downText, string(body)) + 1; n < steps {
		return bash(fmt.Sprintf("echo /health 500 down-%d > routes", n))
	}
	return bash("echo /health 200 ok > routes")
}

func (w nightWork) write(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		at := filepath.Join(w.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// git runs git as the user does, and returns what it prints.
func (w nightWork) git(t *testing.T, args ...string) string {
	t.Helper()
	c := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@t"}, args...)...)
	c.Dir = w.dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// command returns a command that runs hone on the work.
func (w nightWork) command(provider string, args ...string) *exec.Cmd {
	c := exec.Command("hone", args...)
	c.Dir = w.dir
	c.Env = append(os.Environ(), "HONE_TEST_KILL=", "OPENAI_BASE_URL=http://"+provider+"/v1", "OPENAI_API_KEY=k",
		"XDG_CACHE_HOME="+w.cache, "XDG_STATE_HOME="+filepath.Join(w.cache, "state"), "GIT_CONFIG_GLOBAL="+os.DevNull, promptExit)
	return c
}

// files returns the tree without the user's files, and without what counts
// rounds, which a killed check adds to.
func (w nightWork) files(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, w.dir+"/")
		switch {
		case err != nil:
			return err
		case d.IsDir():
			switch d.Name() {
			case ".git", ".hone", ".codescribe", "logs", "results":
				return fs.SkipDir
			}
			return nil
		case isMine(name), name == "abl.config.sh": // it names its directory
			return nil
		}
		text, err := os.ReadFile(path)
		if info, statErr := d.Info(); err == nil && statErr == nil {
			files[name] = info.Mode().String() + " " + string(text)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return files
}

// history returns the subjects of hone's commits.
func (w nightWork) history(t *testing.T) map[string]string {
	t.Helper()
	if w.project == nil {
		return nil
	}
	return w.project.outcome(t)
}

// isMine reports whether a file is the user's.
func isMine(name string) bool { return strings.Contains(name, "mine") }
