package treepath

import (
	"errors"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"a":             "a",
		"./a":           "a",
		"a//b":          "a/b",
		"a/./b":         "a/b",
		".//a/.//b.txt": "a/b.txt",
		".gitignore":    ".gitignore",
		".github/x.yml": ".github/x.yml",
		"a.git":         "a.git",
		"git":           "git",
		"a/..b":         "a/..b",
		"...":           "...",
		"häß/ß":         "häß/ß",
		".gitı":         ".gitı",
	} {
		if got, err := Clean(in); err != nil || got != want {
			t.Errorf("Clean(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
}

func TestCleanRefuses(t *testing.T) {
	for _, in := range []string{
		"", ".", "./", "a/", "a/.", "/a", "//a", "/", "a\x00b", "\x00",
		"..", "../a", "a/../b", "a/..", "./..",
		`\a`, `\\server\share\a`, `C:\a`, "C:a", "c:/a", `..\a`, `a\..\b`,
		".git", ".git/config", "a/.git/config", "a/b/.git", ".GIT/config", ".gIt",
		".git.", ".git ", ".git . .", ".git::$INDEX_ALLOCATION", ".git:x", `.git\config`, `a\.git\b`,
		"git~1", "GIT~1/config", "git~2", "git~1.", "a/Git~1 /b",
		".g\u200cit", "\u200d.git", ".gi\u206ft/config", ".git\ufeff", ".g\u202eit",
		strings.Repeat("x", 256), "a/" + strings.Repeat("x", 256),
	} {
		got, err := Clean(in)
		var refused *RefusedError
		if !errors.As(err, &refused) {
			t.Errorf("Clean(%q) = %q, %v; want it refused", in, got, err)
			continue
		}
		if refused.Reason == "" || refused.Path != in {
			t.Errorf("Clean(%q): refusal %+v", in, refused)
		}
	}
}

func TestCleanWindowsNames(t *testing.T) {
	bad := []string{`a\b`, "a:b", "hone.toml.", "a /b", "CONFIG~1/hone.toml", "a/HONE~1.TOM"}
	if runtime.GOOS == "windows" {
		bad = append(bad, "nul", "a/con.txt") // only there does the library know them
	}
	for _, in := range bad {
		if err := checkWindows(in, in); err == nil {
			t.Errorf("checkWindows(%q) allows it", in)
		}
	}
	for _, in := range []string{"a.b/c.txt", "a~b", "backup~", "longer-name~1.txt", "~1"} {
		if err := checkWindows(in, in); err != nil {
			t.Errorf("checkWindows(%q) = %v", in, err)
		}
	}
}

func TestProtected(t *testing.T) {
	for path, want := range map[string]bool{
		".hone":                       true,
		".hone/journal.jsonl":         true,
		".HONE/x":                     true,
		".ho\u200cne/x":               true,
		".hone./x":                    true,
		"hone~1/x":                    true,
		".config/hone.toml":           true,
		".CONFIG/Hone.Toml":           true,
		".config/bork.json":           true,
		".config/BOR\u212a.json":      true, // the sign for kelvin folds to k
		".config/bork.json:x":         true,
		"a/.hone~0123456789abcdef":    true,
		"a/.hone/x":                   false,
		"hone/x":                      false,
		"a/.config/hone.toml":         false,
		".config/hone.toml/x":         false,
		".config/hone.toml.bak":       false,
		".config/other.json":          false,
		"honest.txt":                  false,
		"src/.honest":                 false,
		"\xff\xfe/not utf-8 but fine": false,
	} {
		if got := ProtectedReason(path) != ""; got != want {
			t.Errorf("protected(%q) = %v, want %v", path, got, want)
		}
	}
}

func TestFold(t *testing.T) {
	for _, pair := range [][2]string{
		{"README.md", "readme.MD"}, {"ÄRGER", "ärger"}, {"\u212aelvin", "Kelvin"}, {"ſ", "S"}, {"Σ", "ς"}, {"\xffA", "\xffa"},
	} {
		if Fold(pair[0]) != Fold(pair[1]) {
			t.Errorf("Fold(%q) = %q, Fold(%q) = %q", pair[0], Fold(pair[0]), pair[1], Fold(pair[1]))
		}
	}
	if Fold("a\xff") == Fold("a\xfe") || Fold("é") == Fold("e") {
		t.Error("Fold makes different names equal")
	}
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"build.sh", "build.sh", true},
		{"./build.sh", "build.sh", true},
		{"build.sh", "BUILD.sh", true},
		{"build.sh", "a/build.sh", false},
		{"logs/", "logs/a/b", true},
		{"logs/", "logs", true},
		{"logs", "logs/a", true},
		{"logs", "logsa", false},
		{"*.md", "a.md", true},
		{"*.md", "a/b.md", false},
		{"*", "a/b", false},
		{"**/*.md", "a/b.md", true},
		{"src/**", "src/a/b", true},
		{"gen-*/", "gen-a/b/c", true},
		{"app/[id].tsx", "app/[id].tsx", true},
		{"{a,b}/x", "b/x", true},
		{"app/{slug,x}.ts", "app/{slug,x}.ts", true},
		{"app/{slug,x}.ts", "app/x.ts", true},
		{"{a/b,c}.{go,py}", "c.py", true},
		{"{a/b,c}.{go,py}", "a/c.py", false},
		{"**/[{}]", "x/}", true},
		{`\{a,b\}.c`, "{a,b}.c", true},
		{`\{a,b\}.c`, "a.c", false},
		{"*[-_]test.{c,cc}", "x_test.cc", true},
		{"**/.env.*", "a/.env.local", true},
		{"**/a.b*", "x/a.bc.d", true},
		{"t/**", "t", true},
		{"{a*,b}", "b", true},
		{"**/{a*,b}", "c/b", true},
		{"**/t/**", "x/t/y/z.go", true},
		{"**/.go", "x/.go", true},
		{"**/*", "x/.go", true},
		{".", "any/thing", true},
	} {
		ps, err := Compile([]string{c.pattern}, true)
		if err != nil {
			t.Fatal(err)
		}
		if got := ps.Match(c.path); got != c.want {
			t.Errorf("pattern %q, path %q: %v, want %v", c.pattern, c.path, got, c.want)
		}
		if got := Match([]string{"**/zz[0-9]", "**/zz*" + path.Ext(c.path), c.pattern}, c.path); got != c.want {
			t.Errorf("pattern %q after others, path %q: %v, want %v", c.pattern, c.path, got, c.want)
		}
	}
	for _, path := range []string{"app/[id]/{a,b}", `a\b*?`, "plain/é"} {
		if !Match([]string{Quote(path) + "/**"}, path+"/x") || Match([]string{Quote("app/[id]")}, "app/i") {
			t.Errorf("Quote(%q) = %q does not match", path, Quote(path))
		}
	}
	if _, err := Compile([]string{"[a"}, false); err == nil {
		t.Error("a bad pattern is no error")
	}
}

