package block_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/block"
)

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

func TestCheck(t *testing.T) {
	for _, row := range []struct {
		name string
		r    block.Reply
		want string // empty: nothing wrong
	}{
		{"files", one("a", "x\r\n", "b", ""), ""},
		{"done", block.Reply{Done: []string{""}}, ""},
		{"slips in text", block.Reply{Done: []string{"^^^\n%%% Note"}}, ""},
		{"empty content", block.Reply{Files: []block.File{{Path: "a", Content: []byte{}}}}, ""},
		{"a path that begins with a caret", one("^^^", ""), ""},
		{"neither", block.Reply{Thoughts: []string{"x"}}, "neither files nor"},
		{"both", block.Reply{Files: files("a", ""), Done: []string{"x"}}, "files and a $$$"},
		{"twice", one("a", "", "./a", ""), `file "./a": the file occurs twice`},
		{"no last line break", one("a", "x"), "end in a line break"},
		{"no path", one("", ""), "path is empty"},
		{"a path called end", one("End", ""), "write ./ before it"},
		{"a path with white space", one("a\u00a0", ""), "white space"},
		{"a path of two lines", one("a\nb", ""), "several lines"},
		{"a marker in a file", one("a", "x\n &&& start\r\ny\n"), `file "a": line 2 is a marker: &&& start`},
		{"a closing in a file", one("a", "^^^end\n"), "line 1 is a marker"},
		{"a path in a thought", block.Reply{Thoughts: []string{"", "x\n^^^a"}}, "&&& block 2: line 2 is a marker: ^^^a"},
		{"a last carriage return", block.Reply{Debug: []string{"x\r"}}, "%%% block 1: the text ends in a carriage return"},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := row.r.Check()
			switch {
			case row.want == "" && err != nil:
				t.Error(err)
			case row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)):
				t.Errorf("error %v, want %q", err, row.want)
			}
		})
	}
}
