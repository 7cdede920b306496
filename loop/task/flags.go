package task

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"hone/internal/artifact"
	"hone/internal/config"
	"hone/loop"
	"hone/model"
)

// Flags lets --log have no file, and gives flags the names that they have in CodeScribe.
func (v *invocation) Flags(fs *pflag.FlagSet) {
	if log := fs.Lookup("log"); log != nil {
		log.Value, log.NoOptDefVal = logFlag{log.Value, &v.bareLog}, "true"
		log.Usage = "append the run's events to `FILE`, as --json prints them: --log=FILE; without a file, as in CodeScribe, log the sessions' events in " + standardLog
	}
	fs.Lookup("dir").Usage += "; also --workdir"
	fs.SetNormalizeFunc(codescribeName)
}

// logFlag is the flag --log: with a file it is every loop's, and without one CodeScribe's.
type logFlag struct {
	pflag.Value
	standard *bool
}

func (l logFlag) Set(text string) (err error) {
	on, err := strconv.ParseBool(text)
	if err != nil {
		return l.Value.Set(text)
	}
	*l.standard = on
	return nil
}

func (l logFlag) String() string {
	if l.standard != nil && *l.standard {
		return "true"
	}
	return l.Value.String()
}

func codescribeName(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	switch name {
	case "agent-loops":
		name = "rounds"
	case "agent-iterations":
		name = "turns"
	case "workdir":
		name = "dir"
	}
	return pflag.NormalizedName(name)
}

// CodeScribe's options have one dash and several letters, which would be read as several flags. Arguments after -- are not
// options.
func rewriteOptions(args []string) []string {
	rewritten := make([]string, 0, len(args))
	for i, arg := range args {
		if arg == "--" {
			return append(rewritten, args[i:]...)
		}
		name, value, valued := strings.Cut(arg, "=")
		switch name {
		case "-nloop":
			name = "--agent-loops"
		case "-niter":
			name = "--agent-iterations"
		}
		if valued {
			name += "=" + value
		}
		rewritten = append(rewritten, name)
	}
	return rewritten
}

// standardLog is the file of --log, relative to the current directory.
const standardLog = ".codescribe/logs/toolusage.toml"

// Valid returns what is wrong with the flags by themselves, and sets the shared flags
// for which the loop's own are shorthands.
func (v *invocation) Valid(in *loop.Input) error {
	if config.LogPath.Given(in.Flags) == "" && in.Changed("log-path") {
		return in.Usagef("--log-path must name a file")
	}
	if config.Reason.Given(in.Flags) {
		if given := config.Reasoning.Given(in.Flags); given != "" && given != string(model.High) {
			return loop.Usage(fmt.Sprintf("--reason means --reasoning high, but --reasoning is %s", given), "give one of them")
		}
		config.Reasoning.Set(in.Flags, string(model.High))
	}
	return nil
}

// It fails if the log cannot be written because of a link, for example.
func (v *invocation) logFile(in *loop.Input) (string, error) {
	named := config.LogPath.Given(in.Flags)
	at := named
	switch {
	case at == "" && !v.bareLog:
		return "", nil
	case at == "":
		at = filepath.FromSlash(standardLog)
	}
	if info, err := os.Stat(at); err == nil && !info.Mode().IsRegular() {
		return "", loop.Usage(fmt.Sprintf("--log-path: %s is not a regular file", at), "name a file; hone appends to it")
	}
	log, err := filepath.Abs(at)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Dir(log)); err != nil && named != "" {
		return "", loop.Usage(fmt.Sprintf("--log-path: there is no directory %s", filepath.Dir(named)), "make it, or name a file elsewhere")
	}
	base, name, err := logBase(in.Root, log)
	if err != nil {
		return "", err
	}
	root, err := os.OpenRoot(base)
	if errors.Is(err, fs.ErrNotExist) {
		return log, nil
	}
	if err != nil {
		return "", err
	}
	defer root.Close()
	if err := artifact.Check(root, name); err != nil {
		return "", loop.Usage("--log: "+err.Error(), "or name a file outside of the project: --log-path FILE")
	}
	return log, nil
}

// The argument's path is relative to the current directory, and the returned file to the root. The file must be in the
// workspace once links are followed.
func argument(in *loop.Input) (file, text string, err error) {
	arg := in.Args[0]
	if arg == "-" {
		text, err = in.Text()
		return "", text, err
	}
	info, err := os.Stat(arg)
	switch {
	case err == nil && info.IsDir():
		return "", "", loop.Usage(fmt.Sprintf("%s is a directory", arg), "name a task file, or describe the task in words")
	case err == nil:
		file, err = relTaskPath(in, arg)
		return file, "", err
	case filepath.Ext(arg) != ".toml":
		return "", arg, nil
	case errors.Is(err, fs.ErrNotExist):
		return "", "", loop.Usage(fmt.Sprintf("there is no task file %s", arg), "hone init task writes one; a task in words cannot end in .toml")
	}
	return "", "", loop.Usage(fmt.Sprintf("task file: %v", err), "name a file that can be read")
}

// file is relative to the current directory (ruling S10).
func relTaskPath(in *loop.Input, file string) (string, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	rel, ok, err := in.Below(abs)
	if err != nil {
		return "", loop.Usage(fmt.Sprintf("task file: %v", err), "name a file that can be read")
	}
	if !ok {
		return "", loop.Usage(fmt.Sprintf("the task file %s is not in the workspace %s", filepath.Join(in.Root, rel), in.Root), "copy it there, or name its directory with --workdir")
	}
	return rel, nil
}