// No match is lost because patterns are looked up by name. (Some are found that doublestar misses,
// such as an empty choice after an asterisk.)
func FuzzPatterns(f *testing.F) {
	for _, s := range [][2]string{{"**/*.{go,py}", "a/b.py"}, {"a/[!x]*/", "a/b/c"}, {"{a/b,c}.{d,e}", "a/b.e"}, {`\{a,b}.c`, "a.c"}, {"[{]{a,b}", "{a"}, {"a{,b}/**", "ab/c"}, {"{a*,b}", "b"}, {"**/*b{c,d.*}", "xbd.x"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, path string) {
		text := strings.TrimPrefix(strings.TrimRight(pattern, "/"), "./")
		if path, err := Clean(path); err == nil && doublestar.ValidatePattern(pattern) && utf8.ValidString(pattern+"/"+path) && len(pattern) < 20 && len(path) < 20 && strings.ContainsAny(pattern, `*?[{\`) {
			want := false
			for p := path; p != "" && (p == path || strings.HasSuffix(pattern, "/")) && !want; p = Parent(p) {
				want = p == text || doublestar.MatchUnvalidated(text, p)
			}
			if got := CompileValid([]string{pattern}, false).Match(path); want && !got {
				t.Errorf("pattern %q, path %q: %v, want %v", pattern, path, got, want)
			}
		}
	})
}

func TestMatch(t *testing.T) {
	list := []string{"[bad", "docs/"}
	if !Match(list, "Docs/a.md") || Match(list, "src/a.md") || Match(nil, "a") {
		t.Error("Match does not read patterns as Rules do")
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"a/b", "./a//b/.", "..\\x", ".git", "a/.g\u200cit", "C:x", "\xff/\x00", "a/../../b", "GIT~1", `./\`, "./C:x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		out, err := Clean(in)
		if err != nil {
			if out != "" {
				t.Fatalf("Clean(%q) = %q with an error", in, out)
			}
			return
		}
		if again, err := Clean(out); err != nil || again != out {
			t.Fatalf("Clean(%q) = %q, and that is cleaned to %q, %v", in, out, again, err)
		}
		if !Valid(out) || !filepath.IsLocal(out) || strings.ContainsRune(out, 0) {
			t.Fatalf("Clean(%q) = %q leaves the root", in, out)
		}
		for name := range strings.SplitSeq(strings.ReplaceAll(out, `\`, "/"), "/") {
			if strings.EqualFold(name, ".git") || name == ".." {
				t.Fatalf("Clean(%q) = %q holds %q", in, out, name)
			}
		}
		Hidden(out)
		ProtectedReason(out)
	})
}
