package phase

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hone/model"
	"hone/tool"
)

// TestFolderNote: a command that does not find the role's own directory is told that it
// runs in it; not if there is such a directory, or if the command did not name it.
func TestFolderNote(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tests")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	output := ""
	bash := inFolder([]tool.Tool{{Spec: model.Spec{Name: "bash"}, RunsCommands: true, Run: func(context.Context, tool.Input) (tool.Result, error) {
		return tool.Result{Text: output}, nil
	}}}, dir)[0]
	for _, tt := range []struct {
		output string
		nested bool
		want   bool
	}{
		{"bash: tests/a.sh: No such file or directory\n", false, true},
		{"ls: cannot access 'tests': No such file or directory\n", false, true},
		{"bash: other/a.sh: No such file or directory\n", false, false},
		{"tests/a.sh: ok\n", false, false},
		{"bash: tests/b.sh: No such file or directory\n", true, false},
	} {
		if tt.nested {
			if err := os.Mkdir(filepath.Join(dir, "tests"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		output = tt.output
		got, err := bash.Run(t.Context(), tool.Input{Args: json.RawMessage(`{"command": "sh tests/a.sh"}`)})
		if noted := strings.Contains(got.Text, "[The working directory is tests/ itself"); err != nil || noted != tt.want || !strings.HasPrefix(got.Text, tt.output) {
			t.Errorf("%q, nested %v: %q, %v", tt.output, tt.nested, got.Text, err)
		}
	}
}
