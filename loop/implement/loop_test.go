package implement_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/check"
	"hone/internal/config"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/loop"
	"hone/loop/implement"
	"hone/model"
	"hone/sandbox/wall"
	"hone/workspace"
)

// files furnishes a folder. What begins with #! can be run.
func files(t testing.TB, dir string, contents map[string]string) {
	t.Helper()
	for name, content := range contents {
		at, mode := filepath.Join(dir, name), fs.FileMode(0o644)
		if strings.HasPrefix(content, "#!") {
			mode = 0o755
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(content), mode)); err != nil {
			t.Fatal(err)
		}
	}
}

// process is one life of a program that implements.
type process struct {
	loop    implement.Loop // its Coder's Model is filled in
	model   model.Model
	rounds  int
	max     int // bytes of the build's output in a prompt
	list    workspace.Lister
	observe journal.Observer
}

func (p process) live(t testing.TB, dir string) hone.End {
	t.Helper()
	return crashtest.RunProcess(t, dir, p.list, p.observe, func(r *hone.Run) hone.Round {
		l := p.loop
		l.Coder = hone.Role{Name: "coder", Model: p.model, Called: "test/model", System: "Answer in blocks.", MaxOutput: 4096, Context: l.Coder.Context}
		if l.Task == "" {
			l.Task = "Say done."
		}
		r.Rules, r.Own, r.Limits.Rounds = l.Rules(), implement.Own, max(p.rounds, 1)
		r.Check = l.BuildCheck(r, wall.None{Grace: 50 * time.Millisecond},
			check.BuildConfig{Program: check.Program{Dir: dir, Env: []string{"PATH=" + os.Getenv("PATH")}, Timeout: time.Minute}, MaxText: p.max})
		return l.Round
	})
}

// recorder answers with its replies in order, and keeps what it was asked.
type recorder struct {
	replies []string
	finish  map[int]model.Finish // of a reply that is no Stop
	asked   []model.Request
}

func (m *recorder) Generate(_ context.Context, req model.Request) (model.Reply, error) {
	m.asked = append(m.asked, req)
	if req.Seq >= len(m.replies) {
		return model.Reply{}, &model.Error{Kind: model.Invalid, Message: "no more replies"}
	}
	reply := answer(m.replies[req.Seq])
	if f, ok := m.finish[req.Seq]; ok {
		reply.Finish = f
	}
	return reply, nil
}

func answer(text string) model.Reply {
	return model.Reply{Parts: []model.Part{{Text: text}}, Finish: model.Stop, Usage: &model.Usage{Input: 100, Output: 10},
		Raw: json.RawMessage(`{"candidates":[]}`)}
}

func prompt(r model.Request) string {
	var b strings.Builder
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// added is what the request of a round says beyond the one before it.
func added(t *testing.T, m *recorder, round int) string {
	t.Helper()
	if len(m.asked) < round {
		t.Fatalf("there were %d requests", len(m.asked))
	}
	if round == 1 {
		return prompt(m.asked[0])
	}
	text, ok := strings.CutPrefix(prompt(m.asked[round-1]), prompt(m.asked[round-2]))
	if !ok {
		t.Fatalf("the prompt of round %d does not begin with the one before", round)
	}
	return text
}

// logs reads the run's log folder, whose name holds the time.
func logs(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for name, text := range crashtest.Tree(t, dir) {
		if rest, ok := strings.CutPrefix(name, "logs/"); ok {
			_, file, _ := strings.Cut(rest, "/")
			if _, twice := found[file]; twice {
				t.Errorf("there is more than one %s", file)
			}
			found[file] = text
		}
	}
	return found
}

// untilDone is a build that passes when the file a says done.
const untilDone = "#!/bin/sh\necho \"a says $(cat a)\"\necho \"looked\" >&2\ngrep -q done a\n"

func TestCrashAtEveryPoint(t *testing.T) {
	crashtest.Scene{
		CompareRequests: true,
		Replies: []model.Reply{
			answer("&&&start\nfirst thought\n&&&end\n^^^a\none\n"),
			answer("&&&start\nsecond\n&&&end\n&&&start\nthird\n&&&end\n^^^.git/config\nno\n^^^end\n^^^a\nnot written\n^^^end\n"),
			answer("%%%start\nnote\n%%%end\n^^^a\ntwo\n^^^end\n^^^sub/b\nbee\n^^^end\n"),
			answer("&&&start\nlast\n&&&end\n^^^a\ndone\n^^^end\n"),
		},
		Setup: func(t testing.TB, dir string) {
			files(t, dir, map[string]string{"a": "zero\n", "build.sh": untilDone, "llm-user-output.txt": "of an earlier run\n---\n"})
		},
		Play: func(t testing.TB, dir string, m model.Model, o journal.Observer) hone.End {
			end := process{model: m, rounds: 8, observe: o}.live(t, dir)
			timeless(t, dir)
			return end
		},
	}.Run(t)
}

// timeless gives the log folder a name that does not hold the time. One that a
// killed process made and did not record is empty.
func timeless(t testing.TB, dir string) {
	t.Helper()
	folders, err := os.ReadDir(filepath.Join(dir, "logs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		at := filepath.Join(dir, "logs", f.Name())
		if left, err := os.ReadDir(at); err != nil || len(left) == 0 {
			continue
		}
		if err := os.Rename(at, filepath.Join(dir, "logs", "run")); err != nil {
			t.Fatal(err)
		}
	}
}

// Each log has all that was sent (ruling C9), also after outputs of earlier rounds were shortened.
func TestLogsOfManyRounds(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"a": "zero\n", "build.sh": "#!/bin/sh\nfalse\n"})
	m := &recorder{}
	for i := range 12 {
		m.replies = append(m.replies, fmt.Sprintf("^^^a\n%s\n^^^end\n", strings.Repeat(fmt.Sprintf("%d ", i), 5000)))
	}
	process{model: m, rounds: 12}.live(t, dir)
	found := logs(t, dir)
	for round := 1; round <= 12; round++ {
		if found[fmt.Sprintf("query-%d.txt", round)] != "Answer in blocks.\n\n"+prompt(m.asked[round-1]) {
			t.Errorf("round %d: the log is not the query", round)
		}
	}
}

