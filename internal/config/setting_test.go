package config

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// toy adds a row for one test.
func toy[T any](t *testing.T, standard T, r Row) Setting[T] {
	t.Helper()
	before := table
	t.Cleanup(func() { table = before })
	return row(standard, r)
}

// A setting is one row: a flag, a key with its errors, a question of trust, help, completion
// and a record come from it.
func TestOneRow(t *testing.T) {
	naps := toy(t, "short", Row{Key: "limits.naps", Own: true, Flag: "naps", Env: "HONE_NAPS", Loops: "fix", Valid: "short|long", Opens: "the run sleeps", Repeat: true, Help: "how long the run naps"})

	given := Values{}
	fs := pflag.NewFlagSet("fix", pflag.ContinueOnError)
	AddFlags(fs, given, "fix", "fix")
	if got := fs.FlagUsages(); !strings.Contains(got, "--naps string           how long the run naps (default short)\n") {
		t.Errorf("usage:\n%s", got)
	}
	if diff := cmp.Diff([]string{"short", "long"}, Choices(fs.Lookup("naps"))); diff != "" {
		t.Error(diff)
	}
	other := pflag.NewFlagSet("phase", pflag.ContinueOnError)
	if AddFlags(other, Values{}, "phase", "phase"); other.Lookup("naps") != nil {
		t.Error("another loop has the flag")
	}
	if !strings.Contains(Help(), "\n# how long the run naps (default \"short\")\nnaps = \"short\"\n") {
		t.Errorf("help:\n%s", Help())
	}

	file, err := Load(project(t, HonePath, "[limits]\nnaps = 'long'\n"))
	if err != nil || len(file.Opens) != 1 || file.Opens[0].Opens != "the run sleeps" {
		t.Errorf("%+v, %v", file, err)
	}
	_, err = Load(project(t, HonePath, "\n[fix]\nnaps = 'none'\n"))
	checkError(t, "naps", err, `.config/hone.toml:3: fix.naps: "none" is not one of the choices; write "short" or "long"`)

	env := func(name string) string { return map[string]string{"HONE_NAPS": "short"}[name] }
	for _, test := range []struct {
		getenv func(string) string
		args   []string
		want   string
	}{{nil, nil, "long"}, {env, nil, "short"}, {env, []string{"--naps", "long"}, "long"}} {
		if err := fs.Parse(test.args); err != nil {
			t.Fatal(err)
		}
		if got := naps.In(file.For("fix", test.getenv, given)); got != test.want {
			t.Errorf("%q: %q", test.args, got)
		}
	}
	if err := fs.Parse([]string{"--naps", "no"}); err != nil {
		t.Fatal(err)
	}
	if problem, _ := FlagProblem(fs); problem != `--naps: "no" is not one of the choices` {
		t.Error(problem)
	}

	text, err := json.Marshal(file.For("fix", nil, nil).Recorded("fix"))
	if err != nil {
		t.Fatal(err)
	}
	var recorded Values
	if err := json.Unmarshal(text, &recorded); err != nil || naps.In(recorded) != "long" {
		t.Errorf("recorded as %s, %v", text, err)
	}
	if diff := cmp.Diff([]string{"--naps", "long"}, recorded.Repeat()); diff != "" {
		t.Error(diff)
	}
}

// A list is split at commas, but not within a glob, and blanks around its entries do not count.
func TestLists(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--only", "a.txt, lib/** "}, []string{"a.txt", "lib/**"}},
		{[]string{"--only", "{src,lib}/**,a", "--only", "b.{go,{c,h}},d"}, []string{"{src,lib}/**", "a", "b.{go,{c,h}}", "d"}},
		{[]string{"--only", `a\,b,c\}d,\{e,f`}, []string{`a\,b`, `c\}d`, `\{e`, "f"}},
	} {
		given, fs := Values{}, pflag.NewFlagSet("fix", pflag.ContinueOnError)
		AddFlags(fs, given, "fix", "fix")
		if err := fs.Parse(c.args); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, Only.In(given)); diff != "" {
			t.Errorf("%q: %s", c.args, diff)
		}
		if problem, _ := FlagProblem(fs); problem != "" {
			t.Errorf("%q: %s", c.args, problem)
		}
	}
	for _, text := range []string{"", " ", "{a,b", "!a", "[[:alpha:]]x"} {
		fs := pflag.NewFlagSet("fix", pflag.ContinueOnError)
		AddFlags(fs, Values{}, "fix", "fix")
		if err := fs.Parse([]string{"--only", text}); err != nil {
			t.Fatal(err)
		}
		if problem, _ := FlagProblem(fs); problem == "" {
			t.Errorf("%q is accepted", text)
		}
	}
}

// What is recorded is read again with its type.
func TestRecorded(t *testing.T) {
	given := Values{}
	fs := pflag.NewFlagSet("fix", pflag.ContinueOnError)
	AddFlags(fs, given, "fix", "fix")
	if err := fs.Parse([]string{"--allow", "go,make", "--turns", "7", "--judge", "keep", "--base-url", "http://me:secret@host"}); err != nil {
		t.Fatal(err)
	}
	file, err := Load(project(t, HonePath, "[check]\ntimeout = '90s'\n[undo]\nmax-file = 0\n[notify]\ncommand = 'a secret'\n"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(file.For("fix", nil, given).Recorded("fix"))
	if err != nil || strings.Contains(string(text), "secret") {
		t.Errorf("%s, %v", text, err)
	}
	var v Values
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	if Turns.In(v) != 7 || MaxFile.In(v) != 0 || CheckTimeout.In(v) != 90*time.Second || MinFree.In(v) != 256<<20 {
		t.Errorf("%s", text)
	}
	if diff := cmp.Diff([]string{"--judge", "keep", "--allow", "go,make"}, v.Repeat()); diff != "" {
		t.Error(diff)
	}
}

// Every row says what it opens, or that it needs no trust, and names an example or a default.
func TestTable(t *testing.T) {
	names := map[string]bool{}
	for _, r := range Table() {
		switch {
		case r.Key != "" && r.Opens == "":
			t.Errorf("%s does not say what it opens", r.Key)
		case r.Key != "" && r.Example == "" && r.text(r.standard, true) == "":
			t.Errorf("%s has no example", r.Key)
		case r.Help == "" || names[r.Name]:
			t.Errorf("%s has no help, or is there twice", r.Name)
		}
		names[r.Name] = true
	}
}
