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

		"at 2026-11-21T10:24:21Z":                           "at <time>",
		"at 2026-11-21T10:24:21.090033222+01:00, and":       "at <time>, and",
		"2026-11-21 18:19:31.090033222 +0000 UTC m=+0.002!": "<time>!",
		"2026-11-21 18:19:31,090 ERROR x":                   "<time> ERROR x",
		"2026/11/21 18:19:31 main.go:12: x":                 "<time> main.go:12: x",
		"2006/01/02 is a day":                               "<time> is a day",
		"since 2026-11-21.":                                 "since <time>.",
		"12:34:56.789 FAIL":                                 "<time> FAIL",
		"[12:34:56 PM] File change detected":                "[<time>] File change detected",
		"Sat, 21 Nov 2026 18:19:31 GMT":                     "<time>",
		"Date: Sat, 21 Nov 2026 18:19:31 +0100":             "Date: <time>",
		"Sat Nov 21 18:19:31 2026":                          "<time>",
		"Sat Nov 21 18:19:31 UTC 2026":                      "<time>",
		"Saturday, 21-Nov-26 18:19:31 UTC":                  "<time>",
		"Nov  2 18:19:31 host sshd[1234]: bad":              "<time> host sshd[<id>]: bad",
		"Nov 21, 2026 3:04:05 PM org.x":                     "<time> org.x",
		`[21/Nov/2026:18:19:31 +0000] "GET /"`:              `[<time>] "GET /"`,
		"logs/20261121-181931/x":                            "logs/<time>/x",
		"run 20261121-181931-3e6e70":                        "run <time>-3e6e70",
		`{"ts":1763749171.25,"n":1763749171}`:               `{"ts":<time>,"n":1763749171}`,
		"timestamp: 1763749171123":                          "timestamp: <time>",

		"in 1.23s":                                    "in <duration>",
		"0.004 seconds":                               "<duration>",
		"in 12 ms":                                    "in <duration>",
		"(0.00s)":                                     "(<duration>)",
		"1m2.3s 1h2m3s 5ms 1.5µs 3ns":                 "<duration> <duration> <duration> <duration> <duration>",
		"BUILD FAILED in 2m 3s":                       "BUILD FAILED in <duration>",
		"1,234 ms and 1e-05 secs":                     "<duration> and <duration>",
		"Time:   1.234 s, estimated 2 s":              "Time:   <duration>, estimated <duration>",
		"Total time: 01:05 min":                       "Total time: <duration>",
		"123 ns/op":                                   "<duration>/op",
		"real\t0m0.005s":                              "real\t<duration>",
		`<testcase name="a" time="0.4">`:              `<testcase name="a" time="<duration>">`,
		`{"Elapsed":0.01}`:                            `{"Elapsed":<duration>}`,
		"# duration_ms 97.636455":                     "# duration_ms <duration>",
		"ok  \tx\t(cached)":                           "ok  \tx\t<duration>",
		"ok  \tx\t0.012s":                             "ok  \tx\t<duration>",
		"=========== 1 failed in 0.12s ===========\n": "======== 1 failed in <duration> ========",

		"<x object at 0x7f87bb4c47e0>":               "<x object at <address>>",
		"f(0xc000123456, 0x5) +0x1d":                 "f(<address>, 0x5) +<address>",
		"addr=0x0 pc=0x52f733]":                      "addr=0x0 pc=<address>]",
		"x.f({0x55b7a0?, 0x5})\n\tx.go:3 +0xf3\n":    "x.f({<address>?, 0x5})\n\tx.go:3 +<address>",
		"    #0 0x4f1a2b in main x.c:3":              "    #0 <address> in main x.c:3",
		"at 0x0804a123: by 0x00000c000123456":        "at <address>: by <address>",
		"com.example.Foo@1b6d3586":                   "com.example.Foo@<address>",
		"goroutine 17 [running]:":                    "goroutine <id> [running]:",
		"in goroutine 1\nGoroutine 8 (running)":      "in goroutine <id>\nGoroutine <id> (running)",
		"thread 'tests::a' (4711) panicked at x:1:2": "thread 'tests::a' (<id>) panicked at x:1:2",
		"pid 1234, (PID: 55) ppid=7":                 "pid <id>, (PID: <id>) ppid=<id>",
		"app[1234]: bad":                             "app[<id>]: bad",
		"(node:12345) Warning":                       "(node:<id>) Warning",
		"==12345== Invalid read\n==12345==ERROR":     "==<id>== Invalid read\n==<id>==ERROR",

		"/tmp/x":                                                        "<tmp>",
		"open /tmp/x: no such file":                                     "open <tmp>: no such file",
		"/tmp/go-build123/b001/exe/x":                                   "<tmp>/b001/exe/x",
		"/tmp/go-build123456/b001/x":                                    "<tmp>/b001/x",
		"in /tmp/TestA123456789/001/f":                                  "in <tmp>/f",
		"/private/var/folders/ab/cd_e1234/T/TestA1234567/001/f":         "<tmp>/f",
		"'/var/tmp/a.b/c'.":                                             "'<tmp>/c'.",
		"/tmp/pytest-of-me/pytest-12/test_a0/x":                         "<tmp>/<tmp>/test_a0/x",
		"/home/me/.cache/hone/run-20261121-102421-3e6e70-123/tmp/x":     "/home/me/.cache/hone/<tmp>/tmp/x",
		"/home/me/tmp/TestA123456789/002/f, and /home/me/go-build12345": "/home/me/tmp/<tmp>/f, and /home/me/<tmp>",
		"file:///tmp/abc/x":                                             "file://<tmp>/x",
		`C:\Users\me\AppData\Local\Temp\TestA123456\001\f`:              `<tmp>\f`,
		`"C:\\Users\\me m\\AppData\\Local\\Temp\\x\\f"`:                 `"<tmp>\\f"`,

		"http://127.0.0.1:41234/x":                                         "http://127.0.0.1:<port>/x",
		"127.0.0.1:41234->127.0.0.1:80":                                    "127.0.0.1:<port>->127.0.0.1:<port>",
		"dial localhost:5: refused":                                        "dial localhost:<port>: refused",
		"[::1]:8080":                                                       "[::1]:<port>",
		"test-3f2504e0-4f89-41d3-9a0c-0305e82c3301":                        "test-<uuid>",
		"sha256:" + strings.Repeat("0a", 32):                               "sha256:<hex>",
		"\x1b[1;31mFAIL\x1b[0m \x1b]8;;http://x\x1b\\link\x1b]8;;\a\x1b(B": "FAIL link",

		"a\n[... 1234 bytes omitted ...]\nb": "a\n[... <size> bytes omitted ...]\nb",
	} {
		if got := Normalize(text); got != want {
			t.Errorf("%q:\n got %q\nwant %q", text, got, want)
		}
	}
}

