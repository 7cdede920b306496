package config

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// checkError compares an error with a text. A text that ends in a space is only the
// beginning, because another library words the rest.
func checkError(t *testing.T, what string, err error, want string) {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok {
		t.Errorf("%q: error %v", what, err)
		return
	}
	if got := e.Error(); got != want && !(strings.HasSuffix(want, " ") && strings.HasPrefix(got, want)) {
		t.Errorf("%q:\n got %s\nwant %s", what, got, want)
	}
	if e.Hint == "" || strings.Contains(e.Error(), "\n") {
		t.Errorf("%q: %+v", what, e)
	}
}

func TestBork(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want BorkFile
	}{
		"empty":         {"", BorkFile{}},
		"blank":         {" \n", BorkFile{}},
		"no keys":       {"{}", BorkFile{}},
		"the reference": {`{ "correctness-checker": "./correctness.py",` + "\n" + `"edits-require-approval": ["flake.nix", "flake.lock"] }` + "\n", BorkFile{Checker: "correctness.py", Approve: []string{"flake.nix", "flake.lock"}}},
		"all keys":      {`{"edits-require-approval": [], "not-sent": ["uv.lock", "docs/**/*.{md,txt}"], "correctness-checker": "tools//check"}`, BorkFile{Checker: "tools/check", Approve: []string{}, NotSent: []string{"uv.lock", "docs/**/*.{md,txt}"}}},
		"no checker":    {`{"correctness-checker": null}`, BorkFile{}},
		"odd names":     {`{"correctness-checker": "a..b/..c", "not-sent": ["a..b", "ü\n"]}`, BorkFile{Checker: "a..b/..c", NotSent: []string{"a..b", "ü\n"}}},
		"back inside":   {`{"correctness-checker": "a/../check.sh"}`, BorkFile{Checker: "check.sh"}},
	} {
		got, err := Bork(project(t, BorkPath, c.text))
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	if got, err := Bork(t.TempDir()); err != nil || !cmp.Equal(got, BorkFile{}) {
		t.Errorf("without a file: %v, %v", got, err)
	}
}

func TestBorkErrors(t *testing.T) {
	const at = ".config/bork.json:"
	const strict = "; write strict JSON: one object, double quotes, a comma between two members and none after the last, no comments"
	const own = `; write a path relative to the root of the git repository, such as "./check.sh", or null for none`
	const relative = `; write it relative to the root, such as "docs/**"`
	for _, c := range []struct{ text, want string }{
		{"{\n  \"correctness_checker\": \"x\"\n}", at + "2: correctness_checker: unknown key; did you mean correctness-checker?"},
		{"{\"Not-Sent\": []}", at + "1: Not-Sent: unknown key; did you mean not-sent?"},
		{"{\n\n\"x\": 1}", at + "3: x: unknown key; remove it, or use one of: correctness-checker, edits-require-approval, not-sent"},
		{"{\"not-sent\": [],\n\"not-sent\": []}", at + "2: not-sent: line 1 already sets it; keep one of the two"},
		{"{\"correctness-checker\":\n 5}", at + "1: correctness-checker: it is not a string; write it in double quotes"},
		{"{\"correctness-checker\": [\"a\"]}", at + "1: correctness-checker: it is not a string; write it in double quotes"},
		{"{\"correctness-checker\": \"/bin/true\"}", at + "1: correctness-checker: \"/bin/true\" is not the path of a file in the project" + own},
		{"{\"correctness-checker\": \"../x\"}", at + "1: correctness-checker: \"../x\" is not the path of a file in the project" + own},
		{"{\"correctness-checker\": \"a/../../x\"}", at + "1: correctness-checker: \"a/../../x\" is not the path of a file in the project" + own},
		{"{\"correctness-checker\": \"\"}", at + "1: correctness-checker: an empty string is not allowed; write some text, or remove it"},
		{"{\"correctness-checker\": \"./\"}", at + "1: correctness-checker: \"./\" is not the path of a file in the project" + own},
		{"{\"correctness-checker\": \"a\\u0000\"}", at + "1: correctness-checker: it contains a NUL character; remove it"},
		{"{\"not-sent\": \"a\"}", at + "1: not-sent: it is not a list of strings; write a list, such as [\"docs/**\"]"},
		{"{\"not-sent\": null}", at + "1: not-sent: it is not a list of strings; write a list, such as [\"docs/**\"]"},
		{"{\"edits-require-approval\": [\"a\",\n 1]}", at + "1: edits-require-approval: it is not a list of strings; write a list, such as [\"docs/**\"]"},
		{"{\"edits-require-approval\": [[]]}", at + "1: edits-require-approval: it is not a list of strings; write a list, such as [\"docs/**\"]"},
		{"{\"not-sent\": [\"a\",\n\"b[\"]}", at + "1: not-sent: \"b[\" is not a valid glob; close its brackets and braces, or write \\[ and \\{ for the characters themselves"},
		{"{\"not-sent\": [\"\"]}", at + "1: not-sent: an empty string is not allowed; write some text, or remove it"},
		{"{\"not-sent\": [\"/a\"]}", at + "1: not-sent: \"/a\" is an absolute path" + relative},
		{"{\"not-sent\": [\"a/../b\"]}", at + "1: not-sent: \"a/../b\" contains \"..\"" + relative},
		{"{\"a\\nb\": 1}", at + "1: \"a\\nb\": unknown key; remove it, or use one of: correctness-checker, edits-require-approval, not-sent"},
		{"[]", at + "1: it is not an object; write {\"correctness-checker\": \"./check.sh\"}, or remove the file"},
		{"null", at + "1: it is not an object; write {\"correctness-checker\": \"./check.sh\"}, or remove the file"},
		{"{} {}", at + "1: it is not JSON: invalid character '{' after top-level value" + strict},
		{"{}\n\nx", at + "3: it is not JSON: invalid character 'x' after top-level value" + strict},
		{"{\n\"not-sent\": [],\n}", at + "3: it is not JSON: invalid character '}' "},
		{"{\n\"not-sent\": []\n\"x\": 1}", at + "3: it is not JSON: invalid character '\"' after object key:value pair" + strict},
		{"{\"not-sent\":\n[\n\"a\",\n,]}", at + "4: it is not JSON: invalid character ',' looking for beginning of value" + strict},
		{"{\n// no comments\n}", at + "2: it is not JSON: invalid character '/' looking for beginning of object key string" + strict},
		{"{\n\"not-sent\": [\"a\"\n\n", at + "2: it is not JSON: unexpected end of JSON input" + strict},
		{"{\n", at + "1: it is not JSON: unexpected end of JSON input" + strict},
		{"{1: 2}", at + "1: it is not JSON: "},
		{"{\"not-sent\": [\"a\xff\"]}", at + "1: it is not UTF-8; save it as UTF-8"},
		{"\xef\xbb\xbf{}", at + "1: it begins with a byte order mark; save it as UTF-8 without one"},
		{strings.Repeat(" ", 1<<20+1), ".config/bork.json: it is larger than 1 MiB; shorten it"},
	} {
		_, err := Bork(project(t, BorkPath, c.text))
		what := c.text
		if len(what) > 100 {
			what = what[:100]
		}
		checkError(t, what, err, c.want)
	}
}

