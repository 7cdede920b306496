package treepath

import (
	"strings"
	"testing"
	"testing/fstest"
)

// A name that cannot be meant is refused, with the path that is meant if there is one.
func TestCheckNew(t *testing.T) {
	tree := fstest.MapFS{}
	for _, name := range []string{
		"calc.py", "src/a b.go", "src/main.py", "start", "a", "Makefile", `odd\dir/x`, "$HOME/x", " blank /x",
		"cafe\u0301.txt", "src/zero.py", "naïve\u200b.md", "a\u00a0b", "~file",
	} {
		tree[name] = &fstest.MapFile{}
	}
	for name, want := range map[string]string{
		// What exists, and new files.
		"calc.py": "", "./calc.py": "", "src/a b.go": "", "start": "", "new.py": "", "src/calc.py": "", "app/(group)/page.tsx": "", "a new name": "",
		"file (1).txt": "", "c/calc.py": "", "xcalc.py": "", `odd\dir/x`: "", `odd\dir/new`: "", " blank /x": "", " blank /new": "", "cafe\u0301.txt": "",
		"~file": "", "~new": "", "routes/$id.tsx": "", "$id/x": "", "a:b": "", "naïve\u200b.md": "", "caf\u00e9.md": "", "family👨\u200d👩.png": "", "Src/new.py": "", "100%": "", "100%25.txt": "",
		// Words of the formats, and remarks.
		"start Makefile": "did you mean Makefile", "calc.py (modified)": "did you mean calc.py", "start calc.py": "did you mean calc.py", "**calc.py**": "did you mean calc.py",
		"File: calc.py": "did you mean calc.py", "\"calc.py\"": "did you mean calc.py", "calc.py # new": "did you mean calc.py", "b/calc.py": "did you mean calc.py",
		"new.py (new file)": "did you mean new.py", "new.py [created]": "did you mean new.py", "Start": "not the path", "END": "not the path", "delete": "not the path",
		// Spelled as another system or a shell does.
		`src\main.py`: "did you mean src/main.py?", `src\new.py`: "did you mean src/new.py?", `.\src\main.py`: "did you mean src/main.py?",
		"file:///calc.py": "URL; did you mean calc.py?", "file:src/main.py": "did you mean src/main.py?", "file:/src/main.py": "did you mean src/main.py?", "file://localhost/calc.py": "did you mean calc.py?",
		"FILE:///new.txt": "URL; write", "https://example.org/x": "URL; write", "vscode://file/calc.py": "URL; write",
		"~/calc.py": "did you mean calc.py?", "~/new.py": "~ is not expanded; write", "~": "~ is not expanded", "$PWD/src/main.py": "did you mean src/main.py?",
		"${HOME}/new": "${HOME} is not expanded", "$(pwd)/calc.py": "did you mean calc.py?", `%USERPROFILE%\calc.py`: "did you mean calc.py?", "$HOME/new": "", "$HOME/x": "",
		`C:\repo\src\main.py`: "did you mean src/main.py?", `C:\repo\new.py`: "write the path relative", "D:/x/calc.py": "did you mean calc.py?", "/repo/src/main.py": "did you mean src/main.py?",
		"src/a%20b.go": "did you mean src/a b.go?", "CALC.PY": "", "Src/main.py": "",
		// Blanks, line feeds and what cannot be seen.
		" calc.py": "did you mean calc.py?", "calc.py\n": "did you mean calc.py?", "new.py ": "did you mean new.py?", "new.py\r\n": "did you mean new.py?", "src /main.py": "did you mean src/main.py?",
		"src/ main.py": "did you mean src/main.py?", "\u00a0calc.py": "did you mean calc.py?", " ": "begins or ends", "ne\u200bw.py": "did you mean new.py?",
		"\ufeffnew.py":      "did you mean new.py?",
		"caf\u00e9.txt":     `did you mean café.txt? It is "cafe\u0301.txt", and you wrote "caf\u00e9.txt"`,
		"src/ze\u200bro.py": "did you mean src/zero.py?", "naïve.md": "did you mean", "nai\u0308ve.md": "did you mean", "a b": "a\\u00a0b", "a\u2011b": "",
	} {
		err := CheckNew(name, tree)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(strings.ReplaceAll(err.Error(), "cafe\u0301", "café"), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}

func TestLook(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain", "cafe\u0301": "caf\u00e9", "a\u200bb\ufeff": "ab", "a\u00a0b\u202fc": "a b c", "it\u2019s \u201cx\u201d": `it's "x"`, "\xff\u00e9": "\ufffd\u00e9", "": "",
	} {
		look, at := Look(text)
		if look != want || len(at) != len(look) {
			t.Errorf("%q: %q, %v", text, look, at)
		}
		for i, offset := range at {
			if offset >= len(text) || i > 0 && offset < at[i-1] {
				t.Errorf("%q: offsets %v", text, at)
			}
		}
	}
}
