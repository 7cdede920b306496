package excerpt

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestMiddle(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"short", "short"},
		{"0123456789", "0123456789"},
		{"01234567890123456789", "01234567890123456789"}, // what is omitted is shorter than the line about it
		{"0123456789" + strings.Repeat("x", 30) + "0123456789", "01234\n[... 40 bytes omitted ...]\n56789"},
		{strings.Repeat("a\nb\n", 11), "a\nb\n[... 36 bytes omitted ...]\na\nb\n"},
		{strings.Repeat("é", 22), "éé\n[... 36 bytes omitted ...]\néé"},
		{"0123456789" + Omitted(1000) + "0123456789" + strings.Repeat("x", 30), "01234\n[... 1040 bytes omitted ...]\nxxxxx"},
		{"0123456789" + Omitted(1000) + Omitted(500)[1:] + "0" + strings.Repeat("x", 30), "01234\n[... 1531 bytes omitted ...]\nxxxxx"},
	} {
		if got := Middle(c.text, 10); got != c.want {
			t.Errorf("Middle(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}

func TestEnd(t *testing.T) {
	const tailText = 1000
	text := strings.Repeat("line\n", tailText)
	got := End(text, tailText)
	if !strings.HasPrefix(got, "[... ") || !strings.HasSuffix(got, "]\n"+strings.Repeat("line\n", tailText/5)) {
		t.Errorf("%.80q … %d bytes", got, len(got))
	}
	for _, few := range []string{"few\n", strings.Repeat("line\n", tailText/5+1)} {
		if got := End(few, tailText); got != few {
			t.Errorf("%q", got)
		}
	}
}

func FuzzMiddle(f *testing.F) {
	f.Add("a\nb\nc\nd\ne\nf\ng\n", 4)
	f.Add("ééé", 2)
	f.Fuzz(func(t *testing.T, text string, most int) {
		if most < 2 || most > 1<<20 || !utf8.ValidString(text) {
			return
		}
		got := Middle(text, most)
		if !utf8.ValidString(got) || len(got) > most+100 {
			t.Errorf("Middle(%q, %d) = %q", text, most, got)
		}
		if len(got) > len(text) || len(text) <= most && got != text {
			t.Errorf("Middle(%q, %d) = %q", text, most, got)
		}
	})
}

func TestScreen(t *testing.T) {
	for output, want := range map[string]string{
		"plain\n":                                   "plain\n",
		"a\r\nb\r\n":                                "a\nb\n",
		"step 9\rstep 10\rdone\n":                   "done 10\n",
		"step 9\rstep 10\r\x1b[Kdone\nmore":         "done\nmore",
		"\x1b[31mred\x1b[0m é\b e\n":                "red  e\n",
		"\x1b]0;title\aa\x1b[2Kb\x1b(B\x1b[":        " b[",
		"50 %\r\n100 %\r\n":                         "50 %\n100 %\n",
		"wait\x1b[1Gok\x1b[0K\n":                    "ok\n",
		"abc\x1b[2Dx\x1b[3Cy":                       "axc  y",
		"ab\x1b[999999999Cc":                        "ab" + strings.Repeat(" ", 498) + "c",
		"abc\x1b[2Dx\x1b[1K!":                       "  !",
		"\x1b]8;;file:///C:\\a\x1b\\link\x1b]8;;\a": "link",
		"\x1b]0;never ended\nERROR: cause":          "]0;never ended\nERROR: cause",
		"\x1bP1$r0m\x1b\\a\x1b#8b\x1b=c\a":          "abc",
		"\x1b[?25lhidden cursor\x1b[?25h":           "hidden cursor",
		"日本\b語":                                     "日語",
	} {
		if got := Screen(output); got != want {
			t.Errorf("%q is %q, want %q", output, got, want)
		}
	}
}
