package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestGrep(t *testing.T) {
	s := newSession(t, map[string]string{
		"a.go": "package a\n\nfunc A() {}\nfunc B() {}\n\n\n\nfunc C() {}\n", "src/b.go": "package b\n// func\n", "src/c.md": "func\r\nend\r\n",
		"deep/src/d.go": "x func", ".git/config": "func\n", ".hone/f": "func\n", "bom.go": bom + "func first\n",
	})
	for _, c := range []struct {
		a    args
		want string
	}{
		{args{"pattern": "^func [AC]"}, "a.go:3: func A() {}\n8: func C() {}\n"},
		{args{"pattern": "^FUNC [ac]", "ignore_case": true}, "a.go:3: func A() {}\n8: func C() {}\n"},
		{args{"pattern": `\Apackage`}, "a.go:1: package a\nsrc/b.go:1: package b\n"},
		{args{"pattern": `func\z`}, "deep/src/d.go:1: x func\nsrc/b.go:2: // func\nsrc/c.md:1: func\n"},
		{args{"pattern": "func$"}, "deep/src/d.go:1: x func\nsrc/b.go:2: // func\nsrc/c.md:1: func\n"},
		{args{"pattern": "^func first"}, "bom.go:1: func first\n"},
		{args{"pattern": "func", "path": "src"}, "src/b.go:2: // func\nsrc/c.md:1: func\n"},
		{args{"pattern": "func", "path": "./src/", "glob": "*.md"}, "src/c.md:1: func\n"},
		{args{"pattern": "func", "glob": "src/**"}, "src/b.go:2: // func\nsrc/c.md:1: func\n"},
		{args{"pattern": "func", "path": "src/b.go"}, "src/b.go:2: // func\n"},
		{args{"pattern": "func", "files_only": true}, "a.go\nbom.go\ndeep/src/d.go\nsrc/b.go\nsrc/c.md\n"},
		{args{"pattern": "func", "files_only": true, "limit": 2}, "a.go\nbom.go\n# stopped: more than 2 matches; narrow the search or increase limit\n"},
		{args{"pattern": "func", "path": "a.go", "limit": 2}, "a.go:3: func A() {}\n4: func B() {}\n# stopped: more than 2 matches; narrow the search or increase limit\n"},
		{args{"pattern": "func", "path": "a.go", "limit": 3}, "a.go:3: func A() {}\n4: func B() {}\n8: func C() {}\n"},
		{args{"pattern": "func [BC]|b$", "glob": "*.go", "context": 1},
			"a.go:3- func A() {}\n4: func B() {}\n5- \n--\n7- \n8: func C() {}\n--\nsrc/b.go:1: package b\n2- // func\n"},
		{args{"pattern": "func [AB]", "context": 20, "path": "a.go"},
			"a.go:1- package a\n2- \n3: func A() {}\n4: func B() {}\n5- \n6- \n7- \n8- func C() {}\n"},
		{args{"pattern": "end\n"}, "# no match in 5 files\n"},
		{args{"pattern": "^$", "path": "a.go"}, "a.go:2: \n5: \n6: \n7: \n"},
		{args{"pattern": "nothing"}, "# no match in 5 files\n"},
	} {
		r := s.succeeds("grep", c.a)
		if r.Text != c.want {
			t.Errorf("grep %v:\n%s\nwant:\n%s", c.a, r.Text, c.want)
		}
		if len(r.Shown) > 0 {
			t.Errorf("grep %v saw %v", c.a, r.Shown)
		}
	}
}

func TestGrepRefuses(t *testing.T) {
	s := newSession(t, map[string]string{"a.go": "a\n"})
	for _, c := range []struct {
		a     args
		words []string
	}{
		{args{"pattern": "f("}, []string{"is invalid", "missing closing )", "Put \\ before"}},
		{args{"pattern": "(?=a)"}, []string{"is invalid", "no lookaround"}},
		{args{"pattern": `(a)\1`}, []string{"is invalid"}},
		{args{"pattern": strings.Repeat("(", 900)}, []string{"is invalid"}},
		{args{"pattern": "a{1001}"}, []string{"is invalid"}},
		{args{"pattern": "((a?){100}){9}"}, []string{"too expensive"}},
		{args{"pattern": strings.Repeat("a", 1<<20)}, []string{"longer than 1000"}},
		{args{"pattern": "a", "path": "../x"}, []string{`".." is not allowed`}},
		{args{"pattern": "a", "path": "/etc"}, []string{"outside the working directory"}},
		{args{"pattern": "a", "path": ".git"}, []string{"git's own files"}},
		{args{"pattern": "a", "path": ".hone"}, []string{"hone's own files"}},
		{args{"pattern": "a", "path": "none"}, []string{"file not found: none"}},
		{args{"pattern": "a", "glob": "../*"}, []string{"escapes"}},
		{args{"pattern": "a", "glob": "{"}, []string{"is invalid"}},
		{args{"pattern": "a", "path": "output:99"}, []string{"there is no output:99 "}},
	} {
		s.fails("grep", c.a, c.words...)
	}
}

