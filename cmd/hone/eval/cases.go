package eval

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hone"
	"hone/cmd/hone/failure"
	"hone/group"
	"hone/harness/runs"
	"hone/history"
	"hone/internal/artifact"
	"hone/internal/config"
	"hone/internal/git"
	"hone/internal/transient"
	"hone/loop"
	"hone/workspace"
	"hone/workspace/clone"
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

// Names returns the names of the cases.
func (s *Suite) Names() (names []string) {
	for _, c := range s.Cases {
		names = append(names, c.Name)
	}
	return names
}

// Select keeps the cases with these names; none keep all.
func (s *Suite) Select(names []string) error {
	var selected []Case
	for _, name := range names {
		i := slices.IndexFunc(s.Cases, func(c Case) bool { return c.Name == name })
		if i < 0 {
			return loop.Usage(fmt.Sprintf("%s has no case %q", s.File, name), "name one of: "+strings.Join(s.Names(), ", "))
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

// Digest returns a digest of values that JSON can represent.
func Digest(values ...any) string {
	text, err := json.Marshal(values)
	if err != nil {
		panic(err) // the caller made them
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// Base is the tree that the tries of a case start from.
type Base struct {
	// Origin is the directory that the tree comes from, whose programs and settings the
	// user trusts or not.
	Origin string
	// ID identifies the contents.
	ID string
	// Start is the start of the run that the tree is from; zero if it is from none.
	Start hone.Start

	write func(ctx context.Context, dir string) error
}

// FindBase finds the tree of a case, and writes nothing. Errors name the line of the case.
func (s *Suite) FindBase(ctx context.Context, c Case) (Base, error) {
	switch {
	case c.Commit != "":
		return s.commitBase(ctx, c)
	case c.Run != "":
		return s.runBase(ctx, c)
	}
	dir, err := loop.AbsDir(c.Files)
	if transient.Is(err) {
		return Base{}, err
	}
	if err != nil {
		return Base{}, s.Wrong(c, "files", c.Files+" is not a directory", "name one, relative to "+s.File)
	}
	id, err := TreeID(ctx, dir)
	return Base{Origin: dir, ID: id, write: func(ctx context.Context, to string) error {
		skipped, err := group.Copy(ctx, dir, to)
		if err == nil && len(skipped) > 0 {
			err = fmt.Errorf("%s cannot be copied", filepath.Join(dir, skipped[0]))
		}
		return errors.Join(err, os.RemoveAll(filepath.Join(to, ".git"))) // it may have the solution
	}}, err
}

// TreeID returns a digest of the files of a directory.
func TreeID(ctx context.Context, dir string) (string, error) {
	tree, err := workspace.Open(dir, workspace.Options{})
	if err != nil {
		return "", err
	}
	defer tree.Close()
	m, err := tree.Manifest(ctx, nil)
	return m.Digest(), err
}

// If the commit is HEAD, it must be all that the user works on.
func (s *Suite) commitBase(ctx context.Context, c Case) (b Base, err error) {
	repo, err := git.OpenAt(c.Repo)
	if errors.Is(err, git.ErrNotRepository) {
		return b, s.Wrong(c, "repo", c.Repo+" is not in a git repository", `name one, such as repo = "../project"`)
	}
	if err != nil {
		return b, err
	}
	b.ID, err = repo.CommitID(ctx, c.Commit)
	if errors.Is(err, fs.ErrNotExist) {
		return b, s.Wrong(c, "commit", fmt.Sprintf("there is no commit %q in %s", c.Commit, c.Repo), "git log lists the commits")
	}
	if err == nil && c.Commit == "HEAD" {
		var dirty bool
		if dirty, err = repo.Dirty(ctx); dirty {
			return b, s.Wrong(c, "commit", c.Repo+" has changes that are not in the commit HEAD", "commit them, or leave them out by the commit's id: "+b.ID[:12])
		}
	}
	if err == nil {
		b.Origin, err = git.Root(c.Repo)
	}
	b.write = func(ctx context.Context, dir string) error { return repo.Export(ctx, b.ID, dir) }
	return b, err
}

func (s *Suite) runBase(ctx context.Context, c Case) (b Base, err error) {
	i, err := runs.Inspect(ctx, c.Repo, c.Run)
	if errors.Is(err, runs.ErrNone) {
		return b, s.Wrong(c, "run", "no runs were recorded in "+c.Repo, `name the directory in which it was started, such as repo = "../project"`)
	}
	if err == nil && i.Foreign != 0 {
		return b, s.Wrong(c, "run", "you did not record it on this machine", "to see what it would run, and accept it: hone trust "+i.Run+failure.Elsewhere(c.Repo))
	}
	var opened *history.Opened
	if err == nil {
		if opened = i.Past.Facts().Opened; opened == nil {
			err = fmt.Errorf("the run %s ended before its first round, and recorded no tree", i.Run)
		}
	}
	if err != nil {
		return b, s.Wrong(c, "run", err.Error(), "hone runs"+failure.Elsewhere(c.Repo)+" lists the runs")
	}
	b.Origin, b.ID, b.Start = i.Dir, opened.Tree, i.Start
	b.write = func(ctx context.Context, dir string) error {
		home, err := runs.Open(b.Origin)
		if err != nil {
			return err
		}
		defer home.Close()
		m, err := history.ReadManifest(opened.Manifest, home.Get)
		if err != nil {
			return err
		}
		tree, err := workspace.Open(dir, workspace.Options{Scratch: true})
		if err != nil {
			return err
		}
		defer tree.Close()
		return history.WriteTree(ctx, tree, m, home)
	}
	return b, nil
}

// Make writes the base below a directory that does not exist, in one with the name of the origin:
// all of it or nothing. It is a repository with one commit: the history of the project may have
// the solution. Files that hone would not read stay untracked.
func (b Base) Make(ctx context.Context, dir string) error {
	fresh := dir + ".new"
	to := filepath.Join(fresh, filepath.Base(b.Origin))
	g, err := git.Find(b.Origin)
	if errors.Is(err, git.ErrNoGit) {
		return loop.UsageOf(err, "install git")
	}
	if err == nil {
		err = errors.Join(clone.Remove(fresh), os.MkdirAll(to, 0o755))
	}
	if err == nil {
		err = b.write(ctx, to)
	}
	if err == nil {
		var repo *git.Repo
		if repo, err = g.Init(ctx, to); err == nil {
			_, err = repo.Commit(ctx, git.Commit{Subject: "Base", MaxFile: workspace.DefaultMaxFile})
		}
	}
	if err == nil {
		err = os.Rename(fresh, dir)
	}
	if err != nil {
		return errors.Join(err, clone.Remove(fresh))
	}
	return nil
}
