package tool

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"hone/workspace"
)

const awsKey = "aws_key = AKIA" + "Q7RTZ5XKLMNOP2WS\n" // in two parts, so that walls do not hide this file

func TestReadShows(t *testing.T) {
	s := newSession(t, map[string]string{
		"a.txt": "one\ntwo\nthree\n", "cut.txt": "one\ntwo", "empty": "", "crlf": "a\r\nb\r\n", "mixed": "a\r\nb\nc\n",
		"bom": bom + "a\n", "only-bom": bom, "latin": "caf\xe9 au lait\n", "blank": "\n\n",
	})
	for _, c := range []struct {
		a    args
		want string
	}{
		{args{"path": "a.txt"}, "# path: a.txt\n# lines: 1-3 of 3\n0001: one\n0002: two\n0003: three\n"},
		{args{"path": "./a.txt", "offset": 2}, "# path: a.txt\n# lines: 2-3 of 3\n0002: two\n0003: three\n"},
		{args{"path": "a.txt", "limit": 1}, "# path: a.txt\n# lines: 1-1 of 3\n0001: one\n# 2 more lines; continue with offset=2\n"},
		{args{"path": "a.txt", "with_line_numbers": 0}, "# path: a.txt\n# lines: 1-3 of 3\none\ntwo\nthree\n"},
		{args{"path": "a.txt", "offset": 4}, "# path: a.txt\n# lines: none; the last line is 3\n"},
		{args{"path": "cut.txt"}, "# path: cut.txt\n# lines: 1-2 of 2\n0001: one\n0002: two\n# no newline at the end\n"},
		{args{"path": "empty"}, "# path: empty\n# lines: none (empty)\n"},
		{args{"path": "blank"}, "# path: blank\n# lines: 1-2 of 2\n0001: \n0002: \n"},
		{args{"path": "crlf"}, "# path: crlf\n# lines end in CRLF\n# lines: 1-2 of 2\n0001: a\n0002: b\n"},
		{args{"path": "mixed"}, "# path: mixed\n# 1 of 3 lines end in CRLF\n# lines: 1-3 of 3\n0001: a\n0002: b\n0003: c\n"},
		{args{"path": "bom"}, "# path: bom\n# starts with a byte order mark\n# lines: 1-1 of 1\n0001: a\n"},
		{args{"path": "only-bom"}, "# path: only-bom\n# lines: none (empty)\n"},
		{args{"path": "latin"}, "# path: latin\n# not UTF-8: invalid bytes are shown as \uFFFD\n# lines: 1-1 of 1\n0001: caf\uFFFD au lait\n"},
	} {
		if got := s.succeeds("read", c.a).Text; got != c.want {
			t.Errorf("read %v:\n%s\nwant:\n%s", c.a, got, c.want)
		}
	}
}

func TestReadSaw(t *testing.T) {
	s := newSession(t, map[string]string{"a.txt": "one\ntwo\n", "empty": "", "long": strings.Repeat("x", 9000)})
	for _, c := range []struct {
		a    args
		want string // with a slash, if it is only a part
	}{
		{args{"path": "a.txt"}, "a.txt"},
		{args{"path": "a.txt", "limit": 1}, "a.txt/"},
		{args{"path": "a.txt", "offset": 2}, "a.txt/"},
		{args{"path": "a.txt", "offset": 3}, ""},
		{args{"path": "long"}, "long/"},
		{args{"path": "empty"}, "empty"},
	} {
		shown, want := s.succeeds("read", c.a).Shown, map[string]string(nil)
		if c.want != "" {
			want = map[string]string{c.want: workspace.Digest([]byte(s.file(c.a["path"].(string))))}
		}
		if !maps.Equal(shown, want) {
			t.Errorf("read %v: saw %v", c.a, shown)
		}
	}
}

// The schema names the limits of a page.
func TestReadSchema(t *testing.T) {
	schema := string(Read(nil, nil).Schema)
	contains(t, schema, fmt.Sprintf("at most %d and %d KiB; default %d ", maxReadLines, maxReadBytes>>10, readLines))
}

