package tool

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

func TestInvalidArguments(t *testing.T) {
	s := newSession(t, map[string]string{"a.txt": "a\n"})
	for _, c := range []struct {
		tool, args string
		words      []string
	}{
		{"read", `{}`, []string{`path is missing: expected {"type":"string","minLength":1}`}},
		{"read", `[]`, []string{`invalid arguments for read: expected {"type":"object","properties":{"limit":`, "got []"}},
		{"read", `null`, []string{`expected {"type":"object"`}},
		{"read", `"a.txt"`, []string{`expected {"type":"object"`, `got "a.txt"`}},
		{"read", `{"path": ""}`, []string{`path: expected {"type":"string","minLength":1}, got ""`}},
		{"read", `{"path": 7}`, []string{`path: expected {"type":"string","minLength":1}, got 7`}},
		{"read", `{"path": null}`, []string{`path: expected {"type":"string","minLength":1}`, "got null"}},
		{"read", `{"path": "a.txt", "offset": 0}`, []string{`"minimum":1,"maximum":1000000000}, got 0`}},
		{"read", `{"path": "a.txt", "offset": -1, "limit": "ten"}`, []string{"offset: ", "limit: ", `got "ten"`}},
		{"read", `{"path": "a.txt", "offset": 1.5}`, []string{`offset: expected {"type":"integer"`, "got 1.5"}},
		{"read", `{"path": "a.txt", "offset": 1e300}`, []string{`offset: expected {"type":"integer"`}},
		{"read", `{"path": "a.txt", "offset": 1e400}`, []string{"not valid JSON"}},
		{"read", `{"path": "a.txt", "offset": "99999999999999999999"}`, []string{`offset: expected {"type":"integer"`}},
		{"read", `{"source": "a.txt"}`, []string{"path is missing", "source is unknown; valid names: limit, offset, path"}},
		{"read", `{"path": "a.txt", "with_line_numbers": 2}`, []string{`with_line_numbers: expected {"type":"boolean","description":"default true"}, got 2`}},
		{"grep", `{"pattern": "a", "files_only": "perhaps"}`, []string{`files_only: expected {"type":"boolean"}, got "perhaps"`}},
		{"edit", `{"path": "a.txt", "edits": []}`, []string{`"minItems":1,"maxItems":200}, got []`}},
		{"edit", `{"path": "a.txt", "edits": "a"}`, []string{`edits: expected {"type":"array"`}},
		{"edit", `{"path": "a.txt", "edits": [{"oldText": "a"}]}`, []string{`edits[0].newText is missing: expected {"type":"string"}`}},
		{"edit", `{"path": "a.txt", "edits": [{"oldText": "a", "newText": "b"}, {"oldText": "", "newText": "b", "all": true}]}`,
			[]string{`edits[1].oldText: expected {"type":"string","minLength":1}, got ""`, "edits[1].all is unknown; valid names: newText, oldText"}},
		{"edit", `{"path": "a.txt", "edits": ["a"]}`, []string{`edits[0]: expected {"type":"object","properties":{"newText":`}},
		{"write", `{"path": "a.txt", "content": {"a": 1}}`, []string{`content: expected {"type":"string"}, got {"a":1}`}},
		{"write", `{"path": "a.txt", "content": ["` + strings.Repeat("x", 1<<20) + `"]}`, []string{`content: expected {"type":"string"}, got `}},
	} {
		r := s.raw(c.tool, c.args)
		if !r.Failed {
			t.Errorf("%s %.100s did not fail: %.200s", c.tool, c.args, r.Text)
		}
		contains(t, r.Text, append(c.words, "invalid arguments for "+c.tool+": ")...)
		if len(r.Text) > 1000 {
			t.Errorf("%s %.100s: the result has %d bytes", c.tool, c.args, len(r.Text))
		}
	}
	if len(s.changes) > 0 {
		t.Errorf("changes were made: %v", s.changes)
	}
}

