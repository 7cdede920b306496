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

func TestUnquoted(t *testing.T) {
	for quoted, want := range map[string]string{"`a`": "a", "` a `": "a", "`a": "`a", "``": "``", "`a` `b`": "`a` `b`"} {
		if got := Unquoted(quoted); got != want {
			t.Errorf("%q: %q", quoted, got)
		}
	}
}
