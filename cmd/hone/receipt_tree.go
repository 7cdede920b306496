package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"hone/cmd/hone/attempts"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/cmd/hone/report"
	"hone/history"
	"hone/internal/git"
	"hone/internal/render"
	"hone/journal"
	"hone/workspace"
)

// judgedRun returns the run whose check a receipt is about: the attempt whose changes the run applied, which the
// caller must close, or else the run itself.
func judgedRun(r *report.Run) (*report.Run, error) {
	var attempt history.Attempt
	for _, one := range r.Past.Attempts() {
		if one.Applied {
			attempt = one
		}
	}
	if take, ok := kinds.Recorded(r.Start).(*attempts.Taking); ok {
		attempt = history.Attempt{Number: take.Number, Dir: take.Dir, Run: take.Run}
	}
	if attempt.Run == "" {
		return r, nil
	}
	home := report.Copy(attempt)
	if home == nil {
		return nil, failure.Usage(fmt.Sprintf("the copy of attempt %d was removed, and with it the run that has its check", attempt.Number), "start the attempts again")
	}
	judged, err := report.Read(home, attempt.Run)
	if err != nil {
		home.Close()
	}
	return judged, err
}

// seen is what the check of a run saw last.
type seen struct {
	run     *report.Run
	check   history.Checked    // that passed, or else the last one; zero if none ran
	passed  bool               // with the tree that the run was done with
	tree    workspace.Manifest // without a check, that of the last decision
	changes []workspace.Delta  // of the run, up to that tree
}

func seenBy(r *report.Run) (s seen, err error) {
	s.run = r
	events, at, object := r.Past.Events(), 0, ""
	for i, e := range events {
		switch v := e.Payload.(type) {
		case history.Checked:
			if v.From == "" {
				s.check, at = v, i
			}
		case history.State:
			if s.check.Manifest == "" {
				object, at = v.Manifest, i
			}
		}
	}
	if record, ok := r.Past.Passed(); ok {
		s.check, s.passed = record.Payload.(history.Checked), true
		at = slices.IndexFunc(events, func(e history.Event) bool { return e.Seq == record.Seq })
	}
	if s.check.Manifest != "" {
		object = s.check.Manifest
	}
	if object == "" {
		return s, nil
	}
	series := workspace.Series{Get: r.Home.Get}
	if _, err = series.MoveTo(object); err != nil {
		return s, err
	}
	s.tree = series.Manifest()
	var until []journal.Event
	for _, e := range events[:at+1] {
		until = append(until, e.Event)
	}
	s.changes, err = history.Read(until).AllChanges(r.Home.Get)
	return s, err
}

// otherFile says that a commit has not the file that the check saw.
type otherFile struct {
	path, text string
	remedy     string // what to do before the same command; empty: nothing helps it
}

func (o *otherFile) Error() string { return o.text }

const leftOtherwise = "does not have %s as the run left it"

func (c *comparison) other(path, how, remedy string) error {
	return &otherFile{path, fmt.Sprintf("commit %.12s "+how, c.id, render.Line(path)), remedy}
}

// failure adds what the user can do. redo is the command that redoes an undone run.
func (o *otherFile) failure(run string, s seen, undone bool, redo string) error {
	next := "commit the file as it was then, or check it as it is now with a new run"
	again := ", then: hone receipt " + run + " --commit HEAD"
	switch {
	case slices.ContainsFunc(s.changes, func(d workspace.Delta) bool { return d.Path == o.path }):
		if next = "commit the run's work" + again; undone {
			next = redo + ", commit the files" + again
		}
	case o.remedy != "":
		next = o.remedy + again
	}
	return failure.Usage(o.Error(), next)
}

// comparison is that of a commit with what a check saw. Paths are from the top of the repository unless said otherwise.
type comparison struct {
	saw        seen
	top, below string                        // the repository, and the run's directory in it: "." for the whole
	id         string                        // of the commit
	files      map[string]workspace.Manifest // by the directory of the repository that they are in
	apart      []string                      // files that are not compared, from the run's directory
	unstored   map[string][]byte             // contents that the home does not have, by digest
}

