package secret

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// notShown is what unseen finds, as one regular expression.
var notShown = regexp.MustCompile("(?:\x1b|\\\\u001[bB]|\\\\x1[bB])" +
	`(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\\"\n]{0,500}(?:\x07|\\u0007|\\x07|\x1b\\|\\u001b\\\\)|[PX^_][^\x1b\\"\n]{0,500}(?:\x1b\\|\\u001b\\\\|\\x1b\\)|[()][0-9A-B]|[=>78cDEHMNOZ])` +
	"|(?:\u009b|\\\\u009[bB]|\\\\x9[bB])[0-?]*[ -/]*[@-~]" +
	"|[^\n]?\x08|[\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f\u200b\u2060\ufeff\u00ad]" +
	`|\\(?:u00|x)(?:0[0-8bBcCeEfF]|1[0-9aAc-fC-F]|7[fF])`)

// unseen finds what the regular expression finds in texts of these pieces and of
// arbitrary bytes.
func TestUnseen(t *testing.T) {
	pieces := strings.Split("\x1b|\x1b[|\x1b]|\x1bP|\x1b(|\x1b\\|\\u001b|\\u001B|\\x1b|\\u009b|\u009b|\\x9B|[|]|0;1|m|8|B|\x07|\\u0007|\\x07|\\\\|\\|\x08|\x08\x08|\n|\t|\r|\x00|\x1f|\x7f|\u200b|\u00ad|\ufeff|"+
		"\\u0000|\\u000a|\\x0|\\x01|\\x1C|\\x7f|\\u007F|\\u|\\x|u00|é|\xc2|\xe2\x80|\xff|a|\"| |key", "|")
	r := rand.New(rand.NewPCG(1, 2))
	for range 4_000 {
		var b strings.Builder
		for range r.IntN(9) {
			if r.IntN(8) == 0 {
				b.WriteByte(byte(r.Uint32()))
			} else {
				b.WriteString(pieces[r.IntN(len(pieces))])
			}
		}
		text := b.String()
		want, got := make([]bool, len(text)), make([]bool, len(text))
		for _, gap := range notShown.FindAllStringIndex(text, -1) {
			mark(want, gap[0], gap[1])
		}
		for _, gap := range slices.Collect(unseen(text)) {
			mark(got, gap[0], gap[1])
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q: found %v, want %v", text, slices.Collect(unseen(text)), notShown.FindAllStringIndex(text, -1))
		}
	}
}

// mark marks the bytes of a part.
func mark(marked []bool, from, to int) {
	for i := from; i < to; i++ {
		marked[i] = true
	}
}
