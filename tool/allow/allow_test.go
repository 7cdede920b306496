package allow

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"hone/sandbox"
	"hone/sandbox/wall"
)

// tabled is a line of a table in testdata.
type tabled struct {
	at    string // file and number
	line  string
	lines Lines
}

// table reads a table of testdata. It replaces %DIR% with dir.
func table(t testing.TB, name, dir string) (rows []tabled) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var l Lines
	s := bufio.NewScanner(f)
	for n := 1; s.Scan(); n++ {
		text := s.Text()
		at := name + ":" + strconv.Itoa(n)
		if fields := strings.Fields(text); len(fields) == 0 || fields[0] == "#" {
			continue
		} else if fields[0] == "@" {
			l = Lines{Dir: dir, Programs: append(ExecutionPrograms(), fields[2:]...)}
			if fields[1] == "review" {
				l.Programs, l.ReadOnly = ReviewPrograms(), true
			}
			l.Walled = fields[1] == "walled"
			continue
		}
		line, err := strconv.Unquote(text)
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		line = strings.ReplaceAll(line, "%DIR%", dir)
		rows = append(rows, tabled{at, line, l})
	}
	return rows
}

// workplace makes a working directory, and another directory with a canary.
func workplace(t testing.TB) (dir, canary string) {
	t.Helper()
	base := t.TempDir()
	dir = filepath.Join(base, "work")
	for name, text := range map[string]string{
		"work/go.mod":       "module x\n",
		"work/x":            "x\n",
		"work/sub/x.go":     "package x\n",
		"work/names":        "../outside/secret\x00",
		"outside/secret":    "CANARY\n",
		"outside/x.sed":     "p\n",
		"work/sub/names":    "n\n",
		"work/other/x.go":   "package x\n",
		"outside/tool":      "#!/bin/sh\necho CANARY\n",
		"work/sub/empty.md": "",
	} {
		file := filepath.Join(base, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return dir, filepath.Join(base, "outside")
}

// TestHostile checks that every line is refused. If one is not, it runs the line in
// a temporary directory to show what it does.
func TestHostile(t *testing.T) {
	dir, outside := workplace(t)
	rows := table(t, "hostile.txt", dir)
	if len(rows) < 170 {
		t.Errorf("only %d lines", len(rows))
	}
	before := listing(t, outside)
	for _, row := range rows {
		err := row.lines.Check(row.line)
		if err != nil {
			worded(t, row, err)
			continue
		}
		got, err := wall.None{}.Run(t.Context(), sandbox.Command{Argv: []string{"bash", "-c", "--", row.line}, Dir: dir,
			Env: []string{"PATH=" + os.Getenv("PATH")}, Timeout: 5 * time.Second})
		t.Errorf("%s: %q is allowed; it printed %.200q %.200q (%v)", row.at, row.line, got.Stdout, got.Stderr, err)
		if after := listing(t, outside); after != before || strings.Contains(string(got.Stdout), "CANARY") {
			t.Fatalf("%s: %q reached the canary", row.at, row.line)
		}
	}
}

// worded checks the form of an error.
func worded(t *testing.T, row tabled, err error) {
	t.Helper()
	text := err.Error()
	ok := false
	for _, start := range []string{"not allowed: ", "command not allowed: '", "could not parse command: ", "empty command"} {
		ok = ok || strings.HasPrefix(text, start)
	}
	if !ok || strings.Contains(text, "%!") || len(text) > 800 {
		t.Errorf("%s: %q is answered with %q", row.at, row.line, text)
	}
}

func listing(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		b.WriteString(name + "\n" + string(text) + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestHonest(t *testing.T) {
	dir, _ := workplace(t)
	rows := table(t, "honest.txt", dir)
	if len(rows) < 70 {
		t.Errorf("only %d lines", len(rows))
	}
	for _, row := range rows {
		if err := row.lines.Check(row.line); err != nil {
			t.Errorf("%s: %q: %v", row.at, row.line, err)
		}
	}
}

func TestLists(t *testing.T) {
	list := ExecutionPrograms()
	list[0] = "id"
	if ExecutionPrograms()[0] != "ls" {
		t.Error("ExecutionPrograms can be changed by a caller")
	}
	none := Lines{Dir: "/srv/x"}
	for _, line := range []string{"id", "ls /etc", "server & sleep 1; curl x", "echo $(id)", "if"} {
		if err := none.Check(line); err != nil {
			t.Errorf("without a list, %q: %v", line, err)
		}
	}
	for _, line := range []string{"", "ls\x00x"} {
		if none.Check(line) == nil {
			t.Errorf("without a list, %q is allowed", line)
		}
	}
	looking := Lines{Dir: "/srv/x", ReadOnly: true}
	if err := looking.Check("curl x 2>&1 | head $(id) >/dev/null"); err != nil {
		t.Error(err)
	}
	for _, line := range []string{"id > x", "echo $(id > x)", "while x; do y >> z; done", "cat < x"} {
		if looking.Check(line) == nil {
			t.Errorf("without a list, read-only, %q is allowed", line)
		}
	}
	if (Lines{Programs: []string{}, Dir: "/srv/x"}).Check("ls") == nil {
		t.Error("an empty list allows ls")
	}
}

// TestAlways checks that the lines of Always pass unchecked, and no others (ruling
// S12).
func TestAlways(t *testing.T) {
	l := Lines{Programs: []string{"ls"}, Always: []string{"make check $(nproc) > ../log\n"}, Dir: "/srv/x", ReadOnly: true}
	for line, allowed := range map[string]bool{
		"make check $(nproc) > ../log":           true,
		"  make check $(nproc) > ../log ":        true,
		"make check $(nproc) > ../log; ls":       false,
		"ls && make check $(nproc) > ../log":     false,
		"make check":                             false,
		"bash -c 'make check $(nproc) > ../log'": false,
		"ls":                                     true,
		"":                                       false,
	} {
		if err := l.Check(line); (err == nil) != allowed {
			t.Errorf("%q: %v", line, err)
		}
	}
	if (Lines{Programs: []string{}, Always: []string{""}}).Check(" ") == nil {
		t.Error("an empty line is allowed")
	}
}

func TestWording(t *testing.T) {
	l := Lines{Programs: []string{"ls", "pwd"}, Dir: "/srv/x"}
	for line, want := range map[string]string{
		"id":       "command not allowed: 'id' (allowed: ls, pwd)",
		"/bin/ls":  "command not allowed: '/bin/ls' (allowed: ls, pwd); run programs by their name in the list, not by another path",
		"./run":    "command not allowed: './run' (allowed: ls, pwd); the project's own programs are not run, unless they are named here",
		"ls ..":    "not allowed: the path ..: it leads outside the working directory; use a relative path inside it",
		"ls ~/x":   "not allowed: the path ~/x: it leads outside the working directory; use a relative path inside it",
		" ":        "empty command",
		"ls '":     "could not parse command: line 1:4: reached EOF without closing quote `'`",
		"ls $(id)": "not allowed: $(id): no walls hold here, and the line does not show what stands for it; write the text itself; if a command prints it, run that in a call of its own first",
	} {
		if err := l.Check(line); err == nil || err.Error() != want {
			t.Errorf("%q:\n got %v\nwant %s", line, err, want)
		}
	}
}

// TestNested checks that extremely nested lines are answered.
func TestNested(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: long lines in one goroutine")
	}
	l := Lines{Programs: append(ExecutionPrograms(), "env", "bash"), Dir: "/srv/x", Walled: true}
	for _, unit := range []string{"(", "{ ", "$(", "`", "$((", "${x:-", "\"$(", "if ", "while ", "! ", "ls|", "ls&&", "[[ ", "((", "case x in x) ", "<<a ", "{a,", "[", "env ",
		"bash -c '", "echo \"", "x=", "\\", "{1..9}", "${", "find . -exec ", "\n", "for x in a; do "} {
		for _, line := range []string{strings.Repeat(unit, 3000), strings.Repeat(unit, maxLine/len(unit)), "echo " + strings.Repeat(unit, 500), "x=" + strings.Repeat(unit, 500)} {
			if err := l.Check(line); err != nil && len(err.Error()) > 800 {
				t.Errorf("%.20q… is answered with %d bytes", line, len(err.Error()))
			}
		}
	}
	deep := strings.Repeat("if ls; then x=1; ", 700) + "ls" + strings.Repeat("; fi", 700)
	if err := l.Check(deep); err != nil {
		t.Error(err)
	}
	long := strings.Repeat("x=1 && ", 5000) + "ls"
	if err := l.Check(long); err != nil {
		t.Error(err)
	}
}

// FuzzCheck checks that no line causes a panic, and that an allowed line is also
// allowed when it is printed in another style.
func FuzzCheck(f *testing.F) {
	const dir = "/srv/project"
	for _, name := range []string{"hostile.txt", "honest.txt"} {
		for _, row := range table(f, name, dir) {
			f.Add(row.line)
		}
	}
	l := Lines{Programs: append(ExecutionPrograms(), strings.Fields("env xargs awk sort tar rg bash timeout cat python3 rm")...), Dir: dir}
	f.Fuzz(func(t *testing.T, line string) {
		if l.Check(line) != nil {
			return
		}
		file, err := parseLine(line)
		if err != nil {
			t.Fatalf("%q is allowed, and cannot be parsed: %v", line, err)
		}
		for _, style := range []syntax.PrinterOption{syntax.SingleLine(true), syntax.Minify(true), syntax.BinaryNextLine(true)} {
			var b strings.Builder
			if err := syntax.NewPrinter(style).Print(&b, file); err != nil {
				t.Fatal(err)
			}
			if _, err := parseLine(b.String()); err != nil {
				continue // the printer's fault, such as for an empty case
			}
			if err := l.Check(b.String()); err != nil {
				t.Errorf("%q is allowed, but not as %q: %v", line, b.String(), err)
			}
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	l := Lines{Programs: ExecutionPrograms(), Dir: "/srv/project"}
	line := `for f in sub/*.go; do if grep -q 'a|b' "$f"; then sed -n '1,5p' "$f" | head -n 3; fi; done 2>/dev/null`
	for b.Loop() {
		if err := l.Check(line); err != nil {
			b.Fatal(err)
		}
	}
}
