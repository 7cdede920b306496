package workspace

import (
	"strings"
	"testing"
)

// A model's text must not spoil a file in another encoding than UTF-8.
func TestEncodingDenial(t *testing.T) {
	for name, c := range map[string]struct{ old, content, want string }{
		"UTF-8":                                 {"é = 1\n", "é = 'ü'\n", ""},
		"ASCII":                                 {"x = 1\n", "x = 'ü'\n", ""},
		"no file":                               {"", "x = 'ü'\n", ""},
		"Latin-1, ASCII":                        {"x = 1 # caf\xe9\n", "y = 12 # caf\xe9 x\n", ""},
		"Latin-1, a deleted letter":             {"x = 1 # caf\xe9 \xe9t\xe9\n", "x = 1 # caf\xe9\n", ""},
		"Latin-1, another letter":               {"x = 1 # caf\xe9\n", "x = 'ü' # caf\xe9\n", "'ü' (U+00FC)"},
		"Latin-1, the same letter":              {"x = 1 # caf\xe9\n", "x = 'é' # caf\xe9\n", "U+00E9"},
		"Latin-1 with the letters of its UTF-8": {"n\xc3O \xc2\xa9 \xe9\n", "n\xc3O \xc2\xa9 é \xe9\n", "U+00E9"},
		"Latin-1, the whole file":               {"# caf\xe9\n", "# caf\ufffd\nx\n", "U+FFFD"},
		"Windows-1252":                          {"say \x93hi\x94 \n", "say \x93ho\x94 €\n", "U+20AC"},
		"Windows-1252, ASCII":                   {"say \x93hi\x94 \n", "say \x93ho\x94 x\n", ""},
		"Shift JIS, half of a character":        {"// \x95\x5c \x83\x5c\n", "// \x95/ \x83\x5c\n", "in two"},
		"Shift JIS, another half":               {"// \x95\x5c \x83\x5c\n", "// \x95A \x83\x5c\n", "in two"},
		"Shift JIS, ASCII":                      {"a = \"\x95\x5c\\n\"\n", "a = \"\x95\x5c\\t\"\n", ""},
		"Shift JIS, another character":          {"// \x95\x5c\n", "// \x95\x5c 表\n", "U+8868"},
		"Shift JIS, half kana":                  {"// \xb1\xb2\xb3 \x95\x5c\n", "// \xb1\xb2\xb3 \x95\x5c x\n", ""},
		"GBK, half of a character":              {"// \x81\x5c\xd6\xd0\n", "// \x81/\xd6\xd0\n", "in two"},
		"GBK, a half deleted":                   {"// \x8a\x41b\xd6\xd0\n", "// \x8ab\xd6\xd0\n", "in two"},
		"GBK, ASCII":                            {"// \x81\x5c\xd6\xd0\n", "/* \x81\x5c\xd6\xd0 */\n", ""},
		"GB 18030":                              {"// \x81\x30\x81\x30 \xd6\xd0\n", "// \x81\x30\x81\x31 \xd6\xd0\n", "in two"},
		"EUC-JP":                                {"// \xa4\xa2\xa4\xa4 a\n", "// \xa4\xa2\xa4\xa4 あ\n", "U+3042"},
		"EUC-JP, ASCII":                         {"// \xa4\xa2\xa4\xa4 \x8f\xb0\xa1 a\n", "// \xa4\xa2\xa4\xa4 \x8f\xb0\xa1 b\n", ""},
		"Big5, half of a character":             {"// \xb3\x5c\xa5\x5c\n", "// \xb3n\xa5\x5c\n", "in two"},
		"UTF-16 with a mark, as UTF-8":          {"\xff\xfea\x00\n\x00", "a\n", "UTF-16"},
		"UTF-16, unchanged":                     {"\xff\xfea\x00\n\x00", "\xff\xfea\x00\n\x00", ""},
		"declared":                              {"# -*- coding: latin-1 -*-\nx = 1\n", "# -*- coding: latin-1 -*-\nx = 'ü'\n", "but latin-1"},
		"declared, XML":                         {"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n<a/>\n", "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n<a>ü</a>\n", "ISO-8859-1"},
		"declared UTF-8":                        {"# coding: utf-8\n", "# coding: utf-8\nü\n", ""},
		"a word of the text":                    {"# the coding of things\n", "# the coding of things ü\n", ""},
	} {
		if got := encodingDenial([]byte(c.old), []byte(c.content)); (got == "") != (c.want == "") || !strings.Contains(strings.ReplaceAll(got, `"`, "'"), c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
