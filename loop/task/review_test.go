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
