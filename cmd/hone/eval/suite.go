package eval

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"hone/internal/artifact"
	"hone/internal/config"
	"hone/loop"
)

// Suite is a list of cases that the user wrote.
type Suite struct {
	File  string // as the user named it
	Cases []Case // in the order of the file; never empty
	doc   *config.Document
}

// Case is a tree, a task and what decides whether it is done. Exactly one of Files, Commit
// and Run is set. Paths are absolute.
type Case struct {
	Name string
	Table
}

// Table is what a file says of a case, or in [defaults] of all cases.
type Table struct {
	Files      string   `toml:"files" valid:"path" json:"-"`       // a directory whose contents are the tree
	Repo       string   `toml:"repo" valid:"path" json:"-"`        // where Commit and Run are; empty means the directory of the file
	Commit     string   `toml:"commit" valid:"line" json:"-"`      // a revision whose files are the tree
	Run        string   `toml:"run" valid:"line" json:"-"`         // a run whose tree, before it, is the tree, and whose task is the task
	Loop       string   `toml:"loop" valid:"line" json:"loop"`     // the name of a loop; after Load it is empty only if the run decides it
	Task       string   `toml:"task" json:"task"`                  // the loop's text; empty if it needs none
	Check      string   `toml:"check" json:"check"`                // a command line; empty means that of the tree's configuration
	Args       []string `toml:"args" valid:"argument" json:"args"` // more arguments of the loop
	Judge      string   `toml:"judge" json:"judge"`                // a command line that must pass, too, and that no model sees
	JudgeFiles string   `toml:"judge-files" valid:"path" json:"-"` // a directory that is copied over the tree for the judge
}

type file struct {
	Defaults Table            `toml:"defaults"`
	Cases    map[string]Table `toml:"cases" valid:"name"`
}

// Load reads a file of cases. Every error names the file and the line, and says what to
// write. loops are the loops that a case can use; the first is that of a case which names
// none.
func Load(name string, loops []string) (*Suite, error) {
	text, err := artifact.Input(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, loop.Usage(name+" does not exist", "write it: hone help eval shows an example")
	}
	if err != nil {
		return nil, loop.UsageOf(err, "name a TOML file that can be read")
	}
	var f file
	s := &Suite{File: name}
	if s.doc, err = config.Parse(name, text, &f); err != nil {
		return nil, err
	}
	dir, err := loop.AbsDir(filepath.Dir(name))
	if err != nil {
		return nil, err
	}
	for _, title := range s.doc.Names("cases") {
		c := Case{title, f.Defaults.with(f.Cases[title], loops[0])}
		if err := s.complete(&c, dir, loops); err != nil {
			return nil, err
		}
		s.Cases = append(s.Cases, c)
	}
	if len(s.Cases) == 0 {
		return nil, s.doc.Wrong("it has no cases", "write [cases.NAME], and below it commit, files or run, and check")
	}
	return s, nil
}

// Select keeps the cases with these names; none keep all.
func (s *Suite) Select(names []string) error {
	var selected []Case
	for _, name := range names {
		i := slices.IndexFunc(s.Cases, func(c Case) bool { return c.Name == name })
		if i < 0 {
			return loop.Usage(fmt.Sprintf("%s has no case %q", s.File, name), "name one of: "+strings.Join(s.doc.Names("cases"), ", "))
		}
		selected = append(selected, s.Cases[i])
	}
	if len(names) > 0 {
		s.Cases = selected
	}
	return nil
}

// Own values have precedence. Own arguments follow those of the defaults.
func (d Table) with(t Table, standard string) Table {
	if t.Files+t.Commit+t.Run == "" {
		t.Files, t.Commit, t.Run = d.Files, d.Commit, d.Run
	}
	for _, f := range []struct{ to, from *string }{{&t.Repo, &d.Repo}, {&t.Loop, &d.Loop}, {&t.Task, &d.Task}, {&t.Check, &d.Check},
		{&t.Judge, &d.Judge}, {&t.JudgeFiles, &d.JudgeFiles}} {
		*f.to = cmp.Or(*f.to, *f.from)
	}
	t.Args = slices.Concat(d.Args, t.Args)
	if t.Run == "" {
		t.Loop = cmp.Or(t.Loop, standard)
	}
	return t
}

// Paths are relative to dir. It returns what is wrong with the case by itself.
func (s *Suite) complete(c *Case, dir string, loops []string) (err error) {
	c.Repo = cmp.Or(c.Repo, ".")
	for _, p := range []*string{&c.Files, &c.Repo, &c.JudgeFiles} {
		if *p != "" && err == nil {
			*p, err = loop.AbsPath(dir, filepath.FromSlash(*p))
		}
	}
	const one = "write one of commit, files and run"
	switch trees := slices.DeleteFunc([]string{c.Files, c.Commit, c.Run}, func(t string) bool { return t == "" }); {
	case err != nil:
		return err
	case len(trees) == 0:
		return s.Wrong(*c, "", "it names no tree", one)
	case len(trees) > 1:
		return s.Wrong(*c, "", "it names more than one tree", one)
	case c.Loop != "" && !slices.Contains(loops, c.Loop):
		return s.Wrong(*c, "loop", fmt.Sprintf("%q is not a loop that eval runs", c.Loop), "write "+strings.Join(loops, ", "))
	case c.JudgeFiles != "" && c.Judge == "":
		return s.Wrong(*c, "judge-files", "it has no effect without judge", `write the command next to it, such as judge = "make hidden-test"`)
	}
	return nil
}

// Wrong returns an error about a key of a case; an empty key means the case.
func (s *Suite) Wrong(c Case, key, problem, hint string) error {
	return s.doc.Wrong(problem, hint, "cases", c.Name, key)
}

// Tries returns how often a case is tried with a model. id identifies all that the results
// depend on, but for the contents of a script.
func Tries(job *Job, id string, times int) (tries []*Try) {
	if file, scripted := strings.CutPrefix(job.Model, "script/"); scripted {
		script, _ := artifact.Input(file) // nil with an error, which the run reports
		id = Digest(id, string(script))
	}
	for n := 1; n <= times; n++ {
		tries = append(tries, &Try{Job: job, Time: n, Key: Digest(id, n)})
	}
	return tries
}

// Digest returns a digest of values that JSON can represent.
func Digest(values ...any) string {
	text, err := json.Marshal(values)
	if err != nil {
		panic(err) // the caller made them
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}
