package tool

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestGlob(t *testing.T) {
	s := newSession(t, map[string]string{
		"a.go": "", "b.md": "", "src/c.go": "", "src/deep/d.go": "", "src/deep/e_test.go": "", ".config/x.json": "",
		".env": "", ".git/config": "", ".hone/x": "", "odd [1].go": "", "ü/漢.go": "",
	})
	for _, c := range []struct {
		a    args
		want string
	}{
		{args{"pattern": "*.go"}, "a.go\nodd [1].go\n"},
		{args{"pattern": "./*.go"}, "a.go\nodd [1].go\n"},
		{args{"pattern": "**/*.go"}, "a.go\nodd [1].go\nsrc/c.go\nsrc/deep/d.go\nsrc/deep/e_test.go\nü/漢.go\n"},
		{args{"pattern": "**/*.go", "root": "src"}, "c.go\ndeep/d.go\ndeep/e_test.go\n"},
		{args{"pattern": "**/*.go", "root": s.tree.Dir() + "/src/"}, "c.go\ndeep/d.go\ndeep/e_test.go\n"},
		{args{"pattern": s.tree.Dir() + "/src/*.go"}, "src/c.go\n"},
		{args{"pattern": "src/"}, "src/c.go\nsrc/deep/d.go\nsrc/deep/e_test.go\n"},
		{args{"pattern": "src/*", "include_dirs": 1}, "src/c.go\nsrc/deep/\n"},
		{args{"pattern": "*", "root": "src/deep", "include_dirs": 1}, "d.go\ne_test.go\n"},
		{args{"pattern": "{a,b}.*", "root": "."}, "a.go\nb.md\n"},
		{args{"pattern": `odd \[1\].go`}, "odd [1].go\n"},
		{args{"pattern": ".config/*"}, ".config/x.json\n"},
		{args{"pattern": ".e*"}, ".env (withheld: an environment file)\n"},
		{args{"pattern": "*.rs"}, "# no match\n"},
		{args{"pattern": "**", "root": ".hone"}, "# no match: .hone has no files\n"},
		{args{"pattern": ".git/*"}, "# no match\n"},
		{args{"pattern": "*", "root": "none"}, "# no match: none has no files\n"},
		{args{"pattern": "**/*.go", "limit": 2}, "a.go\nodd [1].go\n# 2 of 6 results; narrow the pattern or increase limit\n"},
	} {
		if got := s.succeeds("glob", c.a).Text; got != c.want {
			t.Errorf("glob %v:\n%s\nwant:\n%s", c.a, got, c.want)
		}
	}
}

func TestGlobRefuses(t *testing.T) {
	s := newSession(t, map[string]string{strings.Repeat("a", 200): ""})
	for _, c := range []struct {
		a     args
		words []string
	}{
		{args{"pattern": "../*"}, []string{"escapes the working directory"}},
		{args{"pattern": "a/../../*"}, []string{"escapes"}},
		{args{"pattern": "/etc/*"}, []string{"escapes"}},
		{args{"pattern": "~/*"}, []string{"escapes"}},
		{args{"pattern": "*", "root": ".."}, []string{`".." is not allowed`}},
		{args{"pattern": "*", "root": "/"}, []string{"outside the working directory"}},
		{args{"pattern": "*", "root": ".git"}, []string{"git's own files"}},
		{args{"pattern": "*", "root": "a\x00"}, []string{"NUL"}},
		{args{"pattern": "[a"}, []string{"is invalid"}},
		{args{"pattern": "{a"}, []string{"is invalid"}},
		{args{"pattern": strings.Repeat("{a,aa}", 40)}, []string{"too many alternatives"}},
		{args{"pattern": strings.Repeat("{a,", 40) + "b" + strings.Repeat("}", 40)}, []string{"too many alternatives"}},
		{args{"pattern": strings.Repeat("a", 1<<20)}, []string{"longer than 4096"}},
	} {
		s.fails("glob", c.a, c.words...)
	}
	// Expensive but allowed patterns terminate.
	s.succeeds("glob", args{"pattern": strings.Repeat("*a", 1000) + "b"})
	s.succeeds("glob", args{"pattern": strings.Repeat("**/", 500) + "b"})
	s.succeeds("glob", args{"pattern": strings.Repeat("{a,*}", 9) + "b"})
}

// Ruling G4.
func TestGlobShowsSymlinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symlinks need a privilege")
	}
	s := newSession(t, map[string]string{"dir/a.go": ""})
	if err := os.Symlink("dir", filepath.Join(s.tree.Dir(), "link")); err != nil {
		t.Fatal(err)
	}
	if got, want := s.succeeds("glob", args{"pattern": "**"}).Text, "dir/a.go\nlink -> dir (symlink, not followed)\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestGlobHasALimit(t *testing.T) {
	files := map[string]string{}
	for i := range 2100 {
		files[fmt.Sprintf("f%04d", i)] = ""
	}
	s := newSession(t, files)
	text := s.succeeds("glob", args{"pattern": "**"}).Text
	contains(t, text, "f1999\n# 2000 of 2100 results")
	contains(t, s.succeeds("glob", args{"pattern": "**", "limit": 3000}).Text, "f2099\n")
}

// Names and targets of links are redacted, and files with a secret in their path
// are withheld.
func TestNamesAreRedacted(t *testing.T) {
	const token = "ghp_" + "q7Zt2LmXw9KcVb4NfR8sHj3DyGp6TaEu1QoW"
	s := newSession(t, map[string]string{"backup-" + token + ".txt": "needle", token + "/same.go": "needle", "a.go": "needle"})
	if err := os.Symlink("/x/"+token, filepath.Join(s.tree.Dir(), "link")); err != nil {
		t.Skip(err)
	}
	for _, call := range []struct{ tool, args string }{
		{"glob", `{"pattern": "**", "include_dirs": 1}`}, {"glob", `{"pattern": "*"}`}, {"grep", `{"pattern": "needle"}`},
		{"read", `{"path": "same.go"}`}, {"write", `{"path": "same.go/x", "content": ""}`}, {"edit", `{"path": "same.go", "edits": [{"oldText": "a", "newText": "b"}]}`},
	} {
		got := s.raw(call.tool, call.args).Text
		if strings.Contains(got, token) {
			t.Errorf("%s %s shows the token: %s", call.tool, call.args, got)
		}
	}
	if got := s.raw("grep", `{"pattern": "needle"}`).Text; !strings.Contains(got, "a.go:1:") || strings.Contains(got, "same.go:1:") {
		t.Errorf("grep: %s", got)
	}
	if got := s.raw("glob", `{"pattern": "**"}`).Text; !strings.Contains(got, "link -> /x/[withheld]") || !strings.Contains(got, "[withheld]/same.go (withheld: its name contains a secret)") {
		t.Errorf("glob: %s", got)
	}
}
