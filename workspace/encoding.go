package workspace

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"hone/internal/lazyregexp"
)

// legacy matches the declaration of an encoding that lacks most of Unicode's characters: of Python, Emacs, Vim, XML, HTML or CSS.
var legacy = lazyregexp.New(`(?i)\b(?:(?:file)?en)?(?:coding|charset)\s*[:=]?\s*["']?(latin-?\d+|iso-?8859-?\d+|(?:windows-?|cp)125\d|cp\d{3,4}|koi8-[ru]|shift[-_]?jis|sjis|euc-?(?:jp|kr|cn|tw)|iso-2022-\w+|gb(?:k|2312|18030)|big5(?:-\w+)?|mac-?roman)\b`)

// encodingDenial returns why the new contents would spoil a file that is not UTF-8, or an
// empty string. A model's text is UTF-8: in such a file it would be other characters, and a
// text that a model takes for a character may be half of another one.
//
// The encoding of a file is not recorded anywhere. So a change may leave out what is not
// ASCII, with the byte after it, and may bring nothing such, in any encoding.
func encodingDenial(old, content []byte) string {
	name := ""
	if m := legacy.FindStringSubmatch(string(old[:min(len(old), 256)])); m != nil {
		name = " but " + m[1]
	}
	switch {
	case bytes.HasPrefix(old, []byte{0xff, 0xfe}) || bytes.HasPrefix(old, []byte{0xfe, 0xff}):
		if !bytes.Equal(old, content) {
			return "the file is in UTF-16, in which hone cannot write text. Only the user can convert the file to UTF-8"
		}
		return ""
	case utf8.Valid(old) && name == "":
		return ""
	}
	had := map[string]int{}
	for _, word := range otherThanASCII(old) {
		had[word]++
	}
	for _, word := range otherThanASCII(content) {
		if had[word]--; had[word] >= 0 {
			continue
		}
		why := "the change would cut a character of several bytes in two, or make another one of its bytes"
		for _, r := range word {
			if r >= utf8.RuneSelf && bytes.Contains(content, []byte(string(r))) {
				why = fmt.Sprintf("%q (%U) would be written as UTF-8", string(r), r)
			}
		}
		return fmt.Sprintf("the file is not UTF-8%s, and %s; write ASCII only, with escapes if the language has them, and change whole words. Only the user can convert the file to UTF-8", name, why)
	}
	return ""
}

// Each is a run of bytes that are not ASCII, with the next byte if that may be the end of a character, as in Shift JIS, Big5 and
// GB 18030.
func otherThanASCII(text []byte) (words []string) {
	for i := 0; i < len(text); i++ {
		from := i
		for i < len(text) && text[i] >= utf8.RuneSelf {
			i++
		}
		if i > from {
			end := i
			if end < len(text) && text[end] >= '0' {
				end++
			}
			words = append(words, string(text[from:end]))
		}
	}
	return words
}
