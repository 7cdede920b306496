package task

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/model"
	"hone/workspace"
)

func TestTaskFile(t *testing.T) {
	user := func(text string) []turn { return []turn{{model.User, text}} }
	three := []turn{{model.User, "one"}, {model.Assistant, "two"}, {model.User, "three"}}
	for name, tt := range map[string]struct {
		text string
		want taskFile
	}{
		"a real one": {
			"[tools]\nbash=[\"python3.8\",\"rm\",\"mkdir\"]\n\n[[chat.user]]\ncontent = '''\nRead `SPEC.md`.\n\nDo it \\n.\n'''\n",
			taskFile{Turns: user("Read `SPEC.md`.\n\nDo it \\n.\n"), Allow: []string{"python3.8", "rm", "mkdir"}},
		},
		"order of two lists": {
			"[[chat.user]]\ncontent = 'one'\n[[chat.assistant]]\ncontent = \"two\"\n[[chat.user]]\ncontent = '''three'''\n",
			taskFile{Turns: three},
		},
		"legacy": {
			"[[chat]]\nrole='user'\ncontent='one'\n[[chat]]\ncontent='two'\nrole='assistant'\n[[chat]]\nrole='user'\ncontent='three'\nname='x'\n",
			taskFile{Turns: three},
		},
		"spaces and quotes in headers": {
			"[[ chat . \"user\" ]]\ncontent = 'one'\n[[chat.'assistant']] # [[chat.user]]\ncontent = 'two'\n[[chat.user]]\n'content' = 'three'\n",
			taskFile{Turns: three},
		},
		"contents that mention what the file is made of": {
			"[[chat.user]]\ncontent = '''\n[[chat.user]]\n[[chat.assistant]]\ncontent = \"\"\"\n'''\n",
			taskFile{Turns: user("[[chat.user]]\n[[chat.assistant]]\ncontent = \"\"\"\n")},
		},
		"other tables, and a check": {
			"x = 1\ny = \"\"\"\nz\"\"\"\n[[chat.user]]\ncontent = 'a'\nnote = 1\n[other]\ncontent = 1\n[check]\ncommand = 'make test'\nmore = 1\n[tools]\nbash = ['a', 'b', 'a']\n",
			taskFile{Turns: user("a"), Allow: []string{"a", "b"}, Check: "make test"},
		},
		"dotted and inline": {
			"tools.bash = ['g++', 'x_y-z.1']\ncheck = {command = 'make'}\n[[chat.user]]\ncontent = 'a'\n",
			taskFile{Turns: user("a"), Allow: []string{"g++", "x_y-z.1"}, Check: "make"},
		},
		"a byte order mark": {
			"\ufeff[[chat.user]]\ncontent = \"\"\"a\"\"\"\n",
			taskFile{Turns: user("a")},
		},
		"CR LF": {
			"[[chat.user]]\r\ncontent = 'a'\r\n",
			taskFile{Turns: user("a")},
		},
		"an empty chat table before": {
			"[chat]\nx = 1\n[[chat.user]]\ncontent = 'a'\n",
			taskFile{Turns: user("a")},
		},
	} {
		tt.want.File = "t.toml"
		got, err := parseTask("t.toml", []byte(tt.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTaskFileErrors(t *testing.T) {
	for _, tt := range []struct {
		text string
		line int
		says string
	}{
		{"x = 1\n", 0, "no chat"},
		{"", 0, "no chat"},
		{"\n[chat]\n", 0, "no chat"},
		{"chat = 1\n", 1, "not below the header"},
		{"chat = [{role='user', content='one'}]\n", 1, "not below the header"},
		{"[[chat.user]]\ncontent = 'a'\n\n[[chat.assistant]]\ncontent = 'b'\n", 4, "ends with the assistant"},
		{"[[chat.assistant]]\ncontent = 'b'\n[[chat.user]]\ncontent = 'a'\n", 1, "turn 1"},
		{"[[chat.user]]\ncontent = 'a'\n[[chat.user]]\ncontent = 'b'\n", 3, "turn 2 is the user's"},
		{"[[chat.system]]\ncontent = 'a'\n", 1, `no role "system"`},
		{"[[chat]]\nrole = 'system'\ncontent = 'a'\n", 1, `no role "system"`},
		{"[[chat]]\ncontent = 'a'\n", 1, "no role"},
		{"\n[[chat.user]]\n", 2, "no content"},
		{"[[chat.user]]\ncontent = 1\n", 1, "no content"},
		{"[[chat.user]]\ncontent = '''\n \n'''\n", 1, "no content"},
		{"[chat]\nuser = [{content = 'a'}]\n", 2, "not below the header"},
		{"chat.user = [{content = 'a'}]\n", 1, "not below the header"},
		{"chat = {user = [{content = 'a'}]}\n", 1, "not below the header"},
		{"[[chat.user]]\ncontent = 'a'\n[tools]\n\nbash = ['a b']\n", 5, `"a b"`},
		{"[[chat.user]]\ncontent = 'a'\n[tools]\nbash = ['/bin/rg']\n", 4, "bare name"},
		{"[[chat.user]]\ncontent = 'a'\n[tools]\nbash = ['']\n", 4, "bare name"},
		{"[[chat.user]]\ncontent = 'a'\n[tools]\nbash = [1]\n", 4, "tools.bash"},
		{"[[chat.user]]\ncontent = 'a'\n[tools]\nbash = 'rg'\n", 4, "tools.bash"},
		{"tools = 1\n[[chat.user]]\ncontent = 'a'\n", 1, "tools"},
		{"[[chat.user]]\ncontent = 'a'\n[check]\ncommand = ' '\n", 4, "not a command"},
		{"[[chat.user]]\ncontent = 'a'\n[check]\ncommand = ['make']\n", 4, "check.command"},
		{"check = 'make'\n[[chat.user]]\ncontent = 'a'\n", 1, "check"},
		{"[[chat.user]]\ncontent = 'a\n", 2, ""},
		{"[[chat.user]]\ncontent = 'a'\ncontent = 'b'\n", 3, ""},
		{"[[chat.user]]\ncontent = 'a'\n[chat.assistant]\nx = 1\n", 3, "no content"},
		{"[[chat.user]]\ncontent = 'a\xff'\n", 2, "UTF-8"},
		{"[[chat.user]]\ncontent = '''a\x00'''\n", 2, ""},
	} {
		_, err := parseTask("t.toml", []byte(tt.text))
		var wrong *hone.UsageError
		if !errors.As(err, &wrong) {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		place := fmt.Sprintf("t.toml:%d: ", tt.line)
		if tt.line == 0 {
			place = "t.toml: "
		}
		if !strings.HasPrefix(wrong.Why, place) || !strings.Contains(wrong.Why, tt.says) || wrong.Next.First == "" {
			t.Errorf("%q: %v, want line %d and %q", tt.text, err, tt.line, tt.says)
		}
	}
}

func FuzzTaskFile(f *testing.F) {
	f.Add("[[chat.user]]\ncontent = 'a'\n[tools]\nbash = ['x']\n")
	f.Add("chat = [{role='user', content='one'}]\n[check]\ncommand='x'")
	f.Add("[chat]\nuser.x = {y = [1, {z = 2}]}")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseTask("t.toml", []byte(text))
		var wrong *hone.UsageError
		if err != nil && !errors.As(err, &wrong) {
			t.Fatalf("%q: %v", text, err)
		}
		if err == nil && (len(got.Turns)%2 != 1 || got.Turns[0].Role != model.User) {
			t.Fatalf("%q: %v", text, got)
		}
	})
}

func TestLoadTask(t *testing.T) {
	dir := t.TempDir()
	good := "[[chat.user]]\ncontent = 'a'\n"
	for name, text := range map[string]string{"t.toml": good, "t.txt": good} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := workspace.Open(dir, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	for name, ok := range map[string]bool{"t.toml": true, "./t.toml": true, "t.txt": false, "gone.toml": false, "../t.toml": false} {
		if _, err := loadTask(tree, name); (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
