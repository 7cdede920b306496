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
	"unicode"

	"hone/cmd/hone/page"
)

// hostile is a text that would do something if one place forgot to escape it.
const hostile = "</title></style></pre><script>alert(1)</script><img src=x onerror=\"a()\">\x1b[2J\x00\u202e'\"`{{.Title}} javascript:a() KEY-1+2"

func hostilePage() page.Page {
	facts := []page.Fact{{Name: hostile, Text: hostile}}
	round := page.Round{Number: 1, Name: hostile, Mark: hostile, Verdict: hostile, Files: hostile, Took: hostile, Tokens: hostile, Cost: hostile, Checked: true, Count: 1,
		Change: hostile, Findings: []page.Finding{{Name: hostile, Text: hostile, New: true, Since: hostile}},
		Calls: []page.Call{{Seq: 3, Name: hostile, Model: hostile, Link: hostile, Replied: true, Used: &page.Use{Sent: 10, Cached: 5, Received: 2}, Texts: facts}},
		Diff:  "diff --git a/x b/" + hostile + "\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-- " + hostile + "\n+" + hostile + "\n", NoDiff: []string{hostile},
		Events: []page.Event{{Line: hostile}, {Line: hostile, Rest: hostile, Parts: facts}}}
	second := page.Round{Number: 2, Name: hostile, Mark: hostile, Verdict: hostile, Files: hostile, Took: hostile, Tokens: hostile, Cost: hostile}
	return page.Page{Title: hostile, Version: hostile, Mark: hostile, Result: hostile, Loop: hostile, About: hostile, Why: hostile, Notes: []string{hostile},
		Meters: []page.Meter{{Name: hostile, Text: hostile, Limit: hostile, Share: .5}}, Facts: facts, Walls: []page.Wall{{Name: hostile, Facts: facts, Open: []string{hostile}}}, Up: page.Link{Text: hostile, Address: hostile},
		Attempts:  []page.Attempt{{Number: 1, Why: hostile, Run: hostileRun()}, {Number: 2, Applied: true}},
		Contracts: hostileGrid(), Rounds: []page.Round{round, second}}
}

func hostileList() page.List {
	return page.List{Evaluations: []page.Link{{Text: hostile, Address: hostile}}, Folders: []page.Folder{{Name: hostile, Note: hostile, Runs: []page.Run{hostileRun()}}}}
}

func hostileGrid() *page.Grid {
	ticks := []page.Tick{{Mark: hostile, Title: hostile}}
	return &page.Grid{ID: "grid", Title: hostile, Corner: hostile, Columns: []page.Column{{Name: hostile, Link: hostile}, {Name: hostile}}, Note: hostile, Legend: ticks,
		Rows: []page.Row{{Name: hostile, Note: hostile, Cells: []page.Cell{{Marks: ticks, Text: hostile}, {}}}}}
}

