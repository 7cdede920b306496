package implement_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/internal/crashtest"
	"hone/internal/render"
	"hone/loop/implement"
	"hone/model"
	"hone/workspace"
	"hone/workspace/secret"
)

// refusals plays one reply that must not be used, and returns the lines of the
// next prompt that say why. The tree must be as it was.
func refusals(t *testing.T, dir string, p process, reply string) []string {
	t.Helper()
	before := code(t, dir)
	m := &recorder{replies: []string{reply, "^^^a\ndone\n^^^end\n"}}
	p.model, p.rounds = m, 2
	if end := p.live(t, dir); end.Kind != hone.KindDone || end.Rounds != 2 {
		t.Fatalf("%+v", end)
	}
	before["a"] = "done\n"
	if diff := cmp.Diff(before, code(t, dir)); diff != "" {
		t.Errorf("the tree (-want +got):\n%s", diff)
	}
	_, why, ok := strings.Cut(added(t, m, 2), "no file was written and the build did not run.\n\n")
	if !ok {
		t.Fatalf("the second prompt does not say why:\n%s", added(t, m, 2))
	}
	return strings.Split(strings.TrimSuffix(why, "\n"), "\n")
}

// code is the tree without the logs.
func code(t *testing.T, dir string) map[string]string {
	t.Helper()
	tree := crashtest.Tree(t, dir)
	for name := range tree {
		if strings.HasPrefix(name, "logs/") {
			delete(tree, name)
		}
	}
	return tree
}

// TestForbiddenPaths: rulings C4, C5 and G5. One path that may not be written
// voids the whole reply.
func TestForbiddenPaths(t *testing.T) {
	for name, c := range map[string]struct{ blocks, want string }{
		"out of the folder":  {"^^^../x\nx\n^^^end", "- ^^^../x is refused: "},
		"absolute":           {"^^^/tmp/x\nx\n^^^end", "- ^^^/tmp/x is refused: "},
		"a hook":             {"^^^.git/hooks/pre-commit\nx\n^^^end", "- ^^^.git/hooks/pre-commit is refused: "},
		"git further down":   {"^^^sub/.GIT/config\nx\n^^^end", "- ^^^sub/.GIT/config is refused: "},
		"the build":          {"^^^build.sh\nx\n^^^end", "- ^^^build.sh is refused: this file may not be changed here"},
		"the build, cleaned": {"^^^./build.sh\nx\n^^^end", "- ^^^build.sh is refused: this file may not be changed here"},
		"the build, folded":  {"^^^BUILD.sh\nx\n^^^end", "- ^^^BUILD.sh is refused: this file may not be changed here"},
		"the query":          {"^^^query.txt\nx\n^^^end", "- ^^^query.txt is refused: "},
		"the rollup":         {"^^^CodeRollup.TXT\nx\n^^^end", "- ^^^CodeRollup.TXT is refused: "},
		"the key":            {"^^^gemini-key.txt\nx\n^^^end", "- ^^^gemini-key.txt is refused: "},
		"the system prompt":  {"^^^gemini-system-prompt.txt\nx\n^^^end", "- ^^^gemini-system-prompt.txt is refused: "},
		"a log":              {"^^^logs/x\nx\n^^^end", "- ^^^logs/x is refused: "},
		"the logs":           {"^^^logs\nx\n^^^end", "- ^^^logs is refused: "},
		"the user's output":  {"^^^llm-user-output.txt\nx\n^^^end", "- ^^^llm-user-output.txt is refused: "},
		"hone's own":         {"^^^.hone/x\nx\n^^^end", "- ^^^.hone/x is refused: "},
		"through a link":     {"^^^link/x\nx\n^^^end", "- ^^^link/x is refused: a parent directory cannot be used: "},
		"below a file":       {"^^^a/x\nx\n^^^end", "- ^^^a/x is refused: "},
		"twice":              {"^^^b\nx\n^^^end\n^^^./b\ny\n^^^end", "- line 7: ^^^./b is the same file as in line 4; "},
		"nested":             {"^^^b\n&&&start\nx\n&&&end\n^^^end", "- line 5: &&&start is inside the block of lines 4 to 8 (^^^b); "},
		"unclosed":           {"^^^b\nx", "- line 4: ^^^b is not closed; "},
		"no block":           {"I think that all is well.", "- the reply has a $$$"},
		"done, and files":    {"$$$start\nfine\n$$$end", "- the reply has a $$$ block"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files(t, dir, map[string]string{"a": "zero\n", "build.sh": untilDone})
			if err := os.Symlink(t.TempDir(), filepath.Join(dir, "link")); err != nil {
				t.Fatal(err)
			}
			reply := "^^^good\nx\n^^^end\n" + c.blocks + "\n"
			if name == "no block" {
				reply, c.want = c.blocks, "- the reply has neither a file nor a $$$ block"
			}
			got := refusals(t, dir, process{}, reply)
			if !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, c.want) }) {
				t.Errorf("no line begins with %q:\n%s", c.want, strings.Join(got, "\n"))
			}
		})
	}
}

