package tap_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/internal/tap"
)

// outline is what was read, one line for each point and problem.
func outline(r tap.Report) string {
	var b strings.Builder
	for _, p := range r.Points {
		fmt.Fprintf(&b, "%d %v %q %s\n", p.Number, p.Passed(), p.Description, p.Directive)
	}
	for _, p := range r.Problems {
		b.WriteString("! " + p + "\n")
	}
	return b.String()
}

func TestParse(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"version 14":            {"TAP version 14\n1..2\nok 1 - a → b\nnot ok 2 - c\n", "1 true \"a → b\" \n2 false \"c\" \n"},
		"version 13, plan last": {"TAP version 13\r\nok\r\nnot ok\r\n1..2\r\n", "1 true \"\" \n2 false \"\" \n"},
		"another version":       {"TAP version 15\n1..1\nok\n", "1 true \"\" \n! TAP version 15 is not 13 or 14\n"},
		"nothing":               {"", "! there is no plan, such as 1..1\n"},
		"no plan":               {"ok 1\nok 2\n", "1 true \"\" \n2 true \"\" \n! there is no plan, such as 1..2\n"},
		"skipped":               {"1..3\nok 1 - a # SKIP no curl\nok 2 # todo\nnot ok 3 a#skip\n", "1 false \"a\" SKIP\n2 false \"\" TODO\n3 false \"a#skip\" \n"},
		"all skipped":           {"1..0 # SKIP nothing here\n", "! the plan is 1..0: nothing was tested\n"},
		"an escaped hash":       {"1..2\nok 1 - GET /a\\#skip \\# skip\nok 2 - a\\\\b\n", "1 true \"GET /a#skip # skip\" \n2 true \"a\\\\b\" \n"},
		"bailed out":            {"1..2\nok 1\nBail out! no server\n", "1 true \"\" \n! it bailed out: no server\n! the plan is 1..2, but it printed 1\n"},
		"a forged point":        {"1..2\nnot ok 1 - a\nok 1 - a\nok 2 - b\n", "1 false \"a\" \n1 true \"a\" \n2 true \"b\" \n! there is more than one point 1\n! the plan is 1..2, but it printed 3\n"},
		"a forged plan":         {"1..2\nok 1\n1..1\n", "1 true \"\" \n! there is more than one plan\n"},
		"wrong numbers":         {"1..2\nok 1\nok 3\n", "1 true \"\" \n3 true \"\" \n! there is no point 2\n"},
		"out of order":          {"1..2\nok 2\nok 1\n", "2 true \"\" \n1 true \"\" \n"},
		"subtests and noise":    {"hello\n1..1\n    ok 1 - inner\n    1..1\nok 1 - outer\nokay\nnot okay\npragma +strict\n", "1 true \"outer\" \n"},
	} {
		if diff := cmp.Diff(tt.want, outline(tap.Parse(tt.text))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestValue(t *testing.T) {
	for name, tt := range map[string]struct{ text, input, observed string }{
		"a YAML block":   {"not ok 1\n  ---\n  input: GET /a\n  observed: 500, an empty body\n  ...\n", "GET /a", "500, an empty body"},
		"comments":       {"not ok 1\n# Input: GET /a\n# observed: 500\n", "GET /a", "500"},
		"quoted":         {"not ok 1\n  ---\n  input: \"GET /a\\nok 2\"\n  observed: 'it''s 500'\n  ...\n", "GET /a\nok 2", "it's 500"},
		"a block scalar": {"not ok 1\n  ---\n  input: |\n    POST /a\n    {\"x\": 1}\n  observed: >-\n    500\n  ...\n", "POST /a\n{\"x\": 1}", "500"},
		"more lines":     {"not ok 1\n  ---\n  observed: 500\n    and more\n  input:\n    - GET /a\n    - GET /b\n  ...\n", "- GET /a\n- GET /b", "500\nand more"},
		"no end":         {"not ok 1\n  ---\n  input: GET /a\nok 2\n  ---\n  observed: 1\n  ...\n", "GET /a", ""},
		"none":           {"not ok 1\n", "", ""},
		"before a point": {"  ---\n  input: x\n  ...\n# input: y\nnot ok 1\n", "", ""},
	} {
		r := tap.Parse("1..1\n" + tt.text)
		if len(r.Points) == 0 {
			t.Errorf("%s: no point", name)
			continue
		}
		if p := r.Points[0]; p.Value("input") != tt.input || p.Value("observed") != tt.observed {
			t.Errorf("%s: %q, %q", name, p.Value("input"), p.Value("observed"))
		}
	}
}

// FuzzParse: a point passes only if a line says ok, and the output is a complete
// result only if there are as many points as planned.
func FuzzParse(f *testing.F) {
	f.Add("TAP version 14\n1..2\nok 1 - a # SKIP b\n  ---\n  input: |\n    x\n  ...\nnot ok 2\n")
	f.Add("Bail out!\n1..0\n# a: b\nok 7 \\# \\\\")
	f.Fuzz(func(t *testing.T, text string) {
		r := tap.Parse(text)
		passed := 0
		for _, p := range r.Points {
			if p.Passed() {
				passed++
			}
			p.Value("input")
		}
		if says := strings.Count("\n"+text, "\nok"); passed > says {
			t.Errorf("%d points pass, and %d lines say ok: %q", passed, says, text)
		}
		if len(r.Problems) == 0 && !strings.Contains(text, fmt.Sprintf("1..%d", len(r.Points))) && !strings.Contains(text, "1..0") {
			t.Errorf("complete with %d points: %q", len(r.Points), text)
		}
	})
}
