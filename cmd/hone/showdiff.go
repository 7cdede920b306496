package main

import (
	"fmt"
	"strings"

	"hone/history"
	"hone/internal/render"
	"hone/journal"
	"hone/workspace"
)

// largestDiff is the maximum size, in bytes, of a file that is shown as a diff.
const largestDiff = 1 << 20

// showChanges shows the files that changed in a round, by edits or by commands.
// It omits the files that the loop itself writes for the user.
func (a *app) showChanges(home *journal.Home, past *history.Past, round int, own func(string) bool) error {
	deltas, err := past.Changes(round, home.Get)
	if err != nil {
		return err
	}
	for _, d := range deltas {
		if own != nil && own(d.Path) {
			continue
		}
		text, err := pathDiff(home, d)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprint(a.out, a.outColour.Diff(text)); err != nil {
			return err
		}
	}
	return nil
}

// pathDiff returns the change of one path: a diff if both sides are text, or
// else one line.
func pathDiff(home *journal.Home, d workspace.Delta) (string, error) {
	name := render.Line(d.Path)
	var text strings.Builder
	if isRegular(d.Before) && isRegular(d.After) && d.Before.Mode != d.After.Mode {
		fmt.Fprintf(&text, "%s: mode %o, was %o\n", name, d.After.Mode, d.Before.Mode)
		if d.Before.Digest == d.After.Digest {
			return text.String(), nil
		}
	}
	for _, e := range []workspace.Entry{d.Before, d.After} {
		if what := noDiffReason(home, e); what != "" {
			fmt.Fprintf(&text, "%s: %s; %s\n", name, opName(d), what)
			return text.String(), nil
		}
	}
	before, err := contents(home, d.Before)
	if err != nil {
		return "", err
	}
	after, err := contents(home, d.After)
	if err != nil {
		return "", err
	}
	if diff := render.Diff(name, before, after); diff != "" {
		return text.String() + diff, nil
	}
	return fmt.Sprintf("%s%s: %s, empty\n", text.String(), name, opName(d)), nil
}

// isRegular reports whether an entry is a regular file.
func isRegular(e workspace.Entry) bool { return e.Kind == workspace.Regular }

// opName returns the verb for a change.
func opName(d workspace.Delta) string {
	switch d.Op {
	case workspace.Added:
		return "created"
	case workspace.Removed:
		return "deleted"
	}
	return "changed"
}

// noDiffReason returns why an entry cannot be shown as text; empty if it can.
func noDiffReason(home *journal.Home, e workspace.Entry) string {
	switch {
	case e.Note != "":
		return "cannot read it: " + render.Line(e.Note)
	case e.Kind == workspace.Symlink:
		return "a symlink to " + render.Line(e.Target)
	case e.Kind == workspace.Other:
		return "neither a file nor a symlink"
	case isRegular(e) && e.Size > largestDiff:
		return render.Bytes(e.Size) + ", too large for a diff"
	case isRegular(e) && !home.Has(e.Digest):
		return "contents not kept"
	}
	return ""
}

// contents returns the contents of a regular file; nil for any other entry.
func contents(home *journal.Home, e workspace.Entry) ([]byte, error) {
	if !isRegular(e) {
		return nil, nil
	}
	return home.Get(e.Digest)
}
