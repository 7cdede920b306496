//go:build unix

package check

import (
	"bytes"
	"context"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"hone/sandbox"

	"github.com/google/go-cmp/cmp"
)

// words reads lines "E file:line: message" as errors, W as warnings.
var words Reader = func(out string, exit int) (found []Finding) {
	for _, m := range regexp.MustCompile(`(?m)^([EW]) (\S+):1: (.*)$`).FindAllStringSubmatch(out, -1) {
		found = append(found, Finding{File: m[2], Line: 1, Text: m[3], ID: m[3], Advisory: m[1] == "W"})
	}
	return found
}

// read runs a command whose output words reads.
func read(t *testing.T, cmd string, change func(*CommandConfig)) []Finding {
	t.Helper()
	c := command(t, cmd)
	c.Reader, c.ReportReader = words, words
	if change != nil {
		change(&c)
	}
	return ask(t, Command(runner, c))
}

// shape returns findings in one line each.
func shape(found []Finding) (lines []string) {
	for _, f := range found {
		flags := ""
		if f.Advisory {
			flags = "note "
		}
		if f.Broken {
			flags = "broken "
		}
		first, _, _ := strings.Cut(f.Text, "\n")
		lines = append(lines, strings.Join(strings.Fields(flags+f.Place()+" "+first), " "))
	}
	return lines
}

