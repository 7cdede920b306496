package block

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// vocabulary has lines of every kind, so that each byte of a fuzzer's input can
// be a line: random bytes almost never make a marker.
var vocabulary = strings.Split("&&&start|&&&end|%%%start|%%%end|^^^a|^^^end|$$$start|$$$end|x||^^^./a|^^^b|&&&|%%% note|^^^|  ^^^ end \r|$$$begin|^^^^", "|")

// FuzzLines checks texts made mostly of markers as FuzzParse checks any text.
// Parse must find a problem exactly where a reader finds one who tracks only
// one open block at a time.
func FuzzLines(f *testing.F) {
	f.Add([]byte{4, 8, 5, 0, 8, 1})
	f.Add([]byte{4, 0, 5, 4, 1, 5, 7})
	f.Add([]byte{0, 4, 1, 11, 5, 12, 14, 5})
	f.Fuzz(func(t *testing.T, choice []byte) {
		var lines []string
		for _, c := range choice {
			lines = append(lines, vocabulary[int(c)%len(vocabulary)])
		}
		checkReply(t, lines)
	})
}

// TestShortReplies checks all replies of up to four lines.
func TestShortReplies(t *testing.T) {
	var extend func(lines []string)
	extend = func(lines []string) {
		checkReply(t, lines)
		if len(lines) == 4 {
			return
		}
		for _, line := range vocabulary {
			extend(append(lines, line))
		}
	}
	extend(make([]string, 0, 4))
}

// checkReply checks that a reply is read as it should be.
func checkReply(t *testing.T, lines []string) {
	t.Helper()
	text := strings.Join(lines, "\n")
	r, problems := Parse(text)
	checkProblems(t, text, problems)
	if again, _ := Parse(Format(r)); !reflect.DeepEqual(r, again) {
		t.Errorf("%q written and read again (-first +second):\n%s", text, cmp.Diff(r, again))
	}
	if want := plain(lines); want != (len(problems) == 0) {
		t.Errorf("%q is right: %t; problems %v", text, want, problems)
	}
}

// plain reports whether a reply has no problems.
func plain(lines []string) bool {
	const outside = kinds
	open := outside
	paths := make(map[string]bool)
	reasons := 0
	for _, line := range lines {
		k, r := classify(line)
		switch {
		case r == text:
		case r == closing && open == k:
			open = outside
		case r == opening && open == outside:
			open = k
			if k == done {
				reasons++
			}
			if k == file && paths[clean(marker{text: line}.word())] {
				return false
			}
			if k == file {
				paths[clean(marker{text: line}.word())] = true
			}
		default:
			return false
		}
	}
	return open == outside && (len(paths) > 0) != (reasons > 0)
}
