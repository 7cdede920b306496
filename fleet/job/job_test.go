package job_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"hone/fleet/job"
	"hone/group"
)

func TestRead(t *testing.T) {
	jobs, err := job.Read("jobs.toml", []byte(`
[[job]]
repo = "https://git.example/team/parser.git"
ref = "release/1.2"
loop = "fix"
args = ["--check", "make test -- --race", "--rounds", "3", "--prove", "the printer is right"]
model = "openai/gpt-5.4,anthropic/claude-sonnet-5"
max-cost = 2.5
max_tokens = 3000000

[[job]]
repo = "git@git.example:other/parser.git/"
loop = "implement"
args = ["--query", "add a flag"]

[[job]]
name = "parser-2"
repo = "/srv/git/slug.git"
loop = "task"
args = ["-nloop", "2", "tasks/slug.toml"]

[[job]]
repo = "ssh://git@git.example/..."
loop = "reconcile"

[[job]]
repo = "/srv/git/fast.git"
loop = "improve"
args = ["--metric", "./bench.sh", "--lower", "ms", "--confirm", "./bench.sh other", "--profile", "./profile.sh", "--target", "3"]
`))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, j := range jobs {
		names = append(names, j.Name)
	}
	if want := []string{"parser", "parser-3", "parser-2", "job", "fast"}; !slices.Equal(names, want) {
		t.Errorf("the names are %q, want %q", names, want)
	}
	want := job.Job{Name: "parser", Repo: "https://git.example/team/parser.git", Ref: "release/1.2", Loop: "fix", Args: jobs[0].Args,
		Model: "openai/gpt-5.4,anthropic/claude-sonnet-5", Max: group.Amount{Tokens: 3_000_000, Cost: group.Dollars(2.5)}}
	if fmt.Sprint(jobs[0]) != fmt.Sprint(want) || len(jobs[0].Args) != 6 {
		t.Errorf("%+v", jobs[0])
	}
}