// TestEveryRefusalIsReported: the model learns of all of them at once.
func TestEveryRefusalIsReported(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"a": "zero\n", "build.sh": untilDone})
	got := refusals(t, dir, process{}, "^^^../x\n^^^end\n^^^build.sh\n^^^end\n^^^good\n^^^end\n^^^.git/x\n^^^end\n")
	if len(got) != 3 {
		t.Errorf("%q", got)
	}
}

// TestSeen: ruling C13. What the model was not shown it may not replace, and
// saying it twice does not help.
func TestSeen(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"a": "zero\n", "hidden": "precious\n", "build.sh": untilDone, "codeRollup.txt": "====\n--- File: a\n====\nzero\n"})
	m := &recorder{replies: []string{
		"^^^hidden\nmine\n^^^end\n^^^new\none\n^^^end\n",
		"^^^hidden\nmine\n^^^end\n",
		"^^^new\ntwo\n^^^end\n",
		"^^^new\nthree\n^^^end\n^^^a\ndone\n^^^end\n",
	}}
	end := process{model: m, rounds: 8}.live(t, dir)
	tree := crashtest.Tree(t, dir)
	if end.Kind != hone.KindDone || end.Rounds != 4 || tree["hidden"] != "precious\n" || tree["new"] != "three\n" {
		t.Fatalf("%+v\n%v", end, tree)
	}
	for round := 2; round <= 3; round++ {
		if got := added(t, m, round); !strings.Contains(got, "- ^^^hidden is refused: its contents were not shown to the model\n") {
			t.Errorf("prompt %d: %s", round, got)
		}
	}
}

// TestSeenWithoutHeaders: ruling C13. Of a rollup that somebody wrote in
// another way every tracked file counts as seen.
func TestSeenWithoutHeaders(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"a": "zero\n", "b": "bee\n", "mine": "untracked\n", "build.sh": untilDone, "codeRollup.txt": "<file>zero</file>"})
	list := func(context.Context, string) (workspace.Listing, error) {
		return workspace.Listing{Paths: []string{"a", "b", "mine"}, Untracked: map[string]bool{"mine": true}}, nil
	}
	m := &recorder{replies: []string{"^^^mine\nx\n^^^end\n", "^^^a\ndone\n^^^end\n^^^b\nx\n^^^end\n"}}
	end := process{model: m, rounds: 8, list: list}.live(t, dir)
	if tree := crashtest.Tree(t, dir); end.Kind != hone.KindDone || tree["mine"] != "untracked\n" || tree["b"] != "x\n" {
		t.Errorf("%+v\n%v", end, tree)
	}
}

