package render_test

import (
	"hone/workspace"
	"strings"
	"testing"
	"unicode/utf8"

	"hone/internal/render"
)

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":    "plain\ttext\n",
		"\x1b[31mred":      `\x1b[31mred`,
		"a\rb\x00\x7f":     `a\x0db\x00\x7f`,
		"\u202egnp.exe":    `\u202egnp.exe`,
		"zero\u200bwidth":  `zero\u200bwidth`,
		"caf\xe9 é 日本 👩‍💻": `caf\xe9 é 日本 👩‍💻`,
		"\u0085next\u2028": `\x85next\u2028`,
	} {
		if got := render.Escape(in); got != want {
			t.Errorf("Escape(%q) = %q, want %q", in, got, want)
		}
	}
	if got := render.Line("a\nb"); got != `a\nb` {
		t.Errorf("Line: %q", got)
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("\x1b]0;title\a")
	f.Add("\xff\u202e")
	f.Fuzz(func(t *testing.T, s string) {
		got := render.Escape(s)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\x1b\r\x00\a\u202e") {
			t.Errorf("Escape(%q) = %q", s, got)
		}
		if again := render.Escape(got); again != got {
			t.Errorf("escaping twice differs: %q, %q", got, again)
		}
	})
}

func TestDiff(t *testing.T) {
	d := render.Diff("f", []byte("one\ntwo\n"), []byte("one\n2\x1b\n"))
	for _, want := range []string{"--- a/f\n+++ b/f\n", "-two\n", "+2\\x1b\n", " one\n"} {
		if !strings.Contains(d, want) {
			t.Errorf("diff lacks %q:\n%s", want, d)
		}
	}
	if d := render.Diff("f", nil, []byte{}); !strings.Contains(d, "--- /dev/null\n+++ b/f\n") {
		t.Errorf("an empty new file: %q", d)
	}
	if d := render.Diff("f", []byte{0, 1}, nil); !strings.Contains(d, "binary: 2 bytes before, 0 after") || !strings.Contains(d, "/dev/null") {
		t.Errorf("a binary file that goes: %q", d)
	}
	if c := render.Colour(d); !strings.Contains(c, "\x1b[31m-two\x1b[0m\n") {
		t.Errorf("colour: %q", c)
	}
}

func TestFigures(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1 000", 5000000: "5 000 000"} {
		if got := render.Tokens(n); got != want {
			t.Errorf("Tokens(%d) = %q", n, got)
		}
	}
	for n, want := range map[int64]string{1: "1 byte", 9999: "9999 bytes", 12_345: "12 KB", 45_000_000: "45 MB"} {
		if got := render.Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q", n, got)
		}
	}
}

// If a file cannot be inspected its note says so, and does not call it another
// kind of file.
func TestFileThatCannotBeLookedAt(t *testing.T) {
	closed := workspace.Entry{Path: "closed/a", Kind: workspace.Other, Note: "permission denied"}
	if got := (render.Reader{}).OmitReason(closed); got != "contents omitted: permission denied" {
		t.Errorf("%q", got)
	}
	if got := (render.Reader{}).OmitReason(workspace.Entry{Path: "pipe", Kind: workspace.Other}); got != "contents omitted: not a regular file" {
		t.Errorf("%q", got)
	}
}

func TestCount(t *testing.T) {
	if a, b := render.Count(1, "round"), render.Count(2, "round"); a != "1 round" || b != "2 rounds" {
		t.Errorf("%s, %s", a, b)
	}
}