func hostileRun() page.Run {
	return page.Run{ID: hostile, Link: hostile, Mark: hostile, Result: hostile, Loop: hostile, About: hostile, Model: hostile, Ticks: []page.Tick{{Mark: hostile, Title: hostile}},
		Findings: hostile, Tokens: hostile, Cost: hostile, Share: .5, Took: hostile, Age: hostile, When: hostile}
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
	list, err := page.New(clean).List(hostileList())
	if err != nil {
		t.Fatal(err)
	}
	facts := []page.Fact{{Name: hostile, Text: hostile}}
	call, err := page.New(clean).Call(page.Call{Name: hostile, Model: hostile, Size: hostile, Texts: facts, Replies: facts}, hostile, hostile)
	if err != nil {
		t.Fatal(err)
	}
	evaluation, err := page.New(clean).Evaluation(page.Evaluation{Name: hostile, About: hostile, Head: []string{hostile, hostile}, Rows: [][]string{{hostile, hostile}}, Cases: hostileGrid()})
	if err != nil {
		t.Fatal(err)
	}
	wait, err := page.New(clean).Wait(page.Wait{Model: hostile, Role: hostile, Since: hostile, Text: hostile})
	if err != nil {
		t.Fatal(err)
	}
	file, server := written(t, hostilePage()), served(t, list)
	for _, c := range []struct {
		name, got string
		texts     int
		tags      map[string]int
	}{
		{"file", file, 93, map[string]int{"html": 1, "head": 1, "title": 7, "style": 1, "body": 1, "section": 4, "svg": 3, "link": 0, "a": 7}},
		{"call", served(t, call), 13, map[string]int{"article": 1, "details": 1, "link": 2, "a": 2}},
		{"evaluation", served(t, evaluation), 26, map[string]int{"article": 1, "table": 2, "link": 2, "a": 2}},
		{"wait", served(t, wait), 9, map[string]int{"section": 1, "link": 2, "a": 1}},
		{"server", server, 20, map[string]int{"html": 1, "head": 1, "title": 1, "style": 0, "body": 1, "section": 2, "link": 2, "a": 3}},
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
	grid, err := r.Evaluation(page.Evaluation{Cases: &page.Grid{Columns: []page.Column{{Name: "here", Link: "#r1"}, {Name: "there", Link: "/run/x"}}}})
	if err != nil || !strings.Contains(grid.HTML, `<a href="#r1">`) || !strings.Contains(grid.HTML, `<a href="/root/run/x">`) {
		t.Errorf("%v: %s", err, grid.HTML)
	}
}

// TestPolicyFitsStyle: the policy of the file allows its style sheet, byte by byte.
func TestPolicyFitsStyle(t *testing.T) {
	t.Parallel()
	got := written(t, page.Page{})
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
	got := written(t, page.Page{Rounds: []page.Round{{Diff: "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n same\n-old\n--- two\n+++ fresh\n+return \"<a>\" + 7 // why\n\\ No newline at end of file\n"}}})
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
	got := written(t, page.Page{Rounds: []page.Round{{Diff: "diff --git a/x b/x\n@@ -1,2 +1 @@\n-a\n-b\n+c\n@@ -9,0 +9 @@\n+d\n"}}})
	for _, want := range []string{`<tr><td class="del">-a</td><td class="add">+c</td></tr><tr><td class="del">-b</td><td class="none"></td></tr>`,
		`<tr><td class="none"></td><td class="add">+d</td></tr>`} {
		if !strings.Contains(got, want) {
			t.Errorf("want %s in\n%s", want, got)
		}
	}
}

// TestCharts: a bar for each round, as high as its share of the highest.
func TestCharts(t *testing.T) {
	t.Parallel()
	var p page.Page
	for i, n := range []int{4, 2, 0} {
		p.Rounds = append(p.Rounds, page.Round{Number: i + 1, Name: fmt.Sprintf("round %d", i+1), Mark: "✗", Checked: true, Count: n})
	}
	got := written(t, p)
	for _, want := range []string{
		`aria-label="findings of 3 rounds"`,
		`y="2.00" width="16.00" height="46.00"><title>round 1: 4</title>`,
		`y="25.00" width="16.00" height="23.00"><title>round 2: 2</title>`,
		`y="47.00" width="16.00" height="1.00"><title>round 3: 0</title>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want %s in\n%s", want, got)
		}
	}
	if p.Rounds = p.Rounds[:1]; strings.Contains(written(t, p), "<svg") {
		t.Error("one round has a chart")
	}
}

// TestLines: each attempt has a line with its number, and equal lines lie side by side.
func TestLines(t *testing.T) {
	t.Parallel()
	points := []page.Point{{Round: 0, Left: 2}, {Round: 1, Left: 0}}
	p := page.Page{Attempts: []page.Attempt{{Number: 1, Run: page.Run{Points: points}}, {Number: 2, Run: page.Run{Points: points}}}}
	got := written(t, p)
	for _, want := range []string{
		`aria-label="findings of each round: attempt 1: 2, 0; attempt 2: 2, 0"`,
		`<path d="M22.0 10.9L342.0 130.9"/><text x="347.0" y="133.9">1</text></g><g class="l2">`,
		`<path d="M22.0 13.1L342.0 133.1"/><text x="347.0" y="136.1">2</text></g></svg>`,
		`<title>attempt 2, round 1: 0</title>`,
		`<td class="num" data-name="findings now">0</td>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want %s in\n%s", want, got)
		}
	}
	for i := range p.Attempts {
		p.Attempts[i].Points = points[:1]
	}
	if strings.Contains(written(t, p), "<svg") {
		t.Error("one round has lines")
	}
}

// TestStrip: of many rounds the first and the last are shown.
func TestStrip(t *testing.T) {
	t.Parallel()
	r := page.Run{Ticks: make([]page.Tick, 500)}
	if s := r.Strip(); len(s.First) != 12 || len(s.Last) != 12 || s.Hidden != 476 {
		t.Errorf("%d, %d and %d left out", len(s.First), len(s.Last), s.Hidden)
	}
	if r.Ticks = r.Ticks[:24]; len(r.Strip().First) != 24 || r.Strip().Hidden != 0 {
		t.Error("24 rounds are not shown")
	}
}

// TestLongText: a text that no reader would read is cut, and the page says so.
func TestLongText(t *testing.T) {
	got := written(t, page.Page{About: strings.Repeat("é", 1<<20)})
	if len(got) > 1<<19 || !strings.Contains(got, "[1792 KB more]") {
		t.Errorf("the page has %d bytes", len(got))
	}
}

