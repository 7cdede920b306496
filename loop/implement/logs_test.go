package implement

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"hone/sandbox/wall"
)

// TestFolders: ruling C9. The runs of one second have a folder each.
func TestFolders(t *testing.T) {
	dir := t.TempDir()
	for _, want := range []string{"logs/20260304-050607", "logs/20260304-050607-2", "logs/20260304-050607-3"} {
		if got, err := folder(dir, "20260304-050607-d904af"); got != want || err != nil {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
}

// TestAppendOnce adds what is missing, wherever a process died.
func TestAppendOnce(t *testing.T) {
	for name, c := range map[string]struct {
		there  string
		before int64
		want   string
	}{
		"nothing yet":         {"", 0, "thought\n"},
		"behind another":      {"one\n", 4, "one\nthought\n"},
		"done already":        {"one\nthought\n", 4, "one\nthought\n"},
		"half done":           {"one\nthou", 4, "one\nthought\n"},
		"somebody else wrote": {"one\nthis\n", 4, "one\nthis\nthought\n"},
		"cut meanwhile":       {"o", 4, "othought\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			at := filepath.Join(dir, "f")
			if err := os.WriteFile(at, []byte(c.there), 0o644); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := appendOnce(dir, "f", "thought\n", c.before); err != nil {
					t.Fatal(err)
				}
				if name == "somebody else wrote" || name == "cut meanwhile" {
					break
				}
			}
			if b, err := os.ReadFile(at); string(b) != c.want || err != nil {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
}

// TestResponse: ruling C9. The log has one object, as code-commit wrote it.
func TestResponse(t *testing.T) {
	for raw, want := range map[string]string{
		`{"candidates":[],"x":1}`: `{"candidates":[],"x":1}`,
		`null`:                    `null`,
		`[{"choices":[1]}]`:       `[{"choices":[1]}]`,
		`[{"candidates":[{"content":{"role":"model","parts":[{"text":"a<"}]}}],"usageMetadata":{"n":1}},
		  {"candidates":[{"content":{"role":"model","parts":[{"text":"b"},{"text":"c","thought":true}]}}]},
		  {"candidates":[{"content":{"parts":[{"text":"d","thought":true},{"text":"e"}]},"finishReason":"STOP"}],"usageMetadata":{"n":12345678901234567890}},{"responseId":"r"}]`: `{"candidates":[{"content":{"parts":[{"text":"a<"},{"text":"b"},{"text":"c","thought":true},{"text":"d","thought":true},{"text":"e"}],"role":"model"},"finishReason":"STOP"}],` +
			`"responseId":"r","usageMetadata":{"n":12345678901234567890}}`,
	} {
		if got := string(response(json.RawMessage(raw))); got != want {
			t.Errorf("response(%s)\n got %s\nwant %s", raw, got, want)
		}
	}
}

// TestMain also plays the supervisors of commands.
func TestMain(m *testing.M) {
	wall.Helper()
	os.Exit(m.Run())
}
