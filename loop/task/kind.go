package task

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hone"
	"hone/internal/artifact"
	"hone/internal/config"
	"hone/loop"
	"hone/model"
	"hone/tool"
	"hone/tool/allow"
	"hone/workspace/secret"
)

//go:embed help.md
var help string

// Kind is what task declares of itself.
func Kind() loop.Kind {
	return loop.Kind{
		Name: "task", Help: loop.ReadHelp(help), Args: taskArg,
		Text:     true,
		Rewrite:  rewriteOptions,
		Agents:   true,
		New:      func() loop.Loop { return &Loop{} },
		Starters: starterFiles,
	}
}

// Models returns the executor's model, and the reviewer's if it is another one.
func (l *Loop) Models() []loop.RoleModel {
	models := []loop.RoleModel{{Role: "executor", Model: &l.Model}}
	if l.ReviewerModel.Name != "" {
		models = append(models, loop.RoleModel{Role: "reviewer", Model: &l.ReviewerModel})
	}
	return models
}

func (l *Loop) reviewer() *loop.Model {
	if l.ReviewerModel.Name == "" {
		return &l.Model
	}
	return &l.ReviewerModel
}

// Own reports which files are the loop's own, including a log that the user placed in
// the tree.
func (l *Loop) Own(root string) func(path string) bool {
	log, err := filepath.Rel(root, l.Log)
	if l.Log == "" || err != nil {
		return Own
	}
	return func(path string) bool { return path == filepath.ToSlash(log) || Own(path) }
}

// Resolve reads flags, environment, task file and configuration.
func (l *Loop) Resolve(_ context.Context, in *loop.Input) (err error) {
	if l.File, l.Text, err = argument(in); err != nil {
		return err
	}
	if err := reason(in); err != nil {
		return err
	}
	asked, err := l.task(in.Tree)
	if wrong := (*hone.UsageError)(nil); err != nil && !errors.As(err, &wrong) {
		err = loop.UsageOf(err, "hone init task writes an example")
	}
	if err != nil {
		return err
	}
	config.Check.Before(in.Values, in.Flags, asked.Check)
	config.Judge.Before(in.Values, in.Flags, asked.Judge)
	if l.Log, err = l.logFile(in); err != nil {
		return err
	}
	typed := cmp.Or(config.Model.Given(in.Flags), in.Getenv("HONE_MODEL"), in.Getenv("CODESCRIBE_MODEL"), in.Getenv("CSLOOP_MODEL"))
	if typed != "" {
		name, err := modelName(in, typed)
		if err != nil {
			return err
		}
		config.Model.Set(in.Values, name)
	}
	l.Typed, l.ReviewerTyped = cmp.Or(typed, config.Model.In(in.Values)), config.ReviewerModel.In(in.Values)
	if err := cmp.Or(maxTokens(in), l.resolveModels(in)); err != nil {
		return err
	}
	l.Task = cmp.Or(l.Text, l.File)
	l.System, l.ReviewerSystem = l.Walls.System(System), l.Walls.System(ReviewerSystem)
	if in.Preview {
		return nil
	}
	return l.ready(in)
}

const reviewerHint = "--reviewer-model gemini/gemini-2.5-flash, or set reviewer-model in the [task] section of .config/hone.toml"

func (l *Loop) resolveModels(in *loop.Input) (err error) {
	if l.Settings, err = in.Settings(); err != nil {
		return err
	}
	if l.Model.Agent != nil {
		l.AgentSystem = AgentSystem
	}
	if l.ReviewerTyped == "" {
		return nil
	}
	name, err := modelName(in, l.ReviewerTyped)
	if err != nil {
		return err
	}
	reviewer, err := in.Model(name)
	switch {
	case err != nil:
		return err
	case reviewer.Agent != nil:
		return loop.Usage(reviewer.Name+": a command-line agent cannot be the reviewer, because the reviewer writes with a tool of hone's", reviewerHint)
	case l.Model.Agent == nil && reviewer.BaseURL != "" && l.Model.Provider() != reviewer.Provider():
		return loop.Usage("--base-url is one address, but executor and reviewer use different providers", "set the providers' own variables instead, such as GOOGLE_GEMINI_BASE_URL and OPENAI_BASE_URL")
	case reviewer.Names() != l.Model.Names():
		l.ReviewerModel = reviewer
	}
	return nil
}

// It fails if an agent executes and there is no model for the reviewer, if nothing judges several attempts, or if the loop's own
// files cannot be written.
func (l *Loop) ready(in *loop.Input) error {
	if config.Attempts.In(in.Values) > 1 && l.Check == "" {
		return loop.Usage("--attempts needs a check, which decides which attempt is applied", `--check "make test"`)
	}
	if l.Model.Agent != nil && l.ReviewerModel.Name == "" {
		return loop.Usage(l.Model.Name+" is a command-line agent, which cannot review as well: the reviewer writes with a tool of hone's", reviewerHint)
	}
	if text, _, err := in.Tree.Read(l.File); err == nil && l.File != "" {
		if err := loop.CheckEdited(l.File, string(text), starters, "starters/TASK.toml"); err != nil {
			return err
		}
	}
	return loop.CheckFiles(in.Root, artifactsFolder+"/execution.toml", artifactsFolder+"/review.toml")
}

