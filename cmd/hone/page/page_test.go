package page_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"hone/check"
	"hone/cmd/hone/page"
	"hone/cmd/hone/report"
	"hone/history"
	"hone/journal"
	"hone/model"
	"hone/story"
)

// hostile is a text that would do something if one place forgot to escape it.
const hostile = "</title></style></pre><script>alert(1)</script><img src=x onerror=\"a()\">\x1b[2J\x00\u202e'\"`{{.Title}} javascript:a() KEY-1+2"

// account returns what a run did that began with these settings, and recorded these events.
func account(t *testing.T, start history.Start, entries ...journal.Entry) report.Account {
	t.Helper()
	home, err := journal.OpenHome(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { home.Close() })
	j, err := home.Create(home.NewRun())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for _, e := range append([]journal.Entry{{Type: history.TypeStart, Payload: start}}, entries...) {
		if _, err := j.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	r, err := report.Read(home, j.Run())
	if err != nil {
		t.Fatal(err)
	}
	return report.Of(r)
}

// pageOf returns the page of a run with these rounds.
func pageOf(t *testing.T, rounds ...page.Round) page.Page {
	return page.Page{Account: account(t, history.Start{Loop: "fix", Dir: "/x"}), All: rounds}
}

// hostilePage is a page whose run says nothing else.
func hostilePage(t *testing.T) page.Page {
	parts := []story.Part{{Name: hostile, Text: hostile}}
	found := []check.Finding{{Source: hostile, File: hostile, Text: hostile}}
	round := page.Round{Round: story.Round{Number: 1, Outcome: story.Failed, Verdict: hostile, Findings: found, Spans: []story.Span{{Kind: "tool", Name: hostile, To: 1}}}, Files: hostile,
		Calls: []page.Call{{Seq: 3, Name: hostile, Model: hostile, Replied: true, Used: &model.Usage{Input: 5, CacheRead: 5, Output: 2}, Texts: parts}},
		Diff:  "diff --git a/x b/" + hostile + "\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-- " + hostile + "\n+" + hostile + "\n", NoDiff: []string{hostile}, Log: hostile,
		Events: []page.Entry{{Line: hostile}, {Line: hostile, Rest: hostile, Parts: parts}}}
	second := page.Round{Round: story.Round{Number: 2, Outcome: story.Failed, Verdict: hostile, Findings: found}, Files: hostile}
	a := account(t, history.Start{Loop: hostile, Model: hostile, Dir: hostile}, journal.Entry{Type: history.TypeWalls, Payload: history.Walls{Wall: hostile, Level: hostile, Net: hostile, Text: hostile, Why: hostile, Open: []string{hostile}}},
		journal.Entry{Type: history.TypeEnd, Payload: history.End{Kind: hostile, Why: hostile, Said: hostile, Ignored: hostile, Notes: []string{hostile}}})
	return page.Page{Account: a, Version: hostile, Why: hostile, Up: page.Link{Text: hostile, Address: hostile}, Contracts: hostileGrid(), All: []page.Round{round, second},
		Attempts: []page.Attempt{{Number: 1, Why: hostile, Run: hostileRun()}, {Number: 2, Applied: true}}}
}

func hostileList() page.List {
	return page.List{Evaluations: []page.Link{{Text: hostile, Address: hostile}}, Folders: []page.Folder{{Name: hostile, Note: hostile, Runs: []page.Run{hostileRun()}}}}
}

func hostileRun() page.Run {
	return page.Run{Link: hostile, Ticks: []page.Tick{{Mark: hostile, Title: hostile}}, Summary: report.Summary{Run: hostile, Loop: hostile, Subject: hostile, Models: []string{hostile},
		Standing: story.Standing{Mark: hostile, Text: hostile}}}
}

func hostileGrid() *page.Grid {
	ticks := []page.Tick{{Mark: hostile, Title: hostile}}
	return &page.Grid{ID: "grid", Title: hostile, Corner: hostile, Columns: []page.Column{{Name: hostile, Link: hostile}, {Name: hostile}}, Note: hostile, Legend: ticks,
		Rows: []page.Row{{Name: hostile, Note: hostile, Cells: []page.Cell{{Marks: ticks, Text: hostile}, {}}}}}
}

// clean removes the one secret of these tests.
func clean(s string) string { return strings.ReplaceAll(s, "KEY-1+2", "[redacted]") }

func written(t *testing.T, p page.Page) string {
	t.Helper()
	var b strings.Builder
	if err := page.New(clean).File(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// served returns a page of a server.
func served(t *testing.T, part page.Part) string {
	t.Helper()
	var b strings.Builder
	if err := page.New(clean).Serve(&b, page.Served{Title: hostile, Version: hostile, Place: hostile, Stream: "/stream/" + hostile, Seen: hostile, Parts: []page.Part{part}}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestNothingEscapes: no text of a run becomes markup, a control character or a secret,
// wherever it stands.
func TestNothingEscapes(t *testing.T) {
	t.Parallel()
	list, err := page.New(clean).View(hostileList())
	if err != nil {
		t.Fatal(err)
	}
	evaluation, err := page.New(clean).View(page.Evaluation{Name: hostile, About: hostile, Head: []string{hostile, hostile}, Rows: [][]string{{hostile, hostile}}, Cases: hostileGrid()})
	if err != nil {
		t.Fatal(err)
	}
	wait, err := page.New(clean).View(page.Wait{Model: hostile, Role: hostile, Since: hostile, Text: hostile})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := page.New(clean).View(page.Pair{hostilePage(t), hostilePage(t)})
	if err != nil {
		t.Fatal(err)
	}
	single := hostilePage(t)
	single.Attempts = nil
	file, server := written(t, hostilePage(t)), served(t, list)
	for _, c := range []struct {
		name, got string
		texts     int
		tags      map[string]int
	}{
		{"attempts", file, 65, map[string]int{"html": 1, "head": 1, "title": 2, "style": 1, "body": 1, "section": 3, "svg": 1, "link": 0, "a": 7}},
		{"file", written(t, single), 64, map[string]int{"section": 2, "a": 8}},
		{"evaluation", served(t, evaluation), 26, map[string]int{"article": 1, "table": 2, "link": 2, "a": 2}},
		{"wait", served(t, wait), 9, map[string]int{"section": 1, "link": 2, "a": 1}},
		{"pair", served(t, pair), 13, map[string]int{"h1": 1, "article": 2, "table": 2, "link": 2, "a": 3}},
		{"server", server, 17, map[string]int{"html": 1, "head": 1, "title": 1, "style": 0, "body": 1, "section": 1, "link": 2, "a": 3}},
	} {
		for _, not := range []string{"<script>", "<img", "KEY-1", "KEY-1&#43;2", "http:", "https:", "url(", "@import", " onerror=\"a"} {
			if strings.Contains(strings.ReplaceAll(c.got, "onerror=&#34;", ""), not) {
				t.Errorf("%s: it contains %q", c.name, not)
			}
		}
		if i := strings.IndexFunc(c.got, func(r rune) bool { return unicode.IsControl(r) && r != '\n' || unicode.Is(unicode.Cf, r) }); i >= 0 {
			t.Errorf("%s: a control character at %.60q", c.name, c.got[i:])
		}
		if n := strings.Count(c.got, "&lt;script&gt;alert("); n != c.texts {
			t.Errorf("%s: %d texts are shown, want %d", c.name, n, c.texts)
		}
		for tag, want := range c.tags {
			if n := strings.Count(c.got, "<"+tag+">") + strings.Count(c.got, "<"+tag+" "); n != want {
				t.Errorf("%s: <%s> stands there %d times, want %d", c.name, tag, n, want)
			}
		}
	}
	if strings.Contains(file, "<link") || strings.Contains(file, "<script") {
		t.Error("the file needs something else")
	}
	if !regexp.MustCompile(`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-[A-Za-z0-9+/]{43}='">`).MatchString(html.UnescapeString(file)) {
		t.Error("the policy is missing")
	}
}

// TestAddresses: every address in a page begins with the path of its server.
func TestAddresses(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.html")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	addresses := regexp.MustCompile(`(href|src|action|data-stream)="([^#"].{0,4})`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, address := range addresses.FindAllSubmatch(text, -1) {
			if string(address[2]) != "{{at " {
				t.Errorf("%s: an address that is not made by at: %s", file, address[0])
			}
		}
	}
	r := page.New(nil)
	r.Under("/root")
	var b strings.Builder
	if err := r.Serve(&b, page.Served{Stream: "/stream/"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`href="/root/page.css"`, `src="/root/page.js"`, `<a href="/root/">runs</a>`, `data-stream="/root/stream/"`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("want %s in\n%s", want, &b)
		}
	}
	grid, err := r.View(page.Evaluation{Cases: &page.Grid{Columns: []page.Column{{Name: "here", Link: "#r1"}, {Name: "there", Link: "/run/x"}}}})
	if err != nil || !strings.Contains(grid.HTML, `<a href="#r1">`) || !strings.Contains(grid.HTML, `<a href="/root/run/x">`) {
		t.Errorf("%v: %s", err, grid.HTML)
	}
}

// TestPolicyFitsStyle: the policy of the file allows its style sheet, byte by byte.
func TestPolicyFitsStyle(t *testing.T) {
	t.Parallel()
	got := written(t, pageOf(t))
	_, rest, _ := strings.Cut(got, "<style>")
	sheet, _, _ := strings.Cut(rest, "</style>")
	sum := sha256.Sum256([]byte(sheet))
	if want := base64.StdEncoding.EncodeToString(sum[:]); !strings.Contains(html.UnescapeString(got), "'sha256-"+want+"'") || len(sheet) < 1000 {
		t.Errorf("the policy does not allow the style sheet of %d bytes", len(sheet))
	}
}

// TestDiffIsColoured: only lines of a hunk are added or removed ones, and the tokens of a
// language have colours.
func TestDiffIsColoured(t *testing.T) {
	t.Parallel()
	got := written(t, pageOf(t, page.Round{Diff: "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n same\n-old\n--- two\n+++ fresh\n+return \"<a>\" + 7 // why\n\\ No newline at end of file\n"}))
	for _, want := range []string{
		`<b>x</b> <span class="good">+2</span> <span class="bad">−2</span>`,
		`<pre class="one"><span class="hunk">@@ -1,2 +1,3 @@</span>` +
			`<span> same</span><span class="del">-old</span><span class="del">-<i class="rem">-- two</i></span><span class="add">+++ fresh</span>` +
			`<span class="add">+<i class="key">return</i> <i class="str">&#34;&lt;a&gt;&#34;</i> + <i class="num">7</i> <i class="rem">// why</i></span><span>\ No newline at end of file</span></pre>`,
		`<tr><td class="del">-old</td><td class="add">+++ fresh</td></tr>`,
		`<tr><td> same</td><td> same</td></tr>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want %s in\n%s", want, got)
		}
	}
}

// TestSides: a side without a line is empty.
func TestSides(t *testing.T) {
	t.Parallel()
	got := written(t, pageOf(t, page.Round{Diff: "diff --git a/x b/x\n@@ -1,2 +1 @@\n-a\n-b\n+c\n@@ -9,0 +9 @@\n+d\n"}))
	for _, want := range []string{`<tr><td class="del">-a</td><td class="add">+c</td></tr><tr><td class="del">-b</td><td class="none"></td></tr>`,
		`<tr><td class="none"></td><td class="add">+d</td></tr>`} {
		if !strings.Contains(got, want) {
			t.Errorf("want %s in\n%s", want, got)
		}
	}
}

// TestHeat: the table says of each finding when it came, went and came back; what is left comes first.
func TestHeat(t *testing.T) {
	t.Parallel()
	p := pageOf(t)
	for i, texts := range [][]string{{"x", "y"}, {"y"}, {"x", "y", "z"}, {"x"}} {
		r := story.Round{Number: i, Outcome: story.Failed}
		for _, text := range texts {
			r.Findings = append(r.Findings, check.Finding{Source: "check", File: "a", Line: 3, Text: text})
		}
		p.All = append(p.All, page.Round{Round: r})
	}
	p.All = append(p.All, page.Round{Round: story.Round{Number: 4, Outcome: story.Unfinished}})
	var got []string
	for _, row := range p.Heat().Rows {
		line := row.Name
		for _, c := range row.Cells {
			if line += " "; len(c.Marks) == 0 {
				line += "·"
			} else {
				line += c.Marks[0].Mark
			}
		}
		got = append(got, line)
	}
	if diff := cmp.Diff([]string{"a:3: x ✗ ✓ ! ▪", "a:3: y ✗ ▪ ▪ ✓", "a:3: z · · ✗ ✓"}, got); diff != "" {
		t.Error(diff)
	}
	if p.All = p.All[:1]; p.Heat() != nil {
		t.Error("one round has a table")
	}
}

// TestPlots: what is reserved lies above what is confirmed, and a limit has a line where it is near.
func TestPlots(t *testing.T) {
	t.Parallel()
	p := page.Page{Account: account(t, history.Start{Loop: "fix", Limits: history.Limits{Tokens: 120}})}
	for i, tokens := range []int64{50, 100} {
		p.Uses = append(p.Uses, story.Spending{Known: true, Active: time.Duration(i+1) * time.Second, Use: history.Usage{Tokens: tokens, Known: model.Usage{Input: tokens / 2}}})
	}
	got := written(t, p)
	for _, want := range []string{`<path class="held" d="M44.0 104.0L260.0 104.0L260.0 66.5L476.0 66.5L476.0 29.0L476.0 29.0L476.0 29.0L476.0 29.0L476.0 29.0L476.0 104.0Z"/>`,
		`<path class="use" d="M44.0 104.0L260.0 104.0L260.0 85.2L476.0 85.2L476.0 66.5L476.0 66.5L476.0 66.5L476.0 66.5L476.0 66.5L476.0 104.0Z"/>`, "limit 120</text>"} {
		if !strings.Contains(got, want) {
			t.Errorf("want %s in\n%s", want, got)
		}
	}
	if strings.Contains(got, "cost over time") {
		t.Error("a run that costs nothing has a plot of it")
	}
	p.Attempts = []page.Attempt{}
	of := strings.Contains(written(t, p), "<svg")
	p.Attempts = nil
	if p.Uses = p.Uses[:1]; of || strings.Contains(written(t, p), "<svg") {
		t.Error("attempts or one call have a plot")
	}
}

// TestLanes: each kind of what a round spent its time on has a lane with its sum.
func TestLanes(t *testing.T) {
	t.Parallel()
	r := story.Round{Number: 1, Took: 10 * time.Second, Spans: []story.Span{{Kind: "model", Name: "m", To: 4 * time.Second}, {Kind: "check", Name: "check", From: 5 * time.Second, To: 6 * time.Second},
		{Kind: "model", Name: "m", From: 6 * time.Second, To: 10 * time.Second}}}
	got := written(t, pageOf(t, page.Round{Round: r}))
	for _, want := range []string{`<th scope="row">model</th>`, `<rect class="model" x="600.0" y="0" width="400.0" height="10"><title>m: 4.0s</title></rect>`, `<td class="num">8.0s</td>`, `<rect class="check" x="500.0" y="0" width="100.0"`} {
		if !strings.Contains(got, want) {
			t.Errorf("want %s in\n%s", want, got)
		}
	}
	if strings.Contains(got, `<th scope="row">wait</th>`) {
		t.Error("a lane has nothing")
	}
}

// TestLongText: a text that no reader would read is cut, and the page says so.
func TestLongText(t *testing.T) {
	p := pageOf(t)
	p.Why = strings.Repeat("é", 1<<20)
	got := written(t, p)
	if len(got) > 1<<19 || !strings.Contains(got, "[1792 KB more]") {
		t.Errorf("the page has %d bytes", len(got))
	}
}

// TestQuotedName: a file whose name git quotes is shown under its name.
func TestQuotedName(t *testing.T) {
	t.Parallel()
	got := written(t, pageOf(t, page.Round{Diff: "diff --git \"b/\\\"<b>.txt\" \"b/\\\"<b>.txt\"\nnew file mode 100644\nindex 1..2\n--- /dev/null\n+++ \"b/\\\"<b>.txt\"\n@@ -0,0 +1 @@\n+x\n"}))
	if !strings.Contains(got, `<b>&#34;&lt;b&gt;.txt</b>`) || !strings.Contains(got, `<span class="head">new file</span>`) {
		t.Errorf("%s", got)
	}
}

// TestModes: a change of a file's mode names both modes.
func TestModes(t *testing.T) {
	t.Parallel()
	got := written(t, pageOf(t, page.Round{Diff: "diff --git a/x b/x\nold mode 100755\nnew mode 100644\n"}))
	if !strings.Contains(got, `<span class="head">old mode 100755</span>`) || !strings.Contains(got, `<span class="head">new mode 100644</span>`) {
		t.Errorf("%s", got)
	}
}

// TestNames: a new or deleted file, and one with a space in its name, has its name.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"a/x b/y.txt b/x b/y.txt", "b/x b/y.txt b/x b/y.txt", "a/x b/y.txt a/x b/y.txt"} {
		if got := written(t, pageOf(t, page.Round{Diff: "diff --git " + header + "\n@@ -1 +1 @@\n-x\n+y\n"})); !strings.Contains(got, "<b>x b/y.txt</b>") {
			t.Errorf("%s:\n%s", header, got)
		}
	}
}

// TestCounts: the list says how many runs ended with each result.
func TestCounts(t *testing.T) {
	t.Parallel()
	f := page.Folder{}
	for _, s := range []story.Standing{{Mark: "▸", Text: "running"}, {Mark: "✓", Text: "done"}, {Mark: "✗", Text: "budget"}, {Mark: "✓", Text: "done"}} {
		f.Runs = append(f.Runs, page.Run{Summary: report.Summary{Standing: s}})
	}
	if got := fmt.Sprint(page.List{Folders: []page.Folder{f}}.Counts()); got != "[{{▸  running} 1} {{✓  done} 2} {{✗  budget} 1}]" {
		t.Error(got)
	}
}

// TestList: counts agree with their words, ages are in the past, and names of models break
// between their parts. A list of evaluations alone does not say that there are no runs.
func TestList(t *testing.T) {
	t.Parallel()
	r := page.New(nil)
	when := time.Now().Add(-125 * time.Second)
	one := page.Run{Ticks: make([]page.Tick, 1), Summary: report.Summary{When: when, Past: history.Read(nil), Models: []string{"ollama/<b>:30b"}}}
	list, err := r.View(page.List{Folders: []page.Folder{{Runs: []page.Run{one}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`aria-label="1 round"`, `title="` + when.Format(time.DateTime) + `">2m</td>`, `class="dim">ollama/<wbr>&lt;b&gt;:<wbr>30b</td>`} {
		if !strings.Contains(list.HTML, want) {
			t.Errorf("want %s in\n%s", want, list.HTML)
		}
	}
	list, err = r.View(page.List{Evaluations: []page.Link{{Text: "cases", Address: "/eval/0/cases"}}})
	if err != nil || strings.Contains(list.HTML, "No runs yet") || !strings.Contains(list.HTML, "/eval/0/cases") {
		t.Error(err, list.HTML)
	}
}

// TestManyRounds: a page has the details of the last thirty rounds, and a line for each of the others.
func TestManyRounds(t *testing.T) {
	t.Parallel()
	var rounds []page.Round
	for n := range 32 {
		rounds = append(rounds, page.Round{Round: story.Round{Number: n + 1, Verdict: fmt.Sprintf("verdict %d", n+1)}})
	}
	got := written(t, pageOf(t, rounds...))
	for _, want := range []string{"<p>Here are the details of the last 30 rounds. ", `<td class="name">round 2</td>`, "<td>verdict 2</td>", `<td class="name"><a href="#r3">round 3</a></td>`, `<details id="r3" class="round">`} {
		if !strings.Contains(got, want) {
			t.Errorf("want %s in\n%s", want, got)
		}
	}
	if strings.Contains(got, `id="r2"`) {
		t.Error("the page has the details of round 2")
	}
	if got := written(t, pageOf(t, rounds[:30]...)); strings.Contains(got, "Here are the details") || !strings.Contains(got, `id="r1"`) {
		t.Error("thirty rounds do not fit")
	}
}

// TestLog: the log of a round has all that the run keeps of its checks and builds, and nothing else.
func TestLog(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("wide ", 60) + "end"
	record := func(kind journal.Type, name string, payload any) journal.Entry {
		return journal.Entry{Type: kind, Phase: journal.Record, Step: &journal.Identity{Round: 1, Name: name}, Payload: payload}
	}
	a := account(t, history.Start{Loop: "fix"}, record(history.TypeStep, history.StepOpen, history.Opened{}),
		record(history.TypeCheck, "check", history.Checked{Findings: []check.Finding{{Source: "check", File: "a.go", Line: 3, Text: "wrong\n  " + long}, {Source: "check", Advisory: true, Text: "The end:\nbye"}},
			Flaky: []check.Finding{{Source: "check", Text: "some\x1b"}}}),
		record(history.TypeCommand, "build", history.Report{Said: "it fails", Log: long + "\nlast\n"}),
		record(history.TypeStep, "note", history.Report{Said: "no log"}))
	p, err := (&page.Maker{}).Page(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	want := "the check reports 1 finding (0.0s)\n  - check, a.go:3: wrong\n      " + long + "\n  - check: The end:\n    bye\n  - check: (flaky: not reproduced, does not count) some\\x1b\n" +
		"! build: it fails\n" + long + "\nlast\n"
	if diff := cmp.Diff(want, p.All[len(p.All)-1].Log); diff != "" {
		t.Error(diff)
	}
	lines := ""
	for _, e := range p.All[len(p.All)-1].Events {
		lines += e.Line + "; " + e.Rest
	}
	if want := "round 1 of 1; the check reports 1 finding (0.0s); ! build: it fails; no log; "; lines != want {
		t.Errorf("events: %q", lines)
	}
}

// TestAttempts: an attempt whose journal is gone shows what the run of the attempts knows.
func TestAttempts(t *testing.T) {
	t.Parallel()
	record := func(a history.Attempt) journal.Entry { return journal.Entry{Type: history.TypeAttempt, Payload: a} }
	a := account(t, history.Start{Loop: "attempts"}, record(history.Attempt{Number: 1, Run: "2026-a", Model: "script/x/y", Rounds: 1, Findings: new(2), Tokens: 1500}),
		record(history.Attempt{Number: 2, Run: "2026-b", Model: "m"}),
		record(history.Attempt{Number: 1, Run: "2026-a", Model: "script/x/y", Rounds: 2, Findings: new(0), Tokens: 2500, Result: history.KindDone, Why: "why\nmore", Applied: true}))
	for working, second := range map[bool]string{true: "▸ running m 0", false: "✗ died m 0"} {
		a.Working = working
		var got []string
		for _, one := range page.AttemptsOf(a, nil) {
			got = append(got, fmt.Sprintf("%s %s %s %s", one.Standing.Mark, one.Standing.Text, one.ModelNames(), one.TokensText()))
		}
		if diff := cmp.Diff([]string{"✓ done script/y 2.5k", second}, got); diff != "" {
			t.Error(diff)
		}
	}
	a.Working = false
	first := page.AttemptsOf(a, nil)[0]
	if second := page.AttemptsOf(a, nil)[1]; !strings.HasPrefix(second.Take, "hone take ") {
		t.Errorf("take: %q", second.Take)
	}
	if *first.Findings != 0 || first.Why != "why" {
		t.Error(first)
	}
}

// TestWalls: the walls of the last process come first, and equal ones only once.
func TestWalls(t *testing.T) {
	t.Parallel()
	record := func(w history.Walls) journal.Entry { return journal.Entry{Type: history.TypeWalls, Payload: w} }
	none := history.Walls{Wall: "none", Level: "open", Net: "on", Text: "none (open, network on)", Open: []string{"all"}}
	got := written(t, page.Page{Account: account(t, history.Start{Loop: "fix"}, record(none), record(none),
		record(history.Walls{Wall: "hidden", Level: "hidden", Net: "off", Text: "hidden", Landlock: 5, Seccomp: true, Why: "why"}))})
	_, got, _ = strings.Cut(got, "<summary>walls: hidden</summary>")
	if strings.Count(got, "<summary>walls: none (open, network on)</summary>") != 1 || !strings.Contains(got, "<li>all</li>") {
		t.Error(got)
	}
	for _, want := range []string{"<dt>grade</dt><dd>hidden: a command does not see what it may not use</dd>", "<dt>network</dt><dd>off: commands have no network</dd>", "<dt>landlock</dt><dd>ABI 5</dd>",
		"<dt>system calls</dt><dd>filtered with seccomp</dd>", "<dt>proved</dt><dd>not on this machine; to prove it: hone doctor --full</dd>", "<dt>no stronger wall</dt><dd>why</dd>"} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
}
