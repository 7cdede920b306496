//go:build unix

package phase_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hone/history"
	"hone/internal/crashtest/waittest"
	"hone/journal"
	"hone/loop"
	"hone/model"
)

// turn is one reply, and whose it is.
type turn struct {
	role  string
	reply model.Reply
}

func say(text string) model.Reply {
	return model.Reply{Parts: []model.Part{{Text: text}}, Finish: model.Stop, Usage: &model.Usage{Input: 100, Output: 10}}
}

// call is a reply with one call; its arguments are pairs.
func call(name string, pairs ...string) model.Reply {
	args := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		args[pairs[i]] = pairs[i+1]
	}
	return model.Reply{Finish: model.Calls, Usage: &model.Usage{Input: 100, Output: 10},
		Parts: []model.Part{{Call: &model.Call{ID: "c", Name: name, Args: string(must(json.Marshal(args)))}}}}
}

func builder(replies ...model.Reply) []turn  { return turns("builder", replies) }
func verifier(replies ...model.Reply) []turn { return turns("verifier", replies) }

func turns(role string, replies []model.Reply) (all []turn) {
	for _, r := range replies {
		all = append(all, turn{role, r})
	}
	return all
}

// ask has the verifier ask the server, once for each contract.
func ask() model.Reply { return call("bash", "command", reach()) }

// reach is a command that asks the server once for each contract.
func reach() string {
	return binary() + " " + asClient + ` "$DEV_URL/CANARY-TEST"; ` + binary() + " " + asClient + ` "$DEV_URL"`
}

// suite is the session that writes the suite.
func suite() []turn {
	return verifier(call("write", "path", "suite.sh", "content", "# CANARY-TEST\n"), say("written"))
}

// build is a session that makes the server answer something.
func build(answer string) []turn {
	return builder(call("write", "path", "answer", "content", answer+"\n"), say("built"))
}

// failed is what the verifier writes of a contract.
const failed = "SPEC: GET / → 200 {hello}\nINPUT: GET /\nOBSERVED: 200 {no}\n"

// fail is a session that finds a contract broken.
func fail() []turn {
	return verifier(ask(), call("write", "path", "failed_specs.md", "content", failed), say("one fails"))
}

// pass is a session that finds none. It asks twice, as one of its commands may
// be cut off.
func pass() []turn { return verifier(ask(), ask(), say("all pass")) }

func script(sessions ...[]turn) *recorder { return &recorder{turns: slices.Concat(sessions...)} }

// recorder answers with its turns in order, and keeps what it was asked.
type recorder struct {
	turns []turn
	asked []asked
}

type asked struct {
	role string
	model.Request
}

func (m *recorder) Generate(_ context.Context, req model.Request) (model.Reply, error) {
	role := roleOf(req)
	m.asked = append(m.asked, asked{role, req})
	if req.Seq >= len(m.turns) {
		return model.Reply{}, &model.Error{Kind: model.Invalid, Message: fmt.Sprintf("there is no turn %d", req.Seq)}
	}
	if next := m.turns[req.Seq]; next.role == role {
		return next.reply, nil
	}
	return model.Reply{}, &model.Error{Kind: model.Invalid, Message: fmt.Sprintf("turn %d is not the %s's", req.Seq, role)}
}

func roleOf(req model.Request) string {
	if strings.HasPrefix(req.System, "You build.") {
		return "builder"
	}
	return "verifier"
}

// first is the first message of each session: whose it is, and all of it.
func (m *recorder) first() (all []asked) {
	for _, a := range m.asked {
		if len(a.Messages) == 1 {
			all = append(all, a)
		}
	}
	return all
}

// prompt is the text of a session's first message.
func (a asked) prompt() string {
	var b strings.Builder
	for i, p := range a.Messages[0].Parts {
		if i > 0 {
			b.WriteString("[next part]\n")
		}
		b.WriteString(p.Text + "\n")
	}
	return b.String()
}

// everything is all that was sent.
func (a asked) everything() string {
	return a.System + string(must(json.Marshal(a.Messages))) + string(must(json.Marshal(a.Tools)))
}

