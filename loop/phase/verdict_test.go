package phase

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// seedVerdict is the seed's example of failed_specs.md, word for word.
const seedVerdict = `SPEC: POST /auth/login {valid credentials} → 200 {token}
INPUT: {"email": "test@test.com", "password": "correct"}
OBSERVED: 404

SPEC: GET /dashboard (valid token) → 200
INPUT: GET /dashboard headers: {Authorization: Bearer <token>}
OBSERVED: redirect /login
`

func TestSeedVerdict(t *testing.T) {
	want := []failedSpec{
		{
			Spec:     "POST /auth/login {valid credentials} → 200 {token}",
			Input:    `{"email": "test@test.com", "password": "correct"}`,
			Observed: "404",
			Text:     "SPEC: POST /auth/login {valid credentials} → 200 {token}\nINPUT: {\"email\": \"test@test.com\", \"password\": \"correct\"}\nOBSERVED: 404",
		},
		{
			Spec:     "GET /dashboard (valid token) → 200",
			Input:    "GET /dashboard headers: {Authorization: Bearer <token>}",
			Observed: "redirect /login",
			Text:     "SPEC: GET /dashboard (valid token) → 200\nINPUT: GET /dashboard headers: {Authorization: Bearer <token>}\nOBSERVED: redirect /login",
		},
	}
	for name, text := range map[string]string{
		"as it is":         seedVerdict,
		"carriage returns": strings.ReplaceAll(seedVerdict, "\n", "\r\n"),
		"byte order mark":  "\ufeff" + seedVerdict,
	} {
		if got, warnings := readFailed(text); !cmp.Equal(want, got) || warnings != nil {
			t.Errorf("%s, %q (-want +got):\n%s", name, warnings, cmp.Diff(want, got))
		}
	}
}

// TestVerdictShapes is what models make of the format.
func TestVerdictShapes(t *testing.T) {
	for _, text := range []string{
		"SPEC: a\nINPUT: b\nOBSERVED: c",
		"  SPEC: a\n\tINPUT: b\n  OBSERVED: c\n\n\n",
		"SPEC:a\nINPUT:b\nOBSERVED:c",
		"SPEC : a\nINPUT : b\nOBSERVED : c",
		"- SPEC: a\n- INPUT: b\n- OBSERVED: c\n",
		"- SPEC: a\n  - INPUT: b\n  - OBSERVED: c\n",
		"1. SPEC: a\n   INPUT: b\n   OBSERVED: c\n",
		"- [ ] SPEC: a\n  INPUT: b\n  OBSERVED: c\n",
		"> SPEC: a\n> INPUT: b\n> OBSERVED: c",
		"## SPEC: a\n### INPUT: b\n### OBSERVED: c",
		"**SPEC:** a\n**INPUT:** b\n**OBSERVED:** c",
		"**SPEC**: a\n**INPUT**: b\n**OBSERVED**: c",
		"**SPEC: a**\n**INPUT: b**\n**OBSERVED: c**",
		"`SPEC: a`\n`INPUT: b`\n`OBSERVED: c`",
		"* **SPEC:** `a`\n* **INPUT:** `b`\n* **OBSERVED:** `c`",
		"SPEC:\na\nINPUT:\nb\nOBSERVED:\nc\n",
		"# Failures\n\n```\nSPEC: a\nINPUT: b\nOBSERVED: c\n```\n",
		"SPEC: a\nINPUT: b\nOBSERVED: c\n\n---\n",
		"SPEC：a\nINPUT：b\nOBSERVED：c",
		"SPEC: a\rINPUT: b\rOBSERVED: c\r",
	} {
		got, _ := readFailed(text)
		if len(got) != 1 {
			t.Errorf("%q has %d failures", text, len(got))
			continue
		}
		f := got[0]
		f.Spec, f.Input, f.Observed = strings.Trim(f.Spec, "`"), strings.Trim(f.Input, "`"), strings.Trim(f.Observed, "`")
		if f.Spec != "a" || f.Input != "b" || f.Observed != "c" {
			t.Errorf("%q is read as %q, %q, %q", text, f.Spec, f.Input, f.Observed)
		}
	}
}