// TestHistory: rulings C1, C3, C7, C8 and C9, and G3 for the reply that was
// cut. Each prompt begins with the whole of the one before, and repeats an unusable
// reply as it was.
func TestHistory(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"a": "zero\n", "build.sh": untilDone, "codeRollup.txt": "====\n--- File: ./a\r\n====\nzero"})
	var said []string
	m := &recorder{
		replies: []string{
			"Some prose.\n&&&start\nfor you\n&&&end\n%%%start\nI assume A.\n%%%end\n```\n ^^^ a  \r\none\r\n  ^^^ end",
			"&&&start\nread this all the same\n&&&end\n%%%start\nI assume B.\n%%%end\n^^^c\ncee\n^^^end\n^^^a\ntwo\n",
			"$$$start\nIt is right.\n$$$end\n",
			"^^^a\nhalf\n^^^end\n",
			"^^^a\ndone\n^^^end\n",
		},
		finish: map[int]model.Finish{3: model.Length},
	}
	l := implement.Loop{Settings: loop.Settings{Task: "Say done.\r\n"}, Say: func(text string) { said = append(said, text) }}
	if end := (process{loop: l, model: m, rounds: 8}).live(t, dir); end.Kind != hone.KindDone || end.Rounds != 5 {
		t.Fatalf("%+v", end)
	}
	want := []string{
		"Say done.\n\n====\n--- File: ./a\r\n====\nzero\n",
		`
The above query was provided, and you provided the following data in your response

%%%start
I assume A.
%%%end

^^^a
` + "one\r" + `
^^^end

When the file replacements were made, the build provided the following output:

STDOUT:
` + "a says one" + `


STDERR:
looked


build.sh: exit status 1
`, `
You then provided the following data in your subsequent response

&&&start
read this all the same
&&&end
%%%start
I assume B.
%%%end
^^^c
cee
^^^end
^^^a
two

The response could not be used: no file was written and the build did not run.

- line 10: ^^^a is not closed; write ^^^end alone on a line after its text
`, `
You then provided the following data in your subsequent response

$$$start
It is right.
$$$end

When the file replacements were made, the build provided the following output:

STDOUT:
` + "a says one" + `


STDERR:
looked


build.sh: exit status 1
No file has changed since the round before, so the findings are the same. A solution in words is not enough: make the change. If no change can help, say what the user has to do.
`, `
You then provided the following data in your subsequent response

^^^a
half
^^^end

The response could not be used: no file was written and the build did not run.

- it reached the output limit. Make a smaller change in one reply, and leave out files that stay as they are
`}
	kept := logs(t, dir)
	for i, w := range want {
		if diff := cmp.Diff(w, added(t, m, i+1)); diff != "" {
			t.Errorf("prompt %d adds (-want +got):\n%s", i+1, diff)
		}
		if diff := cmp.Diff("Answer in blocks.\n\n"+prompt(m.asked[i]), kept["query-"+string(rune('1'+i))+".txt"]); diff != "" {
			t.Errorf("the log of query %d: %s", i+1, diff)
		}
	}
	for name, w := range map[string]string{
		"query-1-response.json": "{\"candidates\":[]}\n",
		"query-2-response.txt":  m.replies[1],
		"query-1-build.txt":     "STDOUT:\na says one\n\n\nSTDERR:\nlooked\n\n\nbuild.sh: exit status 1\n",
		"query-2-build.txt":     "The response could not be used: no file was written and the build did not run.\n\n- line 10: ^^^a is not closed; write ^^^end alone on a line after its text\n",
		"query-5-build.txt":     "STDOUT:\na says done\n\n\nSTDERR:\nlooked\n\n",
	} {
		if diff := cmp.Diff(w, kept[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if len(kept) != 20 {
		t.Errorf("%d logs", len(kept))
	}
	if diff := cmp.Diff([]string{"for you", "read this all the same", "It is right."}, said); diff != "" {
		t.Errorf("what was said: %s", diff)
	}
	tree := crashtest.Tree(t, dir)
	if tree["llm-user-output.txt"] != "for you\n---\nread this all the same\n---\n" || tree["c"] != "" {
		t.Errorf("%v", tree)
	}
}

// Files that a reply created are named, so that a wrong name is noticed. Of a long
// unusable reply the middle is omitted.
func TestHistoryNamesNewFiles(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"a": "zero\n", "build.sh": untilDone})
	long := strings.Repeat("no block\n", 10_000)
	m := &recorder{replies: []string{"^^^b c\none\n^^^end\n^^^a\none\n^^^end\n", long, "^^^a\ndone\n^^^end\n"}}
	if end := (process{model: m, rounds: 8}).live(t, dir); end.Kind != hone.KindDone {
		t.Fatalf("%+v", end)
	}
	if text := added(t, m, 2); !strings.Contains(text, "^^^end\n\nIt created these files: \"b c\"\n\nWhen the file replacements were made") {
		t.Errorf("%s", text)
	}
	if text := added(t, m, 3); len(text) > 20_000 || !strings.Contains(text, "bytes omitted ...]") {
		t.Errorf("%d bytes: %.500s", len(text), text)
	}
}

