package phase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"hone/internal/git"
	"hone/loop"
	"hone/loop/phase/spec"
)

// flags are the loop's own.
type flags struct {
	builderModel, verifierModel string
	devURL                      string
	healthAttempts              int
	turns, calls                int
	tools                       string // "native" or "text"
	verify                      string // bySuite or bySession; empty means the configuration's
	list                        bool
	role                        string // of a preview
}

// Flags adds the loop's own flags.
func (v *invocation) Flags(fs *pflag.FlagSet) {
	f := &v.flags
	fs.StringVar(&f.builderModel, "builder-model", "", "the builder's model, as PROVIDER/NAME or NAME, or command/NAME for a command-line agent (default "+defaultBuilder+")")
	fs.StringVar(&f.verifierModel, "verifier-model", "", "the verifier's model, as PROVIDER/NAME or NAME, or command/NAME (default "+defaultVerifier+")")
	fs.StringVar(&f.devURL, "dev-url", "", "the URL at which abl.config.sh starts the server (default "+defaultURL+")")
	fs.IntVar(&f.healthAttempts, "health-attempts", 0, fmt.Sprintf("how often the builder may try to pass the health check in a round (default %d)", HealthAttempts))
	fs.IntVar(&f.turns, "turns", 0, fmt.Sprintf("maximum number of model calls in one session (default %d)", defaultTurns))
	fs.IntVar(&f.calls, "max-tool-calls", 0, fmt.Sprintf("maximum number of tool calls in one session (default %d)", defaultCalls))
	v.verifyFlag(fs)
	fs.StringVar(&f.tools, "tools", "", "how the models call tools: native, or text for models without tool calls (default native)")
	fs.BoolVar(&f.list, "list", false, "only list contracts and flows, and warnings about the specifications")
	fs.Lookup("check").Usage = "a shell command that must exit with status 0 when all contracts hold"
	fs.Lookup("model").Usage = "the model of both roles"
	fs.Lookup("rounds").Usage = fmt.Sprintf("maximum number of rounds of building and verifying (default %d)", Rounds)
	fs.Lookup("net").Usage = "let the commands of builder and verifier reach the network"
	fs.Lookup("sandbox").Usage = "walls: auto chooses hidden or bwrap; landlock, firejail and none hide less, and are used only if you name them (default auto)"
}

// verifyFlag adds the flag that decides who runs the suite.
func (v *invocation) verifyFlag(fs *pflag.FlagSet) {
	fs.StringVar(&v.flags.verify, "verify", "", "who runs the tests: suite, hone runs tests/run; session, the verifier runs them and its report is the verdict (default suite, or session if prompts/verifier.md does not mention tests/run)")
}

// Valid returns what is wrong with the flags by themselves.
func (v *invocation) Valid(in *loop.Input) error {
	f := v.flags
	if err := in.CheckPositive(map[string]bool{"turns": f.turns > 0, "max-tool-calls": f.calls > 0, "health-attempts": f.healthAttempts > 0}); err != nil {
		return err
	}
	switch f.tools {
	case "", loop.NativeTools, loop.TextTools:
	default:
		return in.Usagef("--tools %s is not native or text", f.tools)
	}
	in.Flags.Tools = f.tools
	if f.verify != "" && f.verify != bySuite && f.verify != bySession {
		return in.Usagef("--verify %s is not suite or session", f.verify)
	}
	if f.devURL != "" {
		if problem, hint := badDevURL(f.devURL); problem != "" {
			return loop.Usage(fmt.Sprintf("--dev-url %s: %s", f.devURL, problem), hint)
		}
	}
	if f.role != "" && f.role != "builder" && f.role != "verifier" {
		return loop.Usage(fmt.Sprintf("--role %s is not builder or verifier", f.role), "hone help prompt phase")
	}
	return nil
}

// allPhases stands for every phase that has a specification.
const allPhases = "all"

// phaseArgs requires numbers of phases, or all.
func phaseArgs(args []string) error {
	if len(args) == 0 {
		return loop.Usage("phase needs the number of a phase, or all", "hone phase 1, hone phase 1 2, or hone phase all")
	}
	for _, arg := range args {
		if n, err := strconv.Atoi(arg); arg != allPhases && (err != nil || n < 1) {
			return loop.Usage(fmt.Sprintf("%q is not the number of a phase", arg), "hone phase 1, hone phase 1 2, or hone phase all")
		}
	}
	if slices.Contains(args, allPhases) && len(args) > 1 {
		return loop.Usage("phase takes numbers, or all", "hone phase all")
	}
	return nil
}

