package page_test

import (
	"strings"
	"testing"
	"unicode"

	"hone/cmd/hone/page"
)

// hostile is a text that would do something if one place forgot to escape it.
const hostile = "</title></style></pre><script>alert(1)</script><img src=x onerror=\"a()\">\x1b[2J\x00\u202e'\"`{{.Title}} javascript:a() KEY-1+2"

func hostilePage() page.Page {
	facts := []page.Fact{{Name: hostile, Text: hostile}}
	return page.Page{Title: hostile, Version: hostile, Mark: hostile, Result: hostile, Loop: hostile, About: hostile, Why: hostile, Notes: []string{hostile}, Facts: facts,
		Rounds: []page.Round{{Name: hostile, Mark: hostile, Verdict: hostile, Files: hostile, Took: hostile, Tokens: hostile, Cost: hostile, Findings: facts,
			Diff: "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-- " + hostile + "\n+" + hostile + "\n", NoDiff: []string{hostile},
			Events: []page.Event{{Line: hostile}, {Line: hostile, Rest: hostile, Parts: facts}}}}}
}

func written(t *testing.T, p page.Page) string {
	t.Helper()
	var b strings.Builder
	if err := p.Write(&b, func(s string) string { return strings.ReplaceAll(s, "KEY-1+2", "[redacted]") }); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestNothingEscapes: no text of a run becomes markup, a control character or a secret,
// wherever it stands.
func TestNothingEscapes(t *testing.T) {
	got := written(t, hostilePage())
	for _, not := range []string{"<script", "<img", "KEY-1", "KEY-1&#43;2"} {
		if strings.Contains(got, not) {
			t.Errorf("the page contains %q", not)
		}
	}
	if i := strings.IndexFunc(got, func(r rune) bool { return unicode.IsControl(r) && r != '\n' || unicode.Is(unicode.Cf, r) }); i >= 0 {
		t.Errorf("a control character at %.60q", got[i:])
	}
	if n := strings.Count(got, "&lt;script&gt;alert(1)"); n != 31 {
		t.Errorf("%d texts are shown, want 31", n)
	}
	for _, tag := range []string{"html", "head", "title", "style", "body", "table", "section"} {
		if strings.Count(got, "<"+tag+">")+strings.Count(got, "<"+tag+" ") != 1 || strings.Count(got, "</"+tag+">") != 1 {
			t.Errorf("<%s> does not stand there exactly once", tag)
		}
	}
	if want := "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"; !strings.Contains(got, want) {
		t.Error("the policy is missing")
	}
	for _, not := range []string{"http:", "https:", "url(", "@import", "<link"} {
		if strings.Contains(got, not) {
			t.Errorf("the page refers to something else: %q", not)
		}
	}
}

// TestDiffIsColoured: only lines of a hunk are added or removed ones.
func TestDiffIsColoured(t *testing.T) {
	got := written(t, page.Page{Rounds: []page.Round{{Diff: "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n-old\n--- two\n+++ new\n\\ No newline at end of file\n"}}})
	want := `<pre class="diff"><span class="file">diff --git a/x b/x</span><span class="head">--- a/x</span><span class="head">&#43;&#43;&#43; b/x</span><span class="hunk">@@ -1,2 &#43;1,2 @@</span>` +
		`<span> same</span><span class="del">-old</span><span class="del">--- two</span><span class="add">&#43;&#43;&#43; new</span><span>\ No newline at end of file</span></pre>`
	if !strings.Contains(got, want) {
		t.Errorf("want %s in\n%s", want, got)
	}
}

// TestLongText: a text that no reader would read is cut, and the page says so.
func TestLongText(t *testing.T) {
	got := written(t, page.Page{About: strings.Repeat("é", 1<<20)})
	if len(got) > 1<<19 || !strings.Contains(got, "[1835 KB more]") {
		t.Errorf("the page has %d bytes", len(got))
	}
}
