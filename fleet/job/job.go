// Package job defines the types that the parts of a fleet exchange: jobs, allowances, and
// the outcomes of legs. They are the payloads of workflows: they hold names and figures,
// never the contents of files, and never keys.
//
// [Read] and [ReadRepos] read files of jobs. They refuse jobs that would fail on a worker,
// settings that only the operator of a worker decides, and keys.
package job

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"hone/group"
	"hone/history"
	"hone/internal/config"
	"hone/internal/near"
	"hone/loop"
	"hone/loop/fix"
	"hone/loop/implement"
	"hone/loop/improve"
	"hone/loop/reconcile"
	"hone/loop/task"
	"hone/workspace/secret"
)

// Job is one run of a loop in one repository. Its place in the batch is its identity.
type Job struct {
	Name  string   `json:"name"` // unique in its batch: letters, digits, "-", "_" and "."
	Repo  string   `json:"repo"` // what git clone takes: an address, or a directory of the workers
	Ref   string   `json:"ref,omitempty"`
	Loop  string   `json:"loop"`           // fix, task, implement, reconcile or improve
	Args  []string `json:"args,omitempty"` // of the loop, as on the command line
	Model string   `json:"model,omitempty"`
	// Max is what the job may use in all; a part that is 0 has only the limit of the batch.
	Max group.Amount `json:"max,omitzero"`
}

// Leg asks a worker to work on a job until it ends or stops: to start its run, or to
// continue the run that the store has.
type Leg struct {
	Batch string `json:"batch"` // the id of the batch
	Job   Job    `json:"job"`
	// Limit is what the run may have used, in all its legs, when this leg ends.
	Limit group.Amount `json:"limit,omitzero"`
	// Answers are the user's answers to the questions of the last leg.
	Answers []Answer `json:"answers,omitempty"`
}

// Answer is a user's answer to a pending question.
type Answer struct {
	Question string `json:"question"` // its digest
	Approved bool   `json:"approved"`
}

// Question is a pending question: a change that needs the user's approval.
type Question struct {
	Digest string `json:"digest"` // of all that the user approves
	Path   string `json:"path"`
	Why    string `json:"why"`
}

// Outcome is how a leg ended. A stop of the run is an outcome, not an error: only failures
// of the worker's environment are errors, and retried.
type Outcome struct {
	Run    string       `json:"run,omitempty"` // the run's id; empty if none was started
	Exit   int          `json:"exit"`          // hone's exit status
	Kind   history.Kind `json:"kind,omitempty"`
	Why    string       `json:"why,omitempty"` // one line, for users
	Rounds int          `json:"rounds"`
	Spent  group.Amount `json:"spent,omitzero"` // by the run in all its legs; lost calls count in full
	// Questions are what the run waits for, if it stopped for the user.
	Questions []Question `json:"questions,omitempty"`
	// Result is the name in the store of a git bundle with the result as a branch; empty
	// if the run changed nothing.
	Result string `json:"result,omitempty"`
}

type entry struct {
	Name      string   `toml:"name" valid:"line"`
	Repo      string   `toml:"repo" valid:"line"`
	Ref       string   `toml:"ref" valid:"line"`
	Loop      string   `toml:"loop" valid:"line"`
	Args      []string `toml:"args" valid:"argument"`
	Model     string   `toml:"model" valid:"models"`
	MaxTokens int64    `toml:"max-tokens" valid:"positive"`
	MaxCost   float64  `toml:"max-cost" valid:"positive"`
}

func (e entry) job() Job {
	return Job{Name: e.Name, Repo: e.Repo, Ref: e.Ref, Loop: e.Loop, Args: e.Args, Model: e.Model, Max: group.Amount{Tokens: e.MaxTokens, Cost: group.Dollars(e.MaxCost)}}
}

// Read reads jobs from the text of a TOML file with a table [[job]] for each:
//
//	[[job]]
//	repo = "https://git.example/team/parser.git"   # what git clone takes, on a worker
//	ref = "main"                                   # default: the branch of the repository
//	loop = "fix"                                   # fix, task, implement, reconcile or improve
//	args = ["--check", "make test"]                # of the loop
//	model = "openai/gpt-5.4"                       # default: the worker's
//	max-cost = 2.50                                # USD, for this job
//	max-tokens = 3000000
//	name = "parser"                                # default: the last part of repo
//
// The names of the jobs are unique. An error is a [*config.Error] that names the file, the
// line and the key, and says what to write.
func Read(file string, text []byte) ([]Job, error) {
	var f struct {
		Jobs []entry `toml:"job"`
	}
	doc, err := config.Parse(file, text, &f)
	if wrong, ok := errors.AsType[*config.Error](err); ok && slices.Contains([]string{"max-cost", "max-tokens", "model"}, wrong.Key) {
		wrong.Hint = "write it below [[job]] for one job; for all of them: hone-fleet submit --" + wrong.Key
	}
	if err != nil {
		return nil, err
	}
	if len(f.Jobs) == 0 {
		return nil, doc.Wrong("it has no jobs", "write [[job]], with repo, loop and args below it")
	}
	var jobs []Job
	for _, e := range f.Jobs {
		jobs = append(jobs, e.job())
	}
	return named(jobs, func(i int, key, problem, hint string) error {
		return doc.Wrong(problem, hint, "job", config.Entry(i), key)
	})
}