// The exit status decides whether a check failed; what is read only says why.
func TestCommandReads(t *testing.T) {
	for name, c := range map[string]struct {
		command string
		change  func(*CommandConfig)
		want    []string
	}{
		"a failure":            {"echo 'E a:1: no x'; echo 'E b:1: no y'; exit 1", nil, []string{"a:1 no x", "b:1 no y"}},
		"the worst first":      {"echo 'W a:1: no x'; echo 'E b:1: no y'; exit 1", nil, []string{"b:1 no y", "note a:1 no x"}},
		"only warnings":        {"echo 'W a:1: no x'; exit 1", nil, []string{"The check command failed: exit status 1."}},
		"nothing to read":      {"echo what; exit 1", nil, []string{"The check command failed: exit status 1."}},
		"a pass with findings": {"echo 'E a:1: no x'", nil, []string{"note a:1 no x"}},
		"findings fail it":     {"echo 'E a:1: no x'", func(c *CommandConfig) { c.FailOnFindings = true }, []string{"a:1 no x"}},
		"no findings pass":     {"echo fine", func(c *CommandConfig) { c.FailOnFindings = true }, nil},
		"twice the same":       {"echo 'E a:1: no x'; echo 'E a:1: no x'; exit 1", nil, []string{"a:1 no x"}},
		"it cannot run":        {"echo 'E a:1: no x'; exit 127", nil, []string{"broken The check command could not run: exit status 127 means that the program does not exist or is not executable."}},
		"a signal":             {"echo 'E a:1: no x'; kill -9 $$", nil, []string{"The check command failed: it was killed by a signal (killed).", "a:1 no x"}},
		"a secret": {"echo 'E a:1: no x hunter2'; exit 1", func(c *CommandConfig) {
			c.Redact = func(text string) string { return strings.ReplaceAll(text, "hunter2", "[redacted]") }
		}, []string{"a:1 no x [redacted]"}},
		"files are placed": {"echo 'E a:1: no x'; exit 1", func(c *CommandConfig) {
			c.Place = func(found []Finding) { found[0].File = "in/" + found[0].File }
		}, []string{"in/a:1 no x"}},
		"a report": {"echo 'E a:1: no x in other words'; exit 1", func(c *CommandConfig) {
			c.Reports = func() func() []Report {
				return func() []Report { return []Report{{Path: "r", Content: []byte("E a:1: no x\n")}} }
			}
		}, []string{"a:1 no x"}},
		"a report that is too large": {"echo 'E a:1: no x'; exit 1", func(c *CommandConfig) {
			c.Reports = func() func() []Report {
				return func() []Report { return []Report{{Path: "r", Omitted: "it is larger than 16 MiB"}} }
			}
		}, []string{"a:1 no x", "note The report r was not read: it is larger than 16 MiB."}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, shape(read(t, c.command, c.change))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A check that is stopped says what it has found until then.
func TestCommandTimeoutReads(t *testing.T) {
	found := read(t, "echo 'E a:1: no x'; echo waiting for the server; sleep 1000", func(c *CommandConfig) { c.Timeout = 5 * time.Second })
	if len(found) != 2 || found[1].Place() != "a:1" || !strings.Contains(found[0].Text, "did not finish within 5s") ||
		!strings.Contains(found[0].Text, "waiting for the server") {
		t.Errorf("%+v", found)
	}
}

// A build that prints a thousand warnings sends some.
func TestCommandFewNotes(t *testing.T) {
	found := Bound(read(t, "for i in $(seq 1000); do echo \"W a:1: warning $i\"; done; echo 'E a:1: no x'; exit 1", nil))
	if len(found) != maxNotes+2 || Count(found) != 1001 || found[0].Text != "no x" || !found[len(found)-1].Advisory {
		t.Errorf("%d findings that stand for %d", len(found), Count(found))
	}
}

// Each finding with an ID is itself, also if it is the only one.
func TestSplitFlakyIDs(t *testing.T) {
	a, b := Finding{Source: "check", Text: "a", ID: "a"}, Finding{Source: "check", Text: "b", ID: "b"}
	a2 := a
	a2.Text = "a, in 3 s"
	stay, flaky := SplitFlaky([]Finding{a, b}, []Finding{a2})
	if diff := cmp.Diff([][]Finding{{a2}, {b}}, [][]Finding{stay, flaky}); diff != "" {
		t.Error(diff)
	}
	stay, flaky = SplitFlaky([]Finding{a}, []Finding{b})
	if diff := cmp.Diff([][]Finding{{b}, {a}}, [][]Finding{stay, flaky}); diff != "" {
		t.Error(diff)
	}
}

func TestTally(t *testing.T) {
	in := func(file, id string) Finding { return Finding{File: file, ID: id, Text: "x"} }
	for _, c := range []struct {
		found []Finding
		want  string
	}{
		{nil, "0 findings"},
		{[]Finding{in("a", "")}, "1 finding"},
		{[]Finding{in("a", ""), in("a", "")}, "2 findings in 1 file"},
		{[]Finding{in("a", ""), in("b", "")}, "2 findings in 2 files"},
		{[]Finding{in("a", ""), in("", "")}, "2 findings"},
		{[]Finding{in("a", ""), {More: 9}}, "10 findings"},
	} {
		if got := Tally(c.found); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	before := []Finding{in("a", "1"), in("a", "2"), in("b", "3")}
	for _, c := range []struct {
		now  []Finding
		want string
	}{
		{before, ""},
		{before[:1], "2 gone"},
		{[]Finding{before[0], in("c", "4")}, "2 gone, 1 new"},
		{[]Finding{in("a", "")}, ""},
		{append([]Finding{{Text: "a note", Advisory: true}}, before...), ""},
	} {
		if got := Difference(before, c.now); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestCommandWithoutReaders(t *testing.T) {
	found, err := Command(runner, command(t, "echo 'E a:1: x'; exit 1"))(context.Background())
	if err != nil || len(found) != 1 || found[0].File != "" {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestLongOutput: Readers get both ends of a very long output, without the halves of a
// secret that the cut divides.
func TestLongOutput(t *testing.T) {
	t.Parallel()
	const secret = "SECRET-VALUE"
	out := []byte("first\n" + strings.Repeat(secret+"\n", 2*maxRead/len(secret)) + "last\n")
	c := CommandConfig{Program: Program{Redact: func(text string) string { return strings.ReplaceAll(text, secret, "*") }}}
	got := c.output(sandbox.Result{Stdout: out})
	if len(got) > maxRead || !strings.HasPrefix(got, "first\n*\n") || !strings.HasSuffix(got, "*\nlast\n") {
		t.Errorf("%d bytes, %.20q…%q", len(got), got, got[len(got)-20:])
	}
	for _, part := range []string{"SECRET", "VALUE"} {
		if strings.Contains(got, part) {
			t.Errorf("it contains %s", part)
		}
	}
}

// printing is a runner whose commands print this and fail.
type printing []byte

func (p printing) Run(context.Context, sandbox.Command) (sandbox.Result, error) {
	return sandbox.Result{Exit: 2, Stdout: p}, nil
}

// TestFlood: of an output of the largest size, such as one line of a progress bar, no part of the check copies the whole.
func TestFlood(t *testing.T) {
	out := bytes.Repeat([]byte("progress 12.3 % syntax error\r"), 64<<20/29)
	c := command(t, "exit 2")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ask(t, Command(printing(out), c))
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > uint64(len(out)) {
		t.Errorf("%d MiB are allocated for an output of %d MiB", took>>20, len(out)>>20)
	}
}
