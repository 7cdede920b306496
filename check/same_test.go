package check

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNormalizeTools: the output of real tools for one failure is equal in two
// runs and differs from their output for another failure.
func TestNormalizeTools(t *testing.T) {
	for name, c := range map[string]struct{ first, second, other string }{
		"go test": {
			first: `--- FAIL: TestTemp (0.00s)
    x_test.go:3: in /tmp/TestTemp3597026735/001 at 2026-11-21 18:19:31.090033222 +0000 UTC m=+0.002067589
panic: runtime error: invalid memory address or nil pointer dereference [recovered, repanicked]
[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x52f733]

goroutine 19 [running]:
testing.tRunner.func1.2({0x55b7a0, 0x6ccda0})
	/usr/local/go/src/testing/testing.go:1974 +0x232
x.TestTemp(0x2a563659c488)
	/home/me/x/x_test.go:3 +0xf3
created by testing.(*T).Run in goroutine 1
	/usr/local/go/src/testing/testing.go:2101 +0x4c5
FAIL	x	0.008s
ok  	x/y	(cached)
FAIL
`,
			second: `--- FAIL: TestTemp (0.01s)
    x_test.go:3: in /tmp/TestTemp81190/001 at 2026-11-21 18:20:02.1 +0000 UTC m=+0.1
panic: runtime error: invalid memory address or nil pointer dereference [recovered, repanicked]
[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x52f7d1]

goroutine 7 [running]:
testing.tRunner.func1.2({0x55b820, 0x6cce20})
	/usr/local/go/src/testing/testing.go:1974 +0x231
x.TestTemp(0xc0000a6488)
	/home/me/x/x_test.go:3 +0x1f
created by testing.(*T).Run in goroutine 1
	/usr/local/go/src/testing/testing.go:2101 +0x4c4
FAIL	x	1.210s
ok  	x/y	0.031s
FAIL`,
			other: `--- FAIL: TestTemp (0.00s)
    x_test.go:4: in /tmp/TestTemp3597026735/001 at 2026-11-21 18:19:31.090033222 +0000 UTC m=+0.002067589
FAIL	x	0.008s
ok  	x/y	(cached)
FAIL
`,
		},
		"go build": {
			first:  "# x\n./main.go:12:5: undefined: a\n\x1b[0m/tmp/go-build3118271/b001/_pkg_.a: bad\nexit status 1\n",
			second: "# x\n./main.go:12:5: undefined: a\n/tmp/go-build99120/b001/_pkg_.a: bad\nexit status 1\n",
			other:  "# x\n./main.go:12:5: undefined: b\n\x1b[0m/tmp/go-build3118271/b001/_pkg_.a: bad\nexit status 1\n",
		},
		"pytest": {
			first: `============================= test session starts ==============================
platform linux -- Python 3.12.3, pytest-8.3.4, pluggy-1.5.0
collected 2 items

tests/test_a.py .F                                                       [100%]

=================================== FAILURES ===================================
____________________________________ test_b ____________________________________

tmp_path = PosixPath('/tmp/pytest-of-me/pytest-12/test_b0')

>       assert read(tmp_path) == object()
E       AssertionError: assert 3 == <object object at 0x7f87bb4c47e0>

tests/test_a.py:7: AssertionError
=========================== short test summary info ============================
FAILED tests/test_a.py::test_b - AssertionError: assert 3 == <object object...
========================= 1 failed, 1 passed in 0.12s ==========================
`,
			second: `============================= test session starts ==============================
platform linux -- Python 3.12.3, pytest-8.3.4, pluggy-1.5.0
collected 2 items

tests/test_a.py .F                                                       [100%]

=================================== FAILURES ===================================
____________________________________ test_b ____________________________________

tmp_path = PosixPath('/tmp/pytest-of-me/pytest-13/test_b0')

>       assert read(tmp_path) == object()
E       AssertionError: assert 3 == <object object at 0x7fd1bb4c4810>

tests/test_a.py:7: AssertionError
=========================== short test summary info ============================
FAILED tests/test_a.py::test_b - AssertionError: assert 3 == <object object...
========================= 1 failed, 1 passed in 12.05s =========================
`,
			other: "E       AssertionError: assert 4 == <object object at 0x7f87bb4c47e0>\n",
		},
		"unittest": {
			first:  "AssertionError: '/tmp/tmp7cm08n0z' != 5\n\n----------\nRan 3 tests in 0.001s\n\nFAILED (failures=1)\n",
			second: "AssertionError: '/tmp/tmpq_x1zzab' != 5\n\n----------\nRan 3 tests in 1.250s\n\nFAILED (failures=1)\n",
			other:  "AssertionError: '/tmp/tmp7cm08n0z' is not None\n\n----------\nRan 3 tests in 0.001s\n\nFAILED (failures=1)\n",
		},
		"cargo": {
			first: `    Finished ` + "`test`" + ` profile [unoptimized + debuginfo] target(s) in 0.05s
     Running unittests src/lib.rs (target/debug/deps/x-2f9a6c1b7d3e4f50)

thread 'tests::it_works' (48113) panicked at src/lib.rs:9:9:
assertion ` + "`left == right`" + ` failed
  left: 3
 right: 4
   2:     0x55d0c8a0b2a0 - std::panicking::begin_panic

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
`,
			second: `    Finished ` + "`test`" + ` profile [unoptimized + debuginfo] target(s) in 2m 13s
     Running unittests src/lib.rs (target/debug/deps/x-2f9a6c1b7d3e4f50)

thread 'tests::it_works' (6) panicked at src/lib.rs:9:9:
assertion ` + "`left == right`" + ` failed
  left: 3
 right: 4
   2:     0x5610aa70b2a0 - std::panicking::begin_panic

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s
`,
			other: "thread 'tests::it_works' (48113) panicked at src/lib.rs:9:9:\n  left: 3\n right: 5\n",
		},
		"jest": {
			first: "FAIL src/a.test.js (5.1 s)\n  ✕ adds (5 ms)\n\n    Expected: 3\n    Received: 4\n\n      at Object.toBe (src/a.test.js:5:10)\n\n(node:12345) Warning: x\n" +
				"Tests:       1 failed, 2 passed, 3 total\nTime:        0.512 s, estimated 1 s\nRan all test suites.\n",
			second: "FAIL src/a.test.js (12.25 s)\n  ✕ adds (112 ms)\n\n    Expected: 3\n    Received: 4\n\n      at Object.toBe (src/a.test.js:5:10)\n\n(node:99) Warning: x\n" +
				"Tests:       1 failed, 2 passed, 3 total\nTime:        12.9 s, estimated 13 s\nRan all test suites.\n",
			other: "FAIL src/a.test.js (5.1 s)\n  ✕ adds (5 ms)\n\n    Expected: 3\n    Received: 5\n",
		},
		"node": {
			first:  "not ok 1 - x\n  duration_ms: 1.763747\n  location: '/home/me/t.js:1:59'\n  expected: 2\n  actual: 1\n# fail 1\n# duration_ms 97.636455\n",
			second: "not ok 1 - x\n  duration_ms: 12\n  location: '/home/me/t.js:1:59'\n  expected: 2\n  actual: 1\n# fail 1\n# duration_ms 101.1\n",
			other:  "not ok 1 - y\n  duration_ms: 1.763747\n  location: '/home/me/t.js:1:59'\n  expected: 2\n  actual: 3\n# fail 1\n# duration_ms 97.636455\n",
		},
		"gcc": {
			first:  "/usr/bin/ld: /tmp/ccAbCdEf.o: in function `main':\na.c:(.text+0x9): undefined reference to `f'\ncollect2: error: ld returned 1 exit status\n",
			second: "/usr/bin/ld: /tmp/ccq3R1xx.o: in function `main':\na.c:(.text+0x9): undefined reference to `f'\ncollect2: error: ld returned 1 exit status\n",
			other:  "/usr/bin/ld: /tmp/ccAbCdEf.o: in function `main':\na.c:(.text+0x9): undefined reference to `g'\ncollect2: error: ld returned 1 exit status\n",
		},
		"valgrind": {
			first:  "==12345== Invalid read of size 4\n==12345==    at 0x109163: main (a.c:5)\n==12345==  Address 0x4a8e068 is 0 bytes after a block of size 40\n",
			second: "==77== Invalid read of size 4\n==77==    at 0x109163: main (a.c:5)\n==77==  Address 0x4a8e068 is 0 bytes after a block of size 40\n",
			other:  "==12345== Invalid write of size 4\n==12345==    at 0x109163: main (a.c:5)\n==12345==  Address 0x4a8e068 is 0 bytes after a block of size 40\n",
		},
		"make": {
			first:  "make[1]: Entering directory '/tmp/tmp.Xa81bd/src'\ngcc -o a a.c\nmake[1]: *** [Makefile:3: a] Error 1   \nreal\t0m0.005s\n",
			second: "make[1]: Entering directory '/tmp/tmp.Qq0001/src'\ngcc -o a a.c\nmake[1]: *** [Makefile:3: a] Error 1\nreal\t1m10.450s\n",
			other:  "make[1]: Entering directory '/tmp/tmp.Xa81bd/src'\ngcc -o a a.c\nmake[1]: *** [Makefile:3: b] Error 1\nreal\t0m0.005s\n",
		},
		"tsc": {
			first:  "[12:34:56 PM] File change detected.\r\n\x1b[96msrc/a.ts\x1b[0m:\x1b[93m5\x1b[0m:\x1b[93m10\x1b[0m - \x1b[91merror\x1b[0m TS2322: no.\r\n\r\nFound 1 error.\r\n",
			second: "[9:04:06 AM] File change detected.\nsrc/a.ts:5:10 - error TS2322: no.\n\nFound 1 error.\n",
			other:  "[12:34:56 PM] File change detected.\nsrc/a.ts:5:10 - error TS2322: yes.\n\nFound 1 error.\n",
		},
		"junit": {
			first: `<testsuite name="A" tests="2" failures="1" timestamp="2026-11-21T18:19:31" time="0.012"><testcase name="b" time="0.007"><failure message="expected: 3 but was: com.x.Foo@1b6d3586"/>
[ERROR] Tests run: 2, Failures: 1, Time elapsed: 0.042 s <<< FAILURE! -- in A
[INFO] Total time:  2.345 s
[INFO] Finished at: 2026-11-21T18:19:33+01:00
java.net.ConnectException: http://localhost:43211/x, /tmp/junit1234567890/f
`,
			second: `<testsuite name="A" tests="2" failures="1" timestamp="2026-11-21T18:25:00" time="1"><testcase name="b" time="0.9"><failure message="expected: 3 but was: com.x.Foo@4554617c"/>
[ERROR] Tests run: 2, Failures: 1, Time elapsed: 1.2 s <<< FAILURE! -- in A
[INFO] Total time:  01:05 min
[INFO] Finished at: 2026-11-21T18:26:05+01:00
java.net.ConnectException: http://localhost:5/x, /tmp/junit88/f
`,
			other: `<testsuite name="A" tests="2" failures="2" timestamp="2026-11-21T18:19:31" time="0.012"><testcase name="b" time="0.007"><failure message="expected: 3 but was: com.x.Foo@1b6d3586"/>`,
		},
	} {
		first, second, other := Normalize(c.first), Normalize(c.second), Normalize(c.other)
		if diff := cmp.Diff(strings.Split(first, "\n"), strings.Split(second, "\n")); diff != "" {
			t.Errorf("%s (-first +second):\n%s", name, diff)
		}
		if first == other {
			t.Errorf("%s: another failure reads the same:\n%s", name, first)
		}
	}
}

