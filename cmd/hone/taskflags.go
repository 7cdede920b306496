package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hone/loop/task"
	"hone/model"
)

// taskFlags are the loop's own beside those of every loop. CodeScribe's names
// work as well (ruling S10).
type taskFlags struct {
	loopFlags
	reviewerModel string

	turns   int
	calls   int
	log     bool
	logPath string
	reason  bool
}

// register adds the flags that a run has, and not only its first prompt.
func (f *taskFlags) register(c *cobra.Command) {
	f.loopFlags.register(c, 0)
	fs := c.Flags()
	fs.StringVar(&f.reviewerModel, "reviewer-model", "", "the reviewer's model, as PROVIDER/NAME; needed where --model is a command-line agent (default the executor's)")
	fs.IntVar(&f.turns, "turns", 0, fmt.Sprintf("most model calls in one execution session; also --agent-iterations, -niter (default %d)", taskTurns))
	fs.IntVar(&f.calls, "max-tool-calls", 0, fmt.Sprintf("most tool calls in one session (default %d)", taskCalls))
	fs.StringVar(&f.tools, "tools", "", "how the model calls tools: native, or text for one that was not made for it (default native)")
	fs.BoolVar(&f.log, "log", false, "log the sessions' events in "+standardLog+" as well")
	fs.StringVar(&f.logPath, "log-path", "", "log them in this file instead")
	fs.BoolVar(&f.reason, "reason", false, "the same as --reasoning high")
	fs.Lookup("rounds").Usage = fmt.Sprintf("most loops of execution and review; also --agent-loops, -nloop (default %d)", task.Loops)
	fs.Lookup("dir").Usage = "work in this folder; also --workdir"
	fs.Lookup("model").Usage += "; also CodeScribe's openai-NAME, anthropic-NAME, oaic-NAME; command/NAME for a command-line agent as the executor"
	fs.Lookup("sandbox").Usage = "walls for what the model runs, and for --check: auto, hidden, bwrap, landlock, firejail or none (default auto)"
	fs.SetNormalizeFunc(codescribeName)
}

// codescribeName is what hone calls a flag of CodeScribe's.
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

// codescribeArgs rewrites CodeScribe's options of several letters behind one
// dash, which would be read as that many flags (ruling S10). Only task has
// them, and what follows -- is no option.
func codescribeArgs(args []string) []string {
	if len(args) == 0 || args[0] != "task" {
		return args
	}
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

// standardLog is where --log writes, from the folder that hone is started in.
const standardLog = ".codescribe/logs/toolusage.toml"

// valid says what is wrong with the flags by themselves.
func (f *taskFlags) valid(c *cobra.Command) error {
	for flag, bad := range map[string]bool{"turns": f.turns < 1, "max-tool-calls": f.calls < 1, "log-path": f.logPath == ""} {
		if bad && c.Flags().Changed(flag) {
			return usage(fmt.Sprintf("--%s must be more than nothing", flag), "hone help "+c.Name())
		}
	}
	switch f.tools {
	case "", nativeTools, textTools:
	default:
		return usage(fmt.Sprintf("--tools %s is not native or text", f.tools), "hone help "+c.Name())
	}
	if f.reason {
		if f.reasoning != "" && f.reasoning != string(model.High) {
			return usage(fmt.Sprintf("--reason is --reasoning high, and --reasoning %s was given too", f.reasoning), "give one of them")
		}
		f.reasoning = string(model.High)
	}
	return f.loopFlags.valid(c)
}

// logFile is where the sessions' events are logged as well, absolute; empty
// for nowhere.
func (f *taskFlags) logFile() (string, error) {
	at := f.logPath
	switch {
	case at == "" && !f.log:
		return "", nil
	case at == "":
		at = filepath.FromSlash(standardLog)
	}
	if info, err := os.Stat(at); err == nil && !info.Mode().IsRegular() {
		return "", usage(fmt.Sprintf("--log-path: %s is no file", at), "name a file; it is written anew")
	}
	return filepath.Abs(at)
}

// oneTask wants the task, as one argument.
func oneTask(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return usage("task needs a task file, or the task in words", `hone init task, or: hone task "what is to be done"`)
	case len(args) > 1:
		return usage(fmt.Sprintf("task takes one argument, and there are %d", len(args)), `put the task in quotes: hone task "what is to be done"`)
	case strings.TrimSpace(args[0]) == "":
		return usage("the task is empty", `hone task "what is to be done"`)
	}
	return nil
}

// taskArgument reads what the command was given: a task file below the root,
// or the task in words. A file is looked for from the folder that hone was
// started in, and has to lie in the workspace after links (ruling S10).
func taskArgument(root, arg string) (file, text string, err error) {
	info, err := os.Stat(arg)
	switch {
	case err == nil && info.IsDir():
		return "", "", usage(fmt.Sprintf("%s is a folder", arg), "name a task file, or say in words what is to be done")
	case err == nil:
		file, err = below(root, arg)
		return file, "", err
	case filepath.Ext(arg) != ".toml":
		return "", arg, nil
	case errors.Is(err, fs.ErrNotExist):
		return "", "", usage(fmt.Sprintf("there is no task file %s", arg), "hone init task writes one; a task in words must not end in .toml")
	}
	return "", "", usage(fmt.Sprintf("task file: %v", err), "name a file that can be read")
}

// below is a file's path from a root, with slashes.
func below(root, file string) (string, error) {
	real, err := filepath.EvalSymlinks(file)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return "", usage(fmt.Sprintf("task file: %v", err), "name a file that can be read")
	}
	rel, err := filepath.Rel(root, real)
	if err != nil || !filepath.IsLocal(rel) {
		return "", usage(fmt.Sprintf("the task file %s does not lie in the folder that is worked on, %s", real, root), "copy it there, or name its folder with --workdir")
	}
	return filepath.ToSlash(rel), nil
}