func holds(t testing.TB, what, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %q: %q", what, want, text[max(0, len(text)-4000):])
		}
	}
}

func lacks(t testing.TB, what, text string, bad ...string) {
	t.Helper()
	for _, one := range bad {
		if i := strings.Index(text, one); i >= 0 {
			t.Errorf("%s holds %q: … %q …", what, one, text[max(0, i-100):min(len(text), i+100)])
		}
	}
}

// commits are a repository's messages, the oldest first, with the trailers'
// ids made one.
func commits(t testing.TB, dir, repo string) string {
	t.Helper()
	c := exec.Command("git", "log", "--reverse", "--format=%B%an <%ae>")
	c.Dir = filepath.Join(dir, repo)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("git log: %v\n%s", err, out)
	}
	var b strings.Builder
	for line := range strings.Lines(string(out)) {
		for _, name := range []string{"Hone-Run: ", "Hone-Specs: "} {
			if id, ok := strings.CutPrefix(line, name); ok && len(id) > 1 {
				line = name + "X\n"
			}
		}
		if line != "\n" {
			b.WriteString(line)
		}
	}
	return b.String()
}

// subjects are the subjects of a repository's commits.
func subjects(t testing.TB, dir, repo string) string {
	t.Helper()
	var some []string
	for line := range strings.Lines(commits(t, dir, repo)) {
		if strings.HasPrefix(line, "phase") {
			some = append(some, strings.TrimSpace(line))
		}
	}
	return strings.Join(some, " ")
}

// tracked are the files of a repository's last commit.
func tracked(t testing.TB, dir, repo string) string {
	t.Helper()
	c := exec.Command("git", "ls-tree", "-r", "--name-only", "HEAD")
	c.Dir = filepath.Join(dir, repo)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("git ls-tree: %v\n%s", err, out)
	}
	return strings.Join(strings.Fields(string(out)), " ")
}

// events are those of a project's one run.
func events(t testing.TB, dir string) []journal.Event {
	t.Helper()
	home := must(journal.OpenHome(dir))
	defer home.Close()
	j := must(home.Open(must(home.FindRun("last"))))
	defer j.Close()
	return j.Events()
}

// verdicts words what each round of a project's one run found of the contracts.
func verdicts(t testing.TB, dir string) string {
	t.Helper()
	home := must(journal.OpenHome(dir))
	defer home.Close()
	var b strings.Builder
	for _, v := range must(loop.VerifiedOf(history.Read(must(home.Read(must(home.FindRun("last"))))), home.Get)) {
		fmt.Fprintf(&b, "%s:", v.Text)
		for i, round := range slices.Sorted(maps.Keys(v.Rounds)) {
			fmt.Fprintf(&b, "%s %d %s", []string{"", ","}[min(i, 1)], round, v.Rounds[round])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// count is how many events of a type have a text in their line.
func count(t testing.TB, dir string, typ journal.Type, text string) int {
	t.Helper()
	n := 0
	for _, e := range events(t, dir) {
		if e.Type == typ && strings.Contains(string(e.Line()), text) {
			n++
		}
	}
	return n
}

// read returns a file of a project; empty if it does not exist.
func read(dir, name string) string {
	b, _ := os.ReadFile(filepath.Join(dir, name))
	return string(b)
}

// gone checks that nothing of a project's server is left. On systems without
// /proc it cannot see.
func gone(t testing.TB, dir string) {
	t.Helper()
	var left []string
	if !waittest.Until(func() bool { left = running(dir); return len(left) == 0 }) {
		t.Errorf("processes are left: %q", left)
	}
}

// running are the processes whose last argument is a mark.
func running(mark string) (found []string) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, at := range lines {
		b, _ := os.ReadFile(at)
		args := strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
		if len(args) > 2 && strings.HasPrefix(args[1], "hone-phase-") && args[len(args)-1] == mark {
			found = append(found, strings.Join(args, " "))
		}
	}
	return found
}
