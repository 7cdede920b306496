package tool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDialects: arguments as other programs name them are taken where the meaning is
// certain.
func TestDialects(t *testing.T) {
	for _, args := range []string{
		`{"path": "a", "oldText": "x", "newText": "y"}`,
		`{"file_path": "a", "old_string": "x", "new_string": "y"}`,
		`{"file": "a", "old_str": "x", "new_str": "y", "explanation": "because"}`,
		`{"path": "a", "edits": {"oldText": "x", "newText": "y"}}`,
		`{"path": "a", "edits": "[{\"oldText\": \"x\", \"newText\": \"y\"}]"}`,
		`{"path": "a", "edits": ["{\"oldText\": \"x\", \"newText\": \"y\"}"]}`,
		`{"path": "a", "edits": "{\"old_text\": \"x\", \"new_text\": \"y\"}"}`,
		`{"path": "a", "edits": [{"search": "x", "replace": "y"}], "replace_all": false, "expected_replacements": 1}`,
	} {
		s := newSession(t, map[string]string{"a": "x\n"})
		s.raw("read", `{"path": "a"}`)
		if r := s.raw("edit", args); r.Failed {
			t.Errorf("%s: %s", args, r.Text)
		}
		if got, err := os.ReadFile(filepath.Join(s.tree.Dir(), "a")); err != nil || string(got) != "y\n" {
			t.Errorf("%s: %q, %v", args, got, err)
		}
	}
	s := newSession(t, map[string]string{"a": "x\nx\n"})
	s.raw("read", `{"path": "a"}`)
	if r := s.raw("edit", `{"path": "a", "oldText": "x", "newText": "y", "replace_all": true}`); !r.Failed || !strings.Contains(r.Text, "replace_all is unknown") {
		t.Errorf("replace_all: %s", r.Text)
	}
}
