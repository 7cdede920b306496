package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"hone"
	"hone/cmd/hone/attempts"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/cmd/hone/page"
	"hone/cmd/hone/report"
	"hone/cmd/hone/screen"
	"hone/cmd/hone/web"
	"hone/harness"
	"hone/history"
	"hone/internal/config"
	"hone/internal/render"
	"hone/journal"
	"hone/loop"
	"hone/sandbox"
	"hone/story"
)

func (a *app) drive(ctx context.Context, h *harness.Session, o outputFlags) (end hone.End, err error) {
	defer surviveBrokenPipe()()
	a.conceal(h.Guard())
	if config.Approve.In(h.Settings().Values) == "ask" && a.present() {
		h.Terminal = a.in
	}
	built, err := h.Build()
	if err != nil {
		return end, err
	}
	r := built.Run
	options := a.screenOptions(h, built, o)
	onOut := built.VerboseOut && o.verbose && !o.json && !(a.terminal && a.outTerminal)
	if onOut {
		options.Size = nil
	}
	s := screen.New(a.err, options)
	defer s.Close()
	questions := s
	if onOut {
		options.Colour = a.outColour
		s = screen.New(a.out, options)
		defer s.Close()
	}
	notify := a.notifier(h, func(text string) { questions.Say("hone: note: %s", text) })
	if o.ack {
		var stop func()
		ctx, stop = awaitAcks(ctx, r, a.in)
		defer stop()
	}
	reply := a.connect(h, r, s, o)
	r.Human = a.human(h, questions, func(q hone.Question) { notify.Question(ctx, q) })
	if config.Approve.In(h.Settings().Values) == "all" {
		s.Say("hone: --approve=all approves every change without asking")
	}
	if err := h.Begin(); err != nil {
		return end, err
	}
	if !o.quiet {
		sayStart(s, h, built.With)
	}
	serving := ctx // the page stays until the run has stopped
	if o.web {
		own := &web.OwnRun{ID: h.ID(), Reply: reply}
		var say func(string)
		if a.present() {
			say = func(text string) { s.Say("%s", text) }
			ctx, r.Human = own.Attend(ctx, r.Human, say)
			defer own.Stop()
		}
		link, stop, err := a.serveRun(serving, h.Home.Workspace(), own, say)
		if err != nil {
			return end, err
		}
		defer stop()
		s.Say("hone: page: %s", link)
	}
	announced := make(chan struct{})
	unused := context.AfterFunc(ctx, func() { s.Stopping(); close(announced) })
	before := len(r.Past().Events())
	end, err = r.Do(ctx, built.Round)
	if !unused() {
		<-announced
	}
	if r.Past().Facts().AtEnd && len(r.Past().Events()) == before {
		s.Say("hone: the run had ended before, and this is how; nothing was done now")
	}
	s.Close()
	err = errors.Join(err, h.CloseWalls())
	a.exit = failure.ExitStatus(end.Kind)
	if built.Finish != nil {
		err = errors.Join(err, built.Finish(context.WithoutCancel(ctx), end))
	}
	ended := a.showEnding(h, built, end, err == nil, o)
	notify.End(ctx, ended.Why(), end.Kind, a.exit)
	return end, err
}

func (a *app) showEnding(h *harness.Session, built loop.Built, end hone.End, ok bool, o outputFlags) report.Account {
	start, _ := built.Run.Past().First().Payload.(hone.Start)
	ended := report.Ending(&report.Run{Home: h.Home, ID: h.ID(), Past: built.Run.Past(), Start: start}, end, h.Active(), !o.quiet)
	columns, _ := a.outExtent()
	if o.json {
		columns = 0
	}
	ended.Print(a.results(o), a.outColour, columns)
	if built.Summary != nil && ok {
		fmt.Fprint(a.results(o), built.Summary(end))
	}
	return ended
}

// with names what it works with; empty means its models.
func sayStart(s *screen.Screen, h *harness.Session, with string) {
	s.Say("hone: run %s, %s with %s", h.ID(), h.Loop(), cmp.Or(with, story.ModelName(h.Settings().Model.Names()), "no model"))
	if m := h.Settings().Model; m.Escalation != nil {
		s.Say("hone: %s does the rounds after %d in a row without fewer findings", story.ModelName(m.Escalation.Name), cmp.Or(m.EscalateAfter, hone.DefaultEscalateAfter))
	}
	if advice := h.Settings().RepoAdvice; advice.File != "" {
		s.Say("hone: %s", advice)
	}
	for _, opening := range h.Openings() {
		s.Say("hone: %s", opening)
	}
}

