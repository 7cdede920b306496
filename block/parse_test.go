package block_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/block"
)

// row is a reply, what Parse reads from it and, as "line|marker|words", its
// problems.
type row struct {
	name     string
	text     string
	want     block.Reply
	problems []string
}

// files returns files from pairs of path and content.
func files(pairs ...string) []block.File {
	var all []block.File
	for i := 0; i < len(pairs); i += 2 {
		f := block.File{Path: pairs[i]}
		if pairs[i+1] != "" {
			f.Content = []byte(pairs[i+1])
		}
		all = append(all, f)
	}
	return all
}

func one(pairs ...string) block.Reply { return block.Reply{Files: files(pairs...)} }

func run(t *testing.T, rows []row) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got, problems := block.Parse(row.text)
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("reply (-want +got):\n%s", diff)
			}
			if len(problems) != len(row.problems) {
				t.Fatalf("problems %v, want %q", problems, row.problems)
			}
			for i, p := range problems {
				want := strings.SplitN(row.problems[i], "|", 3)
				if fmt.Sprint(p.Line) != want[0] || p.Marker != want[1] || !strings.Contains(p.Text, want[2]) {
					t.Errorf("problem %d is %+v, want %q", i, p, want)
				}
			}
		})
	}
}

// Ruling C4, and the examples of the seed.
func TestBlocks(t *testing.T) {
	run(t, []row{
		{
			name: "all four kinds but $$$", text: "&&&start\nhello\n&&&end\n%%%start\nmind x\n%%%end\n^^^src/main.rs\nfn main() {\n}\n^^^end\n",
			want: block.Reply{Thoughts: []string{"hello"}, Debug: []string{"mind x"}, Files: files("src/main.rs", "fn main() {\n}\n")},
		},
		{name: "$$$ alone", text: "$$$start\nall is well\n$$$end\n", want: block.Reply{Done: []string{"all is well"}}},
		{
			name: "several of each kind, in any order", text: "^^^a\n1\n^^^end\n&&&start\nx\n&&&end\n^^^b\n2\n^^^end\n&&&start\ny\n&&&end\n",
			want: block.Reply{Thoughts: []string{"x", "y"}, Files: files("a", "1\n", "b", "2\n")},
		},
		{name: "two $$$", text: "$$$start\na\n$$$end\n$$$start\nb\n$$$end\n", want: block.Reply{Done: []string{"a", "b"}}},
		{name: "an empty block is an empty file", text: "^^^a\n^^^end\n", want: one("a", "")},
		{name: "one empty line", text: "^^^a\n\n^^^end\n", want: one("a", "\n")},
		{name: "empty lines at both ends stay", text: "^^^a\n\nx\n\n\n^^^end\n", want: one("a", "\nx\n\n\n")},
		{name: "white space stays", text: "^^^a\n\tx  \n  \n^^^end\n", want: one("a", "\tx  \n  \n")},
		{name: "carriage returns stay in contents", text: "^^^a\r\nx\r\ny\r\n^^^end\r\n", want: one("a", "x\r\ny\r\n")},
		{name: "bytes that are not UTF-8 stay", text: "^^^a\n\xff\x00\xfe\n^^^end\n", want: one("a", "\xff\x00\xfe\n")},
		{name: "a byte order mark in a file stays", text: "^^^a\n\ufeffx\n^^^end\n", want: one("a", "\ufeffx\n")},
		{name: "a file that begins with another's end", text: "^^^a\nx\n^^^end\n^^^b\ny\n^^^end", want: one("a", "x\n", "b", "y\n")},
		{name: "text without lines", text: "$$$start\n$$$end\n", want: block.Reply{Done: []string{""}}},
		{name: "text of several lines", text: "$$$start\n a\n\nb \n\n$$$end\n", want: block.Reply{Done: []string{" a\n\nb \n"}}},
		{name: "text loses its last line break only", text: "$$$start\r\na\r\nb\r\n$$$end\r\n", want: block.Reply{Done: []string{"a\r\nb"}}},
	})
}

