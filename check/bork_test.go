//go:build unix

package check

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// checker returns a repository with a checker written for sh.
func checker(t *testing.T, script string) BorkConfig {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "check.sh"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return BorkConfig{Checker: "./check.sh", Program: Program{Dir: root, Env: []string{"PATH=" + os.Getenv("PATH")}, Timeout: time.Minute}}
}

const noFindings = `{"per_file_findings": [], "overall_findings": []}`

// found is the seed's sample with its commas corrected.
const found = `{
    "per_file_findings": [
        { "provenance": "code-review", "file": "foo/bar.py", "finding": "The function omits a check." }
    ],
    "overall_findings": [
        { "provenance": "code-review", "finding": "The approach *works*, but …" },
        { "provenance": "command", "command": "uv run pyright .", "stdout": "1 error\n", "stderr": "", "exit-code": 1 }
    ]
}
`

var foundFindings = []Finding{
	{Source: "checker", File: "foo/bar.py", Text: "The function omits a check."},
	{Source: "checker", Text: "The approach *works*, but …"},
	{Source: "checker", Text: "The checker ran this command, which exited with status 1:\n\n    uv run pyright .\n\nIts standard output:\n\n1 error\n\nIts standard error: (empty)\n"},
}

// seedSample is the seed's sample as written: it has one comma too many and
// lacks one.
const seedSample = `{
    "per_file_findings": [
        { "provenance": "code-review", "file": "foo/bar.py", "finding": "x" },
    ],
    "overall_findings": [
        { "provenance": "code-review", "finding": "y" }
        { "provenance": "command", "command": "c", "stdout": "o", "stderr": "e", "exit-code": 1 }
    ]
}`

// prints returns a script that prints a text and then runs rest.
func prints(text, rest string) string { return "cat <<'END'\n" + text + "\nEND\n" + rest + "\n" }