func TestKey(t *testing.T) {
	f := Finding{Source: "check", File: "a.go", Text: "failed in 1.2s"}
	same := f
	same.Text = "failed in 0.1s\n"
	if Key(f) != Key(same) {
		t.Error("the same failure has another key")
	}
	seen := map[string]Finding{Key(f): f}
	for _, other := range []Finding{
		{Source: "build", File: "a.go", Text: f.Text},
		{Source: "check", File: "b.go", Text: f.Text},
		{Source: "check", Text: "a.go" + f.Text},
		{Source: "check", File: "a.go", Text: "failed 2 in 1.2s"},
		{Source: "check", File: "a.go", Text: f.Text, Advisory: true},
		{Source: "check", File: "a.go", Text: f.Text, Broken: true},
		{Source: "check", File: "a.go", Text: f.Text, Blocker: true},
		{Source: "check", File: "a.go", Text: f.Text, Advisory: true, Blocker: true},
	} {
		if twin, ok := seen[Key(other)]; ok {
			t.Errorf("%+v has the key of %+v", other, twin)
		}
		seen[Key(other)] = other
	}
}

func TestSplitFlaky(t *testing.T) {
	find := func(source, text string) Finding { return Finding{Source: source, Text: text} }
	advisory := func(text string) Finding { return Finding{Source: "checker", Text: text, Advisory: true} }
	broken := func(text string) Finding { return Finding{Source: "checker", Text: text, Broken: true} }
	a, a2, b, c, d := find("checker", "a, 1s"), find("checker", "a, 2s"), find("checker", "b"), find("checker", "c"), find("checker", "d")
	out1, out2, out3 := find("check", "x"), find("check", "y"), find("check", "z")
	type list = []Finding
	for name, want := range map[string]struct {
		runs        []list
		stay, flaky list
	}{
		"no run":                      {},
		"one run":                     {runs: []list{{a, b, advisory("n")}}, stay: list{a, b, advisory("n")}},
		"the same":                    {runs: []list{{a, b}, {b, a2}}, stay: list{b, a2}},
		"one of two":                  {runs: []list{{a, b}, {c, a2}, {a2, b}}, stay: list{a2}, flaky: list{b, c}},
		"one and the same twice":      {runs: []list{{a, b}, {a2, a2}}, stay: list{a2, a2}, flaky: list{b}},
		"never the same":              {runs: []list{{a, b}, {c, d}}, stay: list{c, d}, flaky: list{a, b}},
		"never the same, one a third": {runs: []list{{a, b}, {a, c}, {b, c}}, stay: list{b, c}, flaky: list{a}},
		"clean at last":               {runs: []list{{a, b}, {a2, c}, {}}, flaky: list{a, b, c}},
		"clean with a note":           {runs: []list{{a, b}, {advisory("n")}}, stay: list{advisory("n")}, flaky: list{a, b}},
		"notes do not recur":          {runs: []list{{a, b, advisory("m")}, {a, advisory("n")}}, stay: list{a, advisory("n")}, flaky: list{b}},
		"a note is no finding":        {runs: []list{{a, b}, {advisory("a, 1s"), b}}, stay: list{advisory("a, 1s"), b}, flaky: list{a}},
		"a command's output":          {runs: []list{{out1}, {out2}, {out3}}, stay: list{out3}},
		"a command's output, clean":   {runs: []list{{out1}, {out2}, {}}, flaky: list{out1}},
		"an output beside others":     {runs: []list{{out1, a, b}, {a, out2}}, stay: list{a, out2}, flaky: list{b}},
		"an output now and then":      {runs: []list{{out1, a, b}, {a, b}}, stay: list{a, b}, flaky: list{out1}},
		"an output that comes later":  {runs: []list{{a, b}, {a, b, out1}}, stay: list{a, b}, flaky: list{out1}},
		"an output with a note":       {runs: []list{{a, advisory("m")}, {b, advisory("n"), advisory("o")}}, stay: list{b, advisory("n"), advisory("o")}, flaky: list{a}},
		"broken at first":             {runs: []list{{broken("k")}, {a, b}}, stay: list{a, b}},
		"broken in between":           {runs: []list{{a, b}, {broken("k")}, {a, c}}, stay: list{a}, flaky: list{b, c}},
		"broken at last":              {runs: []list{{a, b}, {broken("k")}}, stay: list{a, b}},
		"broken in each":              {runs: []list{{broken("k")}, {broken("l")}}, stay: list{broken("l")}},
		"broken, then clean":          {runs: []list{{broken("k")}, {}}},
	} {
		before := fmt.Sprintf("%+v", want.runs)
		stay, flaky := SplitFlaky(want.runs...)
		if diff := cmp.Diff(want.stay, stay); diff != "" {
			t.Errorf("%s: what stays (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(want.flaky, flaky); diff != "" {
			t.Errorf("%s: what is flaky (-want +got):\n%s", name, diff)
		}
		if after := fmt.Sprintf("%+v", want.runs); after != before {
			t.Errorf("%s: the runs were changed", name)
		}
	}
}

func BenchmarkNormalize(b *testing.B) {
	for name, line := range map[string]string{
		"go test": "--- FAIL: TestTemp (0.00s)\n    x_test.go:3: in /tmp/TestTemp3597026735/001 at 2026-11-21 18:19:31.09 +0000 UTC\ngoroutine 19 [running]:\nx.f(0xc000123456)\n\t/x.go:3 +0xf3\n",
		"prose":   "the quick brown fox jumps over the lazy dog and is not seen again\n",
		"numbers": "1 22 333 4444 55555 12:3 4.5 6-7\n",
		"letters": "a",
		"digits":  "1",
		"hex":     "a1b2c3d4 ",
		"slashes": "/",
		"signs":   "(['@%$<=",
		"escapes": "\x1b]\x1b[",
		"tabs":    "\t \r",
		"lines":   "\n",
		"frames":  "\n\t+0x",
	} {
		b.Run(name, func(b *testing.B) {
			text := strings.Repeat(line, 1<<20/len(line))
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Normalize(text)
			}
		})
	}
}

// TestKeyOfID: a finding with an ID is recognized by it, whatever its text and
// line are; one without is never taken for one with.
func TestKeyOfID(t *testing.T) {
	t.Parallel()
	f := Finding{Source: "check", File: "a.go", Line: 3, ID: "go test/TestA", Text: "took 3s"}
	moved := f
	moved.File, moved.Line, moved.Text = "helper.go", 30, "got 7"
	if Key(f) != Key(moved) {
		t.Error("a finding that moved is another one")
	}
	other, none := f, f
	other.ID, none.ID = "go test/TestB", ""
	none.File, none.Text = "", f.ID
	if Key(f) == Key(other) || Key(f) == Key(none) {
		t.Error("another finding is the same")
	}
}