// Ruling C3: what counts as a marker, and what is ignored.
func TestMarkers(t *testing.T) {
	run(t, []row{
		{name: "spaces after the sign", text: "^^^ a \n^^^ end \n", want: one("a", "")},
		{name: "tabs", text: "\t^^^\ta\t\nx\n\t^^^\tend\t\n", want: one("a", "x\n")},
		{name: "indented", text: "   ^^^a\nx\n   ^^^end\n", want: one("a", "x\n")},
		{name: "space of other kinds", text: "\u00a0$$$\u2003start\u00a0\nx\n\v$$$end\f\n", want: block.Reply{Done: []string{"x"}}},
		{name: "no last newline", text: "^^^a\nx\n^^^end", want: one("a", "x\n")},
		{name: "CRLF in markers only", text: "^^^a\r\nx\n^^^end\r\n", want: one("a", "x\n")},
		{name: "a byte order mark first", text: "\ufeff^^^a\nx\n^^^end\n", want: one("a", "x\n")},
		{name: "start and end in capitals", text: "$$$START\nx\n$$$End\n", want: block.Reply{Done: []string{"x"}}},
		{name: "a file closed in capitals", text: "^^^a\nx\n^^^END\n", want: one("a", "x\n")},
		{name: "prose around", text: "Here it is:\n\n^^^a\nx\n^^^end\n\nDone.\n", want: one("a", "x\n")},
		{name: "a Markdown fence around all", text: "```\n^^^a\nx\n^^^end\n```\n", want: one("a", "x\n")},
		{name: "a Markdown fence inside is content", text: "^^^a\n```\nx\n```\n^^^end\n", want: one("a", "```\nx\n```\n")},
		{name: "markers in a sentence", text: "I use ^^^a and ^^^end here, &&&start too.\n^^^a\nx ^^^end\n^^^end\n", want: one("a", "x ^^^end\n")},
		{name: "prose after start", text: "$$$start\nx\n$$$end\n&&&start here\n", want: block.Reply{Done: []string{"x"}}},
		{name: "rules and underlines outside", text: "&&&&\n%%%%%%\n^^^^^^\n$$$$end\n^^^a\n^^^end\n", want: one("a", "")},
		{name: "an underline in a file", text: "^^^a\n  ^^^^^^ not found\n^^^end\n", want: one("a", "  ^^^^^^ not found\n")},
		{name: "comments of Erlang in a file", text: "^^^a.erl\n%%%\n%%% Module\n%%% does a thing\n^^^end\n", want: one("a.erl", "%%%\n%%% Module\n%%% does a thing\n")},
		{name: "bare signs inside their own kind", text: "%%%start\n%%%\n%%%note\n%%%end\n^^^a\n^^^\n^^^end\n", want: block.Reply{Debug: []string{"%%%\n%%%note"}, Files: files("a", "^^^\n")}},
		{name: "three carets under code in a thought", text: "&&&start\nfoo bar\n    ^^^\n&&&end\n^^^a\n^^^end\n", want: block.Reply{Thoughts: []string{"foo bar\n    ^^^"}, Files: files("a", "")}},
		{name: "bare signs in files and a real block later", text: "^^^a\n%%%\n^^^end\n%%%start\nx\n%%%end\n", want: block.Reply{Debug: []string{"x"}, Files: files("a", "%%%\n")}},
		{name: "two signs, other signs", text: "&&start\n###start\n```\n^^^a\n^^^end\n", want: one("a", "")},
		{name: "a carriage return alone is no line break", text: "^^^a\n^^^b\r^^^c\n^^^end\n^^^end\n", want: one("b\r^^^c", ""), problems: []string{"1|^^^a|before line 2"}},
	})
}

