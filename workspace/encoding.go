package workspace

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"hone/internal/lazyregexp"
)

const convert = "; write ASCII only, with escapes if the language has them, and change whole words. Only the user can convert the file to UTF-8"

// encodingDenial returns why the new contents would spoil a file that is not UTF-8, or an
// empty string. A model's text is UTF-8: in such a file it would be other characters, and a
// text that a model takes for a character may be half of another one.
//
// The encoding of a file is not recorded anywhere. So a change may bring no character of
// UTF-8, and in every encoding that has characters of several bytes and in which the old
// contents are valid, the new ones must be valid and bring no such character.
func encodingDenial(old, content []byte) string {
	if order := utf16Order(old); order != "" {
		unit := func([]byte) int { return 2 }
		if _, other := brings(old, content, unit, false); other || utf16Order(content) != order || len(content)%2 != 0 {
			return "the file is in " + order + ", in which hone cannot write text. Only the user can convert the file to UTF-8"
		}
		return ""
	}
	name := declared(old)
	if utf8.Valid(old) && name == "" {
		return ""
	}
	if r, ok := brings(old, content, utf8Length, true); ok {
		return fmt.Sprintf("the file is not UTF-8%s, and %q (%U) would be written as UTF-8", name, r, []rune(r)[0]) + convert
	}
	if utf8.Valid(old) {
		return ""
	}
	for _, length := range []func([]byte) int{shiftJIS, eastAsian} {
		if !validIn(old, length) {
			continue
		}
		if _, cut := brings(old, content, length, false); cut || !validIn(content, length) {
			return "the file is not UTF-8" + name + ", and the change would cut a character of several bytes in two, or make another one of its bytes" + convert
		}
	}
	return ""
}

// declaration matches a declared encoding in the first lines of a file: Python, Emacs and
// Vim, XML, HTML and CSS.
var declaration = lazyregexp.New(`(?i)\b(?:(?:file)?en)?(?:coding|charset)\s*[:=]?\s*["']?([a-z][-\w.]+)`)

// declared returns the encoding that a file declares, in words, unless it is UTF-8 or ASCII.
func declared(content []byte) string {
	head := content
	for n, at := 0, 0; n < 5; n++ {
		end := bytes.IndexByte(content[at:], '\n')
		if end < 0 || at+end > 1024 {
			head = content[:min(len(content), max(at, 256))]
			break
		}
		at += end + 1
		head = content[:at]
	}
	m := declaration.FindStringSubmatch(string(head))
	if m == nil || !legacy.MatchString(m[1]) {
		return ""
	}
	return " but " + m[1]
}

// legacy matches the usual names of encodings that lack most of Unicode's characters.
var legacy = lazyregexp.New(`(?i)^(?:latin-?\d+|iso-?8859-?\d+|(?:windows-?|cp)125\d|cp\d{3,4}|koi8-[ru]|shift[-_]?jis|sjis|euc-?(?:jp|kr|cn|tw)|iso-2022-\w+|gb(?:k|2312|18030)|big5(?:-\w+)?|mac-?roman)$`)

// utf16Order returns the name of the encoding if contents are UTF-16: they have a byte
// order mark, or most of their characters are ASCII.
func utf16Order(b []byte) string {
	switch {
	case bytes.HasPrefix(b, []byte{0xff, 0xfe}):
		return "UTF-16LE"
	case bytes.HasPrefix(b, []byte{0xfe, 0xff}):
		return "UTF-16BE"
	case len(b) < 2 || len(b)%2 != 0:
		return ""
	}
	var zeros, text [2]int // zeros at even and odd places, and characters beside them
	for i, c := range b {
		if other := b[i^1]; c == 0 {
			zeros[i%2]++
			if other >= ' ' || other == '\t' || other == '\n' || other == '\r' {
				text[i%2]++
			}
		}
	}
	switch most := len(b) / 4; {
	case text[1] > most && zeros[0] == 0:
		return "UTF-16LE"
	case text[0] > most && zeros[1] == 0:
		return "UTF-16BE"
	}
	return ""
}

// brings returns a character of several bytes that new contents have and old ones do not;
// with counted, also one that they have more often. length returns the length in bytes of
// the character at the start of a text; 0 if there is none.
func brings(old, content []byte, length func([]byte) int, counted bool) (string, bool) {
	had := map[string]int{}
	each := func(text []byte, visit func(c string) bool) (string, bool) {
		for len(text) > 0 {
			n := min(max(1, length(text)), len(text))
			if n > 1 && !visit(string(text[:n])) {
				return string(text[:n]), true
			}
			text = text[n:]
		}
		return "", false
	}
	each(old, func(c string) bool { had[c]++; return true })
	return each(content, func(c string) bool {
		was := had[c]
		if counted {
			had[c]--
		}
		return was > 0
	})
}

func validIn(text []byte, length func([]byte) int) bool {
	for len(text) > 0 {
		n := length(text)
		if n == 0 {
			return false
		}
		text = text[n:]
	}
	return true
}

func utf8Length(text []byte) int {
	r, n := utf8.DecodeRune(text)
	if r == utf8.RuneError && n == 1 {
		return 0
	}
	return n
}

func within(c, from, to byte) bool { return from <= c && c <= to }

// shiftJIS is the length of a character in Shift JIS.
func shiftJIS(t []byte) int {
	switch lead := t[0]; {
	case lead < 0x80 || within(lead, 0xa1, 0xdf):
		return 1
	case len(t) > 1 && (within(lead, 0x81, 0x9f) || within(lead, 0xe0, 0xfc)) && t[1] >= 0x40 && t[1] != 0x7f && t[1] <= 0xfc:
		return 2
	}
	return 0
}

// eastAsian is the length of a character in EUC, GBK, GB 18030 and Big5, which all read a
// byte above 0x80 and the next one as one character.
func eastAsian(t []byte) int {
	switch lead := t[0]; {
	case lead < 0x80:
		return 1
	case len(t) > 2 && lead == 0x8f && t[1] >= 0xa1 && t[2] >= 0xa1: // EUC-JP
		return 3
	case len(t) > 3 && within(t[1], '0', '9') && t[2] >= 0x81 && within(t[3], '0', '9'): // GB 18030
		return 4
	case len(t) > 1 && lead != 0x80 && lead != 0xff && t[1] >= 0x40 && t[1] != 0x7f && t[1] != 0xff:
		return 2
	}
	return 0
}
