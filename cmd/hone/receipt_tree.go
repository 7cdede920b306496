package main

import (
	"context"
	"fmt"
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

// comparison is that of a commit with what a check saw.
type comparison struct {
	below string   // the run's directory in the repository: "." for the whole
	id    string   // of the commit
	apart []string // files that are not compared, from the run's directory
}

// compare finds out whether a commit has exactly the files that the check saw. Not
// compared are files that no commit can have, because git ignores them or they are in another repository; those that hone did not
// read or did not store, because they have a key; and the loop's own. It refuses files of a submodule, which are another repository's, but belong to the commit.
// run is for a command line; redo is the command that redoes an undone run, or empty.
func (s seen) compare(ctx context.Context, dir, revision, run, redo string) (c comparison, err error) {
	instead := "hone receipt " + s.run.ID + failure.Elsewhere(s.run.Home.Workspace()) + ", whose subject is the tree"
	top, err := git.Root(dir)
	if err != nil {
		return c, failure.Usage(fmt.Sprintf("--commit %s: %v", revision, err), instead)
	}
	repo, err := git.OpenAt(dir)
	if err != nil {
		return c, err
	}
	if c.id, err = repo.CommitID(ctx, revision); err != nil {
		return c, failure.Usage(err.Error(), "git log lists the commits")
	}
	if c.below, err = filepath.Rel(top, dir); err != nil {
		return c, err
	}
	c.below = filepath.ToSlash(c.below)
	own := s.run.Own()
	var files workspace.Manifest
	for _, e := range s.tree {
		unstored := e.Kind == workspace.Regular && !s.run.Home.Has(e.Digest) // it has a key
		if e.Kind == workspace.Other || e.Note != "" || unstored || e.IsUnread() || own != nil && own(e.Path) || inRepository(dir, e.Path) {
			c.apart = append(c.apart, e.Path)
			continue
		}
		e.Path = path.Join(c.below, e.Path)
		files = append(files, e)
	}
	scratch, err := os.MkdirTemp("", "hone-receipt-")
	if err != nil {
		return c, fmt.Errorf("write the files that the check saw: %w", err)
	}
	defer os.RemoveAll(scratch)
	tree, err := workspace.Open(scratch, workspace.Options{Scratch: true})
	if err != nil {
		return c, err
	}
	defer tree.Close()
	if err := history.WriteTree(ctx, tree, files, s.run.Home); err != nil {
		return c, err
	}
	is, err := repo.Compare(ctx, c.id, tree.Dir(), c.below)
	if err != nil {
		return c, err
	}
	for _, module := range is.Submodules {
		if slices.ContainsFunc(s.tree, func(e workspace.Entry) bool { return strings.HasPrefix(path.Join(c.below, e.Path), module+"/") }) {
			return c, failure.Usage(fmt.Sprintf("commit %.12s has the submodule %s, whose files hone does not compare", c.id, render.Line(module)), instead)
		}
	}
	again := "then: hone receipt " + run + " --commit HEAD"
	for i, paths := range [][]string{is.Changed, is.Missing, is.Extra} {
		for _, p := range paths {
			name := c.inRun(p)
			if slices.Contains(c.apart, name) || own != nil && own(name) {
				continue
			}
			how, next := "does not have %s as the run left it", "commit the file as it was then, or check it as it is now with a new run"
			if i == 2 {
				how = "has %s, which was not there when the check ran"
			}
			switch {
			case slices.ContainsFunc(s.changes, func(d workspace.Delta) bool { return d.Path == name }) && redo != "":
				next = redo + ", commit the files, " + again
			case slices.ContainsFunc(s.changes, func(d workspace.Delta) bool { return d.Path == name }):
				next = "commit the run's work, " + again
			case i == 1:
				next = "commit it, or let git ignore it, " + again
			}
			return c, failure.Usage(fmt.Sprintf("commit %.12s "+how, c.id, render.Line(name)), next)
		}
	}
	for _, p := range is.Ignored {
		c.apart = append(c.apart, c.inRun(p))
	}
	slices.Sort(c.apart)
	return c, nil
}

func (c comparison) inRun(p string) string {
	return strings.TrimPrefix(p, strings.TrimPrefix(c.below+"/", "./"))
}

// inRepository reports whether a file is in a repository below the directory.
func inRepository(dir, file string) bool {
	for at := path.Dir(file); at != "."; at = path.Dir(at) {
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(at), ".git")); err == nil {
			return true
		}
	}
	return false
}