func TestPaths(t *testing.T) {
	run(t, []row{
		{name: "with spaces", text: "^^^ a b/c d \n^^^end\n", want: one("a b/c d", "")},
		{name: "that begins with a caret", text: "^^^ ^a\n^^^end\n", want: one("^a", "")},
		{name: "called start", text: "^^^start\n^^^end\n", want: one("start", "")},
		{name: "that begins with end", text: "^^^end.txt\n^^^end\n^^^end of line\n^^^end\n", want: one("end.txt", "", "end of line", "")},
		{name: "called end", text: "^^^./end\n^^^end\n", want: one("./end", "")},
		{name: "as written, forbidden or not", text: "^^^../x\n^^^end\n^^^.git/config\n^^^end\n^^^/etc/passwd\n^^^end\n", want: one("../x", "", ".git/config", "", "/etc/passwd", "")},
		{name: "twice", text: "^^^a\n1\n^^^end\n^^^a\n2\n^^^end\n", want: one("a", "1\n", "a", "2\n"), problems: []string{"4|^^^a|same file as in line 1"}},
		{name: "twice after cleaning", text: "^^^src/a\n^^^end\n^^^./src//a\n^^^end\n^^^src/./a\n^^^end\n", want: one("src/a", "", "./src//a", "", "src/./a", ""), problems: []string{"3|^^^./src//a|as in line 1", "5|^^^src/./a|as in line 1"}},
		{name: "twice and refused", text: "^^^../x\n^^^end\n^^^a/../../x\n^^^end\n", want: one("../x", "", "a/../../x", ""), problems: []string{"3|^^^a/../../x|as in line 1"}},
		{name: "twice, once as a directory", text: "^^^a\n^^^end\n^^^a/\n^^^end\n", want: one("a", "", "a/", ""), problems: []string{"3|^^^a/|as in line 1"}},
		{name: "not told twice where a block is not closed", text: "^^^a\n1\n^^^a\n2\n^^^end\n", want: one("a", "2\n"), problems: []string{"1|^^^a|before line 3 (^^^a) opens another"}},
	})
}

// Ruling C6.
func TestWhole(t *testing.T) {
	const neither, both = "0||neither a file nor", "0|$$$|but also files"
	run(t, []row{
		{name: "nothing", text: "", problems: []string{neither}},
		{name: "prose", text: "I am done.\n", problems: []string{neither}},
		{name: "thoughts alone", text: "&&&start\nx\n&&&end\n", want: block.Reply{Thoughts: []string{"x"}}, problems: []string{neither}},
		{name: "neither, and another problem", text: "&&&start\nx\n", problems: []string{neither, "1|&&&start|not closed"}},
		{name: "neither, with all on one line", text: "$$$start fine $$$end", problems: []string{neither}},
		{name: "both", text: "$$$start\nx\n$$$end\n^^^a\n^^^end\n", want: block.Reply{Files: files("a", ""), Done: []string{"x"}}, problems: []string{both}},
		{name: "both, one of them not closed", text: "$$$start\nx\n$$$end\n^^^a\n", want: block.Reply{Done: []string{"x"}}, problems: []string{both, "4|^^^a|not closed"}},
		{name: "a file that was tried", text: "^^^a\nx\n", problems: []string{"1|^^^a|not closed"}},
		{name: "a file inside a thought", text: "&&&start\n^^^a\n^^^end\n&&&end\n", problems: []string{"2|^^^a|inside the block of lines 1 to 4 (&&&start)"}},
		{name: "$$$ inside a file is not both", text: "^^^a\n$$$start\n$$$end\n^^^end\n", problems: []string{"2|$$$start|inside the block of lines 1 to 4 (^^^a)"}},
	})
}

