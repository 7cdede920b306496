package config

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// parsed is a document with a table, a map of tables whose names the user chooses, and a
// list of tables.
type parsed struct {
	All   part            `toml:"all"`
	Cases map[string]part `toml:"cases" valid:"name"`
	Jobs  []part          `toml:"job"`
}

type part struct {
	Text string   `toml:"text"`
	Args []string `toml:"args" valid:"argument"`
	Max  int      `toml:"max-turns" valid:"positive"`
}

func parse(text string) (parsed, *Document, error) {
	var p parsed
	d, err := Parse("my.toml", []byte(text), &p)
	return p, d, err
}

func TestParse(t *testing.T) {
	got, d, err := parse("[cases.z]\ntext = 'last'\n\n[all]\nmax_turns = 3\n[cases.a]\nargs = ['-v']\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parsed{All: part{Max: 3}, Cases: map[string]part{"z": {Text: "last"}, "a": {Args: []string{"-v"}}}}, got); diff != "" {
		t.Error(diff)
	}
	if names := d.Names("cases"); !slices.Equal(names, []string{"z", "a"}) {
		t.Errorf("names: %q", names)
	}
	checkError(t, "a key", d.Wrong("it is bad", "write better", "cases", "z", "text"), "my.toml:2: cases.z.text: it is bad; write better")
	checkError(t, "a missing key", d.Wrong("it is missing", "write it", "cases", "a", "text"), "my.toml:6: cases.a: it is missing; write it")
	checkError(t, "the file", d.Wrong("it is empty", "write something", "none"), "my.toml: it is empty; write something")
}

func TestParseList(t *testing.T) {
	got, d, err := parse("[[job]]\ntext = 'a'\n[[job]]\nmax_turns = 2\ntext = 'b'\n[[job]]\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]part{{Text: "a"}, {Text: "b", Max: 2}, {}}, got.Jobs); diff != "" {
		t.Error(diff)
	}
	checkError(t, "a key", d.Wrong("it is bad", "write better", "job", Entry(1), "text"), "my.toml:5: job.text: it is bad; write better")
	checkError(t, "a missing key", d.Wrong("it is missing", "write it", "job", Entry(2), "text"), "my.toml:6: job: it is missing; write it")
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"[cases.z]\ntxt = 'a'\n":                    "my.toml:2: cases.z.txt: unknown key; did you mean text?",
		"[case.z]\ntext = 'a'\n":                    "my.toml:1: case: unknown key; did you mean cases?",
		"[cases.'a b']\ntext = 'a'\n":               `my.toml:1: cases."a b": "a b" is not a valid name; use at most 60 letters, digits, - and _`,
		"[cases]\ntext = 'a'\n":                     "my.toml:2: cases.text: it is not a table; write [cases.text], and its keys below it",
		"[cases.z]\nargs = '-v'\n":                  `my.toml:2: cases.z.args: it is not a list of strings; write a list, such as args = ["gemini"]`,
		"[all]\nmax-turns = 0\n":                    "my.toml:2: all.max-turns: 0 is too small; write a whole number greater than 0",
		"[cases.z]\ntext = 'a'\n[cases.z]\n":        "my.toml:3: cases.z: table z already exists; write TOML: sections in brackets, and lines such as rounds = 5",
		"[[job]]\ntext = 'a'\n[[job]]\ntxt = 'a'\n": "my.toml:4: job.txt: unknown key; did you mean text?",
		"[[job]]\n[[job]]\nmax-turns = 0\n":         "my.toml:3: job.max-turns: 0 is too small; write a whole number greater than 0",
		"[[job]]\n[[job]]\nargs = '-v'\n":           `my.toml:3: job.args: it is not a list of strings; write a list, such as args = ["gemini"]`,
		"[[jobs]]\ntext = 'a'\n":                    "my.toml:1: jobs: unknown key; did you mean job?",
		"[job]\ntext = 'a'\n":                       "my.toml:1: job: it is not a list of tables; write [[job]], and its keys below it",
		"[[job]]\ntext = 'a'\n[job.sub]\n":          "my.toml:3: job.sub: unknown key; remove it, or use one of: args, max-turns, text",
		"[[job]]\n[[job.sub]]\ntext = 'a'\n":        "my.toml:2: job.sub: unknown key; remove it, or use one of: args, max-turns, text",
		"[[job.sub]]\ntext = 'a'\n":                 "my.toml:1: job: it is not a list of tables; write [[job]], and its keys below it",
		"[[all]]\ntext = 'a'\n":                     "my.toml:1: all: it is not a table; write [all], and its keys below it",
		"[[cases]]\ntext = 'a'\n":                   "my.toml:1: cases: it is not a table; write [cases.NAME], and its keys below it",
		"args = ['a']\n[[job]]\n":                   "my.toml:1: args: unknown key; remove it, or use one of: all, cases, job",
		"\xff":                                      "my.toml:1: it is not UTF-8; save it as UTF-8",
	} {
		_, _, err := parse(text)
		checkError(t, text, err, want)
	}
}
