package main

import (
	"context"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"hone"
	"hone/tool"
	lines "hone/tool/allow"
	"hone/workspace"
)

// longestCommand is the most time that a model can ask for a command, such as
// for a build.
const longestCommand = 30 * time.Minute

// tools are what the agents can call. seen is the tree without what is closed
// to them. The reviewer's command lines run behind walls of their own, and its
// write is the loop's.
func (s taskSettings) tools(seen *workspace.Tree, guard *workspace.Guard, r *hone.Run, walls *runWalls) func(allow []string) (execute, review []tool.Tool) {
	apply := func(ctx context.Context, ch workspace.Change, seen func(string) (string, bool)) ([]workspace.Verdict, error) {
		return r.Apply(ctx, ch, seen)
	}
	bash := func(w *runWalls, programs []string, readOnly bool) tool.Tool {
		return tool.Bash(w, tool.BashConfig{Net: s.Walls.Net, Redact: guard.Redact, Ceiling: longestCommand,
			Lines: lines.Lines{Programs: programs, Dir: seen.Dir(), ReadOnly: readOnly}})
	}
	return func(allow []string) (execute, review []tool.Tool) {
		look := []tool.Tool{
			closed(tool.Read(seen, guard), seen.Dir()), closed(tool.Glob(seen, guard), seen.Dir()), closed(tool.Grep(seen, guard), seen.Dir())}
		execute = append(look[:len(look):len(look)], tool.Write(seen, apply), tool.Edit(seen, apply),
			bash(walls, append(lines.Execution(), allow...), false))
		review = append(look[:len(look):len(look)], bash(walls.review, lines.Review(), true))
		return execute, review
	}
}

// closed keeps a tool that looks from looking at the loop's own files (ruling
// S6).
func closed(t tool.Tool, root string) tool.Tool {
	run := t.Run
	t.Run = func(ctx context.Context, in tool.Input) (tool.Result, error) {
		var args struct{ Path, Root string }
		if json.Unmarshal(in.Args, &args) == nil && (ownFile(root, args.Path) || ownFile(root, args.Root)) {
			return tool.Failure(taskFolder + " holds hone's own records and is closed; what happened so far stands in your instructions"), nil
		}
		return run(ctx, in)
	}
	return t
}

// ownFile reports whether a path, as a model wrote it, is one of the loop's
// own files.
func ownFile(root, at string) bool {
	if rel, err := filepath.Rel(root, at); err == nil && filepath.IsAbs(at) {
		at = rel
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(path.Clean("/"+filepath.ToSlash(at)), "/"), "/")
	return workspace.Fold(first) == taskFolder
}

// agentTree is a folder's tree as agents see it: without the loop's own files,
// in which every search would find what was searched for.
func agentTree(root string) (*workspace.Tree, error) {
	list, err := listerOf(root)
	if err != nil {
		return nil, err
	}
	return workspace.Open(root, workspace.Options{List: func(ctx context.Context, dir string) (workspace.Listing, error) {
		switch {
		case list == nil && dir == root:
			return walked(root)
		case list == nil:
			return workspace.Listing{}, workspace.ErrNoRepository
		}
		l, err := list(ctx, dir)
		if dir == root {
			l.Kept = withoutOwn(l.Kept)
		}
		return l, err
	}})
}

// walked lists what lies at the top of a folder that no repository holds; what
// is below is walked.
func walked(root string) (workspace.Listing, error) {
	entries, err := os.ReadDir(root)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return workspace.Listing{Kept: withoutOwn(names)}, err
}

func withoutOwn(paths []string) []string {
	var kept []string
	for _, p := range paths {
		if !ownFile("/", p) {
			kept = append(kept, p)
		}
	}
	return kept
}