// TestNormalizeKeeps tests what stays because it may be the failure itself.
func TestNormalizeKeeps(t *testing.T) {
	for _, text := range []string{
		"expected 3, got 4", "exit status 7", "3 failed, 12 passed", "version 1.2.3-rc1", "go1.26.8", "v2.0",
		"main.go:12:34: undefined: x", "main.go:10:20:30", "x_test.go:5: got 7", `File "a.py", line 3, in b`, "src/a.ts(5,10): error TS2322",
		"12 MB", "512m", "64KiB", "100%", "make: *** [Makefile:3: test] Error 1", "make[1]: Entering directory 'x'",
		"rows[3]: want 4", "expected 0x10, got 0x20", "commit 3e6e70a", "10.0.0.1:80", "example.org:443",
		"1763749171", "12:34", "3 s is no word", "2026-13-45", "0001-01-01",
		"/tmp", "/tmp/", "/home/me/x", "a/tmp/x", "../tmp/x", "/tmpfoo/x", "src/TestA/001", "In May 5 people", "process 10 items", "node:internal/x:206:9",
		"==", "====", "x == 3", "1 === 2", "me@example.org", "a@1.2.3", "timeout 10m", "time=5", "t := 3",
		"ä ö 漢字 🙂", "\xff\xfe",
	} {
		if got := Normalize(text); got != text {
			t.Errorf("%q became %q", text, got)
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
