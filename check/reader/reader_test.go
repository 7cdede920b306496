package reader_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/check"
	"hone/check/reader"
)

func TestNamed(t *testing.T) {
	for _, name := range append(reader.Names(), "%f:%l:%c: %m") {
		if named(t, name) == nil {
			t.Errorf("%s: there is no reader", name)
		}
	}
	for name, want := range map[string]string{
		"gojson": `there is no output format "gojson"; did you mean "go-json"? (formats: auto, go, go-json,`,
		"":       `there is no output format "" (formats: auto,`,
		"%f:%l":  `output format "%f:%l": %m, the message, is missing (example: "%f:%l:%c: %m")`,
		"%m %":   `output format "%m %": it ends with a single %; write %% for a percent sign`,
		"%m %q":  `output format "%m %q": %q is unknown; use %f, %l,`,
		"%m %m":  `output format "%m %m": %m occurs twice`,
	} {
		if _, err := reader.Named(name); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
}

func TestPattern(t *testing.T) {
	out := "noise\n  src/a.c:12:3: warning: unused `x`\nsrc/a b.c:7:1: error: 50% wrong \nC:\\src\\b.c:9:1: note: see\n"
	found := named(t, "%f:%l:%c: %t: %m")(out, 1)
	want := "src/a b.c:7: src/a b.c: <n>% wrong | 50% wrong\n" +
		"~src/a.c:12: src/a.c: unused `x` | unused `x`\n" +
		"~C:/src/b.c:9: C:/src/b.c: see | see\n"
	if diff := cmp.Diff(want, outline(found)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if found := named(t, "100%% %f(%l) %*: %m")("100% a.x(3) blah: no\n", 1); len(found) != 1 {
		t.Error("a percent sign and any text did not fit")
	}
	if found := named(t, "%f: %m")("nothing fits\n", 1); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

func TestPlace(t *testing.T) {
	has := func(file string) bool {
		return strings.Contains(" calc/calc_test.go x.go src/test/java/com/x/ATest.java ", " "+file+" ")
	}
	for file, want := range map[string]string{
		"calc/calc_test.go":                  "calc/calc_test.go:3: r: m | m",
		"example.com/m/calc/calc_test.go":    "calc/calc_test.go:3: r: m | m",
		"/home/u/tree/x.go":                  "x.go:3: r: m | m",
		"/home/u/tree/../x.go":               ":0: r: m | /home/u/x.go:3: m",
		"/usr/lib/calc/calc_test.go":         ":0: r: m | /usr/lib/calc/calc_test.go:3: m",
		"com/x/ATest.java":                   "src/test/java/com/x/ATest.java:3: r: m | m",
		"../x.go":                            "x.go:3: r: m | m",
		"gone.go":                            ":0: r: m | gone.go:3: m",
		"":                                   ":0: r: m | m",
		"example.com/m/calc/calc/another.go": ":0: r: m | example.com/m/calc/calc/another.go:3: m",
	} {
		f := check.Finding{File: reader.CleanFile(file), Line: 3, Text: "m", ID: "r: m"}
		if file == "" {
			f.Line = 0
		}
		found := []check.Finding{f}
		reader.Place(found, "/home/u/tree", has)
		if diff := cmp.Diff(want+"\n", outline(found)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
	found := []check.Finding{{File: "/home/u/tree/x.go", Text: "bad\n at /home/u/tree/y.go:3", ID: "E1: /home/u/tree/x.go: bad"}}
	reader.Place(found, "/home/u/tree/", has)
	if found[0].ID != "E1: x.go: bad" || found[0].Text != "bad\n at y.go:3" {
		t.Errorf("%+v", found[0])
	}
}

// TestPlaceFrame: the place is the first frame of a stack that is inside the tree.
func TestPlaceFrame(t *testing.T) {
	out := "==1==ERROR: AddressSanitizer: SEGV on unknown address 0x000000000000 (pc 0x1 bp 0x2 sp 0x3 T0)\n" +
		"    #0 0x1 in vec_push /opt/vec/vec.c:3\n    #1 0x2 in grow ../src/list.c:4:7\n    #2 0x3 in main ../tests/a.c:5\nSUMMARY: x\n"
	found := named(t, "sanitizer")(out, 1)
	reader.Place(found, "/home/u/tree", func(file string) bool { return file == "src/list.c" || file == "tests/a.c" })
	want := "src/list.c:4: /opt/vec/vec.c: AddressSanitizer: SEGV in vec_push | AddressSanitizer: SEGV in vec_push\n"
	if diff := cmp.Diff(want, outline(found)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSource: a finding about a crash has the source around its place, and around what freed the memory, if a model may see it.
func TestSource(t *testing.T) {
	source := strings.Repeat("\n", 11) + "\tv->items[0] = 1;\r\n}\n"
	found := []check.Finding{
		{File: "src/a.c", Line: 12, Text: "AddressSanitizer: SEGV in f"}, {File: "src/a.c", Line: 12, Text: "AddressSanitizer: the same place"},
		{File: "src/a.c", Line: 99, Text: "TestA: panic: the file has changed"}, {File: "secret.c", Line: 1, Text: "panic: x"}, {File: "src/a.c", Line: 1, Text: "got 1, want 2"},
	}
	reader.Source(found, func(file string) (string, bool) { return source, file != "secret.c" })
	want := "AddressSanitizer: SEGV in f\n\nsrc/a.c:\n     2\n     3\n     4\n     5\n     6\n     7\n     8\n     9\n    10\n    11\n>   12  \tv->items[0] = 1;\n    13  }"
	if diff := cmp.Diff(want, found[0].Text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, f := range found[1:] {
		if strings.Contains(f.Text, "\n") {
			t.Errorf("%+v", f)
		}
	}
	for name, frames := range map[string]string{
		"a function that frees":   "    at drop (src/b.c:1)\n",
		"a way to free":           "    at counted_free (src/a.c:3)\n    at drop (src/b.c:1)\n",
		"a method, for valgrind":  "    at operator delete(void*) (src/a.c:3)\n    at T::drop(int) (src/b.c:1)\n",
		"a file that is withheld": "    at counted_free (src/b.c:1)\n    at drop (secret.c:1)\n",
	} {
		freed := []check.Finding{{File: "src/a.c", Line: 1, Text: "Sanitizer: heap-use-after-free in f\n\nfreed by thread T0 here:\n" + frames + "    at main (src/a.c:9)\n\npreviously allocated by thread T0 here:\n    at f (src/a.c:9)\n"}}
		reader.Source(freed, func(file string) (string, bool) { return file + " is here\n", file != "secret.c" })
		got := strings.TrimPrefix(freed[0].Text[strings.Index(freed[0].Text, "\n\nsrc/a.c:"):], "\n\nsrc/a.c:\n>    1  src/a.c is here")
		if want := "\n\nsrc/b.c:\n>    1  src/b.c is here"; strings.Contains(frames, "secret") == (got == want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	long := []check.Finding{{File: "a.c", Line: 1, Text: "panic: x"}}
	reader.Source(long, func(string) (string, bool) { return strings.Repeat("é", 500), true })
	if len(long[0].Text) > 220 || !strings.HasSuffix(long[0].Text, "é…") {
		t.Errorf("%q", long[0].Text)
	}
}

// TestMemory: the text of a report has its stacks, and neither addresses nor the runtime's frames.
func TestMemory(t *testing.T) {
	for file, want := range map[string]string{
		"sanitizer/gcc12-asan-uaf.txt": `AddressSanitizer: heap-use-after-free in list_at
READ of size 8 thread T0
    at list_at (src/list.c:15)
    at main (tests/uaf.c:7)

0 bytes inside of 24-byte region
freed by thread T0 here:
    at list_free (src/list.c:26)
    at main (tests/uaf.c:6)

previously allocated by thread T0 here:
    at list_new (src/list.c:5)
    at main (tests/uaf.c:4)`,
		"valgrind/valgrind319-overflow.txt": `Invalid read of size 4 in list_at
    at list_at (list.c:15)
    at list_sum (list.c:20)
    at main (overflow.c:6)
Address is 0 bytes after a block of size 16 alloc'd
    at list_add (list.c:10)
    at main (overflow.c:5)`,
	} {
		out, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		found := named(t, filepath.Dir(file))(string(out), 1)
		if diff := cmp.Diff(want, found[0].Text); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

// TestNoise: of a failed test's diagnostics only what says what is wrong is left.
func TestNoise(t *testing.T) {
	for file, want := range map[string]string{
		"tap/node20-kinds.txt":  "sum: got -6, want 2",
		"tap/tap18-timeout.txt": "test/a.cjs > adds > should be equal: got 0, want 2",
		"node/node24-kinds.txt": "sum: got -6, want 2\n\n\n    at TestContext.<anonymous> (/tmp/readers-spec/test/sum.test.js:6:26)",
	} {
		out, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		texts := ""
		found := named(t, filepath.Dir(file))(string(out), 1)
		for _, f := range found {
			texts += f.Text + "\n=\n"
		}
		if !strings.Contains(texts, want+"\n=\n") {
			t.Errorf("%s: %q is not a finding: %s", file, want, texts)
		}
	}
}

// TestValues: the first line says what the test got and wanted.
func TestValues(t *testing.T) {
	for out, want := range map[string]string{
		"--- FAIL: TestSum (0.00s)\n    a_test.go:3: sum:\n        got:  -6\n        want: 6\nFAIL\n":                                                       "TestSum: sum: got -6, want 6",
		"--- FAIL: TestSum (0.00s)\n    a_test.go:3: sum() mismatch (-want +got):\n          []int{\n        - \t6,\n        + \t-6,\n          }\nFAIL\n":  "TestSum: sum() mismatch (-want +got): got -6, want 6",
		"--- FAIL: TestSum (0.00s)\n    a_test.go:3: \n        \tError Trace:\ta_test.go:3\n        \texpected: 6\n        \tactual  : -6\nFAIL\n":          "TestSum failed: got -6, want 6",
		"--- FAIL: TestSum (0.00s)\n    a_test.go:3: sum is -6, not 6\n        got: -6\n        want: 6\nFAIL\n":                                            "TestSum: sum is -6, not 6",
		"--- FAIL: TestSum (0.00s)\n    a_test.go:3: unexpected output:\n        a b\nFAIL\n":                                                               "TestSum: unexpected output: a b",
		"--- FAIL: TestSum (0.00s)\n    a_test.go:3: sum:\n        got: " + strings.Repeat("x", 90) + "\n        want: {\n            6\n        }\nFAIL\n": "TestSum: sum: got: " + strings.Repeat("x", 75) + "…",
	} {
		found := named(t, "go")(out, 1)
		if head, _, _ := strings.Cut(found[0].Text, "\n"); head != want {
			t.Errorf("%q: got %q, want %q", out, head, want)
		}
	}
}

// TestAssertions of systems that are not recorded.
func TestAssertions(t *testing.T) {
	out := "Assertion failed: n == 3 (src/a.c: check: 7)\nAborted\n" + // musl
		"Assertion failed: (n == 3), function check, file b.c, line 8.\nsh: line 1: 99 Abort trap: 6           ./b\n" + // macOS
		"Assertion failed: n == 3, file src\\c.c, line 9\n" // Windows
	want := "src/a.c:7: src/a.c: assertion failed: n == <n> | assertion failed: n == 3\n" +
		"b.c:8: b.c: assertion failed: n == <n> | assertion failed: n == 3\n" +
		"src/c.c:9: src/c.c: assertion failed: n == <n> | assertion failed: n == 3\n"
	found := named(t, "crash")(out, 1)
	if diff := cmp.Diff(want, outline(found)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPlaceLinks: a program may print the path of a tree without symbolic links.
func TestPlaceLinks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Skip("SKIPPED: " + err.Error())
	}
	found := []check.Finding{{File: filepath.ToSlash(filepath.Join(dir, "x.go")), Text: "a"}, {File: filepath.ToSlash(filepath.Join(link, "x.go")), Text: "b"}}
	reader.Place(found, link, func(file string) bool { return file == "x.go" })
	if found[0].File != "x.go" || found[1].File != "x.go" {
		t.Errorf("%+v", found)
	}
}

// TestMixed reads the output of several programs in one check.
func TestMixed(t *testing.T) {
	out := `gcc -Wall -c a.c
a.c:3:19: error: expected expression
# m/broken
broken/b.go:4:6: declared and not used: x
--- FAIL: TestA (0.00s)
    a_test.go:3: got 1
FAIL
FAIL	m/a	0.1s
FAIL	m/broken [build failed]
` + ruler("=", "FAILURES") + ruler("_", "test_b") + `E       assert 1 == 2

tests/test_b.py:2: AssertionError
` + ruler("=", "short test summary info") + `FAILED tests/test_b.py::test_b - assert 1 == 2
1 failed in 0.1s
FAILED (failures=1)
server.go:12: not of a compiler
server.rb:12:1: neither
make: *** [Makefile:3: test] Error 1
`
	want := `broken/b.go:4: broken/b.go: declared and not used: x | declared and not used: x
m/a/a_test.go:3: m/a.TestA | TestA: got 1
tests/test_b.py:2: tests/test_b.py::test_b | test_b: assert 1 == 2
a.c:3: a.c: expected expression | expected expression
`
	found := reader.Auto()(out, 2)
	if diff := cmp.Diff(want, outline(found)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if found := reader.Auto()("It broke\nserver.go:12: listening\n", 139); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

// TestGoPrints: what a test prints neither hides nor forges what go test says.
func TestGoPrints(t *testing.T) {
	out := `=== RUN   TestA
# heading
## another
panic: boom

goroutine 7 [running]:
m/a.TestA(0x1)
	/src/m/a/a_test.go:9 +0x1
FAIL	m/a	0.1s
# m/b
/usr/bin/ld: cannot find -lnope
FAIL	m/b [build failed]
`
	want := `/src/m/a/a_test.go:9: m/a.TestA | TestA: panic: boom
:0: build m/b | building m/b failed
`
	found := named(t, "go")(out, 1)
	if diff := cmp.Diff(want, outline(found)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestJUnitNames: a test is no parent of another because their names look like paths.
func TestJUnitNames(t *testing.T) {
	out := `<testsuite name="api"><testcase classname="api" name="GET /users"><failure message="500"/></testcase>
<testcase classname="api" name="GET /users/1"><failure message="404"/></testcase>
<testcase classname="m" name="TestA"><failure message="Failed"></failure></testcase>
<testcase classname="m" name="TestA/b"><failure message="Failed">    a_test.go:3: no</failure></testcase></testsuite>`
	want := `:0: api.GET /users | GET /users: 500
:0: api.GET /users/1 | GET /users/1: 404
a_test.go:3: m.TestA/b | TestA/b: Failed
`
	found := named(t, "junit")(out, 1)
	if diff := cmp.Diff(want, outline(found)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestStopped: the tests that were running when the check was stopped are found, if the
// output tells which.
func TestStopped(t *testing.T) {
	for _, tt := range []struct{ name, out, want string }{
		{"go", "=== RUN   TestA\n--- FAIL: TestA (0.00s)\n=== RUN   TestB\n=== PAUSE TestB\n=== RUN   TestC\n=== RUN   TestC/x\n    c_test.go:3: begins\n",
			":0: TestC/x | TestC/x: it was running when the command was stopped\n:0: TestA | TestA failed\n"},
		{"go-json", `{"Action":"output","Package":"m","Test":"TestB","Output":"=== RUN   TestB\n"}` + "\n" + `{"Action":"output","Package":"m","Test":"TestB/x","Output":"=== RUN   TestB/x\n"}` + "\n",
			":0: m.TestB/x | TestB/x: it was running when the command was stopped\n"},
		{"pytest", ruler("=", "test session starts") + "tests/test_a.py::test_a FAILED [ 33%]\ntests/test_a.py::test_b ",
			":0: tests/test_a.py::test_b | test_b: it was running when the command was stopped\ntests/test_a.py:0: tests/test_a.py::test_a | test_a failed\n"},
		{"unittest", "test_a (m.C.test_a) ... FAIL\ntest_b (m.C.test_b) ... skipped 'no network'\ntest_c (m.C.test_c) ... expected failure\n",
			":0: m.C.test_a | m.C.test_a failed\n"},
		{"unittest", "test_a (m.C.test_a) ... FAIL\ntest_b (m.C.test_b) ... ",
			":0: m.C.test_b | m.C.test_b: it was running when the command was stopped\n:0: m.C.test_a | m.C.test_a failed\n"},
	} {
		found := named(t, tt.name)(tt.out, -1)
		if diff := cmp.Diff(tt.want, outline(found)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		for _, f := range named(t, tt.name)(tt.out, 1) {
			if strings.Contains(f.Text, "stopped") {
				t.Errorf("%s: it was not stopped: %s", tt.name, f.Text)
			}
		}
	}
}

// TestOnlyWarnings: the error of a linker, which no format has, is not hidden by the warnings before it.
func TestOnlyWarnings(t *testing.T) {
	out := "gcc -Wall -o a a.c\na.c:3:7: warning: unused variable 'x' [-Wunused-variable]\n    3 |   int x;\n/usr/bin/ld: a.o: in function `main':\na.c:(.text+0x9): undefined reference to `f'\n1 warning generated.\n"
	want := ":0: end: the command failed, and no warning says why: a.c:(.text+<n>): undefined reference to `f' | the command failed, and no warning says why: a.c:(.text+0x9): undefined reference to `f'\n~a.c:3: a.c: unused variable 'x' [-Wunused-variable] | unused variable 'x' [-Wunused-variable]\n"
	for _, name := range []string{"auto", "lines", "%f:%l:%c: %t: %m"} {
		found := named(t, name)(out, 1)
		if diff := cmp.Diff(want, outline(found)); diff != "" || !strings.Contains(found[0].Text, "in function `main'") || strings.Contains(found[0].Text, "1 warning") {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if found := named(t, name)(out, 0); len(found) != 1 {
			t.Errorf("%s, passed: %+v", name, found)
		}
	}
}
