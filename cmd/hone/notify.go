package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"hone"
	"hone/cmd/hone/attempts"
	"hone/cmd/hone/kinds"
	"hone/harness"
	"hone/internal/config"
	"hone/internal/render"
	"hone/journal"
	"hone/sandbox"
)

// notifyTimeout limits the notify command.
const notifyTimeout = 10 * time.Second

// notifier runs the command of [notify] when the user is asked a question and when a
// run ends. The command has the user's rights, no input and no providers' keys. It is
// not part of the run: it is not recorded, and its failure is only a note.
type notifier struct {
	command, dir string
	runner       sandbox.Runner
	env          []string
	clean        func(string) string // see app.redactKnown
	note         func(text string)
	running      sync.WaitGroup
}

// notifier returns the notifier of a session; nil if the configuration has none, or if
// the user does not trust it. A new run has asked for that trust. A resumed run reads
// nothing else of the configuration, and does not ask.
func (a *app) notifier(h *harness.Session, note func(text string)) *notifier {
	file, err := config.Load(h.Dir, kinds.Sections())
	if err != nil {
		note(err.Error())
		return nil
	}
	if file.Notify.Command == "" || a.env(attempts.Variable) != "" { // the run of the attempts calls it
		return nil
	}
	needs, err := kinds.Needs(h.Dir, file, kinds.All()...)
	untrusted := func(s config.Setting) bool { return s.Key == "notify.command" }
	if err != nil || slices.ContainsFunc(a.host().Untrusted(needs), untrusted) {
		note("notify.command is not trusted and does not run: hone trust " + h.Dir)
		return nil
	}
	env := append(sandbox.CleanEnv(a.environ, harness.KeyVariables()), "HONE_RUN="+journal.ShortRun(h.ID()), "HONE_DIR="+h.Dir)
	return &notifier{command: file.Notify.Command, dir: h.Dir, runner: h.Unwalled(), env: env, clean: a.redactKnown, note: note}
}

// question runs the command while the user reads a question. The context is not the
// run's, which may end before the command.
func (n *notifier) question(ctx context.Context, q hone.Question) {
	if n != nil {
		n.running.Go(func() { n.run(ctx, "question", "a question waits: "+q.Path) })
	}
}

// end runs the command for a run that has ended, after those for its questions. It does
// not run if the user has interrupted hone.
func (n *notifier) end(ctx context.Context, s ending, exit int) {
	if n == nil {
		return
	}
	n.running.Wait()
	why, _ := s.why()
	n.run(ctx, "end", why, "HONE_RESULT="+string(s.end.Kind), fmt.Sprintf("HONE_EXIT=%d", exit))
}

// run runs the command with the variables of an event.
func (n *notifier) run(ctx context.Context, event, text string, variables ...string) {
	text = n.clean(text)
	env := slices.Concat(n.env, []string{"HONE_EVENT=" + event, "HONE_TEXT=" + render.Line(text)}, variables)
	got, err := n.runner.Run(ctx, sandbox.Command{Argv: []string{"sh", "-c", n.command}, Dir: n.dir, Env: env,
		Timeout: notifyTimeout, MaxOutput: 1 << 16})
	switch {
	case ctx.Err() != nil:
	case err != nil:
		n.note("notify.command: " + err.Error())
	case got.TimedOut:
		n.note(fmt.Sprintf("notify.command was stopped after %s", notifyTimeout))
	case got.Exit != 0:
		first, _, _ := strings.Cut(strings.TrimSpace(string(got.Stderr)), "\n")
		n.note(strings.TrimSuffix(fmt.Sprintf("notify.command failed with exit status %d: %s", got.Exit, first), ": "))
	}
}