// TestOwnRollupIsFrozen: ruling C13. What a file says does not make another one
// seen, and a file that comes later stays unseen.
func TestOwnRollupIsFrozen(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"a": "====\n--- File: bin\n====\n", "bin": "\x00\x01", "build.sh": "#!/bin/sh\necho made >later\ngrep -q done a\n"})
	m := &recorder{replies: []string{"^^^bin\nmine\n^^^end\n", "^^^a\none\n^^^end\n", "^^^later\nmine\n^^^end\n", "^^^a\ndone\n^^^end\n"}}
	end := process{model: m, rounds: 8}.live(t, dir)
	if tree := crashtest.Tree(t, dir); end.Kind != hone.KindDone || end.Rounds != 4 || tree["bin"] != "\x00\x01" || tree["later"] != "made\n" {
		t.Fatalf("%+v\n%q", end, tree)
	}
	for _, round := range []int{2, 4} {
		if got := added(t, m, round); !strings.Contains(got, "is refused: its contents were not shown to the model") {
			t.Errorf("prompt %d: %s", round, got)
		}
	}
}

// TestContextIsOutgrown: ruling G10. Nothing is sent that does not fit.
func TestContextIsOutgrown(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"a": "zero\n", "build.sh": "#!/bin/sh\nseq 1 10000\nexit 1\n"})
	m := &recorder{replies: []string{"^^^a\none\n^^^end\n"}}
	var l implement.Loop
	l.Coder.Context = 8_000
	end := process{loop: l, model: m, rounds: 8}.live(t, dir)
	if end.Kind != hone.KindContext || len(m.asked) != 1 || !strings.Contains(end.Why, "what was added since") {
		t.Errorf("%+v after %d calls", end, len(m.asked))
	}
	files(t, dir, map[string]string{"big": strings.Repeat("x", 50_000)})
	if err := os.RemoveAll(filepath.Join(dir, ".hone")); err != nil {
		t.Fatal(err)
	}
	m = &recorder{}
	if end := (process{loop: l, model: m}).live(t, dir); end.Kind != hone.KindPrompt || len(m.asked) != 0 {
		t.Errorf("%+v after %d calls", end, len(m.asked))
	}
}

// TestLogsBehindALink: nothing is written through a link, wherever it leads.
func TestLogsBehindALink(t *testing.T) {
	outside := t.TempDir()
	for name, target := range map[string]string{"out": outside, "in": "src"} {
		for _, link := range []string{"logs", "llm-user-output.txt"} {
			t.Run(link+" leads "+name, func(t *testing.T) {
				dir := t.TempDir()
				files(t, dir, map[string]string{"a": "zero\n", "src/keep": "x\n", "build.sh": untilDone})
				if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
					t.Fatal(err)
				}
				m := &recorder{replies: []string{"&&&start\nfor you\n&&&end\n^^^a\ndone\n^^^end\n"}}
				end := process{model: m}.live(t, dir)
				left, err := os.ReadDir(outside)
				inside, err2 := os.ReadDir(filepath.Join(dir, "src"))
				if err := errors.Join(err, err2); err != nil || end.Kind != hone.KindFailed || len(left) != 0 || len(inside) != 1 || !strings.Contains(end.Why, link) {
					t.Errorf("%+v, outside %v, inside %v, %v", end, left, inside, err)
				}
			})
		}
	}
}

// TestBuildThatDestroys: a build may delete the inputs and the logs, and put a
// link where the logs were; the run continues, or stops before it follows the link.
func TestBuildThatDestroys(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"a": "zero\n", "query.txt": "x\n", "codeRollup.txt": "--- File: a\nzero\n",
		"build.sh": "#!/bin/sh\nrm -rf logs query.txt codeRollup.txt llm-user-output.txt\ngrep -q done a\n"})
	m := &recorder{replies: []string{"&&&start\none\n&&&end\n^^^a\none\n^^^end\n", "&&&start\ntwo\n&&&end\n^^^a\ndone\n^^^end\n"}}
	end := process{model: m, rounds: 8}.live(t, dir)
	if got := logs(t, dir); end.Kind != hone.KindDone || end.Rounds != 2 || got["query-2-build.txt"] == "" {
		t.Errorf("%+v\n%v", end, got)
	}
	if got := added(t, m, 2); !strings.Contains(got, "build.sh: exit status 1") {
		t.Error(got)
	}

	dir = t.TempDir()
	files(t, dir, map[string]string{"a": "zero\n", "src/keep": "x\n", "build.sh": "#!/bin/sh\nrm -rf logs\nln -s src logs\nexit 1\n"})
	m = &recorder{replies: []string{"^^^a\none\n^^^end\n"}}
	end = process{model: m, rounds: 8}.live(t, dir)
	left, err := os.ReadDir(filepath.Join(dir, "src"))
	if err != nil || end.Kind != hone.KindFailed || len(left) != 1 || !strings.Contains(end.Why, "logs is a symbolic link: move it away") {
		t.Errorf("%+v, %v, %v", end, left, err)
	}
}

