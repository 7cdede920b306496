package main

import (
	"context"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"strings"

	"hone/tool"
	"hone/workspace"
)

// lookers are the tools that look at a tree. One folder of it is closed to
// them, and why is told to whoever looks there.
func lookers(seen *workspace.Tree, guard *workspace.Guard, folder, why string) []tool.Tool {
	looks := []tool.Tool{tool.Read(seen, guard), tool.Glob(seen, guard), tool.Grep(seen, guard)}
	for i, t := range looks {
		looks[i].Run = func(ctx context.Context, in tool.Input) (tool.Result, error) {
			var args struct{ Path, Root string }
			if json.Unmarshal(in.Args, &args) == nil && (inFolder(seen.Dir(), folder, args.Path) || inFolder(seen.Dir(), folder, args.Root)) {
				return tool.Failure(why), nil
			}
			return t.Run(ctx, in)
		}
	}
	return looks
}

// inFolder reports whether a path, as a model wrote it, lies in a folder at the
// top of a tree.
func inFolder(root, folder, at string) bool {
	if rel, err := filepath.Rel(root, at); err == nil && filepath.IsAbs(at) {
		at = rel
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(path.Clean("/"+filepath.ToSlash(at)), "/"), "/")
	return workspace.Fold(first) == folder
}

// treeWithout is a folder's tree as agents see it: without the files of one
// folder at its top, in which every search would find what was searched for.
func treeWithout(root, folder string) (*workspace.Tree, error) {
	list, err := listerOf(root)
	if err != nil {
		return nil, err
	}
	without := func(paths []string) (kept []string) {
		for _, p := range paths {
			if !inFolder("/", folder, p) {
				kept = append(kept, p)
			}
		}
		return kept
	}
	return workspace.Open(root, workspace.Options{List: func(ctx context.Context, dir string) (workspace.Listing, error) {
		switch {
		case list == nil && dir == root:
			names, err := namesIn(root)
			return workspace.Listing{Kept: without(names)}, err
		case list == nil:
			return workspace.Listing{}, workspace.ErrNoRepository
		}
		l, err := list(ctx, dir)
		if dir == root {
			l.Kept = without(l.Kept)
		}
		return l, err
	}})
}

// namesIn is what lies at the top of a folder that no repository holds; what is
// below is walked.
func namesIn(root string) ([]string, error) {
	entries, err := os.ReadDir(root)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}
