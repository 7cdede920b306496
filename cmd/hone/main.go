// Command hone runs bounded, unattended loops in which a language model edits
// a code base and something that is not the model says whether it is right.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"hone"
	"hone/internal/render"
	"hone/journal"
	"hone/sandbox"
	"hone/sandbox/prove"
)

// Version is the program's, set when a release is built.
var Version = "devel"

func main() {
	// A helper of the walls does not come back from here.
	sandbox.Helper()
	prove.Helper()
	os.Exit(Main(os.Args[1:], journal.Observer{}))
}

// Main is the whole program but for the exit, so that tests can be it. The
// observer is added to every journal that is opened.
func Main(args []string, o journal.Observer) int {
	ownFiles()
	ctx, stop := interruptible()
	defer stop()
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.Getenv, environ: os.Environ(), observer: o}
	a.terminal = term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd()))
	a.colour = a.terminal && a.env("NO_COLOR") == "" && a.env("TERM") != "dumb"
	return a.run(ctx, args)
}

// interruptible is a context that the first signal cancels, so that what is
// under way ends in order and can be resumed. The second ends the process.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		if _, ok := <-signals; !ok {
			return
		}
		cancel()
		if _, ok := <-signals; ok {
			os.Exit(exitStatus(hone.KindInterrupted))
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel()
	}
}

// app is the program with the world that it runs in.
type app struct {
	in       *os.File
	out, err io.Writer
	env      func(string) string
	environ  []string
	terminal bool // somebody is there to see and answer
	colour   bool
	observer journal.Observer
	began    bool // the command line was understood, and a command is at work
	exit     int
}

// run runs a command line and returns the exit status.
func (a *app) run(ctx context.Context, args []string) int {
	if clean := redactor(knownKeys(a.env)); clean != nil {
		a.out, a.err = redacted{a.out, clean}, redacted{a.err, clean}
	}
	root := a.command()
	root.SetArgs(codescribeArgs(args))
	root.SetOut(a.out)
	root.SetErr(a.err)
	if c, err := root.ExecuteContextC(ctx); err != nil {
		return a.fail(c, err)
	}
	return a.exit
}

// redacted is a writer that keys do not get through. Callers write whole
// lines, so that no key is split.
type redacted struct {
	w     io.Writer
	clean func(string) string
}

func (r redacted) Write(b []byte) (int, error) {
	if _, err := io.WriteString(r.w, r.clean(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// hinter is an error of a lower room that knows what to do about it.
type hinter interface{ Hint() string }

// fail says an error of a command and returns its exit status. An error that
// explains nothing came from the command line itself, or else from the disk and
// the like.
func (a *app) fail(c *cobra.Command, err error) int {
	f, ok := explained(err)
	if !ok {
		f = &failure{kind: hone.KindUsage, why: err.Error(), hint: helpFor(c)}
		if a.began {
			f.kind, f.hint = hone.KindFailed, "hone doctor"
		}
		if h := hinter(nil); errors.As(err, &h) {
			f.hint = h.Hint()
		}
	}
	a.say("error", f.Error())
	a.say("hint", f.hint)
	return exitStatus(f.kind)
}

// helpFor is what to type to learn how a command is used.
func helpFor(c *cobra.Command) string {
	_, sub, _ := strings.Cut(c.CommandPath(), " ")
	return strings.TrimSpace("hone help " + sub)
}

// say prints a text in the form of all errors and hints, one line each.
func (a *app) say(what, text string) {
	if text == "" {
		return
	}
	fmt.Fprintf(a.err, "hone: %s: %s\n", what, strings.TrimRight(render.Escape(text), "\n"))
}

func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "hone",
		Short: "loops in which a model edits a tree and something else says whether it is right",
		Long: `hone runs bounded, unattended loops in which a language model edits a code base and
something that is not the model says whether the result is right.

Start with: hone demo`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		PersistentPreRun: func(*cobra.Command, []string) {
			a.began = true
		},
		RunE: func(c *cobra.Command, _ []string) error {
			return errors.Join(c.Help(), nil)
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = false
	root.AddCommand(a.reconcileCommand(), a.implementCommand(), a.taskCommand(), a.phaseCommand(), a.rollupCommand(), a.demoCommand(), a.initCommand(), a.promptCommand(), a.runsCommand(),
		a.showCommand(), a.resumeCommand(), a.undoCommand(), a.replayCommand(), a.sandboxCommand(), a.doctorCommand(), a.versionCommand())
	completeHelp(root)
	completeCompletion(root)
	return root
}

// completeCompletion wants a shell to be named.
func completeCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	c, _, err := root.Find([]string{"completion"})
	if err != nil || c == root {
		return
	}
	c.RunE = func(*cobra.Command, []string) error {
		return usage("completion needs to know for which shell", "hone completion bash, zsh, fish or powershell")
	}
}

// completeHelp makes help about a command that there is not an error.
func completeHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil || help == root {
		return
	}
	say := help.Run
	help.Run = nil
	help.RunE = func(c *cobra.Command, args []string) error {
		if about, rest, err := root.Find(args); err != nil || about.HasSubCommands() && len(rest) > 0 {
			return usage(fmt.Sprintf("there is no command %q to help with", strings.Join(args, " ")), "hone help")
		}
		say(c, args)
		return nil
	}
}

// oneRun wants a run, and nothing else, after a command's name.
func oneRun(c *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return usage(fmt.Sprintf("%s needs one RUN: an id from hone runs, the beginning of one, or last", c.Name()), helpFor(c))
}