// Live lines need a terminal, and would get between the lines of --json.
func (a *app) screenOptions(h *harness.Session, built loop.Built, o outputFlags) screen.Options {
	r := built.Run
	options := screen.Options{Options: story.Options{Verbose: o.verbose, Get: h.Home.Get, Own: r.Own, Rounds: cmp.Or(built.Rounds, r.Limits.Rounds), Turns: built.Turns,
		Check: cmp.Or(built.Checks, h.Settings().Check), Asking: built.Asking}, Colour: a.errColour, Quiet: o.quiet, Tokens: r.Limits.Tokens, At: failure.Elsewhere(h.Dir)}
	if !o.quiet && !o.json {
		options.Size = a.errSize
	}
	return options
}

// It is nil if the configuration has none, or if the user does not trust it. A new run has asked for that trust. A resumed run
// reads nothing else of the configuration, and does not ask.
func (a *app) notifier(h *harness.Session, note func(text string)) *notifier {
	file, err := config.Load(h.Dir)
	if err != nil {
		note(err.Error())
		return nil
	}
	if config.Notify.In(file.Shared()) == "" || a.env(attempts.Variable) != "" { // the run of the attempts calls it
		return nil
	}
	needs, err := kinds.Needs(h.Dir, file, kinds.All()...)
	untrusted := func(s config.Opening) bool { return s.Key == "notify.command" }
	if err != nil || slices.ContainsFunc(a.host().Untrusted(needs), untrusted) {
		note("notify.command is not trusted and does not run: hone trust " + failure.Quoted(h.Dir))
		return nil
	}
	env := append(sandbox.OwnEnviron(sandbox.CleanEnv(a.environ, harness.KeyVariables()), h.Dir), "HONE_RUN="+journal.ShortRun(h.ID()), "HONE_DIR="+h.Dir)
	return &notifier{Command: config.Notify.In(file.Shared()), Dir: h.Dir, Runner: h.Unwalled(), Env: env, Clean: a.redactKnown, Note: note}
}

// --json reserves stdout for events.
func (a *app) results(o outputFlags) io.Writer {
	if o.json {
		return a.err
	}
	return a.out
}

// A run continues after its reader exits, as in "hone task … | head". Only its output is lost. SIGPIPE is caught instead of
// ignored, because child processes would inherit an ignored signal.
func surviveBrokenPipe() (undo func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGPIPE)
	return func() { signal.Stop(signals) }
}

// reply is that of a model as it arrives, for the page; nil without a page.
func (a *app) connect(h *harness.Session, r *hone.Run, s *screen.Screen, o outputFlags) (reply *page.Reply) {
	h.Output = s
	h.Thoughts = func(text string) { s.Around(func() { fmt.Fprintln(a.results(o), render.Escape(text)) }) }
	if o.web {
		reply = &page.Reply{}
	}
	r.Journal.Observe(history.Observer(func(e history.Event) {
		s.Show(e)
		if o.json || a.log != nil {
			line := eventLine(e)
			if o.json {
				fmt.Fprintf(a.out, "%s\n", line)
			}
			if a.log != nil {
				if _, err := io.WriteString(a.log, a.redactKnown(string(line))+"\n"); err != nil { // the run goes on, because its journal has the event
					s.Say("hone: note: --log: %v; the rest is not in the file; hone show last --json prints it", err)
					a.log = nil
				}
			}
		}
		reply.Show(e)
	}))
	if r.Received = s.Received; o.verbose || a.errSize != nil || o.web {
		h.Stream(func(text string) { s.Text(text); reply.Add(text) })
	}
	return reply
}

// It is nil if the session asks none. waits is called for each question that the user is asked.
func (a *app) human(h *harness.Session, questions *screen.Screen, waits func(hone.Question)) (human hone.Human) {
	if a.terminal {
		environ := sandbox.OwnEnviron(a.environ, h.Dir)
		p := screen.NewPrompter(questions, a.answerLine)
		p.Waits, p.Present, p.Page = waits, a.present, func(text string) error { return showInPager(os.Stderr, environ, a.redactKnown(text)) }
		p.Edit = func(path string, content []byte) ([]byte, error) {
			return editText(a.in, environ, history.ScratchPrefix(h.ID()), path, content)
		}
		human = p
	}
	switch config.Approve.In(h.Settings().Values) {
	case "all":
		human = hone.Always{Others: human}
	case "none":
		human = hone.Never{Others: human}
	}
	if len(a.given) > 0 {
		return answering{Run: h.ID(), Given: a.given, Others: human}
	}
	return human
}
