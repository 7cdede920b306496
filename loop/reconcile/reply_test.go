package reconcile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/model"
	"hone/workspace"
)

func replied(text string) model.Reply {
	return model.Reply{Parts: []model.Part{{Text: text}}, Finish: model.Stop}
}

func TestReadReply(t *testing.T) {
	write := func(path, content string) workspace.Edit {
		return workspace.Edit{Path: path, Content: []byte(content)}
	}
	gone := func(path string) workspace.Edit { return workspace.Edit{Path: path, Delete: true} }
	for name, c := range map[string]struct {
		text string
		want []workspace.Edit
	}{
		"bare":                         {`{"create-or-update": {"b": "1\n", "a": ""}, "delete": ["c/d"]}`, []workspace.Edit{write("b", "1\n"), write("a", ""), gone("c/d")}},
		"in a fence with prose":        {"I changed a.\n\n```json\n{\"create-or-update\": {\"a\": \"x\"}}\n```\n\nThat is all.", []workspace.Edit{write("a", "x")}},
		"a fence inside a string":      {"```json\n{\"create-or-update\": {\"a\": \"```json\\n{}\\n```\\n\"}}\n```", []workspace.Edit{write("a", "```json\n{}\n```\n")}},
		"a fence with CRLF":            {"```json\r\n{\"delete\": [\"a\"]}\r\n```\r\n", []workspace.Edit{gone("a")}},
		"another fence beside it":      {"```sh\nmake\n```\n```json\n{\"delete\": [\"a\"]}\n```\n```sh\nmake test\n```", []workspace.Edit{gone("a")}},
		"a draft in reasoning":         {"<think>{\"delete\": [\"a\"]}</think>\n{\"delete\": [\"b\"]}", []workspace.Edit{gone("b")}},
		"a tag in the contents":        {`{"create-or-update": {"a": "</think>"}}`, []workspace.Edit{write("a", "</think>")}},
		"in tags":                      {"Done:\n<answer>{\"delete\": [\"a\"]}</answer>", []workspace.Edit{gone("a")}},
		"with rationales":              {`{"create-or-update": {"a": {"rationale": "r", "contents": "x"}}, "delete": [{"rationale": "r", "file": "b"}]}`, []workspace.Edit{write("a", "x"), gone("b")}},
		"commas too many":              {`{"create-or-update": {"a": "x",}, "delete": ["b",],}`, []workspace.Edit{write("a", "x"), gone("b")}},
		"a path in backticks":          {"{\"delete\": [\"`a`\"]}", []workspace.Edit{gone("a")}},
		"both lists empty":             {`{"create-or-update": {}, "delete": []}`, nil},
		"missing keys mean empty":      {`{}`, nil},
		"null means empty":             {`{"create-or-update": null, "delete": null}`, nil},
		"other keys are passed over":   {`{"rationale": {"x": [1]}, "delete": ["a"]}`, []workspace.Edit{gone("a")}},
		"non-ASCII and escapes":        {`{"create-or-update": {"ä/日.txt": "\u00e9\t😀"}}`, []workspace.Edit{write("ä/日.txt", "é\t😀")}},
		"forbidden paths are no fault": {`{"create-or-update": {"../x": "1", ".git/config": "2"}}`, []workspace.Edit{write("../x", "1"), write(".git/config", "2")}},
	} {
		t.Run(name, func(t *testing.T) {
			ch, problems := read(replied(c.text), []string{"c/d", "a"}, asWritten)
			if len(problems) > 0 {
				t.Fatalf("unreadable: %v", problems)
			}
			if diff := cmp.Diff(c.want, ch.Edits); diff != "" {
				t.Errorf("edits (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnreadableReplySaysWhy(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":                       {" \n", "empty"},
		"prose alone":                 {"All is well.", "no JSON object"},
		"two fences":                  {"```json\n{\"delete\": [\"a\"]}\n```\n```json\n{\"delete\": []}\n```", "more than one"},
		"something behind":            {`{} and so on`, "no JSON object"},
		"not closed":                  {`{"delete": ["a"`, "not closed"},
		"broken in line 3":            {"{\n\"delete\": [],\n\"create-or-update\": {\"a\": x}}", "line 3"},
		"no object":                   {"```json\n[1]\n```", "no JSON object"},
		"a misspelt key":              {`{"create_or_update": {"a": "x"}}`, `"create_or_update" is not one of`},
		"neither key":                 {`{"files": {"a": "x"}}`, "neither"},
		"a key twice":                 {`{"delete": [], "delete": ["a"]}`, "appears twice in the object"},
		"contents that are no string": {`{"create-or-update": {"a": {"text": "x"}}}`, `contents of "a"`},
		"an encoding":                 {`{"create-or-update": {"a": {"encoding": "base64", "contents": "eA=="}}}`, `contents of "a"`},
		"contents twice":              {`{"create-or-update": {"a": {"contents": "x", "contents": "y"}}}`, `"contents" appears twice`},
		"a part to delete":            {`{"delete": [{"file": "a", "lines": "1-3"}]}`, "must be a list of paths"},
		"contents null":               {`{"create-or-update": {"a": null}}`, `contents of "a"`},
		"a list where an object is":   {`{"create-or-update": ["a"]}`, "must be an object"},
		"delete that is no list":      {`{"delete": "a"}`, "must be a list"},
		"a path in both lists":        {`{"create-or-update": {"a": "x"}, "delete": ["a"]}`, `"a" appears twice`},
		"a path twice after cleaning": {`{"create-or-update": {"a": "x", "./a": "y"}}`, `"./a" appears twice`},
		"the same key twice":          {`{"create-or-update": {"a": "x", "a": "y"}}`, `"a" appears twice`},
		"a path below a new file":     {`{"create-or-update": {"n": "x", "n/m": "y"}}`, `"n/m" is below "n"`},
		"a path below a file":         {`{"create-or-update": {"a/b": "x"}}`, `"a/b" is below "a"`},
		"a folder to delete":          {`{"delete": ["c"]}`, `"c" is a directory`},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := read(replied(c.text), []string{"c/d", "a"}, asWritten)
			if len(problems) == 0 {
				t.Fatal("it was read")
			}
			if p := problems[0]; p.Advisory || p.Source != "reply" || !strings.Contains(p.Text, c.want) {
				t.Errorf("problem %+v, want one that says %q", p, c.want)
			}
		})
	}
}

func TestAllCollisionsAreSaidAtOnce(t *testing.T) {
	_, problems := read(replied(`{"create-or-update": {"a/b": "x", "n": "1"}, "delete": ["c", "n"]}`), []string{"c/d", "a"}, asWritten)
	if len(problems) != 3 {
		t.Errorf("%d problems, want 3: %v", len(problems), problems)
	}
}

// TestAbnormalEndIsUnreadable: ruling G3, whatever the text parses to.
func TestAbnormalEndIsUnreadable(t *testing.T) {
	for _, f := range []model.Finish{model.Length, model.Filtered, model.Other} {
		r := replied(`{"delete": ["a"]}`)
		r.Finish, r.Detail = f, "why it ended"
		ch, problems := read(r, nil, asWritten)
		want := map[model.Finish]string{model.Length: "output limit", model.Filtered: "filtered: why it ended", model.Other: "other: why it ended"}[f]
		if len(ch.Edits) > 0 || len(problems) != 1 || !strings.Contains(problems[0].Text, want) {
			t.Errorf("%s: %v, %v", f, ch, problems)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{`{"create-or-update": {"a": "x"}, "delete": ["b"]}`, "```json\n{}\n```", `{"delete": ["a/../..//b", "/"]}`, `{"create-or-update":{"":""}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ch, problems := read(replied(s), []string{"a", "b/c"}, asWritten)
		if len(problems) == 0 && strings.TrimSpace(s) == "" {
			t.Error("an empty reply was read")
		}
		_ = ch
	})
}

// BenchmarkReadHostile shows that neither nesting nor repetition costs more
// than the reply is long.
func BenchmarkReadHostile(b *testing.B) {
	for name, s := range map[string]string{
		"1 MB of fences":     strings.Repeat("```json\n", 125_000),
		"1 MB of open lists": `{"delete": ` + strings.Repeat("[", 1_000_000),
		"1 MB of slashes":    `{"delete": ["` + strings.Repeat("a/", 500_000) + `"]}`,
		"10 000 files":       `{"delete": ["x"` + strings.Repeat(`, "some/path/that/is/long"`, 10_000) + `]}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				read(replied(s), nil, asWritten)
			}
		})
	}
}

func asWritten(path string) string { return path }