// Build puts loop, tools, check and rules together.
func (l *Loop) Build(s loop.Session) (built loop.Built, err error) {
	l.prepare(s.Guard())
	r := s.NewRun(l.Rules())
	agent, commands, review := l.walls(s)
	if err := s.SetModel(&l.Executor, &l.Model, agent); err != nil {
		return built, err
	}
	if err := s.SetModel(&l.Reviewer, l.reviewer(), nil); err != nil {
		return built, err
	}
	if l.Tools, err = l.tools(s, commands, review); err != nil {
		return built, err
	}
	r.Words = said
	s.SetCheck(commands, s.Check)
	l.SetJudge(r, l.Check)
	if l.Check != "" {
		r.Trust.CheckFirst = hone.Informed
	}
	built = loop.Built{
		Run:     r,
		Round:   l.Round,
		Turns:   map[string]int{l.Executor.Name: l.Bounds().Turns, l.Reviewer.Name: ReviewTurns(l.Bounds().Turns)},
		Summary: func(hone.End) string { return Summary(r) + "\n" },
		// CodeScribe's users save it with tee.
		VerboseOut: true,
	}
	if !s.Replayed() {
		built.Round = l.Record(r).Round
	}
	if l.ReviewerModel.Name != "" {
		built.With = fmt.Sprintf("executor %s and reviewer %s", l.Model.Names(), l.ReviewerModel.Names())
	}
	return built, nil
}

// agent is nil if a model executes. The reviewer's commands cannot change the tree. An agent always has a home of its own,
// because it may write its settings there.
func (l *Loop) walls(s loop.Session) (agent, commands, review loop.Walls) {
	plan := loop.WallPlan{Protect: []string{artifactsHome},
		// Only a directory that exists can be mounted read-only.
		Prepare: func(context.Context) error { return makeHome(s.Root()) }}
	if l.File != "" {
		plan.Protect = append(plan.Protect, l.File)
	}
	if l.Model.Agent != nil {
		own := plan
		own.OwnHome = true
		agent = s.Walls(own)
		plan.After = agent
	}
	commands = s.Walls(plan)
	plan.After, plan.ReadOnly, plan.Later = commands, true, true
	return agent, commands, s.Walls(plan)
}

// The round adds the reviewer's write. The reviewer's commands run behind walls of their own.
func (l *Loop) tools(s loop.Session, commands, review loop.Walls) (func(programs []string) (execute, review []tool.Tool, err error), error) {
	set := loop.Toolset{Closed: artifactsHome, Why: artifactsHome + " contains hone's own records and is closed; your instructions state what happened so far"}
	execution, inspection := set, set
	execution.Walls, inspection.Walls = commands, review
	inspection.ReadOnly, inspection.Programs = true, allow.ReviewPrograms()
	inspection.Why += ". You cannot read " + reviewOutput + ", but you can write it: that is your review"
	reviewing, err := s.Tools(inspection)
	if err != nil {
		return nil, err
	}
	return func(programs []string) (execute, review []tool.Tool, err error) {
		with := execution
		with.Programs = append(l.Programs(), programs...)
		execute, err = s.Tools(with)
		return execute, reviewing, err
	}, nil
}

func (l *Loop) prepare(guard *secret.Guard) {
	l.Guard = guard
	l.Executor, l.Reviewer = l.Model.Role("executor", l.WithAdvice(l.System)), l.reviewer().Role("reviewer", l.WithAdvice(cmp.Or(l.ReviewerSystem, l.System)))
	l.Executor.Bounds, l.Reviewer.Bounds = l.Bounds(), l.Bounds()
	if l.Model.Agent != nil {
		l.Executor.System = l.WithAdvice(l.AgentSystem)
	}
}

//go:embed starters
var starters embed.FS

func starterFiles() loop.Starters {
	return loop.Starters{
		Short: "TASK.toml, a commented task file for you to fill in",
		Files: func(string, string, func(string)) ([]loop.File, error) { return loop.Files(starters, "starters") },
		Next: func(_, _ string) string {
			return "write what you want into TASK.toml, then: hone prompt task TASK.toml && hone task TASK.toml"
		},
	}
}

func taskArg(args []string) error {
	switch {
	case len(args) == 0:
		return loop.Usage("task needs a task file, or the task in words", `hone init task, or: hone task "what is to be done"`)
	case len(args) > 1:
		return loop.Usage(fmt.Sprintf("task accepts one argument, but there are %d", len(args)), `put the task in quotes: hone task "what is to be done"`)
	case strings.TrimSpace(args[0]) == "":
		return loop.Usage("the task is empty", `hone task "what is to be done"`)
	}
	return nil
}

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
