package render_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"hone/workspace"

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
	if c := render.Colours(true).Diff(d); !strings.Contains(c, "\x1b[31m-two\x1b[0m\n") {
		t.Errorf("colour: %q", c)
	}
}

func TestFigures(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1 000", 5000000: "5 000 000"} {
		if got := render.Tokens(n); got != want {
			t.Errorf("Tokens(%d) = %q", n, got)
		}
	}
	for n, want := range map[int64]string{1: "1 byte", 10_239: "10 239 bytes", 12_345: "12 KB", 16<<10 - 100: "15 KB", 64 << 20: "64 MB", 45 << 30: "45 GB", 1 << 62: "4194304 TB"} {
		if got := render.Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q", n, got)
		}
	}
}

func TestShortFigures(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1k", 2434: "2.4k", 9949: "9.9k", 9951: "10k", 149_332: "149k", 999_499: "999k", 999_600: "1M", 5_000_000: "5M", 12_345_678: "12M"} {
		if got := render.Short(n); got != want {
			t.Errorf("Short(%d) = %q, want %q", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{400 * time.Millisecond: "0.4s", 9960 * time.Millisecond: "10s", 41 * time.Second: "41s", 190 * time.Second: "3m10s", 62 * time.Minute: "1h02m"} {
		if got := render.Duration(d); got != want {
			t.Errorf("Duration(%v) = %q, want %q", d, got, want)
		}
	}
	for usd, want := range map[float64]string{0: "$0.00", 0.0123: "$0.0123", 2.5: "$2.50"} {
		if got := render.Cost(&usd, false); got != want {
			t.Errorf("Cost(%v) = %q, want %q", usd, got, want)
		}
	}
	if got := render.Cost(nil, true); got != "cost unknown" {
		t.Errorf("an unknown cost is %q", got)
	}
	usd := 2.5
	if got := render.Cost(&usd, true); got != "at most $2.50" {
		t.Errorf("a bound is %q", got)
	}
}

func TestStat(t *testing.T) {
	for _, tt := range []struct {
		before, after  string
		added, removed int
	}{
		{"", "one\ntwo", 2, 0},
		{"one\ntwo\n", "one\n2\nthree\n", 2, 1},
		{"one\n", "", 0, 1},
		{"\x00", "one\n", 0, 0},
	} {
		if added, removed := render.Stat([]byte(tt.before), []byte(tt.after)); added != tt.added || removed != tt.removed {
			t.Errorf("Stat(%q, %q) = %d, %d, want %d, %d", tt.before, tt.after, added, removed, tt.added, tt.removed)
		}
	}
}

func TestHasColours(t *testing.T) {
	for _, tt := range []struct {
		env      map[string]string
		terminal bool
		want     render.Colours
	}{
		{nil, true, true}, {nil, false, false},
		{map[string]string{"TERM": "dumb"}, true, false},
		{map[string]string{"NO_COLOR": "1"}, true, false},
		{map[string]string{"CLICOLOR_FORCE": "1"}, false, true},
		{map[string]string{"CLICOLOR_FORCE": "0"}, false, false},
		{map[string]string{"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, true, false},
	} {
		if got := render.HasColours(func(v string) string { return tt.env[v] }, tt.terminal); got != tt.want {
			t.Errorf("%v, terminal %v: %v", tt.env, tt.terminal, got)
		}
	}
	if got := render.Colours(true).Red("x") + render.Colours(false).Red("y") + render.Colours(true).Dim(""); got != "\x1b[31mx\x1b[0my" {
		t.Errorf("%q", got)
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

// TestFill: lines are broken at words, below the column that they belong to.
func TestFill(t *testing.T) {
	for text, want := range map[string]string{
		"short": "short",
		"hone: commands run behind hidden (hidden)": "hone: commands run\nbehind hidden\n(hidden)",
		"  fix    let a model fix all\n  task   x":  "  fix    let a\n         model fix\n         all\n  task   x",
		"one two three four five\nsix.":             "one two three four\nfive\nsix.",
		"# one two three four five":                 "# one two three\n# four five",
		"http://127.0.0.1:37619/v1 is it":           "http://127.0.0.1:37619/v1\nis it",
		"\x1b[1mbold\x1b[0m words in one line here": "\x1b[1mbold\x1b[0m words in one\nline here",
		"ends with a newline\n":                     "ends with a\nnewline\n",
	} {
		if got := render.Fill(text, 18); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	if got, want := render.Wrap("  ! one two three four\nfive six", 14), "  ! one two\n    three four\nfive six"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestCount(t *testing.T) {
	if a, b := render.Count(1, "round"), render.Count(2, "round"); a != "1 round" || b != "2 rounds" {
		t.Errorf("%s, %s", a, b)
	}
}

// TestAligned: cells stand below each other, whatever their characters and colours are.
func TestAligned(t *testing.T) {
	rows := [][]string{{"ID", "RESULT", "N", "TASK"}, {"a", render.Colours(true).Red("✗") + " 長い", "12", "x"}, {"bc", "✓ done", "3", ""}}
	want := "ID  RESULT   N  TASK\na   \x1b[31m✗\x1b[0m 長い  12  x\nbc  ✓ done   3"
	if got := strings.Join(render.Aligned(rows, false, false, true), "\n"); got != want {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
	if got := render.Pad(render.Cut("長い名前", 5), 8); got != "長い…   " {
		t.Errorf("got %q", got)
	}
}

func TestAge(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for back, want := range map[time.Duration]string{
		0: "0s", 59 * time.Second: "59s", time.Minute: "1m", 59*time.Minute + 59*time.Second: "59m", time.Hour: "1h",
		47 * time.Hour: "1d", 400 * 24 * time.Hour: "400d", -time.Second: "-",
	} {
		if got := render.Age(now.Add(-back), now); got != want {
			t.Errorf("%v ago is %q, want %q", back, got, want)
		}
	}
	if got := render.Age(time.Time{}, now); got != "-" {
		t.Errorf("no time is %q", got)
	}
}