// Long outputs of earlier rounds are shortened, all at once; that of the last round is
// whole. Until then each prompt begins with the one before.
func TestOldOutputsAreShortened(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"a": "zero\n", "build.sh": "#!/bin/sh\nseq 6000\ncat a\ngrep -q done a\n"})
	m := &recorder{}
	for i := range 7 {
		m.replies = append(m.replies, fmt.Sprintf("^^^a\n%d\n^^^end\n", i))
	}
	m.replies = append(m.replies, "^^^a\ndone\n^^^end\n")
	if end := (process{model: m, rounds: 8}).live(t, dir); end.Kind != hone.KindDone {
		t.Fatalf("%+v", end)
	}
	broken := 0
	for i := range m.asked {
		text := prompt(m.asked[i])
		if len(text) > 120_000 || i > 0 && !strings.Contains(text[max(0, len(text)-28_000):], "\n3000\n") {
			t.Errorf("prompt %d has %d bytes", i+1, len(text))
		}
		if i > 0 && !strings.HasPrefix(text, prompt(m.asked[i-1])) {
			broken++
		}
	}
	if broken != 1 && broken != 2 {
		t.Errorf("%d prompts do not begin with the one before", broken)
	}
}

// TestRequestsBeginAlike measures what a provider's prompt cache can reuse:
// each request's JSON repeats the one before, up to the end of its last part.
func TestRequestsBeginAlike(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"a": "zero\n", "build.sh": untilDone, "src/big": strings.Repeat("a line that does not change\n", 200)})
	m := &recorder{replies: []string{"^^^a\none\n^^^end\n", "no block", "^^^a\ntwo\n^^^end\n", "^^^a\ndone\n^^^end\n"}}
	if end := (process{model: m, rounds: 8}).live(t, dir); end.Kind != hone.KindDone {
		t.Fatalf("%+v", end)
	}
	var sent [][]byte
	for i, req := range m.asked {
		b, err := json.Marshal(req)
		if err != nil {
			t.Fatal(err)
		}
		parts := req.Messages[0].Parts
		if len(req.Messages) != 1 || len(parts) != i+1 || !parts[i].Cache || req.System != "Answer in blocks." {
			t.Fatalf("request %d: %s", i+1, b)
		}
		sent = append(sent, b)
	}
	const closing = "]}]}" // of the parts, the message, the messages and the request
	for i := 1; i < len(sent); i++ {
		before := strings.TrimSuffix(string(sent[i-1]), closing)
		if len(before)+len(closing) != len(sent[i-1]) || !strings.HasPrefix(string(sent[i]), before+",") {
			t.Errorf("request %d does not begin as the one before:\n%s\n%s", i+1, sent[i-1], sent[i])
		}
		t.Logf("request %d: %d of %d bytes are those of the one before", i+1, len(before), len(sent[i]))
	}
}

// A run has eight choices of files (ruling C14); a ninth is a reply without blocks.
func TestChoicesAreLimited(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"a": "zero\n", "b": "unseen\n", "build.sh": untilDone})
	m := &recorder{replies: []string{`{"files": []}`, "^^^a\none\n^^^end\n"}}
	for range 8 {
		m.replies = append(m.replies, `{"files": ["a"]}`)
	}
	m.replies = append(m.replies, "^^^a\ndone\n^^^end\n")
	end := process{loop: implement.Loop{Settings: loop.Settings{Values: config.Values{config.SelectAbove.Name: int64(1)}}}, model: m, rounds: 8}.live(t, dir)
	if end.Kind != hone.KindDone || end.Rounds != 3 || len(m.asked) != 11 {
		t.Fatalf("%+v after %d calls", end, len(m.asked))
	}
	for i, wanted := range map[int]string{2: `to get its contents, answer with {"files": ["a"]} only`, 9: "No more files can be asked for.", 10: "neither a file nor a $$$ block"} {
		if text := prompt(m.asked[i]); !strings.Contains(text, wanted) {
			t.Errorf("request %d has no %q:\n%s", i+1, wanted, text)
		}
	}
}
