package task

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/tool"
)

func TestParseReview(t *testing.T) {
	for text, want := range map[string]reviewed{
		"loop = 2\nsummary = \"What\"\nblocker = \"\"\n": {Counts: true, Summary: "What"},
		"loop = 2": {Counts: true},
		"loop = 2\nblocker = \" \"\n\n[[pending]]\nitem = \"a\"\n[[pending]]\nitem = '''\nb\nc'''\n[[pending]]\nitem=''\n": {Counts: true, Pending: []string{"a", "b\nc"}},
		"loop = 2\n[pending]\nitem = 'a'":                   {Counts: true, Pending: []string{"a"}},
		"loop = 2\npending = ['a', {item = 'b'}]\nmore = 1": {Counts: true, Pending: []string{"a", "b"}},
		"loop = 2\npending = []\nblocker = 'no key'":        {Counts: true, Blocker: "no key"},
	} {
		got, err := parseReview([]byte(text), 2)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	for text, says := range map[string]string{
		"":                                             "loop must be 2",
		"loop = 1\n":                                   "loop must be 2",
		"loop = \"2\"\n":                               "form: loop: ",
		"loop = 2.0\n":                                 "form: loop: ",
		"I think it is fine.":                          "TOML",
		"```toml\nloop = 2\n```":                       "TOML",
		"loop = 2\nblocker = false":                    "form: blocker: ",
		"loop = 2\nblocker = 'None.'":                  "what is in the way",
		"loop = 2\nsummary = 1":                        "form: summary: ",
		"loop = 2\npending = 'a'":                      "form: pending: ",
		"loop = 2\npending = [1]":                      "item 1",
		"loop = 2\n[[pending]]\nitems = 'a'":           "item 1",
		"loop = 2\nsummary = '\x1b'":                   "TOML",
		"loop = 2\n#" + strings.Repeat("x", maxReview): "longer",
	} {
		if got, err := parseReview([]byte(text), 2); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.60q: %+v, %v, want %q", text, got, err, says)
		}
	}
}

func TestReviewWrite(t *testing.T) {
	dir := t.TempDir()
	write := reviewWrite(dir, 2)
	call := func(args string) tool.Result {
		t.Helper()
		got, err := write.Run(context.Background(), tool.Input{Args: json.RawMessage(args)})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	args := func(path, content string) string {
		b, _ := json.Marshal(map[string]string{"path": path, "content": content})
		return string(b)
	}
	for _, refused := range []string{
		args("a", "loop = 2"), args("", "loop = 2"), args("../"+reviewOutput, "loop = 2"), args("/etc/passwd", "loop = 2"),
		args(".codescribe/loop/run.toml", "loop = 2"), args(reviewOutput+"/", "loop = 2"), args(reviewOutput+"\x00", "loop = 2"),
		args(strings.ToUpper(reviewOutput), "loop = 2"),
		args(reviewOutput, "loop = 1"), args(reviewOutput, "fine"), args(reviewOutput, ""),
		`{"path": 1, "content": "loop = 2"}`, `{"path": "` + reviewOutput + `"}`, `[]`, `null`, ``,
	} {
		if got := call(refused); !got.Failed || !strings.Contains(got.Text, "Nothing was written") {
			t.Errorf("%s: %+v", refused, got)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Fatalf("refused calls left %v", left)
	}
	for _, path := range []string{reviewOutput, "./" + reviewOutput, filepath.Join(dir, filepath.FromSlash(reviewOutput))} {
		content := "loop = 2\nsummary = '" + filepath.Base(path) + "'\n"
		if got := call(args(path, content)); got.Failed {
			t.Errorf("%s: %+v", path, got)
		}
		b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(reviewOutput)))
		if err != nil || string(b) != content {
			t.Errorf("%s: %q, %v", path, b, err)
		}
	}
}

