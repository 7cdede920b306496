package task

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"hone"
	"hone/internal/config"
	"hone/loop"
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
