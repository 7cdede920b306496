package history_test

import (
	"context"
	"testing"

	"hone"
	"hone/check"
	"hone/internal/crashtest"
	"hone/workspace"
)

// process is one process of a program on a workspace: it starts a run or resumes
// the last one, for three rounds.
type process struct {
	ctx   context.Context // nil: never canceled
	round hone.Round
	set   func(*hone.Run) // may be nil
}

// end returns how the process ended.
func (p process) end(t testing.TB, dir string) hone.End {
	t.Helper()
	return crashtest.Process{Ctx: p.ctx, Setup: func(r *hone.Run) hone.Round {
		r.Limits.Rounds = 3
		if p.set != nil {
			p.set(r)
		}
		return p.round
	}}.End(t, dir)
}

func edit(path, content string) workspace.Edit {
	return workspace.Edit{Path: path, Content: []byte(content)}
}

func wrong(s string) check.Finding { return check.Finding{Source: "test", Text: s} }

// seen is the result of a step.
type seen struct {
	What string `json:"what"`
}
