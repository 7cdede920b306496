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

// longestCommand is the most time that a model can ask for a command, such as
// for a build.
const longestCommand = 30 * time.Minute

// Tools are what a role can call; see [loop.Session]. Paths are relative to the
// bench's folder, and changes go through the run.
func (s *Session) Tools(b loop.Toolset) ([]tool.Tool, error) {
	seen, err := s.seen(b.Folder, b.Closed)
	if err != nil {
		return nil, err
	}
	return s.bench(b, seen), nil
}

// bench are a bench's tools for a tree.
func (s *Session) bench(b loop.Toolset, seen *workspace.Tree) []tool.Tool {
	tools := lookers(seen, s.guard, b.Closed, b.Why)
	if !b.ReadOnly {
		at := seat{b.Folder, s.run}
		tools = append(tools, at.changing(tool.Write(seen, at.apply)), at.changing(tool.Edit(seen, at.apply)))
	}
	lines := b.Lines(seen.Dir())
	if check := s.loop.Shared().Check; check != "" && !b.ReadOnly && b.Folder == "" {
		lines.Always = []string{check}
	}
	w := b.Walls
	if w == nil {
		w = s.commands()
	}
	return append(tools, tool.Bash(w, tool.BashConfig{Net: s.loop.Shared().Walls.Net, Redact: s.guard.Redact, MaxTimeout: longestCommand, Lines: lines}))
}

// seen is a folder's tree as a role sees it: without the files of one folder at
// its top, in which every search would find what was searched for.
func (s *Session) seen(folder, closed string) (*workspace.Tree, error) {
	at := [2]string{folder, closed}
	if tree, ok := s.trees[at]; ok || folder == "" && closed == "" {
		return cmp.Or(tree, s.Tree), nil
	}
	if folder != "" {
		if err := loop.MakeFolder(s.Dir, folder); err != nil {
			return nil, err
		}
	}
	root := filepath.Join(s.Dir, filepath.FromSlash(folder))
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

// lookers are the tools that look at a tree. One folder of it is closed to
// them, and a model that looks there is told why; empty
// closes none.
func lookers(seen *workspace.Tree, guard *secret.Guard, folder, why string) []tool.Tool {
	looks := []tool.Tool{tool.Read(seen, guard), tool.Glob(seen, guard), tool.Grep(seen, guard)}
	if folder == "" {
		return looks
	}
	for i, t := range looks {
		looks[i].Run = func(ctx context.Context, in tool.Input) (tool.Result, error) {
			var args struct{ Path, Root string }
			if json.Unmarshal(in.Args, &args) == nil && (listing.InFolder(seen.Dir(), folder, args.Path) || listing.InFolder(seen.Dir(), folder, args.Root)) {
				return tool.Failure(why), nil
			}
			return t.Run(ctx, in)
		}
	}
	return looks
}

// seat is a folder of the workspace that a role sees as its whole world.
type seat struct {
	folder string // with slashes; empty is the workspace
	run    *hone.Run
}

// changing is a tool that changes files, whose paths are those of the folder.
func (s seat) changing(t tool.Tool) tool.Tool {
	if s.folder == "" {
		return t
	}
	run := t.Run
	t.Run = func(ctx context.Context, in tool.Input) (tool.Result, error) {
		if was := in.Original; was != nil {
			in.Original = func(p string) ([]byte, bool) { return was(s.folder + "/" + p) }
		}
		return run(ctx, in)
	}
	return t
}

// apply changes what lies in the folder, by the one door to the tree.
func (s seat) apply(ctx context.Context, ch workspace.Change, seen func(string) (string, bool)) ([]workspace.Verdict, error) {
	if s.folder == "" {
		return s.run.Apply(ctx, ch, seen)
	}
	outer := workspace.Change{Edits: slices.Clone(ch.Edits)}
	for i, e := range outer.Edits {
		if !filepath.IsLocal(filepath.FromSlash(e.Path)) {
			return refuseAll(ch, "its path is outside the directory"), nil
		}
		outer.Edits[i].Path = s.folder + "/" + e.Path
	}
	verdicts, err := s.run.Apply(ctx, outer, func(p string) (string, bool) { return seen(strings.TrimPrefix(p, s.folder+"/")) })
	for i := range verdicts {
		verdicts[i].Path = strings.TrimPrefix(verdicts[i].Path, s.folder+"/")
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
