package loop

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"hone/check"
	"hone/workspace"
)

func parsed(file string, line int, text string) check.Finding {
	return check.Finding{Source: check.SourceCommand, File: file, Line: line, Text: text, ID: text}
}

func test(file string, line int, name, said string) check.Finding {
	f := parsed(file, line, strings.TrimSuffix(name, " #2")+": "+said)
	f.ID = "all > " + name
	return f
}

func TestForModel(t *testing.T) {
	unread := check.Finding{Source: check.SourceCommand, Text: strings.Repeat("no reader knows this\n", 700)}
	note := check.Finding{Source: check.SourceCommand, Advisory: true, Text: "a note"}
	for name, c := range map[string]struct {
		findings []check.Finding
		want     []string
	}{
		"none":                  {nil, nil},
		"blocking before notes": {[]check.Finding{note, parsed("a.go", 1, "bad")}, []string{"a.go:1: bad", "a note"}},
		"an output that no reader knows is whole": {[]check.Finding{unread}, []string{strings.TrimRight(unread.Text, "\n")}},
		"of a cause, one whole": {
			[]check.Finding{parsed("a.go", 1, "T/1: got 1, want 2\nmore"), parsed("a.go", 1, "T/2: got 3, want 4\nmore"), parsed("a.go", 7, "T/3: got 5, want true\nmore"), parsed("b.go", 1, "other\nmore")},
			[]string{"a.go:1: T/1: got 1, want 2\nmore\na.go:1: T/2: got 3, want 4", "a.go:7: T/3: got 5, want true\nmore", "b.go:1: other\nmore"},
		},
		"names and values are not the cause": {
			[]check.Finding{test("a.js", 1, "ranges > ~2.4: by 2.4.5", "got false, want true"), test("a.js", 1, "x", "got false, want true"), test("a.js", 1, "y", "got false, want true"),
				test("a.js", 5, "y #2", "got false, want true"), test("a.js", 6, "z", "got false, want true"), test("a.js", 7, "z", "got false, want true"), test("a.js", 8, "z", "got null, want true")},
			[]string{"a.js:1: ranges > ~2.4: by 2.4.5: got false, want true\na.js:1: x: …\na.js:1: y: …\na.js:5: y: …\na.js:6: z: …\na.js:7: z: …", "a.js:8: z: got null, want true"},
		},
		"the same values in one test are told once": {
			[]check.Finding{test("a.js", 12, "inc(1.0.0-a, b) is 1.0.0-b.5", "got 1.0.0-b.0, want 1.0.0-b.5"), test("a.js", 18, "inc(1.0.0-a, b) has the version", "got 1.0.0-b.0, want 1.0.0-b.5"),
				test("a.js", 12, "inc(1.0.0-a, c) is 1.0.0-c.5", "got 1.0.0-c.0, want 1.0.0-c.5"), test("a.js", 18, "inc(1.0.0-a, c) has the version", "got 1.0.0-c.0, want 1.0.0-c.5"), test("a.js", 18, "inc(1.0.0-a, c) has the version #2", "got 1.0.0-c.0, want 1.0.0-c.5")},
			[]string{"a.js:12: inc(1.0.0-a, b) is 1.0.0-b.5: got 1.0.0-b.0, want 1.0.0-b.5 (also on line 18)\n… c) is 1.0.0-c.5: got 1.0.0-c.0, want 1.0.0-c.5 (3 times, also on line 18)"},
		},
		"many of a cause": {
			[]check.Finding{parsed("a.js", 1, "adds 1: wrong"), parsed("a.js", 2, "adds 2: wrong"), parsed("a.js", 3, "adds 3: wrong"), parsed("a.js", 4, "adds 4: wrong"), parsed("a.js", 5, "adds 5: wrong"), parsed("a.js", 6, "adds 6: wrong"),
				parsed("a.js", 7, "adds 7: wrong"), parsed("a.js", 8, "adds 8: wrong"), parsed("a.js", 9, "adds 9: wrong"), parsed("a.js", 10, "adds 10: wrong"), parsed("a.js", 11, "adds 11: wrong"), parsed("a.js", 11, "adds 11: wrong")},
			[]string{"a.js:1: adds 1: wrong\na.js:2: adds 2: wrong\na.js:3: adds 3: wrong\na.js:4: adds 4: wrong\na.js:5: adds 5: wrong\na.js:6: adds 6: wrong\na.js:7: adds 7: wrong\na.js:8: adds 8: wrong\na.js:9: adds 9: wrong\n" +
				"(and 3 more like these, on lines 10, 11)"},
		},
		"leaks with the function that asked for the memory": {
			[]check.Finding{parsed("a.c", 2, "leak of 8 byte(s) in new\n    at new (a.c:2)\n    at one (b.c:5)\n    at main (b.c:1)"), parsed("a.c", 9, "leak of 8 byte(s) in add\n    at add (a.c:9)\n    at one (b.c:6)\n    at main (b.c:1)"),
				parsed("a.c", 2, "leak of 8 byte(s) in new\n    at new (a.c:2)\n    at two (b.c:7)\n    at main (b.c:2)"), parsed("a.c", 2, "leak of 8 byte(s) in new\n    at new (a.c:2)\n    at one (b.c:5)\n    at main (b.c:1)"),
				parsed("b.c", 1, "leak of 9 byte(s) in main\n    at main (b.c:1)")},
			[]string{"a.c:2: leak of 8 byte(s) in new (2 times)\n    at new (a.c:2)\n    at one (b.c:5)\n    at main (b.c:1)\na.c:9: leak of 8 byte(s) in add at one (b.c:6)",
				"a.c:2: leak of 8 byte(s) in new\n    at new (a.c:2)\n    at two (b.c:7)\n    at main (b.c:2)", "b.c:1: leak of 9 byte(s) in main\n    at main (b.c:1)"},
		},
		"a file is named once": {[]check.Finding{parsed("t/a.js", 1, "t/a.js > sums > adds: got 1, want 2"), parsed("a.js", 1, "t/a.js > sums > throws: TypeError")},
			[]string{"t/a.js:1: sums > adds: got 1, want 2", "a.js:1: t/a.js > sums > throws: TypeError"}},
		"what is left out is counted once": {
			[]check.Finding{parsed("a.go", 1, "bad"), {Source: check.SourceCommand, More: 85, Text: "… and 85 more findings"}, {Source: check.SourceCommand, Advisory: true, More: 12, Text: "… and 12 more findings"}},
			[]string{"a.go:1: bad", "… and 97 more findings"},
		},
		"equal ones are counted": {[]check.Finding{parsed("a.go", 1, "bad"), parsed("a.go", 1, "bad"), parsed("a.go", 1, "bad")}, []string{"a.go:1: bad (3 times)"}},
		"long runs":              {[]check.Finding{parsed("", 0, "got "+strings.Repeat("é", 5000)+"x")}, []string{"got ééé[… 5000 times]x"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ForModel(c.findings); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// Of what does not fit, each line of a file is told of before the second finding of another, and what has more to say says so.
func TestForModelPlaces(t *testing.T) {
	var many []check.Finding
	for i := range 30 {
		many = append(many, parsed("a.js", 27, strings.Repeat(string(rune('a'+i)), 3)+" is wrong\n"+strings.Repeat("more\n", 120)))
	}
	many = append(many, parsed("a.js", 36, "the other way round\n"+strings.Repeat("more\n", 1200)), parsed("b.js", 1, "of another file\nmore"))
	texts := ForModel(many)
	if texts[1] != "b.js:1: of another file\nmore" || !strings.HasPrefix(texts[2], "a.js:36: the other way round\n") ||
		!strings.HasPrefix(texts[3], "a.js:27: bbb is wrong\n") || !slices.Contains(texts, "a.js:27: ttt is wrong (and 120 more lines)") {
		t.Errorf("%.300q", texts)
	}
}

// Of many with values on lines of their own, each has them.
func TestForModelValues(t *testing.T) {
	var many []check.Finding
	for i := range 12 {
		many = append(many, parsed(fmt.Sprintf("%d.py", i), 1, fmt.Sprintf("sums\ngot:\n  %d\n%swant:\n  2", i, strings.Repeat("at some frame of the stack\n", 60))))
	}
	for i, text := range ForModel(many) {
		if !strings.Contains(text, fmt.Sprintf("\ngot:\n  %d\n", i)) || !strings.HasSuffix(text, "\nwant:\n  2") {
			t.Errorf("%d: %q", i, text)
		}
	}
}

// A suite of many failures stays within the room, the first ones whole, and nothing is lost
// without a word.
func TestForModelBounded(t *testing.T) {
	var many []check.Finding
	for i := range 150 {
		many = append(many, parsed(fmt.Sprintf("test/%d.js", i%7), i, fmt.Sprintf("%s: got 0, want %d\n%s", strings.Repeat("a", i), i, strings.Repeat("stack of it\n", 30))))
	}
	texts := ForModel(append(many, check.Finding{More: 30, Source: check.SourceCommand, Text: "… and 30 more findings"}))
	all := strings.Join(texts, "\n\n")
	if len(all) > maxTold+1<<10 {
		t.Errorf("%d bytes", len(all))
	}
	if !strings.Contains(texts[0], "stack of it\nstack of it") || !strings.Contains(all, "a: got 0, want 40") {
		t.Errorf("the first is not whole, or others are not told in a line: %.2000s", all)
	}
	last := texts[len(texts)-1]
	if told := len(texts) - 1; !strings.HasPrefix(last, fmt.Sprintf("… and %d more findings: ", 180-told)) || !strings.Contains(last, " in test/") || !strings.HasSuffix(last, ", and in other files") {
		t.Errorf("%d texts, the last is %q", len(texts), last)
	}
}

// Each file has a finding before "and … more", whichever has most.
func TestForModelEachFile(t *testing.T) {
	var many []check.Finding
	for i := range 200 {
		many = append(many, parsed("a_test.go", i, fmt.Sprintf("case %d: got 0, want %d\n%s", i, i, strings.Repeat("stack of it\n", 30))))
	}
	many = append(many, parsed("b_test.go", 1, "the cause\nwhole"), parsed("c_test.go", 1, "another"))
	all := strings.Join(ForModel(many), "\n\n")
	if !strings.Contains(all, "b_test.go:1: the cause\nwhole") || !strings.Contains(all, "c_test.go:1: another") {
		t.Errorf("%s", all)
	}
}

func TestFalseClaim(t *testing.T) {
	exit2 := []check.Finding{{Source: check.SourceCommand, Text: "The check command failed: exit status 2.\n\n    make\n"}}
	two := []check.Finding{{Source: check.SourceCommand, ID: "a", Text: "x"}, {Source: check.SourceCommand, ID: "b", Text: "y"}, {Source: "outside", Advisory: true}}
	for _, c := range []struct {
		said  string
		found []check.Finding
		want  string
	}{
		{"Fixed the sum. The check now passes.", exit2, `You wrote "The check now passes". hone ran the check after that: it exits with status 2.` + "\n"},
		{"I ran it:\n\nmake\nexit status 0\n", two, `You wrote "exit status 0". hone ran the check after that: it reports 2 findings.` + "\n"},
		{"All 14 tests pass", two, `You wrote "All 14 tests pass". hone ran the check after that: it reports 2 findings.` + "\n"},
		{"Your last session changed a.go, and said: `make` exits with code 0.", exit2, "You wrote \"`make` exits with code 0\". hone ran the check after that: it exits with status 2.\n"},
		{"The tests should pass now.", two, ""},
		{"The check does not pass yet.", two, ""},
		{"12 of 14 tests pass.", two, ""},
		{"The tests of the root package pass. The others cannot read their files.", two, ""},
		{"Both new tests pass, and test_sum passes.", two, ""},
		{"I made the tests fail less; exit status 1.", two, ""},
		{"exit status 01, exit code 10", two, ""},
		{"The check passes.", nil, ""},
		{"The check passes.", []check.Finding{{Source: "proof", Text: "The check passes only with the changes to a_test.go."}}, ""},
		{"The check passes.", []check.Finding{{Source: "pending", Text: "write docs"}}, ""},
		{"", two, ""},
	} {
		if got := FalseClaim(c.said, c.found); got != c.want {
			t.Errorf("%q: got %s", c.said, got)
		}
	}
}

// A directory in which all judges is named, and so is a kind of tests; a file only by itself.
func TestPartOfCheck(t *testing.T) {
	for judging, want := range map[string]string{
		"":                                      "",
		"a/a_test.go b/b_test.go":               "*_test.go",
		"test/a.js test/fixtures/b.js check.sh": "test/, check.sh",
		"lib/test_one.py lib/test_two.py":       "test_*.py",
		"Makefile src/app.spec.ts":              "Makefile, *.spec.ts",
	} {
		var files workspace.Manifest
		for _, name := range append(strings.Fields(judging), "main.go", "a/a.go", "b/b.go", "lib/lib.py", "src/app.ts") {
			files = append(files, workspace.Entry{Path: name})
		}
		if want != "" {
			want = "Part of the check, which must pass without edits of these: " + want + "\n"
		}
		if got := partOfCheck(files, func(path string) bool { return slices.Contains(strings.Fields(judging), path) }); got != want {
			t.Errorf("%s: %q, want %q", judging, got, want)
		}
	}
}
