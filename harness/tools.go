package harness

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hone"
	"hone/check"
	"hone/internal/listing"
	"hone/internal/render"
	"hone/loop"
	"hone/sandbox"
	"hone/tool"
	"hone/workspace"
)

// maxCommandTime is the maximum timeout that a model can request for a command,
// such as a build.
const maxCommandTime = 30 * time.Minute

// Tools returns the tools of a role; see [loop.Session]. Their paths are
// relative to the directory of the Toolset, and they change files only through
// the run.
func (s *Session) Tools(set loop.Toolset) ([]tool.Tool, error) {
	tree, err := s.RoleTree(set)
	if err != nil {
		return nil, err
	}
	return s.toolset(set, tree), nil
}

func (s *Session) toolset(set loop.Toolset, tree *workspace.Tree) []tool.Tool {
	tools := []tool.Tool{tool.Read(tree, s.guard), tool.Glob(tree, s.guard), tool.Grep(tree, s.guard)}
	if !set.ReadOnly {
		d := roleDir{set.Dir, s.run}
		tools = append(tools, d.withPaths(tool.Write(tree, s.guard, d.apply)), d.withPaths(tool.Edit(tree, s.guard, d.apply)))
	}
	if s.loop.Shared().Walls.Absent {
		return tools
	}
	b := tool.BashConfig{Net: s.loop.Shared().Walls.Net, Redact: s.guard.Redact, MaxTimeout: maxCommandTime, Lines: set.Lines(tree.Dir())}
	b.Lines.Walled = !s.loop.Shared().Walls.None()
	if line := s.loop.Shared().Check; line != "" && !set.ReadOnly && set.Dir == "" {
		c := s.commandConfig(line, tree)
		b.Lines.Always, b.CheckTimeout = append(slices.Clip(b.Lines.Always), line), c.Limit()
		b.Verdict = func(ran string) func(sandbox.Result) tool.Verdict {
			if ran != line {
				return func(sandbox.Result) (v tool.Verdict) { return v }
			}
			read := c.Begin()
			judges, err := s.run.ChangedJudges()
			return func(r sandbox.Result) tool.Verdict {
				found, old, failed := s.run.New(read(r))
				v, sure := verdict(found, r), errors.Join(err, failed) == nil
				v.Passed = v.Passed && sure && len(judges) == 0
				if v.Text == passes && old > 0 {
					v.Text = "nothing is new, so the check counts as passed; " + render.Count(old, "finding") + " from before the run do not count"
				}
				if v.Text == passes && sure && len(judges) > 0 {
					v.Text += " with the changes to " + render.Names(judges) + ", which is part of the check. hone also runs it without these changes. If it fails then, the user decides about them: use a right way without them if there is one; otherwise end, and say why they are right"
				}
				return v
			}
		}
	}
	w := set.Walls
	if w == nil {
		w = s.commandWalls()
	}
	return append(tools, tool.Bash(behind{walls: w.(*Walls), model: true, lines: true, same: b.Lines.Always}, b))
}

const passes = "the check passes"

// It uses the words of the prompt (ruling S12). The output may say more if no reader understood it.
func verdict(found []check.Finding, r sandbox.Result) tool.Verdict {
	blocking := check.BlockingOf(found)
	switch {
	case len(blocking) == 0:
		return tool.Verdict{Text: passes, All: true, Passed: true}
	case !slices.ContainsFunc(blocking, func(f check.Finding) bool { return f.ID != "" }):
		return tool.Verdict{Text: "the check fails"}
	}
	reports := "the check reports "
	if r.Discarded > 0 || r.TimedOut {
		reports += "at least "
	}
	return tool.Verdict{Text: reports + check.Tally(blocking) + ":\n\n" + strings.Join(loop.ForModel(found), "\n\n"), All: true}
}

// treeKey is the part of a Toolset that its tree depends on.
type treeKey struct{ folder, closed, why string }

// RoleTree returns the tree that the tools of a Toolset read; see
// [loop.Session].
func (s *Session) RoleTree(set loop.Toolset) (*workspace.Tree, error) {
	key := treeKey{set.Dir, set.Closed, set.Why}
	if tree, ok := s.trees[key]; ok || set.Dir == "" && set.Closed == "" {
		return cmp.Or(tree, s.Tree), nil
	}
	if set.Dir != "" {
		if err := loop.MakeDir(s.Dir, set.Dir); err != nil {
			return nil, err
		}
	}
	root := filepath.Join(s.Dir, filepath.FromSlash(set.Dir))
	list, err := listing.Of(root, s.Dir)
	if err != nil {
		return nil, err
	}
	tree, err := workspace.Open(root, workspace.Options{List: list, Whole: s.Tree})
	if err != nil {
		return nil, err
	}
	if set.Closed != "" {
		tree.Shut(set.Why, set.Closed)
	}
	s.trees[key] = tree
	return tree, nil
}

// roleDir is a directory of the workspace that is the whole tree for a role.
type roleDir struct {
	dir string // with slashes; empty means the workspace
	run *hone.Run
}

// Its paths are relative to the directory.
func (d roleDir) withPaths(t tool.Tool) tool.Tool {
	if d.dir == "" {
		return t
	}
	run := t.Run
	t.Run = func(ctx context.Context, in tool.Input) (tool.Result, error) {
		if original := in.Original; original != nil {
			in.Original = func(p string) ([]byte, bool) { return original(d.dir + "/" + p) }
		}
		return run(ctx, in)
	}
	return t
}

func (d roleDir) apply(ctx context.Context, ch workspace.Change, seen func(string) (string, bool)) ([]workspace.Verdict, error) {
	if d.dir == "" {
		return d.run.Apply(ctx, ch, seen)
	}
	outer := workspace.Change{Edits: slices.Clone(ch.Edits)}
	for i, e := range outer.Edits {
		if !filepath.IsLocal(filepath.FromSlash(e.Path)) {
			refused := make([]workspace.Verdict, len(ch.Edits))
			for i, e := range ch.Edits {
				refused[i] = workspace.Verdict{Path: e.Path, Ruling: workspace.Deny, Reason: "its path is outside the directory"}
			}
			return refused, nil
		}
		outer.Edits[i].Path = d.dir + "/" + e.Path
	}
	verdicts, err := d.run.Apply(ctx, outer, func(p string) (string, bool) { return seen(strings.TrimPrefix(p, d.dir+"/")) })
	for i := range verdicts {
		verdicts[i].Path = strings.TrimPrefix(verdicts[i].Path, d.dir+"/")
	}
	return verdicts, err
}