// Ruling G8: withheld files are named, and the result does not depend on whether
// they match.
func TestGrepRevealsNothingWithheld(t *testing.T) {
	s := newSession(t, map[string]string{"a.txt": "AKIB\n", ".env": "KEY=AKIAQ7\n", "keys.txt": awsKey, "bin": "AKIA\x00", "many/.env.local": "x"})
	one := s.succeeds("grep", args{"pattern": "AKIAQ7RTZ5"}).Text
	two := s.succeeds("grep", args{"pattern": "BKIAQ7RTZ5"}).Text
	if one != two {
		t.Errorf("%s\n%s", one, two)
	}
	contains(t, one, "# withheld because they may contain secrets: .env: an environment file; keys.txt: line 1 looks like", "many/.env.local",
		"# not searched: 1 binary file\n", "# no match in 1 file\n")
	lacks(t, one, "AKIA")
	contains(t, s.succeeds("grep", args{"pattern": "A", "path": "keys.txt"}).Text, "withheld")
}

func TestGrepOutput(t *testing.T) {
	s := newSession(t, nil)
	s.outputs = []string{"one\ntwo\n" + awsKey}
	contains(t, s.succeeds("grep", args{"pattern": "t.o", "path": "output:1"}).Text, "output:1:2: two\n")
	lacks(t, s.succeeds("grep", args{"pattern": "aws", "path": "output:1"}).Text, "AKIA")
}

func TestGrepBounds(t *testing.T) {
	long := strings.Repeat("x", 40000) + "NEEDLE" + strings.Repeat("y", 40000)
	s := newSession(t, map[string]string{
		"long.txt":  "a\n" + long + "\nNEEDLE after\n",
		"far.txt":   strings.Repeat("z", 100000) + "NEEDLE\nlast NEEDLE",
		"large.txt": strings.Repeat("NEEDLE\n", 1<<20+1<<18),
		"many.txt":  strings.Repeat("here: "+strings.Repeat("ü", 100)+"\n", 5000),
	})
	text := s.succeeds("grep", args{"pattern": "NEEDLE", "context": 1}).Text
	contains(t, text, "long.txt:1- a\n2: …xx", "xxNEEDLEyy", "yy…\n", "\n3: NEEDLE after", "\n2: last NEEDLE\n",
		"# searched only the first 64 KiB of 2 long lines\n", "# not searched, over 8 MiB: large.txt")
	if len(text) > 4000 {
		t.Errorf("%d bytes", len(text))
	}
	text = s.succeeds("grep", args{"pattern": "here", "limit": 1000}).Text
	contains(t, text, "many.txt:1: here", "# stopped: too many matches to show")
	if limit := s.tool("grep").MaxText; len(text) > limit {
		t.Errorf("%d bytes, more than %d", len(text), limit)
	}
}

func TestGrepStops(t *testing.T) {
	s := newSession(t, map[string]string{"a.txt": "a\n"})
	in := Input{Args: json.RawMessage(`{"pattern": "a"}`)}
	r, err := newGrep(s.tree, nil, -1).Run(t.Context(), in)
	if err != nil || r.Failed {
		t.Fatal(r, err)
	}
	contains(t, r.Text, "# stopped: the search timed out")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Grep(s.tree, nil).Run(ctx, in); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled search: %v", err)
	}
}

func TestGrepFollowsNoSymlink(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symlinks need a privilege")
	}
	s := newSession(t, map[string]string{"a.txt": "a\n"})
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("secret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(s.tree.Dir(), "link")); err != nil {
		t.Fatal(err)
	}
	text := s.succeeds("grep", args{"pattern": "secret"}).Text
	contains(t, text, "no match", "not searched: 1 symlink\n")
}

func BenchmarkGrep(b *testing.B) {
	files := map[string]string{}
	size := 0
	for i := range 500 {
		text := strings.Repeat(fmt.Sprintf("func name%d(ctx context.Context) error { return nil }\n", i), 400)
		files[fmt.Sprintf("d%d/f%d.go", i%20, i)] = text
		size += len(text)
	}
	s := newSession(b, files)
	for _, c := range []struct{ name, args string }{
		{"rare", `{"pattern": "name499\\("}`},
		{"class", `{"pattern": "[a-z]+499\\b", "ignore_case": true}`},
		{"everywhere", `{"pattern": "e", "limit": 100}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			tool := s.tool("grep")
			b.SetBytes(int64(size))
			for b.Loop() {
				if r, err := tool.Run(b.Context(), Input{Args: json.RawMessage(c.args)}); err != nil || r.Failed {
					b.Fatal(r.Text, err)
				}
			}
		})
	}
}