// Of a file that exceeds a page, a call without a limit gets a part, from any offset.
func TestReadLongFile(t *testing.T) {
	s := newSession(t, map[string]string{"long.txt": strings.Repeat("a line of a long file\n", 5000), "page.txt": strings.Repeat("a line\n", 1000)})
	for want, a := range map[string]args{
		"# lines: 1-200 of 5000\n":     {"path": "long.txt"},
		"# lines: 4901-5000 of 5000\n": {"path": "long.txt", "offset": 4901},
		"# lines: 301-500 of 5000\n":   {"path": "long.txt", "offset": 301},
		"# lines: 1-900 of 5000\n":     {"path": "long.txt", "limit": 900},
		"# lines: 1-1000 of 1000\n":    {"path": "page.txt"},
	} {
		contains(t, s.succeeds("read", a).Text, want)
	}
}

// A model that follows the offsets sees every line once, in results that the
// engine does not shorten.
func TestReadContinues(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "line %d %s\n", i+1, strings.Repeat("x", i%50))
	}
	s := newSession(t, map[string]string{"long.txt": b.String()})
	more := regexp.MustCompile(`# \d+ more lines?; continue with offset=(\d+)\n$`)
	line := regexp.MustCompile(`(?m)^\d{4,}: (line \d+ x*)$`)
	var got strings.Builder
	for offset, calls := 1, 0; ; calls++ {
		text := s.succeeds("read", args{"path": "long.txt", "offset": offset, "limit": 1000000}).Text
		if limit := s.tool("read").MaxText; len(text) > limit {
			t.Fatalf("a result of %d bytes, more than %d", len(text), limit)
		}
		for _, m := range line.FindAllStringSubmatch(text, -1) {
			got.WriteString(m[1] + "\n")
		}
		m := more.FindStringSubmatch(text)
		if m == nil {
			break
		}
		offset, _ = strconv.Atoi(m[1])
		if calls > 100 {
			t.Fatal("the offsets do not end")
		}
	}
	if got.String() != b.String() {
		t.Error("the pages differ from the file")
	}
}

// A long line is cut between characters, and says so.
func TestReadCutsALine(t *testing.T) {
	long := strings.Repeat("añ漢🙂", 20000)
	s := newSession(t, map[string]string{"long.txt": "first\n" + long + "\nlast\n"})
	text := s.succeeds("read", args{"path": "long.txt"}).Text
	contains(t, text, "0001: first\n0002: añ漢🙂", fmt.Sprintf(" […%d more bytes; grep shows parts of long lines]\n0003: last\n", len(long)-2000))
	if !utf8.ValidString(text) {
		t.Error("a character is cut")
	}
}

// What a call's arguments contain is the model's own text.
func TestOwnTextIsNotRedacted(t *testing.T) {
	s := newSession(t, nil)
	const token = "ghp_" + "q7Zt2LmXw9KcVb4NfR8sHj3DyGp6TaEu1QoW"
	s.fails("read", args{"path": token}, "file not found: "+token)
}

func TestReadOutput(t *testing.T) {
	s := newSession(t, map[string]string{"output:7": "a file\n"})
	s.outputs = []string{"x\n" + strings.Repeat("y\n", 10), strings.Repeat("z", 1980) + " " + awsKey}
	if got := s.call("read", args{"path": "output:1", "offset": 11}); got.Text != "# path: output:1\n# lines: 11-11 of 11\n0011: y\n" || len(got.Shown) > 0 {
		t.Errorf("%+v", got)
	}
	// The end of a piece does not split a secret.
	contains(t, s.call("read", args{"path": "output:2"}).Text, "[withheld")
	lacks(t, s.outputs[3], "AKIA")
	s.fails("read", args{"path": "output:0"}, "there is no output:0 ")
	s.fails("read", args{"path": "output:999999"}, "there is no output:999999 ")
	s.fails("read", args{"path": "output:x"}, "file not found")
	if runtime.GOOS != "windows" {
		contains(t, s.succeeds("read", args{"path": "./output:7"}).Text, "a file")
	}
}

