package check

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestNormalize tests what is replaced.
func TestNormalize(t *testing.T) {
	for text, want := range map[string]string{
		"":              "",
		" \n\t\r\n":     "",
		"a \t\r\nb\r\n": "a\nb",
		"  a\n\n  b\n":  "  a\n\n  b",
		"at 2026-11-21T10:24:21.090033222+01:00, in /tmp/x/y: no": "at <n> in <n>: no",
		"[12:34:56 PM] done":                       "[<n>] done",
		"real\t0m0.005s":                           "real\t<n>",
		"ok  \tx\t(cached)":                        "ok  \tx\t<n>",
		"==== 1 failed":                            "==== <n> failed",
		strings.Repeat("=", 30) + " 1 failed ":     "<n> <n> failed",
		"f(0xc000123456) +0x1d":                    "f(<n>) +<n>",
		"com.example.Foo@b6d3586":                  "com.example.Foo@<n>",
		"\x1b[1;31mFAIL\x1b[0m http://127.0.0.1:4": "FAIL http://<n>",
		`C:\Users\me\Temp\a1\f: bad`:               "<n>: bad",
		"TestA utf8 x_test.go:3: want é":           "TestA utf8 x_test.go:<n> want é",
	} {
		if got := Normalize(text); got != want {
			t.Errorf("%q:\n got %q\nwant %q", text, got, want)
		}
	}
}

// TestNormalizeTwice combines all volatile texts in pairs: normalizing twice
// must change nothing more.
func TestNormalizeTwice(t *testing.T) {
	parts := []string{
		"2026-11-21", "T", "12:34:56", ".789", "Z", " UTC", " +0000", "Sat", ", ", "21", "Nov", " ", "  ", "2026", "12", ":", "/", "-", "20261121-181931",
		"1s", "ms", " ms", "0.5", "5 s", "in ", "1,234", "1m", "e-05", "min", "seconds", "0x", "1d", "c000123456", "+", "#1 ", "at ", "pc=", "@", "abcde1",
		"goroutine", "pid", "node", "localhost", "127.0.0.1", "[::1]:", "thread", "'", "(", ")", "[", "]:", "==", "=========", "=", "\"", "time", "ts", "1763749171",
		"duration_ms", "elapsed", "/tmp/", "/var", "/private", "TestA12345", "/001", "go-build12345", "tmp.abcdef", "pytest-of-me", "/pytest-1", "C:\\", "temp\\", "%TEMP%/", "$TMPDIR/",
		"3f2504e0-4f89-41d3-9a0c-0305e82c3301", strings.Repeat("a1", 16), "(cached)", "\n", "\t", "\r", "\x1b", "[0m", "]", ".", "_", "é", "µs", "\xff", "x", "://", "app[123]:",
		"<", ">", "<time>", "<tmp>", "<address>", "[... 3 bytes ", "f(0x1)\n\tx.go:1 +0x2\n", "~", "$", "%", "run-20261121-181931-3e6e70-1",
	}
	random := rand.New(rand.NewPCG(1, 2))
	texts := 20_000
	if testing.Short() {
		texts = 2000
	}
	for range texts {
		var text strings.Builder
		for range 1 + random.IntN(9) {
			text.WriteString(parts[random.IntN(len(parts))])
		}
		checkNormal(t, text.String())
	}
}

// checkNormal checks what Normalize promises for every text.
func checkNormal(t *testing.T, text string) {
	t.Helper()
	once := Normalize(text)
	if twice := Normalize(once); twice != once {
		t.Errorf("%q\nbecomes %q\nand then %q", text, once, twice)
	}
	if len(once) > 5*len(text) {
		t.Errorf("%q becomes %q", text, once)
	}
}

// FuzzNormalize: normalizing twice changes nothing more, and no text becomes
// much longer.
func FuzzNormalize(f *testing.F) {
	for _, seed := range []string{
		"goroutine 17 [running]:\nx.f({0x55b7a0?, 0x5})\n\tx.go:3 +0xf3\n", "1s 12:34:56.7 2026-11-21T10:24:21Z+0x1d/tmp/a/TestA12345/001/x",
		"Nov  2 18:19:31 h x[12]: 127.0.0.1:5->[::1]:7 localhost:8 pid=3 (node:12) thread 'a' (1)", `C:\Users\a\AppData\Local\Temp\x\y %TEMP%\x`,
		"\x1b[1mx\x1b]0;a\a===========(cached)==1== a@12345a 3f2504e0-4f89-41d3-9a0c-0305e82c3301", `time="0.1" ts:1763749171 duration_ms 3 [... 3 bytes left out`,
		"Sat, 21 Nov 2026 18:19:31 GMT 1,234 ms 5 s in 5 s", "/home/go-build12345.../x /a/pytest-1/run-20261121-102421-3e-1 \xff é12s",
	} {
		f.Add(seed)
	}
	f.Fuzz(checkNormal)
}