// A configuration is read only from a place where no model can write.
func TestOddFiles(t *testing.T) {
	const link = ": it is a symbolic link, and its target is not protected from a model; replace it with the file or directory itself"
	for name, c := range map[string]struct {
		make func(t *testing.T, root string) error
		want string
	}{
		"a link": {func(t *testing.T, root string) error {
			return errors.Join(os.Mkdir(filepath.Join(root, ".config"), 0o755), os.WriteFile(filepath.Join(root, "real"), []byte("{}"), 0o644),
				os.Symlink("../real", filepath.Join(root, ".config", "bork.json")))
		}, BorkPath + link},
		"a dangling link": {func(t *testing.T, root string) error {
			return errors.Join(os.Mkdir(filepath.Join(root, ".config"), 0o755), os.Symlink("gone", filepath.Join(root, ".config", "bork.json")))
		}, BorkPath + link},
		"a linked directory": {func(t *testing.T, root string) error {
			return errors.Join(os.Mkdir(filepath.Join(root, "real"), 0o755), os.Symlink("real", filepath.Join(root, ".config")))
		}, ".config" + link},
		"a directory": {func(t *testing.T, root string) error {
			return os.MkdirAll(filepath.Join(root, ".config", "bork.json"), 0o755)
		}, BorkPath + ": it is not a regular file; move it away"},
		"a file in its way": {func(t *testing.T, root string) error {
			return os.WriteFile(filepath.Join(root, ".config"), nil, 0o644)
		}, ".config: it is not a directory; move it away"},
	} {
		root := t.TempDir()
		if err := c.make(t, root); err != nil {
			t.Skip(err)
		}
		_, err := Bork(root)
		checkError(t, name, err, c.want)
	}
	if _, err := Bork(filepath.Join(t.TempDir(), "gone")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a root: %v", err)
	}
}

func TestUnreadableFile(t *testing.T) {
	if runtime.GOOS == "windows" || syscall.Geteuid() == 0 {
		t.Skip("root may read everything, and Windows knows no such mode")
	}
	root := project(t, BorkPath, "{}")
	if err := os.Chmod(filepath.Join(root, BorkPath), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Bork(root); !errors.Is(err, os.ErrPermission) {
		t.Errorf("error %v", err)
	}
}

// checkFuzzed checks the form of an error.
func checkFuzzed(t *testing.T, text []byte, err error) {
	t.Helper()
	if err == nil {
		return
	}
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Hint == "" || e.Problem == "" || strings.ContainsAny(e.Error(), "\n\r\x1b") || e.Line < 1 || e.Line > 1+strings.Count(string(text), "\n") {
		t.Errorf("%q: %+v (%v)", text, e, err)
	}
}

func FuzzBork(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"correctness-checker": "./a", "not-sent": ["a/**"]}`, "{\n\"x\": [", "[1]", `{"not-sent": [{}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if checkText(BorkPath, text) != nil {
			return
		}
		b, err := parseBork(text)
		checkFuzzed(t, text, err)
		if b.Checker != "" && !filepath.IsLocal(b.Checker) {
			t.Errorf("%q gives the checker %q", text, b.Checker)
		}
	})
}

func FuzzHone(f *testing.F) {
	for _, seed := range []string{"", everything, "[a]\n[[a.b]]\nc = {d = 1}\n", "a.b.c = 1\n", "[prices.'a/b'.c]\n", "prices = {}\n",
		"[phase]\nhook_read = []\nhook-read = []\n", "[commands.a]\nargv = ['a']\nusage = {}\nexits = [1]\nset = ['A=']\n", "[commands.a.usage.b]\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if checkText(HonePath, text) != nil {
			return
		}
		file, err := parseHone(text)
		checkFuzzed(t, text, err)
		for name, a := range file.Commands {
			if len(a.Argv) == 0 || (a.Wire == "") != (a.BaseURLEnv == "") || a.Net && a.BaseURLEnv != "" {
				t.Errorf("%q gives the agent %s: %+v", text, name, a)
			}
		}
	})
}