func TestVerdictParts(t *testing.T) {
	type failedSpecs struct {
		Failures []failedSpec
		Warnings []string
	}
	for _, test := range []struct {
		name, text string
		want       failedSpecs
	}{
		{"nothing", "", failedSpecs{}},
		{"white space", " \n\n", failedSpecs{}},
		{"a note", "All contracts hold.\n", failedSpecs{
			Warnings: []string{"it contains text but no SPEC: entry; it counts as a note that everything passed"},
		}},
		{"within a line", "Two failed.\nFirst SPEC: a → b\n", failedSpecs{
			Failures: []failedSpec{{Spec: "Two failed.\nFirst SPEC: a → b", Text: "Two failed.\nFirst SPEC: a → b"}},
			Warnings: []string{"it contains SPEC:, but no line starts with it; the whole text counts as one failure"},
		}},
		{"many lines", "SPEC: a\n  → b\nINPUT:\n```json\n{\n}\n```\nINPUT: again\nOBSERVED: c\n\nd\n", failedSpecs{
			Failures: []failedSpec{{Spec: "a\n  → b", Input: "```json\n{\n}\n```\nagain", Observed: "c\n\nd",
				Text: "SPEC: a\n  → b\nINPUT:\n```json\n{\n}\n```\nINPUT: again\nOBSERVED: c\n\nd"}},
		}},
		{"each in a fence, with a rule", "```\nSPEC: a\nINPUT: b\nOBSERVED: c\n```\n\n***\n~~~\nSPEC: d\nINPUT: e\nOBSERVED: f\n~~~\n", failedSpecs{
			Failures: []failedSpec{
				{Spec: "a", Input: "b", Observed: "c", Text: "SPEC: a\nINPUT: b\nOBSERVED: c"},
				{Spec: "d", Input: "e", Observed: "f", Text: "SPEC: d\nINPUT: e\nOBSERVED: f"},
			},
		}},
		{"lacks parts", "SPEC: a\nOBSERVED: c\nSPEC:\nINPUT: b\nSPEC: d\n", failedSpecs{
			Failures: []failedSpec{
				{Spec: "a", Observed: "c", Text: "SPEC: a\nOBSERVED: c"},
				{Input: "b", Text: "SPEC:\nINPUT: b"},
				{Spec: "d", Text: "SPEC: d"},
			},
			Warnings: []string{
				"an entry has no INPUT:, which the builder has to guess",
			},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got failedSpecs
			got.Failures, got.Warnings = readFailed(test.text)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// FuzzParse holds that a failure is never lost: where the seed's search
// for SPEC: finds one, or a line is labelled so in emphasis, there is one.
func FuzzReadFailed(f *testing.F) {
	f.Add(seedVerdict)
	f.Add("**SPEC**: a\n```\nOBSERVED:\n~~~\n---\n# x\nSPEC:")
	f.Add("no SPEC: here\r\n\x00\xff")
	f.Add("Spec: a")
	spaced := regexp.MustCompile("SPEC[*_`\\s]*[:：]")
	f.Fuzz(func(t *testing.T, text string) {
		failures, _ := readFailed(text)
		if strings.Contains(text, "SPEC:") && len(failures) == 0 {
			t.Errorf("%q says SPEC: and has no failure", text)
		}
		if len(failures) > 0 && !spaced.MatchString(text) {
			t.Errorf("%q says no SPEC: and has failures", text)
		}
		read := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
		for _, failure := range failures {
			if !strings.Contains(read, failure.Text) || failure.Text == "" {
				t.Errorf("%q has the failure %+v", text, failure)
			}
		}
	})
}
