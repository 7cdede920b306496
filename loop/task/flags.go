package task

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hone/internal/artifact"
	"hone/internal/config"
	"hone/loop"
	"hone/model"
)

// CodeScribe's options have one dash and several letters, or other names, and its --log has no file. Arguments after -- are
// not options.
func rewriteOptions(args []string) []string {
	own := map[string]string{"-nloop": "--rounds", "--agent-loops": "--rounds", "-niter": "--turns", "--agent-iterations": "--turns", "--workdir": "--dir"}
	rewritten := make([]string, 0, len(args))
	for i, arg := range args {
		if arg == "--" {
			return append(rewritten, args[i:]...)
		}
		name, value, valued := strings.Cut(arg, "=")
		switch name = cmp.Or(own[name], name); {
		case name == "--log" && !valued && slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--log-path") }):
			continue // that wins
		case name == "-p" && !valued:
			continue // task files of CodeScribe's users say "loop -p FILE"
		case name == "--log" && !valued:
			name = "--log-path=" + filepath.FromSlash(standardLog)
		case valued:
			name += "=" + value
		}
		rewritten = append(rewritten, name)
	}
	return rewritten
}

// standardLog is the file of --log, relative to the current directory.
const standardLog = ".codescribe/logs/toolusage.toml"

func reason(in *loop.Input) error {
	given := config.Reasoning.Given(in.Flags)
	switch variable := in.Getenv("CODESCRIBE_AGENT_REASONING"); {
	case config.Reason.Given(in.Flags) && given != "" && given != string(model.High):
		return loop.Usage(fmt.Sprintf("--reason means --reasoning high, but --reasoning is %s", given), "give one of them")
	case config.Reason.Given(in.Flags), given == "" && variable != "" && variable != "0":
		config.Reasoning.Set(in.Values, string(model.High))
	}
	return nil
}

// It fails if the log cannot be written because of a link, for example.
func (l *Loop) logFile(in *loop.Input) (string, error) {
	at := config.LogPath.Given(in.Flags)
	switch {
	case at == "" && in.Changed("log-path"):
		return "", in.Usagef("--log-path must name a file")
	case at == "":
		return "", nil
	}
	if info, err := os.Stat(at); err == nil && !info.Mode().IsRegular() {
		return "", loop.Usage(fmt.Sprintf("--log-path: %s is not a regular file", at), "name a file; hone appends to it")
	}
	log, err := filepath.Abs(at)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Dir(log)); err != nil && filepath.ToSlash(at) != standardLog {
		return "", loop.Usage(fmt.Sprintf("--log-path: there is no directory %s", filepath.Dir(at)), "make it, or name a file elsewhere")
	}
	base, name, err := logBase(in.Root, log)
	if err != nil {
		return "", err
	}
	// base may not exist yet.
	if err := artifact.Check(base, name, true); err != nil && !errors.Is(err, fs.ErrNotExist) {
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
		// It is relative to the current directory (ruling S10).
		abs, err := filepath.Abs(arg)
		if err != nil {
			return "", "", err
		}
		rel, ok, err := in.Below(abs)
		switch {
		case err != nil:
			return "", "", loop.Usage(fmt.Sprintf("task file: %v", err), "name a file that can be read")
		case !ok:
			return "", "", loop.Usage(fmt.Sprintf("the task file %s is not in the workspace %s", filepath.Join(in.Root, rel), in.Root), "copy it there, or name its directory with --workdir")
		}
		return rel, "", nil
	case filepath.Ext(arg) != ".toml":
		return "", arg, nil
	case errors.Is(err, fs.ErrNotExist):
		return "", "", loop.Usage(fmt.Sprintf("there is no task file %s", arg), "hone init task writes one; a task in words cannot end in .toml")
	}
	return "", "", loop.Usage(fmt.Sprintf("task file: %v", err), "name a file that can be read")
}

// compatible is the provider that CodeScribe calls oaic: a server with OpenAI's wire
// format and variables of its own.
const compatible = "oaic"

func modelName(in *loop.Input, typed string) (string, error) {
	names := strings.Split(typed, ",")
	for i, name := range names {
		var err error
		if names[i], err = codescribeModel(strings.TrimSpace(name), in.HasProvider); err != nil {
			return "", err
		}
	}
	return strings.Join(names, ","), nil
}

func maxTokens(in *loop.Input) error {
	for _, name := range []string{"CODESCRIBE_MAX_TOKENS", "CSLOOP_MAX_TOKENS"} {
		text := in.Getenv(name)
		if text == "" || config.MaxOutput.In(in.Values) != 0 {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n <= 0 {
			return loop.Usage(fmt.Sprintf("%s=%s is not a positive number of tokens", name, text), "for example: "+name+"=16384")
		}
		config.MaxOutput.Set(in.Values, n)
	}
	return nil
}

func codescribeModel(name string, hasProvider func(string) bool) (string, error) {
	if name == "" || hasProvider(name) {
		return name, nil
	}
	prefix, rest, ok := strings.Cut(name, "-")
	_, noFile := os.Stat(name) // CodeScribe takes the name of an existing file for a path, too
	switch {
	case noFile == nil, filepath.IsAbs(name), strings.ContainsAny(name[:1], "/~."):
		return "", loop.Usage(fmt.Sprintf("model %s is a path, but hone does not run models itself", name),
			"serve it with Ollama, llama.cpp or vLLM, then: --model ollama/NAME, or --model openai/NAME --base-url URL")
	case !ok || rest == "":
	case prefix == "openai" || prefix == "anthropic" || prefix == compatible:
		return prefix + "/" + rest, nil
	case prefix == "argo":
		return "", loop.Usage(fmt.Sprintf("model %s: hone does not support Argo", name),
			"if your Argo has an OpenAI-compatible address: --model openai/"+rest+" --base-url URL")
	}
	return name, nil
}