// TestReadErrors: the job stands in lines 1 to 3 of the file, and its last line is wrong.
func TestReadErrors(t *testing.T) {
	const (
		repo = "[[job]]\nrepo = 'https://git.example/a'\n"
		fix  = repo + "loop = 'fix'\n"
	)
	for text, want := range map[string]string{
		"":                                    "it has no jobs; write [[job]], with repo, loop and args below it",
		"[[jobs]]\n":                          "1: jobs: unknown key; did you mean job?",
		"max-cost = 3\n" + fix:                "1: max-cost: unknown key; write it below [[job]] for one job; for all of them: hone-fleet submit --max-cost",
		"ref = 'main'\n" + fix:                "1: ref: unknown key; remove it, or use one of: job",
		fix + "arg = ['x']\n":                 "4: job.arg: unknown key; did you mean args?",
		fix + "max-cost = 0\n":                "4: job.max-cost: 0 is too small; write US dollars as a number, such as 2.50",
		fix + "model = 'openai/'\n":           `4: job.model: "openai/" is not the name of a model; write "provider/name", such as "openai/gpt-5"`,
		repo:                                  "1: job: the loop is missing; write one of: fix, task, implement, reconcile, improve",
		repo + "loop = 'fixx'\n":              `3: job.loop: "fixx" is not a loop; did you mean fix?`,
		repo + "loop = 'phase'\n":             "3: job.loop: phase keeps repositories of its own below src/ and tests/, which cannot move to another worker; write one of: fix, task, implement, reconcile, improve",
		"[[job]]\nloop = 'fix'\n":             `1: job: the repository is missing; write what git clone takes, such as "https://git.example/team/parser.git"`,
		fix + "name = 'a/b'\n":                `4: job.name: "a/b" is not a valid name for a job; use at most 60 letters, digits, "-" and "_", with single dots between them, such as "parser"`,
		fix + "name = 'a..b'\n":               `4: job.name: "a..b" is not a valid name for a job; use at most 60 letters, digits, "-" and "_", with single dots between them, such as "parser"`,
		fix + "name='B'\n" + fix + "name='b'": `8: job.name: job 1 also has the name "b"; choose another one`,
		fix + "ref = '--upload-pack=x'\n":     `4: job.ref: "--upload-pack=x" is not a branch, a tag or a commit; write its name, such as "main"`,

		fix + "args = ['--chek', 'x']\n":            "4: job.args: unknown flag: --chek; see hone help fix",
		fix + "args = ['--rounds', 'x']\n":          `4: job.args: invalid argument "x" for "--rounds" flag: strconv.ParseInt: parsing "x": invalid syntax; see hone help fix`,
		fix + "args = ['--query', 'x']\n":           "4: job.args: unknown flag: --query; see hone help fix",
		fix + "args = ['--sandbox=none']\n":         "4: job.args: a job cannot have --sandbox; remove it: model, max-cost and max-tokens are keys of the job, and the operator of the worker decides about access",
		fix + "args = ['--net']\n":                  "4: job.args: a job cannot have --net; remove it: model, max-cost and max-tokens are keys of the job, and the operator of the worker decides about access",
		fix + "args = ['--trust']\n":                "4: job.args: a job cannot have --trust; remove it: model, max-cost and max-tokens are keys of the job, and the operator of the worker decides about access",
		fix + "args = ['--approve', 'all']\n":       "4: job.args: a job cannot have --approve; remove it: model, max-cost and max-tokens are keys of the job, and the operator of the worker decides about access",
		fix + "args = ['--base-url', 'http://x']\n": "4: job.args: a job cannot have --base-url; remove it: model, max-cost and max-tokens are keys of the job, and the operator of the worker decides about access",
		fix + "args = ['-m', 'a/b']\n":              `4: job.args: a job cannot have --model; remove it: model, max-cost and max-tokens are keys of the job, and the operator of the worker decides about access`,
		fix + "args = ['--max-tokens', '5']\n":      "4: job.args: a job cannot have --max-tokens; remove it: model, max-cost and max-tokens are keys of the job, and the operator of the worker decides about access",
		fix + "args = ['-C', '/etc']\n":             "4: job.args: a job cannot have --dir; remove it: model, max-cost and max-tokens are keys of the job, and the operator of the worker decides about access",
		fix + "args = ['--attempts', '3']\n":        "4: job.args: a job cannot have --attempts; remove it: model, max-cost and max-tokens are keys of the job, and the operator of the worker decides about access",
		fix + "args = ['-']\n":                      "4: job.args: - means standard input, which a worker does not have; write the text itself",
		fix + "args = ['--check', '--', 'x']\n":     "4: job.args: -- is the value of a flag; write the value", // a worker writes its flags before --
		fix + "args = ['a', 'b']\n":                 "4: job.args: one text is expected, but there are 2 arguments; see hone help fix",
	} {
		_, err := job.Read("jobs.toml", []byte(text))
		if got := fmt.Sprint(err); got != "jobs.toml:"+want && got != "jobs.toml: "+want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

// TestRepos: keys belong to workers, and no address can be an option or a program.
func TestRepos(t *testing.T) {
	for repo, want := range map[string]string{
		"https://git.example/a/b.git":             "",
		"http://127.0.0.1:3000/b":                 "",
		"ssh://git@git.example:22/a.git":          "",
		"git@git.example:a/b.git":                 "",
		"git.example:a/b.git":                     "",
		"git://git.example/a":                     "",
		"file:///srv/git/a.git":                   "",
		"/srv/git/a.git":                          "",
		"https://u:p@git.example/a":               "the URL contains a user name, a password or a query",
		"https://token@git.example/a":             "the URL contains a user name, a password or a query",
		"https://git.example/a?private_token=abc": "the URL contains a user name, a password or a query",
		"ssh://git:p@git.example/a":               "the URL contains a user name, a password or a query",
		"-u/tmp/program":                          "it is not the address of a repository",
		"ext::sh -c x":                            "it is not the address of a repository",
		"ftp://git.example/a":                     "hone does not fetch from ftp URLs",
		"../a":                                    `"../a" is a relative path, which means nothing on a worker`,
		"a":                                       `"a" is a relative path, which means nothing on a worker`,
		"https://u:p%zz@git.example/a":            "it is not a URL",
	} {
		_, err := job.ReadRepos("repos", []byte("# ours\n\n"+repo+"\n"), job.Job{Loop: "fix"})
		got := ""
		if err != nil {
			got, _, _ = strings.Cut(strings.TrimPrefix(err.Error(), "repos:3: "), ";")
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", repo, got, want)
		}
		if err != nil && strings.Contains(err.Error(), "p@") {
			t.Errorf("the error shows a password: %v", err)
		}
	}
}

func TestReadRepos(t *testing.T) {
	each := job.Job{Loop: "task", Args: []string{"upgrade to Go 1.26"}, Max: group.Amount{Cost: group.Dollars(1)}}
	jobs, err := job.ReadRepos("repos.txt", []byte("https://git.example/a\n # not this one\r\n\nhttps://git.example/b.git\r\nssh://git.example/x/A"), each)
	if err != nil || len(jobs) != 3 {
		t.Fatal(jobs, err)
	}
	for i, want := range []job.Job{{Name: "a", Repo: "https://git.example/a"}, {Name: "b", Repo: "https://git.example/b.git"}, {Name: "A-2", Repo: "ssh://git.example/x/A"}} {
		want.Loop, want.Args, want.Max = each.Loop, each.Args, each.Max
		if fmt.Sprint(jobs[i]) != fmt.Sprint(want) {
			t.Errorf("%+v", jobs[i])
		}
	}
	each.Args = []string{"--net"}
	_, err = job.ReadRepos("repos.txt", []byte("https://git.example/a"), each)
	if want := "the jobs: args: a job cannot have --net; remove it: model, max-cost and max-tokens are keys of the job, and the operator of the worker decides about access"; fmt.Sprint(err) != want {
		t.Errorf("got %v", err)
	}
	if _, err = job.ReadRepos("repos.txt", []byte("# none\n"), each); fmt.Sprint(err) != "repos.txt: it names no repositories; write one per line" {
		t.Errorf("got %v", err)
	}
}

// TestKeysInJobs: what looks like a key is refused, and not shown.
func TestKeysInJobs(t *testing.T) {
	key := "ghp_" + strings.Join([]string{"x9Qm2LwT7v", "Rb4KcZ8nHd", "1PfY5sGj3E", "a6uXo0"}, "")
	_, err := job.Read("jobs.toml", []byte("[[job]]\nrepo = 'https://git.example/a'\nloop = 'fix'\nargs = ['--check', 'TOKEN="+key+" make test']\n"))
	if want := "jobs.toml:1: job: it contains what looks like a key or a password; remove it: workers have the keys, and Temporal stores jobs unencrypted"; fmt.Sprint(err) != want {
		t.Errorf("got %v", err)
	}
}
