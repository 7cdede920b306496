package block_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/block"
)

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
