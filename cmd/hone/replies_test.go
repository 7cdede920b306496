package main

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hone"
	"hone/check"
	"hone/internal/crashtest"
	"hone/internal/git"
	"hone/loop"
	"hone/loop/implement"
	"hone/loop/reconcile"
	"hone/model"
	"hone/model/texttools"
	"hone/tool"
)

const (
	wrongCalc = "\"\"\"Arithmetic.\"\"\"\n\ndef add(a, b):\n    return a // b\n\ndef sub(a, b):\n    return a - b\n\ndef mul(a, b):\n    return a * b\n"
	asMeant   = "as meant"
	nothing   = "nothing changes"
	refused   = "refused: "
)

var rightCalc = strings.Replace(wrongCalc, "//", "+", 1)

func wrongTree() map[string]string {
	return map[string]string{"calc.py": wrongCalc, "dos.py": strings.ReplaceAll(wrongCalc, "\n", "\r\n"), "old.py": "x = 1\n"}
}

// rightTrees are the trees that replies can mean.
func rightTrees() []map[string]string {
	var trees []map[string]string
	for _, change := range []func(map[string]string){
		func(f map[string]string) { f["calc.py"] = rightCalc },
		func(f map[string]string) { f["dos.py"] = strings.ReplaceAll(rightCalc, "\n", "\r\n") },
		func(f map[string]string) { delete(f, "old.py") },
		func(f map[string]string) { f["new.py"] = rightCalc },
	} {
		tree := wrongTree()
		change(tree)
		trees = append(trees, tree)
	}
	return trees
}

// TestReplies sends each reply of docs/replies.md through its loop.
func TestReplies(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/replies.md")
	if err != nil {
		t.Fatal(err)
	}
	loops := map[string]func(hone.Role, *hone.Run) hone.Round{
		"implement": implementRound, "reconcile": reconcileRound(t), "tool calls": toolRound, "tool calls as text (`--tools text`)": toolRound,
	}
	row := regexp.MustCompile("^\\| `` (.*) `` \\| (.*) \\|$")
	section, rows := "", 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = title
		}
		m := row.FindStringSubmatch(line)
		if m == nil {
			if strings.HasPrefix(line, "| ``") {
				t.Errorf("not a row: %s", line)
			}
			continue
		}
		rows++
		section, reply, want, round := section, fillIn(m[1]), strings.ReplaceAll(m[2], `\|`, "|"), loops[section]
		t.Run(section+"/"+want, func(t *testing.T) {
			t.Parallel()
			s := &replyScene{first: asReply(section, reply), native: section == "tool calls"}
			if strings.HasPrefix(section, "tool") {
				s.reads = true
			}
			got := s.play(t, section, round)
			if !strings.HasPrefix(want, got) || got == "refused" && !strings.Contains(s.said, strings.TrimPrefix(want, refused)) {
				t.Errorf("%s\nis %s, want %s\nthe model was sent: %s", reply, got, want, s.said)
			}
		})
	}
	if rows < 100 {
		t.Errorf("%d rows", rows)
	}
}

// fillIn replaces the signs of the table.
func fillIn(cell string) string {
	js, _ := json.Marshal(rightCalc)
	head := rightCalc[:strings.Index(rightCalc, "def sub")]
	return strings.NewReplacer(`\|`, "|", "⏎", "\n", "␍", "\r", "⇥", "\t", "{new}", rightCalc, "{head}", head, "{json}", string(js)).Replace(cell)
}

// asReply returns the model's reply of a row; in native tool calls it is the tool's
// name and its arguments.
func asReply(section, text string) model.Reply {
	if section != "tool calls" {
		return model.Reply{Parts: []model.Part{{Text: text}}, Finish: model.Stop}
	}
	name, args, _ := strings.Cut(text, " ")
	return model.Reply{Parts: []model.Part{{Call: &model.Call{ID: "1", Name: name, Args: args}}}, Finish: model.Calls}
}

