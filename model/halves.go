package model

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"

	"hone/internal/lazyregexp"
)

// A character beyond the first 65536 is two escapes in JSON, its halves, and gateways cut
// texts between them: one event ends with \ud83d, the next one begins with \ude00. The
// decoder would silently replace each by U+FFFD. An [Exchange] replaces a half that stands
// alone by a mark, a character of a plane for private use; [Reply.Complete] joins the marks.
const firstMark = 0x100000

// escapes finds the escapes of a JSON text. Two halves in order are one.
var escapes = lazyregexp.New(`(?is)\\(?:u(?:d[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|[0-9a-f]{4})|.)`)

// markHalves returns a JSON text with a mark for each half that stands alone.
func markHalves(data []byte) []byte {
	if !bytes.Contains(data, []byte(`\ud`)) && !bytes.Contains(data, []byte(`\uD`)) {
		return data
	}
	return []byte(escapes.ReplaceAllStringFunc(string(data), func(escape string) string {
		n, err := strconv.ParseUint(escape[2:], 16, 16)
		if escape[1] != 'u' || err != nil || !utf16.IsSurrogate(rune(n)) {
			return escape
		}
		return string(firstMark + rune(n))
	}))
}

var marks = lazyregexp.New(`[\x{10D800}-\x{10DBFF}][\x{10DC00}-\x{10DFFF}]|[\x{10D800}-\x{10DFFF}]`)

// joinHalves joins the marks that stand together. One that stands alone becomes the escape
// that it was, and ok is false.
func joinHalves(s string) (joined string, ok bool) {
	if !strings.Contains(s, "\xf4\x8d") { // a mark's first bytes
		return s, true
	}
	ok = true
	joined = marks.ReplaceAllStringFunc(s, func(found string) string {
		r := []rune(found)
		if len(r) == 2 {
			return string(utf16.DecodeRune(r[0]-firstMark, r[1]-firstMark))
		}
		ok = false
		return fmt.Sprintf(`\u%04x`, r[0]-firstMark)
	})
	return joined, ok
}
