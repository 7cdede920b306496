package main

import (
	"context"
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
		return tool.Bash(w, tool.BashConfig{Net: s.Walls.Net, Redact: guard.Redact, MaxTimeout: longestCommand,
			Lines: lines.Lines{Programs: programs, Dir: seen.Dir(), ReadOnly: readOnly}})
	}
	return func(allow []string) (execute, review []tool.Tool) {
		look := lookers(seen, guard, taskFolder, taskFolder+" holds hone's own records and is closed; what happened so far stands in your instructions")
		execute = append(look[:len(look):len(look)], tool.Write(seen, apply), tool.Edit(seen, apply),
			bash(walls, append(lines.Execution(), allow...), false))
		review = append(look[:len(look):len(look)], bash(walls.review, lines.Review(), true))
		return execute, review
	}
}
