package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"hone"
	"hone/internal/render"
	"hone/sandbox"
)

const notifyTimeout = 10 * time.Second

// notifier runs the command of [notify] when the user is asked a question and when a
// run ends. The command has the user's rights, no input and no providers' keys. It is
// not part of the run: it is not recorded, and its failure is only a note. A nil notifier
// does nothing.
type notifier struct {
	Command string // for sh -c
	Dir     string
	Runner  sandbox.Runner
	Env     []string
	Clean   func(string) string // removes secrets from what the command is told
	Note    func(text string)   // tells the user
	running sync.WaitGroup
}

// Question runs the command while the user reads a question. The context is not the
// run's, which may end before the command.
func (n *notifier) Question(ctx context.Context, q hone.Question) {
	if n != nil {
		n.running.Go(func() { n.run(ctx, "question", "a question waits: "+q.About()) })
	}
}

// End runs the command for a run that has ended, after those for its questions. It does
// not run if the user has interrupted hone.
func (n *notifier) End(ctx context.Context, why string, kind hone.Kind, exit int) {
	if n == nil {
		return
	}
	n.running.Wait()
	n.run(ctx, "end", why, "HONE_RESULT="+string(kind), fmt.Sprintf("HONE_EXIT=%d", exit))
}

func (n *notifier) run(ctx context.Context, event, text string, variables ...string) {
	text = n.Clean(text)
	env := slices.Concat(n.Env, []string{"HONE_EVENT=" + event, "HONE_TEXT=" + render.Line(text)}, variables)
	got, err := n.Runner.Run(ctx, sandbox.Command{Argv: []string{"sh", "-c", n.Command}, Dir: n.Dir, Env: env,
		Timeout: notifyTimeout, MaxOutput: 1 << 16})
	switch {
	case ctx.Err() != nil:
	case err != nil:
		n.Note("notify.command: " + err.Error())
	case got.TimedOut:
		n.Note(fmt.Sprintf("notify.command was stopped after %s", notifyTimeout))
	case got.Exit != 0:
		first, _, _ := strings.Cut(strings.TrimSpace(string(got.Stderr)), "\n")
		n.Note(strings.TrimSuffix(fmt.Sprintf("notify.command failed with exit status %d: %s", got.Exit, first), ": "))
	}
}
