package reply

import (
	"strings"
	"testing"
)

// BenchmarkHostile shows that no text costs much more than its length.
func BenchmarkHostile(b *testing.B) {
	fill := func(s string) string { return strings.Repeat(s, 1<<17/len(s)) }
	known := func(key string) bool { return key == "delete" }
	for name, text := range map[string]string{
		"braces": fill("{"), "objects": fill(`{"a":`), "nested": fill(`{"a":`) + "1" + strings.Repeat("}", 1<<17/5), "known": fill(`{"delete":`), "broken": fill(`{"delete":x`),
		"lists": fill(`{"delete":[`), "tags": fill("</think>"), "tags in one": `{"delete":"` + fill("</think>") + `"}`, "commas": `{"delete":[` + fill(", "), "ellipses": fill("...\n"), "comments": fill("# ... \n"), "remarks": fill("# a b\n"), "single remarks": fill("# a b\n\nx\n"),
		"numbers": fill("0001: \n"), "spaces": fill(" "), "dots": fill("."), "dashes": fill("- "), "entities": fill("&lt;"), "path": fill("a ("),
	} {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				_, _ = Object(text, known)
				_ = CheckContent("a.py", []byte("a\nb\nc\nd\n"+text[:1<<15]), []byte(text))
			}
		})
	}
}
