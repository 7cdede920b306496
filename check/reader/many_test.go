package reader_test

import (
	"fmt"
	"strings"
	"testing"

	"hone/check/reader"
)

const (
	unittestDouble = "======================================================================"
	unittestSingle = "----------------------------------------------------------------------"
)

// ruler returns a header of pytest's.
func ruler(c, text string) string {
	return strings.Repeat(c, 20) + " " + text + " " + strings.Repeat(c, 20) + "\n"
}

// many returns outputs with n failures each, as the tools print them.
func many(n int) map[string]string {
	repeated := func(head, each, between, tail string) string {
		var b strings.Builder
		b.WriteString(head)
		for i := range n {
			if i > 0 {
				b.WriteString(between)
			}
			b.WriteString(strings.ReplaceAll(each, "@", fmt.Sprint(i)))
		}
		return b.String() + tail
	}
	return map[string]string{
		"go":          repeated("", "--- FAIL: Test@ (0.00s)\n    a_test.go:@: got @\n", "", "FAIL\nFAIL\texample.com/m/a\t0.1s\n"),
		"go-json":     repeated("", `{"Action":"output","Package":"m/a","Test":"Test@","Output":"=== RUN   Test@\n"}`+"\n"+`{"Action":"output","Package":"m/a","Test":"Test@","Output":"    a_test.go:@: got @\n"}`+"\n"+`{"Action":"output","Package":"m/a","Test":"Test@","Output":"--- FAIL: Test@ (0.00s)\n"}`+"\n", "", `{"Action":"fail","Package":"m/a"}`+"\n"),
		"junit":       repeated("<testsuites><testsuite name='s'>", "<testcase classname='c' name='t@'><failure message='no @'>at a.py:@: AssertionError</failure></testcase>\n", "", "</testsuite></testsuites>"),
		"tap":         repeated("TAP version 13\n", "not ok - t@\n  ---\n  message: no @\n  at: a.js:@:1\n  ...\n", "", fmt.Sprintf("1..%d\n", n)),
		"node":        repeated("▶ all\n", "  ✖ t@ (1.5ms)\n    Error: no @\n        at a.js:@:1\n\n", "", "✖ all (9ms)\nℹ fail 9\n"),
		"sarif":       repeated(`{"version":"2.1.0","runs":[{"results":[`, `{"ruleId":"R@","level":"error","message":{"text":"no"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a.c"},"region":{"startLine":@}}}]}`, ",\n", "]}]}"),
		"pytest":      repeated(ruler("=", "FAILURES"), ruler("_", "test_@")+"\n\n>       assert 1 == 2\nE       assert 1 == @\n\ntests/test_a.py:@: AssertionError\n", "", repeated(ruler("=", "short test summary info"), "FAILED tests/test_a.py::test_@ - assert 1 == @\n", "", ruler("=", "1 failed in 0.1s"))),
		"unittest":    repeated("", unittestDouble+"\nFAIL: test_@ (m.C.test_@)\n"+unittestSingle+"\nTraceback (most recent call last):\n  File \"/x/a.py\", line @, in test_@\nAssertionError: @\n\n", "", unittestSingle+"\nRan 9 tests in 0.1s\n"),
		"python":      "",
		"jest":        repeated("FAIL ./a.test.js\n", "  ● all › t@\n\n    Expected: @\n\n      at a.test.js:@:1\n\n", "", "Test Suites: 1 failed, 1 total\n"),
		"vitest":      repeated("", " FAIL  a.test.js > all > t@\nAssertionError: @\n ❯ a.test.js:@:1\n\n⎯⎯⎯⎯[1/1]⎯\n\n", "", " Test Files  1 failed (1)\n"),
		"numbered":    repeated("\nFailures:\n\n", "  @) sum adds @\n     Failure/Error: expect(1).to eq(@)\n\n       expected: @\n            got: 1\n     # ./a_spec.rb:@:in `block'\n\n", "", "Finished in 1 second\n9 examples, 9 failures\n"),
		"gtest":       repeated("", "[ RUN      ] Sum.T@\na.cc:@: Failure\nExpected equality of these values:\n  @\n  1\n[  FAILED  ] Sum.T@ (0 ms)\n", "", "[==========] 1 test from 1 test suite ran. (0 ms total)\n"),
		"ctest":       repeated("", "      Start @: t@\n @/9 Test   #@: t@ ...***Failed    0.01 sec\nno @\n", "", "0% tests passed, 9 tests failed out of 9\n"),
		"cargo":       repeated("running 1 test\n", "---- tests::t@ stdout ----\n\nthread 'tests::t@' panicked at src/lib.rs:@:1:\nassertion failed\n\n", "", "failures:\n    tests::t1\n\ntest result: FAILED.\n"),
		"eslint":      repeated(`[{"filePath":"/x/a.js","messages":[`, `{"ruleId":"r","severity":2,"message":"v@ is undefined","line":@}`, ",", "]}]"),
		"ruff":        repeated("[", `{"code":"F821","filename":"/x/a.py","location":{"row":1@,"column":1},"message":"v@ is undefined"}`, ",\n", "]"),
		"staticcheck": repeated("", `{"code":"SA1","severity":"error","location":{"file":"/x/a.go","line":@},"message":"v@ is undefined"}`+"\n", "", ""),
		"sanitizer":   repeated("", "src/a.c:@:7: runtime error: v@ is out of bounds\n", "", ""),
		"valgrind":    repeated("==7== Memcheck, a memory error detector\n==7== \n", "==7== Invalid read of size 4\n==7==    at 0x1@: f@ (a.c:@)\n==7== \n", "", "==7== ERROR SUMMARY: 2 errors\n"),
		"crash":       repeated("", "t@: src/a.c:@: main: Assertion `v@ == 0' failed.\nAborted (core dumped)\n", "", ""),
		"lines":       repeated("", "a/b.c:@:1: error: v@ is undefined\n", "", "2 errors\n"),
	}
}

