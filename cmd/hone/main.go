// Command hone runs bounded, unattended loops in which a language model edits
// a code base. A check, and not the model, decides whether the result is right.
//
// The package has one file for each command that is not a loop, and groups in help.go
// lists all commands. A run of a loop starts in start.go and ends in drive.go; app.go has
// what all commands share: streams, the terminal, the environment. A command parses its
// flags, asks a package for one thing, and prints it. What needs none of these is in packages
// below this one: kinds lists the loops, failure words hints and chooses exit statuses,
// screen shows a run that works, and report opens one and says what it did. This
// package is larger than others because users type its commands and nothing imports them.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"hone"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/harness"
	"hone/internal/config"
	"hone/internal/render"
	"hone/journal"
	"hone/sandbox"

	_ "hone/sandbox/wall/early"
)

// Version is the version of the program. Release builds set it.
var Version = "devel"

func main() {
	// In a helper process of a wall this call does not return.
	harness.Main()
	collectLater()
	os.Exit(Main(os.Args[1:], journal.Observer{}, nil))
}

// collectLater makes the first garbage collection wait for a heap of 16 MB instead of 4: a small
// job ends before that, and takes a quarter less CPU. Later collections are as usual, and all are
// if the user has set GOGC.
func collectLater() {
	if os.Getenv("GOGC") != "" {
		return
	}
	usual := debug.SetGCPercent(400)
	runtime.AddCleanup(new(*int), func(percent int) { debug.SetGCPercent(percent) }, usual)
}

// ignoreBlankPlaces removes the blank variables that the os package would take for a path. Others are as if not set wherever hone
// reads them.
func ignoreBlankPlaces() {
	for _, variable := range []string{"XDG_CACHE_HOME", "TMPDIR"} {
		if strings.TrimSpace(os.Getenv(variable)) == "" {
			_ = os.Unsetenv(variable)
		}
	}
}

// Main runs the program and returns its exit status, so that tests can run it
// in their own binary. It adds the observer to every journal that it opens. walls
// returns the kinds of walls of this system; nil means those that it really has.
func Main(args []string, o journal.Observer, walls func() []sandbox.Wall) int {
	ensureOwnerAccess()
	ignoreBlankPlaces()
	cobra.EnableCommandSorting = false // the help lists commands by how often they are used
	ctx, stop := interruptContext()
	defer stop()
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.Getenv, environ: os.Environ(), observer: o, walls: walls}
	errTerminal := term.IsTerminal(int(os.Stderr.Fd()))
	a.terminal = term.IsTerminal(int(os.Stdin.Fd())) && errTerminal
	a.outTerminal = term.IsTerminal(int(os.Stdout.Fd()))
	a.outColour, a.errColour = render.HasColours(a.env, a.outTerminal), render.HasColours(a.env, errTerminal)
	if a.env("TERM") != "dumb" {
		a.outSize, a.errSize = terminalSize(os.Stdout), terminalSize(os.Stderr)
	}
	return a.run(ctx, args)
}

// A terminal that does not know its size gets a usual one. It is nil if the file is not a terminal.
func terminalSize(f *os.File) func() (columns, rows int) {
	if !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return func() (columns, rows int) {
		columns, rows, err := term.GetSize(int(f.Fd()))
		if err != nil || columns <= 0 || rows <= 0 {
			return 80, 24
		}
		return columns, rows
	}
}

// The first signal cancels it, so that the run stops cleanly and can be resumed. A second signal exits the process.
func interruptContext() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	sandbox.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	go func() {
		first, ok := <-signals
		if !ok {
			return
		}
		since := time.Now()
		cancel()
		for again := range signals {
			if again != first || time.Since(since) > echoTime {
				os.Exit(failure.ExitStatus(hone.KindInterrupted))
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel()
	}
}

// echoTime is how long the same signal counts only once: GNU timeout sends it to its child, and
// then to the process group of both.
const echoTime = time.Second

func (a *app) run(ctx context.Context, args []string) int {
	a.concealKeys()
	root := a.command()
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) { // a twentieth of a start
		a.completeWords(root)
	}
	args, a.allFlags = withoutAll(rewrittenArgs(args))
	root.SetArgs(args)
	root.SetOut(a.out)
	root.SetErr(a.err)
	if c, err := root.ExecuteContextC(ctx); err != nil {
		return a.fail(c, err)
	}
	return a.exit
}

// Such a loop also accepts the options of another program.
func rewrittenArgs(args []string) []string {
	for _, k := range kinds.All() {
		if at := slices.Index(args, k.Name); k.Rewrite != nil && (at == 0 || at == 1 && (args[0] == "prompt" || args[0] == "init")) {
			return k.Rewrite(args)
		}
	}
	return args
}

func (a *app) command() *cobra.Command {
	var printVersion bool
	root := &cobra.Command{
		Use:   "hone",
		Short: "run bounded loops in which a model edits code and a check decides when it is done",
		Long: `hone lets a language model edit your code in a loop, within limits, until a
check passes. The check decides when it is done, not the model. Commands of a
model run in a sandbox, which hone calls a wall.

Start with: hone demo`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			if problem, hint := config.FlagProblem(c.Flags()); problem != "" {
				return failure.Usage(problem, hint)
			}
			if err := c.ValidateFlagGroups(); err != nil {
				_, set, _ := strings.Cut(err.Error(), "; [") // "[diff json] were all set"
				set, _, _ = strings.Cut(set, "]")
				return failure.Usage("--"+strings.ReplaceAll(set, " ", " and --")+" exclude each other", helpFor(c))
			}
			a.parsed = true
			return checkState(c)
		},
		RunE: func(c *cobra.Command, _ []string) error {
			if printVersion {
				return a.printVersion()
			}
			return errors.Join(c.Help(), nil)
		},
	}
	root.Flags().BoolVar(&printVersion, "version", false, "print the version of hone")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		c.Long = completeTopic(c.Long)
		columns := helpColumns
		if a.outSize != nil {
			terminal, _ := a.outSize()
			columns = min(columns, terminal)
		}
		fmt.Fprint(a.out, helpText(c, columns, a.allFlags))
	})
	for _, g := range a.groups() {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.title
			root.AddCommand(c)
		}
		root.SetHelpCommandGroupID(g.title) // the last one
	}
	root.AddCommand(topics()...)
	root.AddCommand(a.manCommand())
	rejectUnknownTopics(root)
	rejectUnknownCommands(root)
	return root
}
