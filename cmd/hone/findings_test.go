package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"hone/check"
)

func sampleFindings() checkResult {
	in := func(file string, line int, id, printedFindings string) check.Finding {
		return check.Finding{Source: "check", File: file, Line: line, ID: id, Text: printedFindings}
	}
	note := in("b c.go", 3, "style: b c.go: odd", "odd (style)")
	note.Advisory = true
	partial := in("", 0, "build x", "x does not compile\na\x1b[2J")
	partial.Partial = true
	return checkResult{Command: "make test", Version: "1.2.3", Findings: []check.Finding{
		in("a.go", 7, "pkg.TestA", "TestA: got 1\nwant 2"), in("dir/ü:1.go", 1, "E501: dir/ü:1.go: too long", "too long (E501)"), in("a.go", 9, "pkg.TestB", "TestB: got 1"),
		partial, note, {Source: "check", Advisory: true, Text: "The check command ended with exit status 1."}}}
}

func printedFindings(t *testing.T, print func(*strings.Builder) error) string {
	t.Helper()
	var b strings.Builder
	if err := print(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestText(t *testing.T) {
	const want = "a.go:7: TestA: got 1\na.go:9: TestB: got 1\ndir/ü:1.go:1: too long (E501)\nx does not compile\nnote: The check command ended with exit status 1.\nb c.go:3: note: odd (style)\n"
	if got := printedFindings(t, func(b *strings.Builder) error { return sampleFindings().Text(b, false) }); got != want {
		t.Errorf("got %s", got)
	}
	all := printedFindings(t, func(b *strings.Builder) error { return sampleFindings().Text(b, true) })
	if !strings.Contains(all, "a.go:7: TestA: got 1\n    want 2\n") || strings.Contains(all, "\x1b") {
		t.Errorf("got %q", all)
	}
	whole := checkResult{Findings: []check.Finding{{Source: "check", Text: "It failed.\n" + strings.Repeat("x\n", 100) + "end\n"}}}
	short := printedFindings(t, func(b *strings.Builder) error { return whole.Text(b, false) })
	if strings.Count(short, "\n") != wholeLines+2 || !strings.HasSuffix(short, "    x\n    end\n") || !strings.Contains(short, "61 lines before") {
		t.Errorf("got %s", short)
	}
}

func TestExit(t *testing.T) {
	advisory := check.Finding{Text: "x", Advisory: true}
	for want, found := range map[int][]check.Finding{0: {advisory}, 1: {advisory, {Text: "y"}}, 5: {{Text: "y"}, {Text: "z", Broken: true}}} {
		if got := (checkResult{Findings: found}).Exit(); got != want {
			t.Errorf("%+v: %d, want %d", found, got, want)
		}
	}
}

// What code scanning demands of a log of SARIF 2.1.0: one run with a named driver, and in
// each result a rule that the driver has, a level, a message, a place with a relative URI
// and a line, and a fingerprint of its own.
func TestSARIF(t *testing.T) {
	out := printedFindings(t, func(b *strings.Builder) error { return sampleFindings().SARIF(b, "sub dir") })
	var log struct {
		Schema  string `json:"$schema"`
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct {
					Name  string
					Rules []struct {
						ID               string
						ShortDescription struct{ Text string }
					}
				}
			}
			Results []struct {
				RuleID    string
				RuleIndex *int
				Level     string
				Message   struct{ Text string }
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine int }
					}
				}
				PartialFingerprints map[string]string
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &log); err != nil {
		t.Fatal(err)
	}
	if log.Version != "2.1.0" || log.Schema == "" || len(log.Runs) != 1 || log.Runs[0].Tool.Driver.Name != "hone" {
		t.Fatalf("got %s", out)
	}
	run, prints := log.Runs[0], map[string]bool{}
	var shape []string
	for _, r := range run.Results {
		if len(r.Locations) != 1 || r.RuleIndex == nil || run.Tool.Driver.Rules[*r.RuleIndex].ID != r.RuleID || run.Tool.Driver.Rules[*r.RuleIndex].ShortDescription.Text == "" || r.Message.Text == "" {
			t.Fatalf("%+v", r)
		}
		at := r.Locations[0].PhysicalLocation
		if u, err := url.Parse(at.ArtifactLocation.URI); err != nil || u.IsAbs() || u.Path == "" || strings.HasPrefix(u.Path, "/") || at.Region.StartLine < 1 {
			t.Errorf("%+v: %v", at, err)
		}
		fingerprint := r.PartialFingerprints["primaryLocationLineHash"]
		if fingerprint == "" || prints[fingerprint] {
			t.Errorf("%q is no fingerprint", fingerprint)
		}
		prints[fingerprint] = true
		shape = append(shape, fmt.Sprintf("%s %s %s:%d", r.RuleID, r.Level, at.ArtifactLocation.URI, at.Region.StartLine))
	}
	want := "test error sub%20dir/a.go:7\nE501 error sub%20dir/dir/%C3%BC:1.go:1\ntest error sub%20dir/a.go:9\nbuild error sub%20dir/.config/hone.toml:1\nstyle warning sub%20dir/b%20c.go:3"
	if got := strings.Join(shape, "\n"); got != want {
		t.Errorf("got\n%s", got)
	}
	if !strings.Contains(out, `"toolExecutionNotifications":[{"level":"warning"`) {
		t.Errorf("the note about the output is missing: %s", out)
	}
}

// The fingerprint of a finding stays when its line and its words change.
func TestFingerprint(t *testing.T) {
	print := func(line int, words string) string {
		r := checkResult{Findings: []check.Finding{{Source: "check", File: "a.go", Line: line, ID: "pkg.TestA", Text: words}}}
		out := printedFindings(t, func(b *strings.Builder) error { return r.SARIF(b, "") })
		_, hash, _ := strings.Cut(out, "primaryLocationLineHash")
		return hash
	}
	if a, b := print(7, "took 3 s"), print(9, "took 4 s"); a != b {
		t.Errorf("%s, %s", a, b)
	}
}

func TestNothingFound(t *testing.T) {
	for name, print := range map[string]func(*strings.Builder) error{
		`"results":[]`:         func(b *strings.Builder) error { return checkResult{}.SARIF(b, "") },
		`"findings":[]`:        func(b *strings.Builder) error { return checkResult{}.JSON(b) },
		`"overall_findings":[`: func(b *strings.Builder) error { return checkResult{}.Bork(b) },
	} {
		if got := printedFindings(t, print); !strings.Contains(got, name) || strings.Contains(got, "null") {
			t.Errorf("got %s", got)
		}
	}
}