// TestStatus: ruling S2, and what CodeScribe takes.
func TestStatus(t *testing.T) {
	for text, want := range map[string]status{
		"STATUS: COMPLETE":                              complete,
		"status: complete":                              complete,
		"STATUS:COMPLETE":                               complete,
		"STATUS: COMPLETED":                             complete,
		"  STATUS: INCOMPLETE (half)":                   incomplete,
		"```\nSTATUS: COMPLETE\n```":                    complete,
		"STATUS: DONE\nSTATUS: COMPLETE":                complete,
		"STATUS: INCOMPLETE\nSTATUS: COMPLETE":          incomplete,
		"**STATUS: COMPLETE**":                          complete,
		"**STATUS:** COMPLETE":                          complete,
		"**STATUS**: **INCOMPLETE**":                    incomplete,
		"- STATUS: COMPLETE":                            complete,
		"* **STATUS: COMPLETE**":                        complete,
		"1. STATUS: COMPLETE":                           complete,
		"`STATUS: COMPLETE`":                            complete,
		"STATUS: `COMPLETE`":                            complete,
		"## STATUS: COMPLETE":                           complete,
		"> STATUS: COMPLETE":                            complete,
		"STATUS : COMPLETE":                             complete,
		"STATUS: COMPLETE.":                             complete,
		"STATUS: COMPLETE\r\nplan":                      complete,
		"<final_answer>STATUS: COMPLETE</final_answer>": complete,
		"<final_answer>\n\n**Status: Incomplete**\n</final_answer>":              incomplete,
		"I write <final_answer>STATUS: INCOMPLETE":                               incomplete,
		"STATUS: COMPLETE\nno:\n<final_answer>STATUS: INCOMPLETE":                incomplete,
		"<final_answer>STATUS: INCOMPLETE <final_answer>\nno":                    incomplete,
		"STATUS: COMPLETE\n<final_answer>see above</final_answer>":               complete,
		"STATUS: COMPLETE or STATUS: INCOMPLETE":                                 unknown,
		"I must write `STATUS: COMPLETE` or `STATUS: INCOMPLETE`, then the plan": unknown,
		"STATUS: DONE":                         unknown,
		"STATUS: NOT COMPLETE":                 unknown,
		"STATUS: COMPLETELY broken":            unknown,
		"The status: complete chaos":           unknown,
		"HTTP STATUS: COMPLETE":                unknown,
		"STATUS COMPLETE":                      unknown,
		"STATUS:\nCOMPLETE":                    unknown,
		"":                                     unknown,
		"Everything is done; the tests passed": unknown,
	} {
		if got := parseAnswer(text).Status; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestNextSteps: ruling S2, and the damage that CodeScribe does.
func TestNextSteps(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"NEXT STEPS:\n- a\n* b\n1. c\n2) d\n", []string{"a", "b", "c", "d"}},
		{"STATUS: INCOMPLETE\nNext steps\n\n- a\n\n- b\n", []string{"a", "b"}},
		{"## NEXT STEPS\n- a", []string{"a"}},
		{"**NEXT STEPS:**\n- a", []string{"a"}},
		{"**NEXT STEPS**:\n- a", []string{"a"}},
		{"- **NEXT STEPS**\n  - a\n  - b", []string{"a", "b"}},
		{"<final_answer>NEXT STEPS:\n• a\n</final_answer>\n- b", []string{"a"}},
		{"NEXT STEPS:\n9. i\n10. j\n123) k\n", []string{"i", "j", "k"}},
		{"NEXT STEPS:\n1.x\n-y\n", []string{"x", "y"}},
		{"NEXT STEPS:\n---\n- a\n***\n- b", []string{"a"}},
		{"NEXT STEPS:\n- **b** c\n- -x flag\n- `f` in g", []string{"**b** c", "-x flag", "`f` in g"}},
		{"NEXT STEPS:\n- run\n  the tests\nagain\n- b", []string{"run the tests again", "b"}},
		{"NEXT STEPS:\n- needs 1.5 GB\n  1.5 GB more", []string{"needs 1.5 GB 1.5 GB more"}},
		{"NEXT STEPS:\n- [ ] open\n- [x] done\n- [] bare", []string{"open", "bare"}},
		{"NEXT STEPS: finish the parser", []string{"finish the parser"}},
		{"NEXT STEPS: none", nil},
		{"NEXT STEPS:\n- None.\n- (n/a)\n", nil},
		{"NEXT STEPS (in this order):\nThese are left:\n- a", []string{"a"}},
		{"NEXT STEPS:\n- a\n\nOther things I saw.\n- not this", []string{"a"}},
		{"NEXT STEPS:\n- a\n## Notes\n- not this", []string{"a"}},
		{"NEXT STEPS:\n- a\nCheck output:\n- not this", []string{"a"}},
		{"NEXT STEPS:\n- a\n**Notes**:\n- not this", []string{"a"}},
		{"NEXT STEPS:\n- a\nSTATUS: INCOMPLETE\n- not this", []string{"a"}},
		{"```\nNEXT STEPS:\n- a\n```\n- not this", []string{"a"}},
		{"NEXT STEPS:\n```\n- a\n```\n- not this", []string{"a"}},
		{"NEXT STEPS:\r\n- a\r\n- b\r\n", []string{"a", "b"}},
		{"NEXT STEPS:\n# Notes\n- not this", nil},
		{"The next steps are clear.\n- not this", nil},
		{"Next steps taken were\n- not this", nil},
		{"NEXT STEPS:\n- old\n<final_answer>STATUS: INCOMPLETE\nNEXT STEPS:\n- new", []string{"new"}},
		{"nothing", nil},
	} {
		if diff := cmp.Diff(tt.want, parseAnswer(tt.text).Next); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.text, diff)
		}
	}
}

func TestAnswered(t *testing.T) {
	for text, want := range map[string]bool{
		"Let me start by reading the files.":  false,
		"Done!":                               false,
		"STATUS: COMPLETE":                    true,
		"<final_answer>the review is written": true,
	} {
		if got := answerProblem(text) == ""; got != want {
			t.Errorf("%q is an answer: %v, want %v", text, got, want)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add("STATUS: INCOMPLETE\nNEXT STEPS:\n- a\n  b\n1. c")
	f.Add("<final_answer>**STATUS: COMPLETE**")
	f.Fuzz(func(t *testing.T, text string) {
		for _, item := range parseAnswer(text).Next {
			if !words.MatchString(item) {
				t.Errorf("%q has an item without a word: %q", text, item)
			}
		}
	})
}