// The schema of a tool is read when the tool is called first.
func TestInvalidSchema(t *testing.T) {
	never := func(context.Context, Input, struct{}) (Result, error) { t.Error("the tool ran"); return Result{}, nil }
	for _, schema := range []string{`{"type": 7}`, `{"$ref": "#/nowhere"}`, `[]`} {
		_, err := Define(Tool{}, "odd", "", schema, never).Run(t.Context(), Input{Args: json.RawMessage(`{}`)})
		if err == nil || !strings.Contains(err.Error(), "read the schema of the tool odd: ") {
			t.Errorf("%s: %v", schema, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("Define accepted a schema that is not JSON")
		}
	}()
	Define(Tool{}, "odd", "", `{`, never)
}

func TestConvertedArguments(t *testing.T) {
	s := newSession(t, map[string]string{"a.txt": "one\ntwo\nthree\n"})
	for _, c := range []struct{ tool, args, want string }{
		{"read", `{"path": "a.txt", "offset": "2", "limit": " 1 "}`, "# lines: 2-2 of 3\n0002: two\n"},
		{"read", `{"path": "a.txt", "offset": 2.0, "limit": 1e0}`, "# lines: 2-2 of 3\n0002: two\n"},
		{"read", `{"path": "a.txt", "offset": null, "limit": 1, "with_line_numbers": false}`, "\none\n"},
		{"read", `{"path": "a.txt", "limit": 1, "with_line_numbers": "1"}`, "0001: one\n"},
		{"grep", `{"pattern": "TWO", "ignore_case": "true", "files_only": 1}`, "a.txt\n"},
		{"glob", `{"pattern": "*", "include_dirs": true, "root": null}`, "a.txt\n"},
		{"edit", `{"path": "a.txt", "edits": "[{\"oldText\": \"one\", \"newText\": \"1\"}]"}`, "(now 3 lines) at line 1"},
		{"edit", `{"path": "a.txt", "edits": {"oldText": "two", "newText": "2"}}`, "(now 3 lines) at line 2"},
	} {
		r := s.raw(c.tool, c.args)
		if r.Failed {
			t.Errorf("%s %s: %s", c.tool, c.args, r.Text)
		}
		contains(t, r.Text, c.want)
	}
	if got := s.file("a.txt"); got != "1\n2\nthree\n" {
		t.Errorf("file = %q", got)
	}
}

// Ruling G13: a tool's description never changes.
func TestDescriptions(t *testing.T) {
	s := newSession(t, nil)
	for _, name := range []string{"read", "glob", "grep", "write", "edit"} {
		one, two := s.tool(name), s.tool(name)
		if one.Name != name || one.Description != two.Description || string(one.Schema) != string(two.Schema) {
			t.Errorf("the description of %s changes", name)
		}
		var schema map[string]any
		if err := json.Unmarshal(one.Schema, &schema); err != nil || schema["type"] != "object" || schema["additionalProperties"] != false {
			t.Errorf("%s: schema %s", name, one.Schema)
		}
		if len(one.Description) < 100 || len(one.Description) > 2000 {
			t.Errorf("%s: the description has %d bytes", name, len(one.Description))
		}
		lacks(t, one.Description+string(one.Schema), s.tree.Dir())
		if looks := name != "write" && name != "edit"; one.ReadOnly != looks || one.RunsCommands {
			t.Errorf("%s: looks %v, commands %v", name, one.ReadOnly, one.RunsCommands)
		}
	}
}

func FuzzArguments(f *testing.F) {
	for _, seed := range []string{`{"path":"a.txt"}`, `{"path":"a.txt","offset":"1","limit":2}`, `{"path":"../a"}`,
		`{"pattern":"**/*","path":"a"}`, `{"pattern":"(a|b","glob":"{a,b}"}`, `{"path":"a.txt","edits":[{"oldText":"a","newText":"b"}]}`,
		`{"path":"b","content":"x"}`, `{"path":"output:1"}`, `[1]`, `{"pattern":"a","context":20,"limit":1}`} {
		f.Add(seed)
	}
	s := newSession(f, map[string]string{"a.txt": "a\r\nb\n"})
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			t.Skip()
		}
		for _, name := range []string{"read", "glob", "grep", "edit"} {
			in := Input{Args: json.RawMessage(text), Output: func(int) (string, bool) { return "a\nb", true }}
			r, err := s.tool(name).Run(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			if r.Failed && !strings.HasPrefix(r.Text, "Error: ") {
				t.Errorf("%s: %q", name, r.Text)
			}
		}
	})
}