func TestUnclosed(t *testing.T) {
	run(t, []row{
		{name: "each kind", text: "^^^a\n&&&start\n%%%start\n", problems: []string{"1|^^^a|write ^^^end", "2|&&&start|write &&&end", "3|%%%start|write %%%end"}},
		{
			name: "before other blocks, which are read", text: "&&&start\nx\n^^^a\n1\n^^^end\n%%%start\ny\n%%%end\n",
			want: block.Reply{Debug: []string{"y"}, Files: files("a", "1\n")}, problems: []string{"1|&&&start|not closed"},
		},
		{name: "before one of its kind", text: "^^^a\n1\n^^^b\n2\n^^^end\n", want: one("b", "2\n"), problems: []string{"1|^^^a|is not closed before line 3 (^^^b) opens another; blocks must not nest: write ^^^end alone on a line before"}},
		{name: "once for all that follow", text: "^^^a\n1\n^^^b\n2\n^^^end\n^^^c\n3\n^^^end\n", want: one("b", "2\n", "c", "3\n"), problems: []string{"1|^^^a|line 3"}},
		{name: "none of three is closed", text: "^^^a\n^^^b\n^^^c\n", problems: []string{"1|^^^a|line 2", "2|^^^b|line 3", "3|^^^c|is not closed; write"}},
		{name: "closed by bare signs", text: "^^^a\nx\n^^^\n", problems: []string{"1|^^^a|not closed; write"}},
		{name: "closed by bare signs, before another", text: "^^^a\n^^^\n^^^b\n^^^end\n", want: one("b", ""), problems: []string{"1|^^^a|is not closed before line 3"}},
		{name: "no path", text: "^^^\nx\n^^^end\n", problems: []string{"3|^^^end|not opened"}},
		{name: "another word", text: "&&&begin\nx\n&&&end\n^^^a\n^^^end\n", want: one("a", ""), problems: []string{"3|&&&end|not opened"}},
		{name: "not opened", text: "^^^a\n^^^end\n&&&end\n", want: one("a", ""), problems: []string{"3|&&&end|not opened; &&&start must be alone"}},
		{name: "a file that was not opened", text: "x\n^^^end\n", problems: []string{"2|^^^end|not opened; ^^^ and the file's path must"}},
		{name: "closed twice", text: "^^^a\n^^^end\n^^^end\n", want: one("a", ""), problems: []string{"3|^^^end|not opened"}},
		{name: "opened with text on its line", text: "&&&start I think\n&&&end\n^^^a\n^^^end\n", want: one("a", ""), problems: []string{"2|&&&end|not opened"}},
	})
}

func TestNested(t *testing.T) {
	run(t, []row{
		{name: "in its own kind", text: "&&&start\na\n&&&start\nb\n&&&end\nc\n&&&end\n^^^f\n^^^end\n", want: block.Reply{Thoughts: []string{"b"}, Files: files("f", "")}, problems: []string{"1|&&&start|before line 3"}},
		{name: "a file in a file", text: "^^^doc.md\n^^^src/main.rs\nfn\n^^^end\n^^^end\n", want: one("src/main.rs", "fn\n"), problems: []string{"1|^^^doc.md|before line 2 (^^^src/main.rs)"}},
		{name: "two files in a file", text: "^^^doc\n^^^a\n^^^end\n^^^b\n^^^end\n^^^end\n", want: one("a", "", "b", ""), problems: []string{"1|^^^doc|before line 2 (^^^a)"}},
		{
			name: "a file that documents all of it", text: "^^^doc.md\n&&&start\nx\n&&&end\n%%%start\n%%%end\n$$$start\n$$$end\n^^^end\n",
			problems: []string{"2|&&&start|lines 1 to 9", "5|%%%start|lines 1 to 9", "7|$$$start|lines 1 to 9"},
		},
		{name: "a closing of another kind", text: "^^^a\n%%%end\n^^^end\n", problems: []string{"2|%%%end|inside the block of lines 1 to 3 (^^^a)"}},
		{name: "an opening of another kind", text: "^^^a\n&&&start\n^^^end\n", problems: []string{"2|&&&start|inside the block of lines 1 to 3 (^^^a)"}},
		{
			name: "an opening of another kind, which is used later", text: "^^^a\n&&&start\n^^^end\n&&&start\nx\n&&&end\n",
			want: block.Reply{Thoughts: []string{"x"}}, problems: []string{"2|&&&start|inside"},
		},
		{name: "overlapping", text: "&&&start\n^^^a\n&&&end\n^^^end\n", problems: []string{"2|^^^a|inside the block of lines 1 to 3 (&&&start)"}},
		{name: "three deep", text: "^^^a\n&&&start\n%%%start\n%%%end\n&&&end\n^^^end\n", problems: []string{"2|&&&start|(^^^a)", "3|%%%start|(^^^a)"}},
		{
			name: "one broken, the others read", text: "^^^a\n&&&start\n&&&end\n^^^end\n^^^b\ny\n^^^end\n&&&start\nx\n&&&end\n",
			want: block.Reply{Thoughts: []string{"x"}, Files: files("b", "y\n")}, problems: []string{"2|&&&start|inside"},
		},
		{name: "an opening that was told covers none", text: "&&&start\n^^^a\n&&&end\n^^^b\n^^^end\n", want: one("b", ""), problems: []string{"2|^^^a|inside"}},
	})
}