// TestMany finds 10 000 failures by the format's name, and 1000 without it, all with IDs
// of their own.
func TestMany(t *testing.T) {
	large, small := many(10_000), many(1000)
	for _, name := range reader.Names()[1:] {
		if _, ok := large[name]; !ok {
			t.Errorf("%s: there is no output", name)
		} else if name != "python" { // which dies only once
			wantMany(t, name, large[name], 10_000)
			wantMany(t, reader.AutoName, small[name], 1000)
		}
	}
}

func wantMany(t *testing.T, name, out string, n int) {
	t.Helper()
	found := named(t, name)(out, 1)
	ids := map[string]bool{}
	for _, f := range found {
		ids[f.ID] = true
	}
	if len(found) != n || len(ids) != n {
		t.Errorf("%s: %d findings with %d IDs: %.60q", name, len(found), len(ids), out)
	}
}

// TestHostile reads what makes a careless reader slow: with quadratic time it would not
// end.
func TestHostile(t *testing.T) {
	const n = 20_000
	for _, out := range map[string]string{
		"documents":    "\"runs\"\n" + strings.Repeat("{\"a\":\n", n),
		"arrays":       "\"runs\" \"filePath\"\n" + strings.Repeat("[\n{\n", n),
		"suites":       strings.Repeat("<testsuite name='s'>", n) + "<testcase name='a'><failure/></testcase>",
		"cases":        strings.Repeat("<testcase name='a'><failure>", n),
		"points":       "TAP version 13\n" + strings.Repeat("    ", 1000) + "not ok\n" + strings.Repeat("not ok\n    not ok\n", n),
		"deep":         strings.Repeat("    --- FAIL: Test"+strings.Repeat("/a", 200)+" (0.00s)\n", n/100),
		"nested names": "--- FAIL: Test" + strings.Repeat("/", n) + " (0.00s)\nFAIL\tm\t0.1s\n",
		"a long line":  strings.Repeat("a:", 4*n) + "\n" + strings.Repeat("a/", 4*n) + ":1:1: x",
		"goroutines":   "panic: test timed out after 1s\n\trunning tests:\n" + strings.Repeat("\t\tTestA (1s)\n", n/10) + strings.Repeat("\ngoroutine 1 [running]:\nm.TestA()\n\t/m/a.go:1 +0x1\n", n/10),
		"panics":       strings.Repeat("panic: a\n", n) + "goroutine 1 [running]:\n",
		"escapes":      strings.Repeat("\x1b]\x1b[", n),
	} {
		for _, format := range reader.Names() {
			named(t, format)(out, 1)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		for name, out := range many(n) {
			read := named(b, name)
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.SetBytes(int64(len(out)))
				for b.Loop() {
					read(out, 1)
				}
			})
		}
	}
}

// FuzzRead: no output makes a reader fail, and what it finds can be used.
func FuzzRead(f *testing.F) {
	for _, r := range recordings(f) {
		f.Add(r.out[:min(len(r.out), 2000)], r.exit)
	}
	for _, out := range many(3) {
		f.Add(out, 1)
	}
	f.Fuzz(func(t *testing.T, out string, exit int) {
		for _, name := range append(reader.Names(), "%f:%l:%c: %t: %m") {
			found := named(t, name)(out, exit)
			ids := map[string]bool{}
			for _, f := range found {
				if f.ID == "" || ids[f.ID] || f.Line < 0 || f.File == "" && f.Line != 0 || len(f.Text) > 5<<10 {
					t.Errorf("%s: %+v", name, f)
				}
				ids[f.ID] = true
			}
			reader.Place(found, "/tmp", func(string) bool { return false })
		}
	})
}
