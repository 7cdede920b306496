package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/workspace"
)

// edits returns edits from alternating old and new texts.
func edits(texts ...string) []args {
	var list []args
	for i := 0; i < len(texts); i += 2 {
		list = append(list, args{"oldText": texts[i], "newText": texts[i+1]})
	}
	return list
}

func TestEdit(t *testing.T) {
	for _, c := range []struct {
		name, content string
		edits         []args
		want          string
	}{
		{"one", "alpha beta gamma", edits("beta", "B"), "alpha B gamma"},
		{"against the original", "alpha beta", edits("alpha", "beta", "beta", "X"), "beta X"},
		{"in any order", "a b c", edits("c", "3", "a", "1"), "1 b 3"},
		{"neighbours", "ab", edits("a", "1", "b", "2"), "12"},
		{"deletes", "a\nb\nc\n", edits("b\n", ""), "a\nc\n"},
		{"the whole", "abc", edits("abc", ""), ""},
		{"no newline at the end", "a\nb", edits("b", "c"), "a\nc"},
		{"CRLF", "a\r\nb\r\nc\r\n", edits("a\nb", "1\n2\n3"), "1\r\n2\r\n3\r\nc\r\n"},
		{"CRLF written out", "a\r\nb\r\n", edits("a\r\nb\r\n", "1\r\n2\n"), "1\r\n2\r\n"},
		{"CRLF at the end", "a\r\nb", edits("b", "b\nc"), "a\r\nb\r\nc"},
		{"CRLF around", "a\r\nb\r\n", edits("a", "1", "b", "2"), "1\r\n2\r\n"},
		{"the line end alone", "a\r\nb", edits("\n", "\n\n"), "a\r\n\r\nb"},
		{"LF stays", "a\nb\n", edits("a\r\nb", "1\r\n2"), "1\n2\n"},
		{"mixed", "a\r\nb\nc\r\n", edits("a", "a\na", "b", "b\nb"), "a\r\na\r\nb\nb\nc\r\n"},
		{"lone CR", "a\rb\r\r\n", edits("b", "c"), "a\rc\r\r\n"},
		{"BOM", bom + "a\nb\n", edits("a\n", "1\n"), bom + "1\nb\n"},
		{"BOM and CRLF", bom + "a\r\nb", edits("a\nb", "1\n2"), bom + "1\r\n2"},
		{"bytes that are not UTF-8", "caf\xe9 x \xff\xfe\n", edits("x", "y"), "caf\xe9 y \xff\xfe\n"},
		{"nothing is a pattern", "a.*[b]$1", edits(".*[b]$1", `\1$0`), `a\1$0`},
		{"like JSON", `<a href="x">&</a>`, edits("&", "<&>"), `<a href="x"><&></a>`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSession(t, map[string]string{"f": c.content})
			s.succeeds("read", args{"path": "f"})
			r := s.succeeds("edit", args{"path": "f", "edits": c.edits})
			if got := s.file("f"); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if r.Shown["f"] != workspace.Digest([]byte(c.want)) {
				t.Errorf("saw %v", r.Shown)
			}
			if n := len(s.changes); n != 1 {
				t.Errorf("%d changes", n)
			}
		})
	}
}

