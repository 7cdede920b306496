package harness

import (
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hone"
	"hone/internal/listing"
	"hone/loop"
	"hone/tool"
	"hone/workspace"
	"hone/workspace/secret"
)

// maxCommandTime is the maximum timeout that a model can request for a command,
// such as a build.
const maxCommandTime = 30 * time.Minute

// Tools returns the tools of a role; see [loop.Session]. Their paths are
// relative to the directory of the Toolset, and they change files only through
// the run.
func (s *Session) Tools(b loop.Toolset) ([]tool.Tool, error) {
	seen, err := s.roleTree(b.Folder, b.Closed)
	if err != nil {
		return nil, err
	}
	return s.toolset(b, seen), nil
}

// toolset returns the tools of a Toolset for a tree.
func (s *Session) toolset(b loop.Toolset, seen *workspace.Tree) []tool.Tool {
	tools := readTools(seen, s.guard, b.Closed, b.Why)
	if !b.ReadOnly {
		d := roleDir{b.Folder, s.run}
		tools = append(tools, d.withPaths(tool.Write(seen, d.apply)), d.withPaths(tool.Edit(seen, d.apply)))
	}
	lines := b.Lines(seen.Dir())
	if check := s.loop.Shared().Check; check != "" && !b.ReadOnly && b.Folder == "" {
		lines.Always = []string{check}
	}
	w := b.Walls
	if w == nil {
		w = s.commandWalls()
	}
	return append(tools, tool.Bash(w, tool.BashConfig{Net: s.loop.Shared().Walls.Net, Redact: s.guard.Redact, MaxTimeout: maxCommandTime, Lines: lines}))
}

// roleTree returns the tree of a directory as a role sees it: without the
// closed directory at its top, where every search would find what it searches
// for.
func (s *Session) roleTree(dir, closed string) (*workspace.Tree, error) {
	at := [2]string{dir, closed}
	if tree, ok := s.trees[at]; ok || dir == "" && closed == "" {
		return cmp.Or(tree, s.Tree), nil
	}
	if dir != "" {
		if err := loop.MakeFolder(s.Dir, dir); err != nil {
			return nil, err
		}
	}
	root := filepath.Join(s.Dir, filepath.FromSlash(dir))
	list, err := listing.Without(root, closed)
	if err != nil {
		return nil, err
	}
	tree, err := workspace.Open(root, workspace.Options{List: list})
	if err == nil {
		s.trees[at] = tree
	}
	return tree, err
}

// readTools returns the tools that read a tree. If closed is not empty, a model
// that reads that directory is told why it may not.
func readTools(seen *workspace.Tree, guard *secret.Guard, closed, why string) []tool.Tool {
	tools := []tool.Tool{tool.Read(seen, guard), tool.Glob(seen, guard), tool.Grep(seen, guard)}
	if closed == "" {
		return tools
	}
	for i, t := range tools {
		tools[i].Run = func(ctx context.Context, in tool.Input) (tool.Result, error) {
			var args struct{ Path, Root string }
			if json.Unmarshal(in.Args, &args) == nil && (listing.InDir(seen.Dir(), closed, args.Path) || listing.InDir(seen.Dir(), closed, args.Root)) {
				return tool.Failure(why), nil
			}
			return t.Run(ctx, in)
		}
	}
	return tools
}

// roleDir is a directory of the workspace that is the whole tree for a role.
type roleDir struct {
	dir string // with slashes; empty means the workspace
	run *hone.Run
}

// withPaths returns a tool that changes files, with paths relative to the
// directory.
func (s roleDir) withPaths(t tool.Tool) tool.Tool {
	if s.dir == "" {
		return t
	}
	run := t.Run
	t.Run = func(ctx context.Context, in tool.Input) (tool.Result, error) {
		if original := in.Original; original != nil {
			in.Original = func(p string) ([]byte, bool) { return original(s.dir + "/" + p) }
		}
		return run(ctx, in)
	}
	return t
}

// apply changes files of the directory, through the run.
func (s roleDir) apply(ctx context.Context, ch workspace.Change, seen func(string) (string, bool)) ([]workspace.Verdict, error) {
	if s.dir == "" {
		return s.run.Apply(ctx, ch, seen)
	}
	outer := workspace.Change{Edits: slices.Clone(ch.Edits)}
	for i, e := range outer.Edits {
		if !filepath.IsLocal(filepath.FromSlash(e.Path)) {
			return refuseAll(ch, "its path is outside the directory"), nil
		}
		outer.Edits[i].Path = s.dir + "/" + e.Path
	}
	verdicts, err := s.run.Apply(ctx, outer, func(p string) (string, bool) { return seen(strings.TrimPrefix(p, s.dir+"/")) })
	for i := range verdicts {
		verdicts[i].Path = strings.TrimPrefix(verdicts[i].Path, s.dir+"/")
	}
	return verdicts, err
}

// refuseAll refuses every edit of a change.
func refuseAll(ch workspace.Change, why string) []workspace.Verdict {
	verdicts := make([]workspace.Verdict, len(ch.Edits))
	for i, e := range ch.Edits {
		verdicts[i] = workspace.Verdict{Path: e.Path, Ruling: workspace.Deny, Reason: why}
	}
	return verdicts
}
