package report

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"path/filepath"

	"hone/cmd/hone/failure"
	"hone/internal/git"
	"hone/internal/render"
	"hone/journal"
	"hone/workspace"
)

// Patch returns the patch of changes, without the files that own reports; nil reports none. With
// binary, git apply accepts it; without, it is to be read. omitted says which changes are not
// in it, and why.
func Patch(ctx context.Context, home *journal.Home, deltas []workspace.Delta, own func(string) bool, binary bool) (patch []byte, omitted []string, err error) {
	dir, err := os.MkdirTemp("", "hone-diff-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	for _, side := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(dir, side), 0o700); err != nil {
			return nil, nil, err
		}
	}
	for _, d := range deltas {
		if own != nil && own(d.Path) {
			continue
		}
		if why := missingChange(home, d); why != "" {
			omitted = append(omitted, render.Line(d.Path)+" is not in the diff: "+why)
			continue
		}
		for side, e := range map[string]workspace.Entry{"a": d.Before, "b": d.After} {
			if err := writeEntry(home, e, filepath.Join(dir, side, filepath.FromSlash(d.Path))); err != nil {
				return nil, omitted, err
			}
		}
	}
	g, err := git.Find(home.Workspace())
	if err != nil {
		return nil, omitted, failure.Of(err, "install git")
	}
	patch, err = g.Patch(ctx, dir, binary)
	return patch, omitted, err
}

// missingChange returns why a change cannot be part of a patch; empty if it can.
func missingChange(home *journal.Home, d workspace.Delta) string {
	return cmp.Or(missingEntry(home, d.Before), missingEntry(home, d.After))
}

func missingEntry(home *journal.Home, e workspace.Entry) string {
	switch {
	case e.Note != "":
		return "hone could not read it: " + render.Line(e.Note)
	case e.Kind == workspace.Other:
		return "it is neither a file nor a symlink"
	case e.Kind == workspace.Regular && !home.Has(e.Digest):
		return "its contents were not kept"
	}
	return ""
}

// An entry of a path where nothing was writes nothing.
func writeEntry(home *journal.Home, e workspace.Entry, path string) error {
	if e.Kind != workspace.Regular && e.Kind != workspace.Symlink {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if e.Kind == workspace.Symlink {
		return os.Symlink(e.Target, path)
	}
	content, err := home.Get(e.Digest)
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600|e.Mode&fs.FileMode(0o111))
}
