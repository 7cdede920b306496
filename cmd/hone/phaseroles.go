package main

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"hone"
	"hone/loop/phase"
	"hone/model"
	"hone/tool"
	lines "hone/tool/allow"
	"hone/workspace"
)

// staff gives a loop its roles: each a model with tools, or an agent, in its
// own folder.
func (a *app) staff(l *phase.Loop, o session, r *hone.Run, s phaseSettings, walls *phaseWalls) error {
	for _, one := range []struct {
		role   *hone.Role
		name   string
		model  modelSettings
		opened model.Model
		system string
		folder string
		walls  *runWalls
	}{
		{&l.Builder, "builder", s.Model, o.models[0], s.BuilderSystem, phase.Src, walls.builder},
		{&l.Writer, "verifier", s.Verifier, o.models[1], s.VerifierSystem, phase.Tests, walls.writer},
		{&l.Verifier, "verifier", s.Verifier, o.models[1], s.VerifierSystem, phase.Tests, walls.verifier},
	} {
		*one.role = s.role(one.name, one.model, one.system)
		one.role.Model, one.role.Folder = one.opened, one.folder
		if one.model.Agent != nil {
			agent, err := a.enclose(one.model, one.name, r, one.walls, l.Guard.Redact)
			if err != nil {
				return err
			}
			one.role.Model = agent
			if text := one.model.exposed(); text != "" {
				walls.told = append(walls.told, text)
			}
			continue
		}
		tools, err := walls.trees.tools(o.root, one.folder, l.Guard, r, one.walls, s.Walls.Net)
		if err != nil {
			return err
		}
		one.role.Tools = tools
	}
	return nil
}

// role is a role of the settings, without a model and tools.
func (s phaseSettings) role(name string, m modelSettings, system string) hone.Role {
	role := m.role(name, system, nil)
	role.Agent, role.Bounds = m.Agent != nil, hone.Bounds{Turns: s.Turns, Calls: s.Calls}
	return role
}

// seats are the folders that roles see as their whole world, opened.
type seats struct{ trees []*workspace.Tree }

func (s seats) close() {
	for _, t := range s.trees {
		t.Close()
	}
}

// tools are what a role can call, by paths that are relative to its folder
// (ruling A8). The logs of hooks, in the verifier's folder, are closed to it
// (ruling A7).
func (s *seats) tools(root, folder string, guard *workspace.Guard, r *hone.Run, walls *runWalls, net bool) ([]tool.Tool, error) {
	if err := makeFolder(root, folder); err != nil {
		return nil, err
	}
	logs := path.Base(phase.Results)
	seen, err := treeWithout(filepath.Join(root, folder), logs)
	if err != nil {
		return nil, err
	}
	s.trees = append(s.trees, seen)
	at := seat{folder, r}
	return append(lookers(seen, guard, logs, logs+" holds the logs of other parts of this loop and is closed"),
		at.changing(tool.Write(seen, at.apply)), at.changing(tool.Edit(seen, at.apply)),
		tool.Bash(walls, tool.BashConfig{Net: net, Redact: guard.Redact, MaxTimeout: longestCommand, Lines: lines.Lines{Dir: seen.Dir()}})), nil
}

// seat is a folder of a project that a role sees as its whole world.
type seat struct {
	folder string
	run    *hone.Run
}

// changing is a tool that changes files, whose paths are those of the folder.
func (s seat) changing(t tool.Tool) tool.Tool {
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
	outer := workspace.Change{Edits: slices.Clone(ch.Edits)}
	for i, e := range outer.Edits {
		if !filepath.IsLocal(filepath.FromSlash(e.Path)) {
			return refuseAll(ch, "its path does not lie in the folder"), nil
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