func TestBorkFindings(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		want   []Finding
	}{
		"exit 0 without findings":        {prints(noFindings, "exit 0"), nil},
		"exit 1 with findings":           {prints(found, "exit 1"), foundFindings},
		"exit 0 with findings":           {prints(found, "exit 0"), foundFindings},
		"one list":                       {prints(`{"overall_findings": []}`, ""), nil},
		"keys from later":                {prints(`{"version": 2, "overall_findings": [{"provenance": "code-review", "finding": "x", "line": 3}]}`, "exit 1"), []Finding{{Source: "checker", Text: "x"}}},
		"a command of a file":            {prints(`{"per_file_findings": [{"provenance": "command", "file": "a", "command": "c", "stdout": "", "stderr": "e", "exit-code": -9}]}`, "exit 1"), []Finding{{Source: "checker", File: "a", Text: "The checker ran this command, which exited with status -9:\n\n    c\n\nIts standard output: (empty)\n\nIts standard error:\n\ne\n"}}},
		"no arguments, at the Git root":  {`[ $# = 0 ] && [ -x ./check.sh ] && ` + prints(noFindings, ""), nil},
		"a text that is not UTF-8":       {`printf '{"overall_findings": [{"provenance": "code-review", "finding": "a\377"}]}'`, []Finding{{Source: "checker", Text: "<non-UTF8 output>"}}},
		"words on standard error":        {"echo hello >&2\n" + prints(noFindings, ""), nil},
		"a daemon that holds the output": {prints(noFindings, "(setsid sleep 1000 &)\nsleep 1000 &\nexit 0"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, ask(t, Bork(runner, checker(t, c.script)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBorkFailedToRun(t *testing.T) {
	const notJSON = "exit status 0, and its output is not the JSON of a checker: "
	for name, c := range map[string]struct{ script, why string }{
		"exit 1 without findings":  {prints(noFindings, "exit 1"), "exit status 1 means that it has findings, but its output has none"},
		"exit 2":                   {prints(found, "exit 2"), "exit status 2"},
		"exit 2 without findings":  {prints(noFindings, "exit 2"), "exit status 2"},
		"exit 3":                   {prints(noFindings, "exit 3"), "exit status 3"},
		"a signal":                 {prints(noFindings, "kill -9 $$"), "it was killed by a signal (killed)"},
		"no output":                {"exit 0", notJSON + "it is empty"},
		"exit 1 and no output":     {"exit 1", "exit status 1, and its output is not the JSON of a checker: it is empty"},
		"not JSON":                 {"echo all is well", notJSON + "line 1: invalid character 'a' looking for beginning of value"},
		"JSON that is cut":         {`printf '{"overall_findings": ['`, notJSON + "it ends before the object does"},
		"a list":                   {"echo []", notJSON + "it is not an object"},
		"null":                     {"echo null", notJSON + "it is null, not an object"},
		"two objects":              {prints(noFindings+"\n"+noFindings, ""), notJSON + "line 2: there is more text after the object"},
		"something else":           {"echo '{}'", notJSON + `it has neither "per_file_findings" nor "overall_findings"`},
		"keys in other letters":    {`echo '{"Overall_Findings": []}'`, notJSON + `it has neither "per_file_findings" nor "overall_findings"`},
		"a list that is null":      {`echo '{"overall_findings": null}'`, notJSON + `"overall_findings" is not a list`},
		"a list that is an object": {`echo '{"overall_findings": {}}'`, notJSON + `"overall_findings" is not a list`},
		"binary":                   {`printf '\000\377'`, notJSON + `line 1: invalid character '\x00' looking for beginning of value`},
	} {
		t.Run(name, func(t *testing.T) {
			found := ask(t, Bork(runner, checker(t, c.script)))
			if len(found) != 1 || !found[0].Broken || !strings.HasPrefix(found[0].Text, "The correctness checker ./check.sh failed to run: "+c.why+".\n") {
				t.Errorf("%+v", found)
			}
		})
	}
}

// What cannot be read is a finding as text, and hides nothing else (ruling B16).
func TestBorkPartlyReadable(t *testing.T) {
	const good = `{"provenance": "code-review", "finding": "good"}`
	kept := Finding{Source: "checker", Text: "good"}
	for name, c := range map[string]struct {
		script string
		n      int    // findings
		last   string // what the last one says
		file   string
	}{
		"the seed's sample":         {prints(seedSample, "exit 1"), 2, "not the JSON of a checker: line 4: invalid character ']'", ""},
		"the rest of the sample":    {prints(seedSample, "exit 1"), 2, `"finding": "y"`, ""},
		"JSON that is cut":          {`printf '{"overall_findings": [` + good + `, {"prov'`, 2, `{"prov`, ""},
		"a finding that is text":    {`echo '{"overall_findings": [` + good + `, "some text"]}'`, 2, "some text", ""},
		"no provenance":             {`echo '{"overall_findings": [` + good + `, {"finding": "the text"}]}'`, 2, "the text", ""},
		"another provenance":        {`echo '{"per_file_findings": [{"provenance": "lint", "file": "a.py", "message": "E501 long", "line": 3}, {"provenance": "lint", "file": "b.py"}]}'`, 2, `"lint", neither`, "b.py"},
		"an exit code that is null": {`echo '{"overall_findings": [` + good + `, {"provenance": "command", "command": "c", "stdout": "the output", "stderr": "", "exit-code": null}]}'; exit 1`, 2, "the output", ""},
		"no standard error":         {`echo '{"overall_findings": [` + good + `, {"provenance": "command", "command": "c", "stdout": "the output", "exit-code": 1}]}'`, 2, "the output", ""},
		"no file":                   {`echo '{"per_file_findings": [{"provenance": "code-review", "finding": "x y z"}]}'`, 1, "x y z", ""},
		"only another provenance":   {`echo '{"overall_findings": [{"provenance": "lint", "text": "E501"}]}'`, 1, "E501", ""},
		"text after the object":     {`echo '{"overall_findings": [` + good + `]}'; echo Finished with 1 error`, 2, "Finished with 1 error", ""},
		"a null":                    {`echo '{"overall_findings": [` + good + `, null]}'`, 2, "null", ""},
	} {
		t.Run(name, func(t *testing.T) {
			found := ask(t, Bork(runner, checker(t, c.script)))
			if len(found) != c.n {
				t.Fatalf("%d findings: %+v", len(found), found)
			}
			last := found[c.n-1]
			broken := strings.Contains(last.Text, "failed to run") // what is not JSON is no verdict (ruling B9)
			if last.Broken != broken || last.Advisory || last.File != c.file || !strings.Contains(last.Text, c.last) {
				t.Errorf("%+v", last)
			}
			if strings.Contains(c.script, good) && found[0] != kept {
				t.Errorf("%+v", found[0])
			}
		})
	}
	c := checker(t, `echo '{"overall_findings": [{"provenance": "lint", "text": "it prints \\u0073ecret"}, {"provenance": "lint", "text": "secret"},]}'`)
	c.Redact = hide("secret")
	for _, f := range ask(t, Bork(runner, c)) {
		if strings.Contains(f.Text, "secret") {
			t.Errorf("%+v", f)
		}
	}
	c = checker(t, prints("no JSON at all", "exit 2"))
	if found := ask(t, Bork(runner, c)); len(found) != 1 || !found[0].Broken || !strings.Contains(found[0].Text, "What else it printed:\n\nno JSON at all") {
		t.Errorf("%+v", found)
	}
}

func TestBorkCannotStart(t *testing.T) {
	root := checker(t, prints(noFindings, "")).Dir
	for name, mode := range map[string]os.FileMode{"plain": 0o644, "nohead": 0o755} {
		if err := os.WriteFile(filepath.Join(root, name), []byte("echo x\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ path, why string }{
		{"gone", "there is no such file"},
		{"plain", "it is not executable"},
		{"nohead", "nor a script whose first line starts with #!"},
		{".", "it is a directory"},
		{"sh", "there is no such file"}, // though it is on PATH
		{"../check.sh", "its path is not below the Git root"},
		{"/bin/true", "its path is not below the Git root"},
		{"", "its path is not below the Git root"},
	} {
		found := ask(t, Bork(runner, BorkConfig{Checker: c.path, Program: Program{Dir: root, Env: []string{"PATH=" + os.Getenv("PATH")}}}))
		if len(found) != 1 || !found[0].Broken || !strings.Contains(found[0].Text, c.why) {
			t.Errorf("%q: %+v", c.path, found)
		}
	}
}

func TestBorkPathWithoutDot(t *testing.T) {
	c := checker(t, prints(noFindings, ""))
	c.Checker = "check.sh"
	if found := ask(t, Bork(runner, c)); found != nil {
		t.Errorf("%+v", found)
	}
}

func TestBorkTimeout(t *testing.T) {
	c := checker(t, prints(noFindings, "echo waiting >&2; sleep 1000"))
	c.Timeout = 200 * time.Millisecond
	found := ask(t, Bork(runner, c))
	if len(found) != 1 || !found[0].Broken || !strings.Contains(found[0].Text, "it did not finish within 200ms and was stopped") {
		t.Errorf("%+v", found)
	}
}

func TestBorkEndlessOutput(t *testing.T) {
	c := checker(t, "head -c 33554439 /dev/zero; exit 0")
	found := ask(t, Bork(runner, c))
	if len(found) != 1 || !found[0].Broken || !strings.Contains(found[0].Text, "its output was 7 bytes longer than the limit") {
		t.Errorf("%+v", found)
	}
}

func TestBorkShowsStandardError(t *testing.T) {
	var seen bytes.Buffer
	c := checker(t, "echo looking at secret >&2\n"+prints(found, "exit 2"))
	c.Live, c.Redact = &seen, hide("secret")
	found := ask(t, Bork(runner, c))
	if seen.String() != "looking at ***\n" {
		t.Errorf("shown: %q", seen.String())
	}
	want := "The correctness checker ./check.sh failed to run: exit status 2.\n"
	if len(found) != 1 || !strings.HasPrefix(found[0].Text, want) || !strings.HasSuffix(found[0].Text, "The end of its standard error:\n\nlooking at ***\n") {
		t.Errorf("%+v", found)
	}
}

// A secret that is written with JSON escapes is redacted too.
func TestBorkRedactsWhatJSONSays(t *testing.T) {
	c := checker(t, `echo '{"overall_findings": [{"provenance": "code-review", "finding": "it prints \u0073ecret"}]}'`)
	c.Redact = hide("secret")
	if found := ask(t, Bork(runner, c)); len(found) != 1 || found[0].Text != "it prints ***" {
		t.Errorf("%+v", found)
	}
}

func TestBorkEnvironment(t *testing.T) {
	c := checker(t, `printf '{"overall_findings": [{"provenance": "code-review", "finding": "%s"}]}' "$KEY"`)
	c.Env = append(c.Env, "KEY=kept")
	if found := ask(t, Bork(runner, c)); len(found) != 1 || found[0].Text != "kept" {
		t.Errorf("%+v", found)
	}
}

func FuzzParseBork(f *testing.F) {
	for _, seed := range []string{noFindings, found, seedSample, "{}", "null", "{\"overall_findings\": [{\"provenance\": \"code-review\", \"finding\": \"\xff\"}]}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		read, _ := parseBork(bytes.NewReader(out), nil)
		for _, finding := range read.found.findings() {
			if finding.Source != SourceBork || finding.Broken || finding.Advisory {
				t.Errorf("%q: %+v", out, finding)
			}
		}
	})
}
