package job

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"hone/internal/config"
	"hone/loop"
)

// A job may have the flags that are allowed in a file of another user, except for those that are keys of the job, and
// for attempts, which share a directory. The values have the same types; the worker's hone checks the values themselves.
func badArgs(k loop.Kind, args []string) (problem, hint string) {
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
	line := append([]string{k.Name}, args...)
	if k.Rewrite != nil {
		line = k.Rewrite(line)
	}
	if err := fs.Parse(line[1:]); err != nil {
		return err.Error(), "see hone help " + k.Name
	}
	fs.Visit(func(f *pflag.Flag) {
		ours := slices.Contains(strings.Fields("max-tokens max-cost model attempts"), f.Name)
		if problem == "" && (ours || !slices.Contains(loop.FileFlags(), f.Name)) {
			problem = fmt.Sprintf("a job cannot have --%s", f.Name)
			hint = "remove it: model, max-cost and max-tokens are keys of the job, and the operator of the worker decides about access"
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
