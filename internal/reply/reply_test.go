package reply

import (
	"strings"
	"testing"

	"hone/model"
)

func TestAnswer(t *testing.T) {
	for text, want := range map[string]string{
		"a":                                 "a",
		"<think>draft</think>a":             "a",
		"draft</think>\na":                  "\na",
		"<think>x</think>y</think>a":        "a",
		"<thinking>x</thinking>a":           "a",
		"[THINK]x[/THINK]a":                 "a",
		"◁think▷x◁/think▷a":                 "a",
		"<seed:think>x</seed:think>a":       "a",
		"<think>never closed":               "",
		"<think>x</think>\n<think>again":    "",
		"the tag `</think>` and '</think>'": "the tag `</think>` and '</think>'",
		"```x```</think>a":                  "a",
		"<|channel|>analysis<|message|>x<|end|><|start|>assistant<|channel|>final<|message|>a": "a",
	} {
		if got := Answer(text, nil); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := Answer("a</think>b</think>c", [][2]int{{6, 19}}); got != "b</think>c" {
		t.Errorf("a covered tag: %q", got)
	}
}

func TestEnded(t *testing.T) {
	for _, c := range []struct {
		reply model.Reply
		want  string
	}{
		{model.Reply{Finish: model.Stop}, ""},
		{model.Reply{Finish: model.Length, Detail: "length"}, "it reached the output limit. Make a smaller change"},
		{model.Reply{Finish: model.Filtered, Detail: "SAFETY"}, "(filtered: SAFETY)"},
		{model.Reply{Finish: model.Other}, "(other)"},
	} {
		if got := EndProblem(c.reply); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%v: %q, want %q", c.reply, got, c.want)
		}
	}
}

func TestPath(t *testing.T) {
	files := map[string]bool{"calc.py": true, "src/a b.go": true, "start": true, "a": true, "Makefile": true}
	exists := func(p string) bool { return files[p] }
	for name, want := range map[string]string{
		"calc.py": "", "./calc.py": "", "src/a b.go": "", "start": "",
		"new.py": "", "src/calc.py": "", "app/(group)/page.tsx": "", "a new name": "", "start Makefile": "did you mean Makefile", "file (1).txt": "", "c/calc.py": "", "xcalc.py": "",
		"calc.py (modified)": "did you mean calc.py", "start calc.py": "did you mean calc.py", "**calc.py**": "did you mean calc.py",
		"File: calc.py": "did you mean calc.py", "\"calc.py\"": "did you mean calc.py", "calc.py # new": "did you mean calc.py", "b/calc.py": "did you mean calc.py",
		"new.py (new file)": "did you mean new.py", "new.py [created]": "did you mean new.py", "Start": "not the path",
		"END": "not the path", "delete": "not the path",
	} {
		err := CheckPath(name, exists)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
	for quoted, want := range map[string]string{"`a`": "a", "` a `": "a", "`a": "`a", "``": "``", "`a` `b`": "`a` `b`"} {
		if got := Unquoted(quoted); got != want {
			t.Errorf("%q: %q", quoted, got)
		}
	}
}