// ReadRepos reads a file with one repository per line, and returns a copy of each for every
// repository, with its address and a name of its own. It ignores empty lines, and lines
// that begin with #.
func ReadRepos(file string, text []byte, each Job) ([]Job, error) {
	var jobs []Job
	var lines []int
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		j := each
		j.Name, j.Repo = "", line
		jobs, lines = append(jobs, j), append(lines, n)
	}
	if len(jobs) == 0 {
		return nil, &config.Error{File: file, Problem: "it names no repositories", Hint: "write one per line"}
	}
	return named(jobs, func(i int, key, problem, hint string) error {
		if key != "repo" {
			return &config.Error{File: "the jobs", Key: key, Problem: problem, Hint: hint}
		}
		return &config.Error{File: file, Line: lines[i], Problem: problem, Hint: hint}
	})
}

func named(jobs []Job, wrong func(i int, key, problem, hint string) error) ([]Job, error) {
	places := map[string]int{} // by the name, in lower case: names become those of files
	for i := range jobs {
		jobs[i].Loop = strings.TrimSpace(jobs[i].Loop)
		if key, problem, hint := jobs[i].check(); problem != "" {
			return nil, wrong(i, key, problem, hint)
		}
		if name := strings.ToLower(jobs[i].Name); name != "" {
			if first, ok := places[name]; ok {
				return nil, wrong(i, "name", fmt.Sprintf("job %d also has the name %q", first+1, jobs[i].Name), "choose another one")
			}
			places[name] = i
		}
	}
	for i := range jobs {
		base := nameOf(jobs[i].Repo)
		for n := 1; jobs[i].Name == ""; n++ {
			name := base
			if n > 1 {
				name = fmt.Sprintf("%s-%d", base, n)
			}
			if _, taken := places[strings.ToLower(name)]; !taken {
				jobs[i].Name, places[strings.ToLower(name)] = name, i
			}
		}
	}
	return jobs, nil
}

// Valid returns an error if no worker may work on the job. Workers call it as well, because
// any client of the server could send them a job.
func (j Job) Valid() error {
	key, problem, hint := j.check()
	switch {
	case j.Name == "":
		key, problem, hint = "name", "there is no name", "write one"
	case problem == "":
		return nil
	}
	return fmt.Errorf("%s: %s; %s", cmp.Or(key, "the job"), problem, hint)
}

// An empty problem means that all is well.
func (j *Job) check() (key, problem, hint string) {
	if j.Name != "" && !ValidName(j.Name) {
		return "name", fmt.Sprintf("%q is not a valid name for a job", j.Name), `use at most 60 letters, digits, "-" and "_", with single dots between them, such as "parser"`
	}
	if problem, hint = badRepo(j.Repo); problem != "" {
		return "repo", problem, hint
	}
	if strings.HasPrefix(j.Ref, "-") || strings.ContainsAny(j.Ref, " \t~^:?*[\\") || strings.Contains(j.Ref, "..") {
		return "ref", fmt.Sprintf("%q is not a branch, a tag or a commit", j.Ref), `write its name, such as "main"`
	}
	kind, problem, hint := findLoop(j.Loop)
	if problem != "" {
		return "loop", problem, hint
	}
	if problem, hint = badArgs(kind, j.Args); problem != "" {
		return "args", problem, hint
	}
	for _, arg := range j.Args {
		if loop.NamesDir(arg, j.Repo) {
			return "args", fmt.Sprintf("%q names %s by its absolute path, but a worker works in a clone of it", arg, j.Repo), "write paths relative to its top"
		}
	}
	guard := secret.NewGuard(nil)
	for _, text := range append([]string{j.Repo, j.Ref, j.Model}, j.Args...) {
		if guard.Redact(text) != text {
			return "", "it contains what looks like a key or a password", "remove it: workers have the keys, and Temporal stores jobs unencrypted"
		}
	}
	return "", "", ""
}

// ValidName reports whether a name can be the name of a job or the id of a batch, which
// become parts of the names of files, branches and objects.
func ValidName(name string) bool {
	return len(name) <= maxName && validName.MatchString(name) && !strings.HasSuffix(name, ".lock")
}