// compare finds out whether a commit has exactly the files that the check saw, with those of submodules as the commit names
// them. The error is an [*otherFile] if it has not. Not compared are files that no commit can have, because git ignores them
// or they are in a repository that is no submodule; those that hone did not read; and the loop's own.
func (s seen) compare(ctx context.Context, dir, revision string) (c comparison, err error) {
	c.saw, c.files, c.unstored = s, map[string]workspace.Manifest{}, map[string][]byte{}
	if c.top, err = git.Root(dir); err != nil {
		return c, failure.Usage(fmt.Sprintf("--commit %s: %v", revision, err), "hone receipt "+s.run.ID+failure.Elsewhere(s.run.Home.Workspace())+", whose subject is the tree")
	}
	repo, err := git.OpenAt(dir)
	if err != nil {
		return c, err
	}
	if c.id, err = repo.CommitID(ctx, revision); err != nil {
		return c, failure.Usage(err.Error(), "git log lists the commits")
	}
	if c.below, err = filepath.Rel(c.top, dir); err != nil {
		return c, err
	}
	c.below = filepath.ToSlash(c.below)
	now, err := workspace.Open(dir, workspace.Options{})
	if err != nil {
		return c, err
	}
	defer now.Close()
	own := s.run.Own()
	for _, e := range s.tree {
		if e.Kind == workspace.Other || e.Note != "" || e.IsUnread() || own != nil && own(e.Path) {
			c.apart = append(c.apart, e.Path)
			continue
		}
		if e.Kind == workspace.Regular && !s.run.Home.Has(e.Digest) { // it has a key
			content, _, err := now.Read(e.Path)
			if err != nil || workspace.Digest(content) != e.Digest {
				return c, c.other(e.Path, "cannot be compared: hone did not store %s, and that is no longer as the check saw it", "restore it")
			}
			c.unstored[e.Digest] = content
		}
		e.Path = path.Join(c.below, e.Path)
		in := c.repositoryOf(e.Path)
		c.files[in] = append(c.files[in], e)
	}
	err = c.repository(ctx, ".", c.id)
	slices.Sort(c.apart)
	return c, err
}

func (c *comparison) inRun(p string) string { return from(c.below, p) }

// repositoryOf returns the directory of the innermost repository that a file is in.
func (c *comparison) repositoryOf(file string) string {
	for at := path.Dir(file); at != "."; at = path.Dir(at) {
		dir := filepath.Join(c.top, filepath.FromSlash(at))
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err != nil {
			continue
		}
		if found, err := git.Top(dir); err == nil && found == dir {
			return at
		}
	}
	return "."
}

// repository compares the files of the repository in a directory, and of those in it. An empty commit is none.
func (c *comparison) repository(ctx context.Context, in, commit string) error {
	var is git.Comparison
	if commit == "" {
		for _, e := range c.files[in] {
			c.apart = append(c.apart, c.inRun(e.Path))
		}
	} else {
		var err error
		if is, err = c.read(ctx, in, commit); err == nil {
			err = c.judge(in, is)
		}
		if err != nil {
			return err
		}
	}
	for _, inner := range slices.Sorted(maps.Keys(c.files)) {
		if inner == in || c.repositoryOf(inner) != in {
			continue
		}
		if err := c.repository(ctx, inner, is.Submodules[from(in, inner)]); err != nil {
			return err
		}
	}
	return nil
}

// judge returns an [*otherFile] if a repository's files differ from those of its commit.
func (c *comparison) judge(in string, is git.Comparison) error {
	for _, e := range c.files[in] {
		for module := range is.Submodules { // that is no repository now
			if strings.HasPrefix(from(in, e.Path), module+"/") {
				is.Changed = append(is.Changed, from(in, e.Path))
			}
		}
	}
	own := c.saw.run.Own()
	for i, paths := range [][]string{is.Changed, is.Missing, is.Extra} {
		for _, p := range paths {
			full := path.Join(in, p)
			switch name := c.inRun(full); {
			case slices.Contains(c.apart, name), own != nil && own(name):
			case i == 2 && is.Submodules[p] == "":
				return c.other(name, "has %s, which was not there when the check ran", "")
			case i == 0:
				return c.other(name, leftOtherwise, "")
			case i == 1:
				return c.other(name, leftOtherwise, "commit it, or let git ignore it")
			case c.files[full] == nil: // a submodule that is not checked out; else it is compared by itself
				c.apart = append(c.apart, name)
			}
		}
	}
	for _, p := range is.Ignored {
		c.apart = append(c.apart, c.inRun(path.Join(in, p)))
	}
	return nil
}

func from(dir, p string) string { return strings.TrimPrefix(p, strings.TrimPrefix(dir+"/", "./")) }

// read compares the files of the repository in a directory with one of its commits.
func (c *comparison) read(ctx context.Context, in, commit string) (is git.Comparison, err error) {
	repo, err := git.OpenAt(filepath.Join(c.top, filepath.FromSlash(in)))
	if err != nil {
		return is, err
	}
	files, below := slices.Clone(c.files[in]), c.below
	for i := range files {
		files[i].Path = from(in, files[i].Path)
	}
	if in != "." {
		below = "."
	}
	if _, err := repo.CommitID(ctx, commit); errors.Is(err, fs.ErrNotExist) {
		for _, e := range files { // the submodule is at another commit
			is.Changed = append(is.Changed, e.Path)
		}
		return is, nil
	}
	dir, err := os.MkdirTemp("", "hone-receipt-")
	if err != nil {
		return is, fmt.Errorf("write the files that the check saw: %w", err)
	}
	defer os.RemoveAll(dir)
	tree, err := workspace.Open(dir, workspace.Options{Scratch: true})
	if err != nil {
		return is, err
	}
	defer tree.Close()
	if err := history.WriteTree(ctx, tree, files, c.saw.run.Home, c.unstored); err != nil {
		return is, err
	}
	return repo.Compare(ctx, commit, tree.Dir(), below)
}