// onePhaseArg requires the number of one phase.
func onePhaseArg(args []string) error {
	if len(args) != 1 || args[0] == allPhases {
		return loop.Usage("prompt phase needs the number of one phase", "hone help prompt phase")
	}
	return phaseArgs(args)
}

// Split returns one run for each phase that the command line names, in their order.
// "all" leaves out the phases that have passed. With --list it prints the
// specifications as hone reads them, and returns no run.
func (v *invocation) Split(ctx context.Context, in *loop.Input) ([][]string, error) {
	runs, err := v.split(ctx, in)
	return runs, wrongSpecs(err)
}

// wrongSpecs turns an error about a project's specifications into one of the command
// line. It returns other errors unchanged.
func wrongSpecs(err error) error {
	wrong, ok := errors.AsType[*spec.Error](err)
	switch {
	case !ok:
		return err
	case wrong.Missing:
		return loop.Usage(wrong.Why, "write it, or name one that exists: hone phase all --list")
	}
	return loop.Usage(wrong.Why, "hone init phase writes an example")
}

func (v *invocation) split(ctx context.Context, in *loop.Input) ([][]string, error) {
	if err := project(in.Root); err != nil {
		return nil, err
	}
	if v.flags.list {
		return nil, list(in)
	}
	if in.Args[0] == allPhases {
		return notPassed(ctx, in)
	}
	numbers := numbersOf(in.Args)
	for _, n := range numbers {
		if _, err := spec.Read(in.Root, n); err != nil {
			return nil, err
		}
	}
	return runsOf(numbers), nil
}

// numbersOf returns the phases of arguments that are numbers, sorted and without
// duplicates.
func numbersOf(args []string) []int {
	var numbers []int
	for _, arg := range args {
		n, _ := strconv.Atoi(arg)
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// runsOf returns the arguments of one run for each phase.
func runsOf(numbers []int) [][]string {
	var runs [][]string
	for _, n := range numbers {
		runs = append(runs, []string{strconv.Itoa(n)})
	}
	return runs
}

// notPassed returns one run for each phase that has not passed.
func notPassed(ctx context.Context, in *loop.Input) ([][]string, error) {
	specs, err := spec.Read(in.Root, 0)
	if err != nil {
		return nil, err
	}
	g, err := git.Find()
	if err != nil {
		return nil, err
	}
	var passed []string
	var numbers []int
	for _, s := range specs {
		ok, err := HasPassed(ctx, g, in.Root, s.Number)
		if err != nil {
			return nil, err
		}
		if ok {
			passed = append(passed, strconv.Itoa(s.Number))
		} else {
			numbers = append(numbers, s.Number)
		}
	}
	if len(passed) > 0 {
		in.Note(fmt.Sprintf("already passed by these specifications: phase %s; hone phase N runs one again", strings.Join(passed, ", ")))
	}
	if len(numbers) == 0 {
		_, err := fmt.Fprintln(in.Out, "next: write the specification of the next phase; all existing ones have passed")
		return nil, err
	}
	return runsOf(numbers), nil
}

// list prints the specifications as hone reads them.
func list(in *loop.Input) error {
	last := 0
	if in.Args[0] != allPhases {
		last = slices.Max(numbersOf(in.Args))
	}
	specs, err := spec.Read(in.Root, last)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(in.Out, spec.List(specs))
	return err
}

// modelName returns the first nonempty name, with its provider. The seed's users
// write names without one.
func modelName(in *loop.Input, names ...string) string {
	list, _ := loop.MapNames(cmp.Or(names...), func(name string) (string, error) {
		if in.HasProvider(name) {
			return name, nil
		}
		return guessProvider(name), nil
	})
	return list
}

// guessProvider adds the provider to the name of a well-known model, and returns any
// other name unchanged.
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

// badDevURL returns what is wrong with the URL of a server, and what the user
// should write. The problem is empty for a valid URL: http, a loopback host and a
// port, because the verifier's wall allows only these (ruling A13).
func badDevURL(s string) (problem, hint string) {
	const example = `write the URL of the server, such as "http://localhost:3000"`
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" || u.Hostname() == "":
		return "it is not an http URL", example
	case u.User != nil:
		return "the URL contains a user name or a password", example
	case !strings.EqualFold(s, "http://"+u.Host):
		return "the URL does not end after the port", example
	case !loopback(u.Hostname()):
		return "the host is not a loopback address", "use localhost, 127.0.0.1 or [::1] as the host"
	case u.Port() == "":
		return "the port is missing", example
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || port == 0 {
		return u.Port() + " is not a port", "write one from 1 to 65535"
	}
	return "", ""
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback() && ip.Zone() == ""
}
