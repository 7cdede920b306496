package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hone"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/screen"
	"hone/harness"
	"hone/internal/config"
	"hone/internal/lazyregexp"
	"hone/internal/near"
	"hone/internal/render"
	"hone/journal"
	"hone/loop"
	"hone/sandbox"
	"hone/workspace/secret"
)

// app is the program with its environment: standard streams, variables and
// terminal.
type app struct {
	in          *os.File
	out, err    io.Writer
	env         func(string) string
	environ     []string
	terminal    bool                       // the user sees the output and can answer questions
	outTerminal bool                       // stdout is a terminal
	outSize     func() (columns, rows int) // of stdout; nil if it is not a terminal that can move its cursor
	errSize     func() (columns, rows int) // of stderr, in the same way
	outColour   render.Colours
	errColour   render.Colours
	secrets     []func(string) string // remove the values that conceal knows
	observer    journal.Observer
	walls       func() []sandbox.Wall  // see harness.Host
	trust       bool                   // the user typed that the folder's own programs may run
	given       map[string]hone.Answer // what --answer says; see answers
	answers     func() <-chan string   // of answerLine; nil until the first question
	parsed      bool                   // the command line is valid, and its command runs
	exit        int
	allFlags    bool     // help has the flags that are rarely needed, too
	log         *os.File // of --log; nil without it
}

func (a *app) conceal(guard *secret.Guard) {
	if guard.Knows() {
		a.out, a.err = redacted{a.out, guard.RedactKnown}, redacted{a.err, guard.RedactKnown}
		a.secrets = append(a.secrets, guard.RedactKnown)
	}
}

func (a *app) redactKnown(text string) string {
	for _, clean := range a.secrets {
		text = clean(text)
	}
	return text
}

func (a *app) concealKeys() { a.conceal(&secret.Guard{Known: harness.KnownKeys(a.env)}) }

// redacted is a writer that removes keys. Callers write complete lines, so that
// no key is split.
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

// All questions share the lines.
func (a *app) answerLine() <-chan string {
	if a.answers == nil {
		a.answers = screen.Lines(inputOf(a.in))
	}
	return a.answers()
}

func (a *app) forReading(text string) string {
	if a.outTerminal {
		return render.Escape(text)
	}
	return text
}

func (a *app) outExtent() (columns, rows int) {
	if a.outSize == nil {
		return 0, 0
	}
	return a.outSize()
}

// This process must not be in the background of the terminal.
func (a *app) present() bool { return a.terminal && inForeground(a.in) }

// An error of unknown type is a usage error before the command runs. After that it comes from the environment, for example the
// disk.
func (a *app) fail(c *cobra.Command, err error) int {
	f, ok := failure.Explain(err, dirFlag(c))
	switch {
	case ok:
	case a.parsed:
		f.Hint = cmp.Or(f.Hint, "hone doctor")
	default:
		f.Kind, f.Hint = hone.KindUsage, cmp.Or(f.Hint, helpFor(c))
	}
	for _, one := range f.Each {
		a.say("error", one)
	}
	a.say("error", f.Error())
	dir := "."
	if flag := c.Flags().Lookup("dir"); flag != nil {
		dir = flag.Value.String()
	}
	a.say("hint", commandsAt(c, dirFlag(c), adviseCheck(dir, f.Hint)))
	return failure.ExitStatus(f.Kind)
}

var commandLine = lazyregexp.New(`\bhone( [a-z]+)+`)

// commandsAt returns a text in which at, which is empty or the flag -C, follows the names of hone's commands. Those about
// a run have their directory already: they are data, see hone.Next.
func commandsAt(c *cobra.Command, at, text string) string {
	if at == "" || strings.Contains(text, at) {
		return text
	}
	return commandLine.ReplaceAllStringFunc(text, func(line string) string {
		named, rest, err := c.Root().Find(strings.Fields(line)[1:])
		if err != nil || named.Flags().Lookup("dir") == nil || strings.Contains(named.Use, "RUN") {
			return line
		}
		return strings.Join(append([]string{"hone " + commandPath(named) + at}, rest...), " ")
	})
}

// Later commands need it after c; empty if they need none.
func dirFlag(c *cobra.Command) string {
	dir := c.Flags().Lookup("dir")
	if dir == nil {
		return ""
	}
	name := dir.Value.String()
	if several, err := c.Flags().GetStringArray("dir"); err == nil {
		name = several[0]
	}
	at, err := filepath.Abs(name)
	if err != nil {
		return ""
	}
	return failure.Elsewhere(at)
}

