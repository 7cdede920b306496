package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"hone/internal/config"
	"hone/internal/git"
	"hone/loop/phase"
)

// phaseFlags are the loop's own beside those of every loop.
type phaseFlags struct {
	loopFlags
	builderModel, verifierModel string
	devURL                      string
	healthAttempts              int
	turns, calls                int
	list                        bool
}

func (f *phaseFlags) register(c *cobra.Command) {
	f.loopFlags.register(c, 0)
	fs := c.Flags()
	fs.StringVar(&f.builderModel, "builder-model", "", "the builder's model, as PROVIDER/NAME or NAME, or command/NAME for a command-line agent (default "+phaseBuilder+")")
	fs.StringVar(&f.verifierModel, "verifier-model", "", "the verifier's (default "+phaseVerifier+")")
	fs.StringVar(&f.devURL, "dev-url", "", "where abl.config.sh starts the server (default "+phaseURL+")")
	fs.IntVar(&f.healthAttempts, "health-attempts", 0, fmt.Sprintf("builds within a round before a failed health check ends it (default %d)", phase.HealthAttempts))
	fs.IntVar(&f.turns, "turns", 0, fmt.Sprintf("most model calls in one session (default %d)", phaseTurns))
	fs.IntVar(&f.calls, "max-tool-calls", 0, fmt.Sprintf("most tool calls in one session (default %d)", phaseCalls))
	fs.StringVar(&f.tools, "tools", "", "how the models call tools: native, or text for those that were not made for it (default native)")
	fs.BoolVar(&f.list, "list", false, "only list contracts and flows, and what is wrong with the specifications")
	fs.Lookup("model").Usage = "the model of both roles"
	fs.Lookup("rounds").Usage = fmt.Sprintf("most rounds of building and verifying (default %d)", phase.Rounds)
	fs.Lookup("net").Usage = "let the roles' commands reach the network"
	fs.Lookup("sandbox").Usage = "walls: auto is the stronger of hidden and bwrap; landlock, firejail and none hide less, and are taken only when named (default auto)"
}

// valid says what is wrong with the flags by themselves.
func (f *phaseFlags) valid(c *cobra.Command) error {
	for flag, bad := range map[string]bool{"turns": f.turns < 1, "max-tool-calls": f.calls < 1, "health-attempts": f.healthAttempts < 1} {
		if bad && c.Flags().Changed(flag) {
			return usage(fmt.Sprintf("--%s must be more than nothing", flag), "hone help "+c.Name())
		}
	}
	switch f.tools {
	case "", nativeTools, textTools:
	default:
		return usage(fmt.Sprintf("--tools %s is not native or text", f.tools), "hone help "+c.Name())
	}
	if f.devURL != "" {
		if problem, hint := config.BadDevURL(f.devURL); problem != "" {
			return usage(fmt.Sprintf("--dev-url %s: %s", f.devURL, problem), hint)
		}
	}
	return f.loopFlags.valid(c)
}

// allPhases stands for every phase that has a specification.
const allPhases = "all"

// somePhases wants numbers of phases, or all.
func somePhases(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage("phase needs to know which phase", "hone phase 1, hone phase 1 2, or hone phase all")
	}
	for _, arg := range args {
		if n, err := strconv.Atoi(arg); arg != allPhases && (err != nil || n < 1) {
			return usage(fmt.Sprintf("phase %q is no number of a phase", arg), "hone phase 1, hone phase 1 2, or hone phase all")
		}
	}
	if slices.Contains(args, allPhases) && len(args) > 1 {
		return usage("phase takes numbers, or all", "hone phase all")
	}
	return nil
}

// phaseRoot is the project that a folder is.
func phaseRoot(dir string) (string, error) {
	root, err := folder(dir)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(root + "/specs"); err != nil {
		return "", usage("there is no specs/ in "+root, "hone init phase, or name the project's folder with --dir")
	}
	return root, nil
}

// phases are those that a command line names, each once, in their order. Of
// all, those are left out that have passed.
func (a *app) phases(ctx context.Context, root string, args []string) ([]int, error) {
	if args[0] != allPhases {
		var numbers []int
		for _, arg := range args {
			n, _ := strconv.Atoi(arg)
			numbers = append(numbers, n)
		}
		slices.Sort(numbers)
		numbers = slices.Compact(numbers)
		for _, n := range numbers {
			if _, err := phase.Specs(root, n); err != nil {
				return nil, wrongSpecs(err)
			}
		}
		return numbers, nil
	}
	specs, err := phase.All(root)
	if err != nil {
		return nil, wrongSpecs(err)
	}
	g, err := git.Find()
	if err != nil {
		return nil, err
	}
	var left, passed []string
	var numbers []int
	for _, s := range specs {
		ok, err := phase.HasPassed(ctx, g, root, s.Phase)
		if err != nil {
			return nil, err
		}
		if ok {
			passed = append(passed, strconv.Itoa(s.Phase))
			continue
		}
		numbers, left = append(numbers, s.Phase), append(left, strconv.Itoa(s.Phase))
	}
	if len(passed) > 0 {
		a.say("note", fmt.Sprintf("passed already, by these specifications: phase %s; hone phase N runs one again", strings.Join(passed, ", ")))
	}
	if len(left) == 0 {
		return nil, a.next("write the specification of the next phase; every one that there is has passed")
	}
	return numbers, nil
}

// wrongSpecs words what is wrong with a project's specifications.
func wrongSpecs(err error) error {
	var wrong *phase.SpecError
	switch {
	case !errors.As(err, &wrong):
		return err
	case wrong.None:
		return usage(wrong.Why, "hone init phase writes an example")
	}
	return usage(wrong.Why, "write it, or name one that exists: hone phase all --list")
}

// listPhases prints what the specifications say, as hone reads them.
func (a *app) listPhases(dir string, args []string) error {
	root, err := phaseRoot(dir)
	if err != nil {
		return err
	}
	specs, err := phase.All(root)
	if err != nil {
		return wrongSpecs(err)
	}
	last := specs[len(specs)-1].Phase
	if args[0] != allPhases {
		last = 0
		for _, arg := range args {
			n, _ := strconv.Atoi(arg)
			last = max(last, n)
		}
		if _, err := phase.Specs(root, last); err != nil {
			return wrongSpecs(err)
		}
	}
	_, err = fmt.Fprint(a.out, phase.List(specs, last))
	return err
}

// guessProvider puts the provider before a model's name that is known to be
// its own; another name stays as it is.
func guessProvider(name string) string {
	for _, known := range []struct{ prefix, provider string }{
		{"gemini-", "gemini"}, {"claude-", "anthropic"}, {"gpt-", "openai"}, {"o3", "openai"}, {"o4", "openai"},
	} {
		if strings.HasPrefix(name, known.prefix) {
			return known.provider + "/" + name
		}
	}
	return name
}
