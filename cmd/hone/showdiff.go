package main

import (
	"fmt"
	"strings"

	"hone/history"
	"hone/internal/render"
	"hone/journal"
	"hone/workspace"
)

// largestDiff is the size in bytes of the largest file that is shown as a diff.
const largestDiff = 1 << 20

// showChanges shows what a round made of the files, whoever changed them, but
// for those that the loop writes for people.
func (a *app) showChanges(home *journal.Home, past *history.Past, round int, own func(string) bool) error {
	deltas, err := past.Changes(round, home.Get)
	if err != nil {
		return err
	}
	for _, d := range deltas {
		if own != nil && own(d.Path) {
			continue
		}
		text, err := diffOf(home, d)
		if err != nil {
			return err
		}
		if a.colour {
			text = render.Colour(text)
		}
		if _, err := fmt.Fprint(a.out, text); err != nil {
			return err
		}
	}
	return nil
}

// diffOf is what became of one path: a diff where both sides are texts, else a
// line.
func diffOf(home *journal.Home, d workspace.Delta) (string, error) {
	name := render.Line(d.Path)
	var said strings.Builder
	if plain(d.Before) && plain(d.After) && d.Before.Mode != d.After.Mode {
		fmt.Fprintf(&said, "%s: mode %o, was %o\n", name, d.After.Mode, d.Before.Mode)
		if d.Before.Digest == d.After.Digest {
			return said.String(), nil
		}
	}
	for _, e := range []workspace.Entry{d.Before, d.After} {
		if what := undiffed(home, e); what != "" {
			fmt.Fprintf(&said, "%s: %s; %s\n", name, op(d), what)
			return said.String(), nil
		}
	}
	before, err := held(home, d.Before)
	if err != nil {
		return "", err
	}
	after, err := held(home, d.After)
	if err != nil {
		return "", err
	}
	if diff := render.Diff(name, before, after); diff != "" {
		return said.String() + diff, nil
	}
	return fmt.Sprintf("%s%s: %s, empty\n", said.String(), name, op(d)), nil
}

// plain reports whether an entry is a regular file.
func plain(e workspace.Entry) bool { return e.Kind == workspace.Regular }

// op words what became of a path.
func op(d workspace.Delta) string {
	switch d.Op {
	case workspace.Added:
		return "created"
	case workspace.Removed:
		return "deleted"
	}
	return "changed"
}

// undiffed says why an entry is not shown as a text; empty where it is.
func undiffed(home *journal.Home, e workspace.Entry) string {
	switch {
	case e.Note != "":
		return "cannot read it: " + render.Line(e.Note)
	case e.Kind == workspace.Symlink:
		return "a symlink to " + render.Line(e.Target)
	case e.Kind == workspace.Other:
		return "neither a file nor a symlink"
	case plain(e) && e.Size > largestDiff:
		return render.Bytes(e.Size) + ", too large for a diff"
	case plain(e) && !home.Has(e.Digest):
		return "contents not kept"
	}
	return ""
}

// held is what a regular file held; nil where there was none.
func held(home *journal.Home, e workspace.Entry) ([]byte, error) {
	if !plain(e) {
		return nil, nil
	}
	return home.Get(e.Digest)
}