// It comes before anything is written in hone's state folder, which no tree that a command works in may contain.
func checkState(c *cobra.Command) error {
	flag := c.Flags().Lookup("dir")
	if flag == nil || slices.Contains([]string{"doctor", "runs", "show"}, c.Name()) {
		return nil // it works in no tree, or only looks at one
	}
	dirs, err := c.Flags().GetStringArray("dir")
	if err != nil {
		dirs = []string{flag.Value.String()}
	}
	for _, dir := range dirs {
		at, err := loop.AbsDir(dir)
		if err != nil {
			continue // the command says so
		}
		if err := harness.CheckState(at); err != nil {
			return err
		}
	}
	return nil
}

func helpFor(c *cobra.Command) string { return strings.TrimSpace("hone help " + commandPath(c)) }

func commandPath(c *cobra.Command) string {
	_, sub, _ := strings.Cut(c.CommandPath(), " ")
	return sub
}

func (a *app) say(what, text string) {
	if text == "" {
		return
	}
	fmt.Fprintf(a.err, "hone: %s: %s\n", what, strings.TrimRight(render.Escape(text), "\n"))
}

func (a *app) printLine(line string) {
	if a.outSize != nil {
		columns, _ := a.outSize()
		line = render.Fill(line, columns)
	}
	fmt.Fprintln(a.out, line)
}

func (a *app) sayNotes(notes []string) {
	for _, n := range notes {
		a.say("note", n)
	}
}

func flagError(c *cobra.Command, err error) error {
	if missing, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if before := c.Flags().Args(); c.HasSubCommands() && len(before) > 0 { // the flag may be of a command that does not exist
			return unknownName(c, "hone ", "command", before[0], before)
		}
		var known []string
		c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		meant := near.Name(missing.GetSpecifiedName(), known)
		switch other := originalFlags[c.Name()+" "+missing.GetSpecifiedName()]; {
		case other != "":
			return failure.UsageOf(err, other)
		case meant != "" && missing.GetSpecifiedShortnames() == "":
			return failure.UsageOf(err, "did you mean --"+meant+"?")
		case !c.HasParent():
			return failure.Usage(err.Error(), `flags follow the command: hone fix --check "make test"`)
		}
		return err
	}
	if bare, ok := errors.AsType[*pflag.ValueRequiredError](err); ok && bare.GetSpecifiedName() == "html" {
		return failure.UsageOf(err, "hone show --html run.html")
	}
	bad, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	f := bad.GetFlag()
	_, notInt := strconv.Atoi(bad.GetValue())
	switch kind := f.Value.Type(); {
	case kind == "duration" && notInt == nil:
		return failure.Usage(fmt.Sprintf("--%s %s has no unit", f.Name, bad.GetValue()), fmt.Sprintf("--%s %sm", f.Name, bad.GetValue()))
	case kind == "duration":
		return failure.Usage(fmt.Sprintf("--%s %s is not a duration", f.Name, bad.GetValue()), config.DurationHint)
	case errors.Is(err, strconv.ErrRange):
		return failure.Usage(fmt.Sprintf("--%s %s is too large", f.Name, bad.GetValue()), helpFor(c))
	case strings.HasPrefix(kind, "int"):
		return failure.Usage(fmt.Sprintf("--%s %s is not a whole number", f.Name, bad.GetValue()), helpFor(c))
	case kind == "float64":
		return failure.Usage(fmt.Sprintf("--%s %s is not a number", f.Name, bad.GetValue()), fmt.Sprintf("--%s 2.50", f.Name))
	}
	return err
}

func noArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := helpFor(c)
	if c.Flags().Lookup("check") != nil {
		hint = fmt.Sprintf("the check is a flag: %s --check %q", c.CommandPath(), strings.Join(args, " "))
	}
	return failure.Usage(c.Name()+" takes no arguments", hint)
}

func oneRun(c *cobra.Command, args []string) error {
	if len(args) <= 1 {
		return nil
	}
	return failure.Usage(fmt.Sprintf("%s takes one RUN: an id from hone runs, or last", c.Name()), helpFor(c))
}

func runArg(args []string) string {
	if len(args) == 0 {
		return "last"
	}
	return args[0]
}

// What a killed hone left is restored first, so that no configuration is read that a command wrote.
func (a *app) loadConfig(root string) (config.File, error) {
	notes, err := harness.Recover(root)
	for _, note := range notes {
		a.sayPlain("%s", note)
	}
	if err != nil {
		return config.File{}, err
	}
	file, err := config.Load(root)
	if err != nil {
		return file, harness.ConfigError(err)
	}
	return file, nil
}
