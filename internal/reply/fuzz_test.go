package reply

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// FuzzContent checks that contents that are already there are accepted and stay as
// they are, that the style of a file can be applied twice, and that nothing panics.
func FuzzContent(f *testing.F) {
	f.Add("a.py", "x = 1\ny = 2\n", "x = 1\n# ...\n")
	f.Add("a.go", "```\n", "0001: a\r\n2\n")
	f.Add("a.js", "\ufeffa\r\n", "--- a\n@@ -1 +1 @@\n{ ... }\n/* … */")
	f.Add("x", "&lt;\n", "<<<<<<< SEARCH\nREPLACE\\n")
	f.Fuzz(func(t *testing.T, name, old, content string) {
		if err := CheckContent(name, []byte(old), []byte(old)); err != nil {
			t.Errorf("the same contents: %v", err)
		}
		if got := StyleOf([]byte(old)).Apply([]byte(old)); !bytes.Equal(got, []byte(old)) {
			t.Errorf("the style changes its own contents to %q", got)
		}
		_ = CheckContent(name, []byte(old), []byte(content))
		_ = CheckContent(name, nil, []byte(content))
		_ = CheckEdit(name, []byte(old), []byte(content), []string{content})
		once := StyleOf([]byte(old)).Apply([]byte(content))
		if again := StyleOf([]byte(old)).Apply(once); !bytes.Equal(once, again) {
			t.Errorf("style applied twice: %q, once %q", again, once)
		}
	})
}

// FuzzObject checks that an object that is found is valid and has a known key, or is
// all there is, and that JSON with a known key is found again between prose.
func FuzzObject(f *testing.F) {
	known := func(key string) bool { return key == "delete" }
	for _, s := range []string{`{"delete": ["a",],}`, "x {\"delete\": \"\n\"} y", "<think>{\"delete\":1}</think>```json\n{\"delete\":2}\n```", `{"delete": "</think>"}`, `{"a":{"delete":1}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_ = Answer(text, nil)
		object, err := Object(text, known)
		if err != nil {
			return
		}
		if !json.Valid(object) {
			t.Errorf("invalid: %q", object)
		}
		if !hasKnownKey(object, known) {
			return
		}
		if again, err := Object("so:\n"+string(object)+"\nyes", known); err != nil || !bytes.Equal(again, object) && !strings.Contains(string(object), "{") {
			t.Errorf("in prose: %q, %v", again, err)
		}
	})
}
