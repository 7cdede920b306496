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