// TestEditResult: the result says where the replacements are, and does not repeat them.
func TestEditResult(t *testing.T) {
	s := newSession(t, map[string]string{"f<": "a\nb\nc\nd\ne"})
	s.succeeds("read", args{"path": "f<"})
	r := s.succeeds("edit", args{"path": "f<", "edits": edits("e", "5\n6", "b\nc\n", "<2>\n", "d", "")})
	want := "Edited f< (now 5 lines) at line 4-5, 2, 3\n"
	if diff := cmp.Diff(want, r.Text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEditRefuses(t *testing.T) {
	content := "func one() {\n\treturn 1\n}\n\nfunc two() {\n\treturn 2\n}\n\nvar total = 10\n}\n"
	for _, c := range []struct {
		name  string
		edits []args
		words []string
	}{
		{"twice", edits("\treturn", "x"), []string{"oldText must match exactly once; found 2 matches (at lines 2, 6) for: \"\\treturn\"", "Include more"}},
		{"often", edits("}\n", "x"), []string{"found 3 matches (at lines 3, 7, 10)"}},
		{"one of several", edits("total", "sum", "return 3", "x", "func", "x"),
			[]string{"edits[1]: oldText must match exactly once; found 0 matches for: \"return 3\"", "edits[2]: oldText must match exactly once; found 2 matches (at lines 1, 5)", "Nothing was changed"}},
		{"overlap", edits("return 1\n}", "x", "1\n}\n\nfunc", "y"), []string{"edits[0] and edits[1] overlap at line 2"}},
		{"the same twice", edits("total", "x", "total", "y"), []string{"edits[0] and edits[1] overlap at line 9"}},
		{"within", edits("var total = 10", "x", "total", "y"), []string{"edits[0] and edits[1] overlap at line 9"}},
		{"white space", edits("func two() {\n    return 2\n}", "x"),
			[]string{"The same text with different white space is here", "0005: func two() {\n0006: \treturn 2\n0007: }", "Line 2 of oldText is the first different line: \"    return 2\""}},
		{"near", edits("var totals = 11", "x"), []string{"The most similar lines are:\n0009: var total = 10"}},
		{"near, below", edits("}\n\nfunc two() {\n\treturn 3\n}", "x"), []string{"0006: \treturn 2", `Line 4 of oldText is the first different line: "\treturn 3"`}},
		{"line numbers", edits("0005: func two() {\n0006: \treturn 2", "x"), []string{"line numbers"}},
		{"far", edits("SELECT * FROM users WHERE id", "x"), []string{"No lines in the file are similar"}},
		{"white space alone", edits("\t\t\n", "x"), []string{"only white space"}},
		{"no change", edits("total", "total"), []string{"nothing was changed"}},
		{"too long to repeat", edits(strings.Repeat("zq", 1<<19), "x"), []string{"found 0 matches"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSession(t, map[string]string{"f": content})
			s.succeeds("read", args{"path": "f"})
			s.fails("edit", args{"path": "f", "edits": c.edits}, c.words...)
			if got := s.file("f"); got != content {
				t.Errorf("file = %q", got)
			}
			if last := s.outputs[1]; len(last) > 3000 {
				t.Errorf("%d bytes", len(last))
			}
		})
	}
}

// A text that looks the same as one of the file is not found; the error says which code
// points differ.
func TestEditLooksTheSame(t *testing.T) {
	for _, c := range []struct{ content, old, want string }{
		{"a\ncafe\u0301\n", "caf\u00e9", `Line 2 of the file looks the same, but has "é" (U+0065 U+0301) where oldText has "é" (U+00E9)`},
		{"caf\u00e9\n", "cafe\u0301", `has "é" (U+00E9) where oldText has "é" (U+0065 U+0301)`},
		{"a\u200bb\n", "ab", "(U+200B U+0062) where oldText has \"b\" (U+0062)"},
		{"ab\n", "a\ufeffb", "has \"b\" (U+0062) where oldText has"},
		{"x\u00a0= 1\n", "x = 1", "(U+00A0) where oldText has \" \" (U+0020)"},
		{"it\u2019s\n", "it's", "(U+2019)"},
	} {
		s := newSession(t, map[string]string{"f": c.content})
		s.succeeds("read", args{"path": "f"})
		s.fails("edit", args{"path": "f", "edits": edits(c.old, "x")})
		if got := s.outputs[1]; !strings.Contains(got, c.want) {
			t.Errorf("%q in %q: %s", c.old, c.content, got)
		}
	}
}

// Rulings G4, G5 and G8.
func TestEditRefusesFiles(t *testing.T) {
	s := newSession(t, map[string]string{"a.txt": "a\n", "fixed.txt": "a\n", ".env": "a\n", "keys.txt": awsKey})
	try := func(p string, words ...string) {
		t.Helper()
		s.fails("edit", args{"path": p, "edits": edits("a", "b")}, words...)
	}
	try("a.txt", "a.txt has not been read in this session; read it first")
	s.succeeds("grep", args{"pattern": "a"})
	try("a.txt", "has not been read")
	s.succeeds("read", args{"path": "a.txt"})
	s.put("a.txt", "a a\n")
	try("a.txt", "a.txt has changed since it was read; read it again")
	s.succeeds("read", args{"path": "fixed.txt"})
	try("fixed.txt", "fixed.txt was not changed: this file may not be changed here")
	try("none.txt", "file not found")
	try("../a.txt", `".." is not allowed`)
	try("/etc/hosts", "outside the working directory")
	// The similar lines of a file that was not read are not shown.
	s.fails("edit", args{"path": "keys.txt", "edits": edits("aws_key = AKIA", "b")}, "has not been read")
	lacks(t, strings.Join(s.outputs, "\n"), "AKIA")
	s.succeeds("write", args{"path": "new.txt", "content": "a\n"})
	s.succeeds("edit", args{"path": "new.txt", "edits": edits("a", "b")})
	s.succeeds("edit", args{"path": "new.txt", "edits": edits("b", "c")})
	if got := s.file("new.txt"); got != "c\n" {
		t.Errorf("%q", got)
	}
	r, err := Edit(s.tree, nil, s.apply).Run(t.Context(), Input{Args: json.RawMessage(`{"path":"new.txt","edits":[{"oldText":"c","newText":"d"}]}`)})
	if err != nil || !strings.Contains(r.Text, "has not been read") {
		t.Errorf("without a session: %+v, %v", r, err)
	}
}

// TestEditTold checks that the exact text of a finding or a result of grep can be replaced
// without reading the file, and nothing else of it.
func TestEditTold(t *testing.T) {
	const text = "package a\r\n\r\nvar first = 1\r\nvar second = 2\r\n"
	s := newSession(t, map[string]string{"a.go": text, "fixed.txt": "a long line\n", ".env": "TOKEN=abcdefgh\n", "keys.txt": awsKey})
	s.fails("edit", args{"path": "a.go", "edits": edits("var first = 1", "var first = 3")}, "has not been read")
	s.told = s.succeeds("grep", args{"pattern": "var first"}).Text
	s.fails("edit", args{"path": "a.go", "edits": edits("var first = 1\nvar second = 2", "x")}, "has not been read")
	s.fails("edit", args{"path": "a.go", "edits": edits("first", "x")}, "has not been read")
	if r := s.succeeds("edit", args{"path": "a.go", "edits": edits("var first = 1", "var first = 3")}); r.Shown != nil {
		t.Errorf("the file counts as read: %v", r.Shown)
	}
	s.fails("write", args{"path": "a.go", "content": "package a\n"}, "were not shown to you")
	s.fails("edit", args{"path": "a.go", "edits": edits("var first = 1", "var first = 4")}, "has not been read")
	s.told = "a.go:3: x\n  var first = 3\n  var second = 2\nfixed.txt: a long line\n.env: TOKEN=abcdefgh\nkeys.txt " + awsKey
	s.succeeds("edit", args{"path": "a.go", "edits": edits("var first = 3\nvar second = 2", "var both = 4")})
	if got := s.file("a.go"); got != "package a\r\n\r\nvar both = 4\r\n" {
		t.Errorf("%q", got)
	}
	s.fails("edit", args{"path": "fixed.txt", "edits": edits("a long line", "b")}, "may not be changed here")
	s.fails("edit", args{"path": ".env", "edits": edits("TOKEN=abcdefgh", "b")}, "has not been read")
	s.fails("edit", args{"path": "keys.txt", "edits": edits(strings.TrimSpace(awsKey), "b")}, "has not been read")
}

// An interrupted call that runs again after its change was made computes the
// same change.
func TestEditRunsAgain(t *testing.T) {
	s := newSession(t, map[string]string{"f": "a\nb\n"})
	s.succeeds("read", args{"path": "f"})
	before := s.seen["f"]
	call := args{"path": "f", "edits": edits("a", "a\na", "b", "a")}
	first := s.succeeds("edit", call)
	s.seen["f"] = before
	s.original = func(p string) ([]byte, bool) { return []byte("a\nb\n"), p == "f" }
	again := s.call("edit", call)
	// The tree already has these contents; an engine has recorded the verdict.
	contains(t, again.Text, "nothing was changed")
	if diff := cmp.Diff(s.changes[0], s.changes[1]); diff != "" {
		t.Error(diff)
	}
	if s.file("f") != "a\na\na\n" || first.Failed {
		t.Error(s.file("f"), first)
	}
}

// In a file without carriage returns, edits have the same result as a simple
// replacement. In every file, the bytes between the edits do not change.
func FuzzEdit(f *testing.F) {
	f.Add("alpha beta", "alpha", "beta", "beta", "X")
	f.Add("a\r\nb\r\nc", "a\nb", "1\n2", "c", "\n")
	f.Add(bom+"x\r\ny\nz", "x\n", "", "z", "zz\r\n")
	f.Add("aaa", "aa", "b", "a", "c")
	f.Add("\r\r\n\n", "\n", "x", "\r", "y")
	f.Add("caf\xe9\n", "caf", "k", "\n", "\xff")
	f.Fuzz(func(t *testing.T, content, old1, new1, old2, new2 string) {
		if old1 == "" || old2 == "" {
			t.Skip()
		}
		list := []replacement{{old1, new1}, {old2, new2}}
		places, fault := place([]byte(content), list)
		if (fault == "") != (len(places) == 2) {
			t.Fatalf("%d places and fault %q", len(places), fault)
		}
		if !strings.Contains(content+old1+old2+new1+new2, "\r") {
			wantSimpleResult(t, strings.TrimPrefix(content, bom), list, places, content)
		}
		if fault == "" {
			wantRestUnchanged(t, content, list, places)
		}
	})
}

// wantSimpleResult compares with a simple replacement in a text without carriage
// returns.
func wantSimpleResult(t *testing.T, text string, list []replacement, places []placement, content string) {
	one, two := occurrences(text, list[0].Old), occurrences(text, list[1].Old)
	apart := len(one) == 1 && len(two) == 1 && (one[0]+len(list[0].Old) <= two[0] || two[0]+len(list[1].Old) <= one[0])
	if apart != (places != nil) {
		t.Fatalf("%q at %v, %q at %v: placed %v", list[0].Old, one, list[1].Old, two, places != nil)
	}
	if !apart {
		return
	}
	first, second := list[0], list[1]
	if two[0] < one[0] {
		one, two, first, second = two, one, second, first
	}
	want := content[:len(content)-len(text)] + text[:one[0]] + first.New + text[one[0]+len(first.Old):two[0]] + second.New + text[two[0]+len(second.Old):]
	if got := applyPlaces([]byte(content), places); string(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// occurrences returns all offsets of old by trying each.
func occurrences(text, old string) (at []int) {
	for i := range len(text) {
		if strings.HasPrefix(text[i:], old) {
			at = append(at, i)
		}
	}
	return at
}

// wantRestUnchanged checks that only the edits' places change.
func wantRestUnchanged(t *testing.T, content string, list []replacement, places []placement) {
	at, rest := 0, applyPlaces([]byte(content), places)
	for _, p := range places {
		gap := []byte(content[at:p.start])
		if !bytes.HasPrefix(rest, gap) || !bytes.HasPrefix(rest[len(gap):], p.text) {
			t.Fatalf("%q does not continue with %q and %q", rest, gap, p.text)
		}
		rest, at = rest[len(gap)+len(p.text):], p.end
		if got := normalizeNewlines(content[p.start:p.end]); got != normalizeNewlines(list[p.index].Old) {
			t.Errorf("%q is at the place of %q", got, list[p.index].Old)
		}
		if want := list[p.index].New; strings.ReplaceAll(string(p.text), "\r", "") != strings.ReplaceAll(want, "\r", "") {
			t.Errorf("inserted %q, want %q", p.text, want)
		}
		if p.start > 0 && p.start < len(content) && content[p.start-1:p.start+1] == "\r\n" {
			t.Errorf("a line end is split at %d of %q", p.start, content)
		}
	}
	if string(rest) != content[at:] {
		t.Errorf("rest = %q, want %q", rest, content[at:])
	}
	if strings.HasPrefix(content, bom) && (len(places) > 0 && places[0].start < len(bom)) {
		t.Error("the byte order mark is part of an edit")
	}
}

func FuzzNearest(f *testing.F) {
	f.Add("a\nb\nc", "b\nd")
	f.Add("", "x")
	f.Add("\n\n\nfoo\n", "\n\nfoo bar\n\n")
	f.Add("x\x00y", "\x00")
	f.Fuzz(func(t *testing.T, content, old string) {
		if text := viewOf([]byte(content)).nearest(normalizeNewlines(old)); text == "" || len(text) > 8000 {
			t.Errorf("%d bytes", len(text))
		}
	})
}

func BenchmarkEdit(b *testing.B) {
	var text strings.Builder
	for i := 0; text.Len() < 10<<20; i++ {
		fmt.Fprintf(&text, "\tvalue%d := compute(input%d, %d)\n", i, i*7, i%100)
	}
	code := text.String()
	hostile := strings.Repeat("ab\n", 10<<20/3)
	for _, c := range []struct{ name, content, old string }{
		{"one match", code, "value77777 := compute"},
		{"CRLF", strings.ReplaceAll(code, "\n", "\r\n"), "value77777 := compute"},
		{"no match", code, strings.Repeat("\tvalue := compute(inputs, 1)\n", 24)},
		{"short lines", hostile, strings.Repeat("ab\nac\n", 12)},
		{"a long needle", strings.Repeat("a", 10<<20), strings.Repeat("a", 1<<20) + "b"},
		{"overlapping matches", strings.Repeat("a", 10<<20), strings.Repeat("a", 1<<20)},
		{"empty lines", strings.Repeat("\n", 10<<20), strings.Repeat("\n", 1000) + "a"},
		{"one line", strings.Repeat("value := ", 1<<20), "value = " + strings.Repeat("x", 1000)},
	} {
		b.Run(c.name, func(b *testing.B) {
			content := []byte(c.content)
			b.SetBytes(int64(len(content)))
			for b.Loop() {
				if places, fault := place(content, []replacement{{c.old, "x"}}); (places == nil) == (fault == "") {
					b.Fatal(fault)
				}
			}
		})
	}
}