func TestProblems(t *testing.T) {
	long := strings.Repeat("é", 100)
	run(t, []row{
		{
			name: "all at once, in the order of lines", text: "%%%end\n^^^a\n^^^end\n^^^a\n^^^end\n&&&x\n&&&end\n$$$start\n",
			want:     one("a", "", "a", ""),
			problems: []string{"0|$$$|but also files", "1|%%%end|not opened", "4|^^^a|same file", "7|&&&end|not opened", "8|$$$start|not closed"},
		},
		{name: "control characters are escaped", text: "^^^a\x1b[31m\n", problems: []string{`1|^^^a\x1b[31m|not closed`}},
		{name: "bytes that are not UTF-8 are escaped", text: "^^^a\xff\n", problems: []string{`1|^^^a\xff|not closed`}},
		{name: "a long path is shortened between characters", text: "^^^" + long + "\n", problems: []string{"1|^^^" + strings.Repeat("é", 58) + "…|not closed"}},
	})
}

func TestProblemsAreCapped(t *testing.T) {
	text := strings.Repeat("^^^a\n^^^end\n", 40) + strings.Repeat("&&&end\n", 60)
	_, problems := block.Parse(text)
	if len(problems) != 51 {
		t.Fatalf("%d problems, want 50 and one for the rest", len(problems))
	}
	want := block.Problem{Text: "and 49 more problems"}
	if diff := cmp.Diff(want, problems[50]); diff != "" {
		t.Errorf("last problem (-want +got):\n%s", diff)
	}
	_, problems = block.Parse("^^^a\n^^^end\n" + strings.Repeat("&&&end\n", 50))
	if len(problems) != 50 || problems[49].Line != 52 {
		t.Errorf("50 problems become %v", problems)
	}
}

func TestProblemString(t *testing.T) {
	for _, row := range []struct {
		p    block.Problem
		want string
	}{
		{block.Problem{Line: 3, Marker: "^^^a", Text: "is not closed"}, "line 3: ^^^a is not closed"},
		{block.Problem{Line: 3, Text: "and 2 more"}, "line 3: and 2 more"},
		{block.Problem{Marker: "$$$", Text: "the reply has both"}, "the reply has both"},
	} {
		if got := row.p.String(); got != row.want {
			t.Errorf("%+v reads %q, want %q", row.p, got, row.want)
		}
	}
}

func TestFormat(t *testing.T) {
	r := block.Reply{
		Thoughts: []string{"hello", ""},
		Debug:    []string{"mind x\n\ty"},
		Files:    files("src/main.rs", "fn main() {\n}\n", "empty", "", "^a", "\n"),
		Done:     []string{"all is well"},
	}
	want := strings.Join([]string{
		"&&&start\nhello\n&&&end\n",
		"&&&start\n&&&end\n",
		"%%%start\nmind x\n\ty\n%%%end\n",
		"^^^src/main.rs\nfn main() {\n}\n^^^end\n",
		"^^^empty\n^^^end\n",
		"^^^ ^a\n\n^^^end\n",
		"$$$start\nall is well\n$$$end\n",
	}, "\n")
	if diff := cmp.Diff(want, block.Format(r)); diff != "" {
		t.Errorf("format (-want +got):\n%s", diff)
	}
	if got, _ := block.Parse(want); !cmp.Equal(r, got) {
		t.Errorf("read back (-want +got):\n%s", cmp.Diff(r, got))
	}
	if got := block.Format(block.Reply{}); got != "" {
		t.Errorf("the zero reply is %q", got)
	}
	if got := block.Format(one("a", "x")); got != "^^^a\nx\n^^^end\n" {
		t.Errorf("a file without a last line break is %q", got)
	}
}

func TestSpans(t *testing.T) {
	const text = "x\n^^^a\none\n^^^end\n^^^b\n&&&start\ntwo\n&&&end\n^^^end\n^^^c\n^^^delete\n^^^d\n"
	var got []string
	for _, s := range block.Spans(text) {
		got = append(got, text[s[0]:s[1]])
	}
	if diff := cmp.Diff([]string{"one\n", ""}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