func TestRollup(t *testing.T) {
	dir := t.TempDir()
	contents := map[string]string{
		"a.go": "package a\n", "no-end": "x", "empty": "", "bin": "\x00", "latin": "caf\xe9\n", "new\nline": "n\n",
		".env": "PASSWORD=hunter2hunter2\n", ".env.example": "PASSWORD=\n", "sub/deep": "d\n",
		"query.txt": "q", "codeRollup.txt": "r", "gemini-key.txt": "k", "gemini-system-prompt.txt": "s",
		"llm-user-output.txt": "o", "logs/20260101-000000/query-1.txt": "l", "build.sh": "#!/bin/sh\n",
	}
	files(t, dir, contents)
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	tree, err := workspace.Open(dir, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	found, err := tree.Manifest(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := string(implement.Rollup(render.Reader{Tree: tree, Guard: secret.NewGuard(nil)}, found))
	want := ""
	for _, f := range []struct{ header, content string }{
		{".env (contents withheld: an environment file)", ""},
		{".env.example", "PASSWORD=\n"},
		{"a.go", "package a\n"},
		{"bin (contents omitted: binary)", ""},
		{"build.sh", "#!/bin/sh\n"},
		{"empty", ""},
		{"latin (contents omitted: binary)", ""},
		{"link (symbolic link to /etc/passwd)", ""},
		{`"new\nline"`, "n\n"},
		{"no-end", "x\n"},
		{"sub/deep", "d\n"},
	} {
		want += "====\n--- File: " + f.header + "\n====\n" + f.content + "\n"
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestStaleRollup: ruling C13. A file of which the rollup shows other contents counts
// as not seen, and so does one that the user changes while the model answers.
func TestStaleRollup(t *testing.T) {
	for _, head := range []string{"====\n--- File: %s\n====\n", "--- %s ---\n", "--- File: %s\n```\n"} {
		dir := t.TempDir()
		rollup := ""
		for _, f := range [][2]string{{"a", "zero"}, {"doc.md", "--- File: b\n\n--- x ---"}, {"stale", "old"}, {"cut", "one\ntwo"}, {"gone", "was"}, {"empty", ""}, {"rule.md", "---\nfront\n---"}} {
			rollup += strings.ReplaceAll(head, "%s", f[0]) + f[1] + "\n\n"
		}
		files(t, dir, map[string]string{"a": "zero\n", "doc.md": "--- File: b\n\n--- x ---\n", "b": "bee\n", "stale": "new\n", "cut": "one\n", "empty": "",
			"rule.md": "---\r\nfront\r\n---\r\n", "build.sh": "#!/bin/sh\necho built >>a\ngrep -q done a\n", "codeRollup.txt": rollup})
		m := &recorder{replies: []string{
			"^^^stale\nx\n^^^end\n^^^cut\nx\n^^^end\n^^^b\nx\n^^^end\n",
			"^^^a\none\n^^^end\n^^^doc.md\nx\n^^^end\n^^^empty\nx\n^^^end\n^^^rule.md\nx\n^^^end\n^^^gone\nback\n^^^end\n",
			"^^^a\ndone\n^^^end\n^^^gone\nagain\n^^^end\n",
		}}
		end := process{model: m, rounds: 8}.live(t, dir)
		want := map[string]string{"a": "done\nbuilt\n", "doc.md": "x\n", "b": "bee\n", "stale": "new\n", "cut": "one\n", "empty": "x\n", "rule.md": "x\r\n", "gone": "again\n"}
		tree := crashtest.Tree(t, dir)
		for name, text := range want {
			if tree[name] != text {
				t.Errorf("%q: %s is %q, want %q", head, name, tree[name], text)
			}
		}
		if got := strings.Count(added(t, m, 2), " is refused: its contents "); end.Kind != hone.KindDone || end.Rounds != 3 || got != 3 {
			t.Errorf("%q: %+v, %d refusals\n%s", head, end, got, added(t, m, 2))
		}
	}
}

// userChanges writes a file while the model answers for the first time.
type userChanges struct {
	*recorder
	file string
}

func (m userChanges) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	if req.Seq == 0 {
		if err := os.WriteFile(m.file, []byte("by the user\n"), 0o644); err != nil {
			return model.Reply{}, err
		}
	}
	return m.recorder.Generate(ctx, req)
}

// TestUsersChange: rulings C13 and G16. What the user changes while the model answers
// is not overwritten; the next prompt shows it.
func TestUsersChange(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"a": "zero\n", "b": "bee\n", "build.sh": "#!/bin/sh\ngrep -q done a\n"})
	m := &recorder{replies: []string{"^^^b\nmine\n^^^end\n", "^^^a\none\n^^^end\n", "^^^b\nboth\n^^^end\n", "^^^a\ndone\n^^^end\n"}}
	end := process{model: userChanges{m, filepath.Join(dir, "b")}, rounds: 8}.live(t, dir)
	if tree := crashtest.Tree(t, dir); end.Kind != hone.KindDone || end.Rounds != 4 || tree["b"] != "both\n" {
		t.Errorf("%+v\n%q", end, tree["b"])
	}
	second := added(t, m, 2)
	for _, part := range []string{
		"- ^^^b is refused: its contents have changed since they were shown to the model\n",
		"b: the user changed this file; keep the change and build on it",
		"The build or the user changed these files after you saw or wrote them. They now contain:\n\n====\n--- File: b\n====\nby the user\n",
	} {
		if !strings.Contains(second, part) {
			t.Errorf("the second prompt does not have %q:\n%s", part, second)
		}
	}
	for round := 3; round <= 4; round++ {
		if got := added(t, m, round); strings.Contains(got, "They now contain") {
			t.Errorf("prompt %d: %s", round, got)
		}
	}
}

// TestChangedByBuild: ruling C13. What the build changed is shown, unless it is too
// long: then it may not be overwritten.
func TestChangedByBuild(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"a": "zero\n", "b": "bee\n", "long": "l\n", "build.sh": "#!/bin/sh\necho built >>b\nseq 1 20000 >long\ngrep -q done a\n"})
	m := &recorder{replies: []string{"^^^a\none\n^^^end\n^^^b\nmine\n^^^end\n", "^^^long\nx\n^^^end\n", "^^^a\ndone\n^^^end\n^^^b\nagain\n^^^end\n"}}
	end := process{model: m, rounds: 8}.live(t, dir)
	if tree := crashtest.Tree(t, dir); end.Kind != hone.KindDone || end.Rounds != 3 || tree["b"] != "again\nbuilt\n" {
		t.Errorf("%+v\n%q", end, tree["b"])
	}
	second := added(t, m, 2)
	for _, part := range []string{"--- File: b\n====\nmine\nbuilt\n", "--- File: long (contents omitted: 108894 bytes)\n"} {
		if !strings.Contains(second, part) {
			t.Errorf("the second prompt does not have %q:\n%s", part, second)
		}
	}
	if got := added(t, m, 3); !strings.Contains(got, "- ^^^long is refused: its contents have changed since they were shown to the model\n") {
		t.Errorf("the third prompt: %s", got)
	}
}