const maxName = 60

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*$`)

func nameOf(repo string) string {
	base := strings.TrimSuffix(path.Base(strings.TrimRight(strings.ReplaceAll(repo, ":", "/"), "/")), ".git")
	base = strings.Trim(notInName.ReplaceAllString(base, "-"), "-")
	base = strings.TrimSuffix(base[:min(len(base), maxName-5)], ".lock") // with room for a number
	if !validName.MatchString(base) {
		return "job"
	}
	return base
}

var notInName = regexp.MustCompile(`\.\.+|[^A-Za-z0-9_.-]+|\.$|^\.`)

// The address is left out if it contains a password.
func badRepo(repo string) (problem, hint string) {
	const example = `write what git clone takes, such as "https://git.example/team/parser.git"`
	u, err := url.Parse(repo)
	switch {
	case repo == "":
		return "the repository is missing", example
	case strings.HasPrefix(repo, "-"), strings.Contains(repo, "::"):
		return "it is not the address of a repository", example
	case err == nil && u.Scheme != "" && u.Host != "":
		_, password := u.User.Password()
		switch ssh := u.Scheme == "ssh" || u.Scheme == "git+ssh"; {
		case password, u.User != nil && !ssh, u.RawQuery != "": // except with ssh, a user name alone can be a key
			return "the URL contains a user name, a password or a query", "remove it, and give the keys to the workers, for example with git's credential helper"
		case !ssh && u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "git" && u.Scheme != "file":
			return fmt.Sprintf("hone does not fetch from %s URLs", u.Scheme), "write a URL that begins with https:// or ssh://"
		}
		return "", ""
	case err != nil && strings.Contains(repo, "://"):
		return "it is not a URL", example
	case scp.MatchString(repo), filepath.IsAbs(repo), path.IsAbs(repo), err == nil && u.Scheme == "file":
		return "", ""
	}
	return fmt.Sprintf("%q is a relative path, which means nothing on a worker", repo), "write a URL, or an absolute path that exists on every worker"
}

// scp is the short form of an ssh address: user@host:path.
var scp = regexp.MustCompile(`^([A-Za-z0-9_.-]+@)?[A-Za-z0-9.-]+:[^:]+$`)

func findLoop(name string) (kind loop.Kind, problem, hint string) {
	var names []string
	for _, k := range []loop.Kind{fix.Kind(), task.Kind(), implement.Kind(), reconcile.Kind(), improve.Kind()} {
		if k.Name == name {
			return k, "", ""
		}
		names = append(names, k.Name)
	}
	hint = `write one of: ` + strings.Join(names, ", ")
	switch similar := near.Name(name, names); {
	case name == "":
		return kind, "the loop is missing", hint
	case name == "phase":
		return kind, "phase keeps repositories of its own below src/ and tests/, which cannot move to another worker", hint
	case similar != "":
		hint = fmt.Sprintf("did you mean %s?", similar)
	}
	return kind, fmt.Sprintf("%q is not a loop", name), hint
}

// A job may have the flags that are allowed in a file of another user, except for those that are keys of the job, and
// for attempts, which share a directory. The values have the same types; the worker's hone checks the values themselves.
func badArgs(k loop.Kind, args []string) (problem, hint string) {
	fs := pflag.NewFlagSet(k.Name, pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	config.AddFlags(fs, config.Values{}, k.Name, k.Name)
	fs.StringP("dir", "C", "", "")
	fs.String("log", "", "")
	for _, name := range strings.Fields("trust json ack web") {
		fs.Bool(name, false, "")
	}
	fs.BoolP("verbose", "v", false, "")
	fs.BoolP("quiet", "q", false, "")
	line := append([]string{k.Name}, args...)
	if k.Rewrite != nil {
		line = k.Rewrite(line)
	}
	if err := fs.Parse(line[1:]); err != nil {
		return err.Error(), "see hone help " + k.Name
	}
	fs.Visit(func(f *pflag.Flag) {
		ours := slices.Contains(strings.Fields("max-tokens max-cost model attempts"), f.Name)
		if problem == "" && (ours || !slices.Contains(loop.FileFlags(), f.Name)) {
			problem = fmt.Sprintf("a job cannot have --%s", f.Name)
			hint = "remove it: model, max-cost and max-tokens are keys of the job, and the operator of the worker decides about access"
		}
	})
	if problem != "" {
		return problem, hint
	}
	end := len(line) // where -- ends the flags
	if at := fs.ArgsLenAtDash(); at >= 0 {
		end -= fs.NArg() - at + 1
	}
	if slices.Contains(line[:end], "--") {
		return "-- is the value of a flag", "write the value"
	}
	if slices.Contains(fs.Args(), "-") {
		return "- means standard input, which a worker does not have", "write the text itself"
	}
	if err := k.Accept(fs.Args()); err != nil {
		return err.Error(), "see hone help " + k.Name
	}
	return "", ""
}
