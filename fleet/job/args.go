package job

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"hone/internal/config"
	"hone/internal/near"
	"hone/loop"
)

// They are harmless, but a job cannot have them; the values are what to do instead.
func fleetFlags() map[string]string {
	return map[string]string{
		"max-tokens": "write max-tokens = N in the job",
		"max-cost":   "write max-cost = USD in the job",
		"model":      `write model = "PROVIDER/NAME" in the job`,
		"attempts":   "write several jobs: attempts share a directory, which cannot move to another worker",
		"dir":        "remove it: the worker chooses the directory",
		"log":        "remove it: the store has the events",
		"json":       "remove it: the worker sets it",
		"ack":        "remove it: the worker sets it",
		"verbose":    "remove it: nobody watches a job's output",
		"quiet":      "remove it: nobody watches a job's output",
		"web":        "remove it: nobody watches a job's output",
	}
}

// A job may have the flags that are allowed in a file of another user; the operator of a worker decides on the others.
func badArgs(k loop.Kind, args []string) (problem, hint string) {
	fs := flagSet(k)
	line := append([]string{k.Name}, args...)
	if k.Rewrite != nil {
		line = k.Rewrite(line)
	}
	if err := fs.Parse(line[1:]); err != nil {
		return badFlag(fs, k, err)
	}
	fs.Visit(func(f *pflag.Flag) {
		instead, ours := fleetFlags()[f.Name]
		switch {
		case problem != "":
		case ours:
			problem, hint = fmt.Sprintf("args cannot contain --%s", f.Name), instead
		case !slices.Contains(loop.FileFlags(), f.Name):
			problem, hint = fmt.Sprintf("a job cannot have --%s, because it gives commands or models more access", f.Name), "remove it: the operator of the worker decides that"
		}
	})
	if problem != "" {
		return problem, hint
	}
	end := len(line) // where -- ends the flags
	if at := fs.ArgsLenAtDash(); at >= 0 {
		end -= fs.NArg() - at + 1
	}
	if slices.Contains(line[:end], "--") {
		return "-- is the value of a flag", "write the value"
	}
	if slices.Contains(fs.Args(), "-") {
		return "- means standard input, which a worker does not have", "write the text itself"
	}
	if err := k.Accept(fs.Args()); err != nil {
		return err.Error(), "see hone help " + k.Name
	}
	return "", ""
}

// The values have the same types. Checks of the values themselves are left to the worker's hone.
func flagSet(k loop.Kind) *pflag.FlagSet {
	fs := pflag.NewFlagSet(k.Name, pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	config.AddFlags(fs, config.Values{}, k.Name, k.Name)
	fs.StringP("dir", "C", "", "")
	fs.String("log", "", "")
	for _, name := range strings.Fields("trust json ack web") {
		fs.Bool(name, false, "")
	}
	fs.BoolP("verbose", "v", false, "")
	fs.BoolP("quiet", "q", false, "")
	return fs
}

func badFlag(fs *pflag.FlagSet, k loop.Kind, err error) (problem, hint string) {
	hint = "see hone help " + k.Name
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var known []string
		fs.VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		if similar := near.Name(unknown.GetSpecifiedName(), known); similar != "" {
			hint = "did you mean --" + similar + "?"
		}
	}
	return err.Error(), hint
}