// TestManyRounds: the charts of a long run have bars that are wide enough to see, each
// for the highest of some rounds.
func TestManyRounds(t *testing.T) {
	t.Parallel()
	var p page.Page
	for i := range 500 {
		p.Rounds = append(p.Rounds, page.Round{Number: i + 1, Name: fmt.Sprintf("round %d", i+1), Checked: true, Count: i % 7, Tokens: "1", Took: "1s"})
	}
	p.Shown = page.Window{From: 480, To: 490}
	parts, err := page.New(nil).Head(p)
	if err != nil {
		t.Fatal(err)
	}
	head := parts[0].HTML + parts[1].HTML
	if n := strings.Count(head, "<rect"); n != 3*100 {
		t.Errorf("%d bars", n)
	}
	for _, want := range []string{"<title>round 1 to round 5, at most: 4</title>", "<title>round 496 to round 500, at most: 6</title>", `<a href="#r481">`, `<a href="#r490">`} {
		if !strings.Contains(head, want) {
			t.Errorf("it lacks %s", want)
		}
	}
	if strings.Count(head, `<a href="#r`) != 10 {
		t.Error("it shows other rounds")
	}
}

// TestQuotedName: a file whose name git quotes is shown under its name.
func TestQuotedName(t *testing.T) {
	t.Parallel()
	got := written(t, page.Page{Rounds: []page.Round{{Diff: "diff --git \"b/\\\"<b>.txt\" \"b/\\\"<b>.txt\"\nnew file mode 100644\nindex 1..2\n--- /dev/null\n+++ \"b/\\\"<b>.txt\"\n@@ -0,0 +1 @@\n+x\n"}}})
	if !strings.Contains(got, `<b>&#34;&lt;b&gt;.txt</b>`) || !strings.Contains(got, `<span class="head">new file</span>`) {
		t.Errorf("%s", got)
	}
}

// TestModes: a change of a file's mode names both modes.
func TestModes(t *testing.T) {
	t.Parallel()
	got := written(t, page.Page{Rounds: []page.Round{{Diff: "diff --git a/x b/x\nold mode 100755\nnew mode 100644\n"}}})
	if !strings.Contains(got, `<span class="head">old mode 100755</span>`) || !strings.Contains(got, `<span class="head">new mode 100644</span>`) {
		t.Errorf("%s", got)
	}
}

// TestNames: a new or deleted file, and one with a space in its name, has its name.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"a/x b/y.txt b/x b/y.txt", "b/x b/y.txt b/x b/y.txt", "a/x b/y.txt a/x b/y.txt"} {
		if got := written(t, page.Page{Rounds: []page.Round{{Diff: "diff --git " + header + "\n@@ -1 +1 @@\n-x\n+y\n"}}}); !strings.Contains(got, "<b>x b/y.txt</b>") {
			t.Errorf("%s:\n%s", header, got)
		}
	}
}

// TestCounts: the list says how many runs ended with each result.
func TestCounts(t *testing.T) {
	t.Parallel()
	f := page.Folder{Runs: []page.Run{{Mark: "▸", Result: "running"}, {Mark: "✓", Result: "done"}, {Mark: "✗", Result: "budget"}, {Mark: "✓", Result: "done"}}}
	if got := fmt.Sprint(f.Counts()); got != "[{▸ running 1} {✓ done 2} {✗ budget 1}]" {
		t.Error(got)
	}
}

// TestList: counts agree with their words, ages are in the past, and names of models break
// between their parts. A list of evaluations alone does not say that there are no runs.
func TestList(t *testing.T) {
	t.Parallel()
	r := page.New(nil)
	one := page.Run{Ticks: make([]page.Tick, 1), Age: "2m", When: "today", Model: "ollama/<b>:30b"}
	list, err := r.List(page.List{Folders: []page.Folder{{Runs: []page.Run{one}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`aria-label="1 round"`, `<span title="today">2m ago</span>`, `<span>ollama/<wbr>&lt;b&gt;:<wbr>30b</span>`} {
		if !strings.Contains(list.HTML, want) {
			t.Errorf("want %s in\n%s", want, list.HTML)
		}
	}
	list, err = r.List(page.List{Evaluations: []page.Link{{Text: "cases", Address: "/eval/0/cases"}}})
	if err != nil || strings.Contains(list.HTML, "No runs yet") || !strings.Contains(list.HTML, "/eval/0/cases") {
		t.Error(err, list.HTML)
	}
}

// TestFileShowsTheWindow: a file has the details of the rounds in its window, and a line for
// each of the others.
func TestFileShowsTheWindow(t *testing.T) {
	t.Parallel()
	p := page.Page{Shown: page.Window{From: 1, To: 2}, Rest: "the others: <here>", Rounds: []page.Round{{Number: 1, Name: "round 1", Verdict: "one"}, {Number: 2, Name: "round 2", Verdict: "two"}}}
	got := written(t, p)
	for _, want := range []string{"<p>the others: &lt;here&gt;</p>", `<td class="name">round 1</td>`, "<td>one</td>", `<td class="name"><a href="#r2">round 2</a></td>`, `<section id="r2">`} {
		if !strings.Contains(got, want) {
			t.Errorf("want %s in\n%s", want, got)
		}
	}
	if strings.Contains(got, `id="r1"`) {
		t.Error("the file has the details of round 1")
	}
}