// Rulings G5 and G8.
func TestReadRefuses(t *testing.T) {
	s := newSession(t, map[string]string{
		"a.txt": "a\n", "dir/b.go": "b\n", ".git/config": "g\n", ".hone/x": "h\n", ".env": "A=1\n", ".env.example": "A=\n",
		"keys.txt": "# keys\n" + awsKey, "bin": "a\x00b", "random": strings.Repeat("\xff\xfe\x81", 100) + "\n",
	})
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("outside\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	links := runtime.GOOS != "windows"
	if links {
		for name, target := range map[string]string{"link": outside, "inner": "a.txt", "up": "..", "folder": "dir"} {
			if err := os.Symlink(target, filepath.Join(s.tree.Dir(), name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		path  string
		words []string
	}{
		{"none.txt", []string{"file not found: none.txt"}},
		{"src/b.go", []string{"file not found: src/b.go; similar files: dir/b.go"}},
		{"dir", []string{"it is a directory"}},
		{"dir/", []string{"names a directory"}},
		{".", []string{"names a directory"}},
		{s.tree.Dir(), []string{"names a directory"}},
		{"..", []string{`".." is not allowed`}},
		{"../outside", []string{`".." is not allowed`}},
		{"dir/../a.txt", []string{`".." is not allowed`}},
		{s.tree.Dir() + "/../x", []string{`".." is not allowed`}},
		{outside, []string{"outside the working directory"}},
		{s.tree.Dir() + "x/a.txt", []string{"outside the working directory"}},
		{"/etc/passwd", []string{"outside the working directory"}},
		{"~/a.txt", []string{"~ is not expanded"}},
		{"~", []string{"~ is not expanded"}},
		{"a.txt\x00", []string{"NUL"}},
		{".git/config", []string{"git's own files"}},
		{"dir/.GIT/config", []string{"git's own files"}},
		{".git\u200c/config", []string{"git's own files"}},
		{".hone/x", []string{"hone's own files"}},
		{".env", []string{"withheld", "an environment file"}},
		{"keys.txt", []string{"withheld", "line 2 looks like"}},
		{"bin", []string{"binary (3 bytes)"}},
		{"random", []string{"binary"}},
		{strings.Repeat("a", 300), []string{"longer than 255"}},
		{strings.Repeat("a/", 1<<19), []string{"is longer than 4096"}},
		{"link", []string{"symlink, which is not followed"}},
		{"inner", []string{"symlink, which is not followed"}},
		{"up/x", []string{"symlink"}},
		{"folder/b.go", []string{"symlink"}},
	} {
		if !links && strings.Contains(strings.Join(c.words, ""), "symlink") {
			continue
		}
		s.fails("read", args{"path": c.path}, c.words...)
		if last := s.outputs[len(s.outputs)-1]; len(last) > 1000 || strings.Contains(last, "AKIA") {
			t.Errorf("read %.100q: %s", c.path, last)
		}
	}
	for tool, a := range map[string]args{"read": {"path": "/etc/x"}, "grep": {"path": "/etc/x", "pattern": "x"}, "glob": {"root": "/etc/x", "pattern": "x"},
		"write": {"path": "/etc/x", "content": "x"}, "edit": {"path": "/etc/x", "edits": edits("x", "y")}} {
		if r := s.call(tool, a); !r.Refused || !strings.Contains(r.Text, "outside the working directory") {
			t.Errorf("%s: %+v", tool, r)
		}
	}
	s.succeeds("read", args{"path": ".env.example"})
	contains(t, s.succeeds("read", args{"path": s.tree.Dir() + "/dir/b.go"}).Text, "# path: dir/b.go\n")
	contains(t, s.succeeds("read", args{"path": "./dir//b.go"}).Text, "# path: dir/b.go\n")
}