// replyScene plays one reply. It is the model: it reads the files first if the loop
// has tools, then gives the reply, and then one that changes nothing.
type replyScene struct {
	first         model.Reply
	native, reads bool
	given         bool
	said          string // what the model was sent after the reply
}

func (s *replyScene) Generate(_ context.Context, req model.Request) (model.Reply, error) {
	usage := &model.Usage{Input: 1, Output: 1}
	switch {
	case s.reads:
		s.reads = false
		r := model.Reply{Finish: model.Calls, Usage: usage}
		var texts []string
		for _, path := range []string{"calc.py", "dos.py", "old.py"} {
			call := model.Call{ID: path, Name: "read", Args: `{"path": "` + path + `"}`}
			r.Parts = append(r.Parts, model.Part{Call: &call})
			texts = append(texts, texttools.Format(call))
		}
		if !s.native {
			r = model.Reply{Parts: []model.Part{{Text: strings.Join(texts, "")}}, Finish: model.Stop, Usage: usage}
		}
		return r, nil
	case !s.given:
		s.given = true
		s.first.Usage = usage
		return s.first, nil
	case s.said == "":
		last := req.Messages[len(req.Messages)-1]
		for _, p := range last.Parts {
			s.said += p.Text
			if p.Result != nil {
				s.said += p.Result.Text
			}
		}
	}
	return model.Reply{Parts: []model.Part{{Text: "DONE\n$$$start\nnothing\n$$$end\n{\"delete\": []}"}}, Finish: model.Stop, Usage: usage}, nil
}

// play returns what became of the reply: as meant, nothing changes, refused or
// misapplied.
func (s *replyScene) play(t *testing.T, section string, round func(hone.Role, *hone.Run) hone.Round) string {
	dir := t.TempDir()
	for name, content := range wrongTree() {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var m model.Model = s
	if strings.Contains(section, "as text") {
		m = texttools.Wrap(s)
	}
	crashtest.Process{Setup: func(r *hone.Run) hone.Round {
		r.Limits.Rounds = 2
		return round(hone.Role{Name: "editor", Model: m, Called: "test/model", MaxOutput: 4096, TextCalls: strings.Contains(section, "as text")}, r)
	}}.End(t, dir)
	tree := treeOf(t, dir)
	for _, right := range rightTrees() {
		if maps.Equal(tree, right) {
			return asMeant
		}
	}
	switch {
	case !maps.Equal(tree, wrongTree()):
		return "misapplied"
	case s.said == "":
		return nothing
	}
	return "refused"
}

func treeOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || e.Name() == "logs" || e.Name() == implement.OutputName {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			content = []byte("not a file")
		}
		tree[e.Name()] = string(content)
	}
	return tree
}

func implementRound(role hone.Role, r *hone.Run) hone.Round {
	l := implement.Loop{Coder: role, Settings: loop.Settings{Task: "Fix add."}}
	r.Rules = l.Rules()
	return l.Round
}

// reconcileRound uses one empty repository for all rows: the diff of the specs does
// not matter here.
func reconcileRound(t *testing.T) func(hone.Role, *hone.Run) hone.Round {
	dir := t.TempDir()
	if out, err := exec.Command("git", "-C", dir, "init", "-q", "-b", "main").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	found, err := git.Find("")
	if err != nil {
		t.Fatal(err)
	}
	repo, err := found.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return func(role hone.Role, r *hone.Run) hone.Round {
		l := reconcile.Loop{Editor: role, Repo: repo}
		r.Rules = l.Rules()
		return l.Round
	}
}

func toolRound(role hone.Role, r *hone.Run) hone.Round {
	role.Tools = []tool.Tool{tool.Read(r.Tree, nil), tool.Write(r.Tree, nil, r.Apply), tool.Edit(r.Tree, nil, r.Apply)}
	role.Answered = func(text string) string {
		if strings.HasPrefix(text, "DONE") {
			return ""
		}
		return "That is not your answer."
	}
	return func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		_, err := r.Talk(ctx, role, []model.Message{{Role: model.User, Parts: []model.Part{{Text: "Fix add."}}}})
		return nil, err
	}
}
