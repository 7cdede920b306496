package task

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"path/filepath"
	"strings"

	"hone"
	"hone/internal/config"
	"hone/loop"
	"hone/tool"
	"hone/tool/allow"
	"hone/workspace"
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
		New:      func() loop.Loop { return &invocation{} },
		Starters: starterFiles,
	}
}

// invocation is one task with all its settings resolved. The task file is read in
// each loop.
type invocation struct {
	loop.Settings

	Reviewer       loop.Model `json:"reviewer_model,omitzero"` // zero means the executor's, which is Model
	System         string     `json:"system"`
	ReviewerSystem string     `json:"reviewer_system,omitempty"` // empty means System, in a run of an older hone
	AgentSystem    string     `json:"agent_system,omitempty"`    // the executor's system text if it is an agent
	File           string     `json:"task_file,omitempty"`       // relative to the root; empty if Text is the task
	Text           string     `json:"text,omitempty"`
	Log            string     `json:"log,omitempty"` // absolute
	// Typed and ReviewerTyped are the models in the user's words; empty if these have none.
	Typed         string `json:"model_typed,omitempty"`
	ReviewerTyped string `json:"reviewer_typed,omitempty"`
}

// Models returns the executor's model, and the reviewer's if it is another one.
func (v *invocation) Models() []loop.RoleModel {
	models := []loop.RoleModel{{Role: "executor", Model: &v.Model}}
	if v.Reviewer.Name != "" {
		models = append(models, loop.RoleModel{Role: "reviewer", Model: &v.Reviewer})
	}
	return models
}

func (v *invocation) reviewer() *loop.Model {
	if v.Reviewer.Name == "" {
		return &v.Model
	}
	return &v.Reviewer
}

// Own reports which files are the loop's own, including a log that the user placed in
// the tree.
func (v *invocation) Own(root string) func(path string) bool {
	log, err := filepath.Rel(root, v.Log)
	if v.Log == "" || err != nil {
		return Own
	}
	return func(path string) bool { return path == filepath.ToSlash(log) || Own(path) }
}

// Resolve reads flags, environment, task file and configuration.
func (v *invocation) Resolve(_ context.Context, in *loop.Input) (l hone.Limits, err error) {
	if v.File, v.Text, err = argument(in); err != nil {
		return l, err
	}
	if err := reason(in); err != nil {
		return l, err
	}
	asked, err := v.task(in.Tree)
	if err != nil {
		return l, err
	}
	config.Check.Before(in.Values, in.Flags, asked.Check)
	config.Judge.Before(in.Values, in.Flags, asked.Judge)
	if v.Log, err = v.logFile(in); err != nil {
		return l, err
	}
	typed := cmp.Or(config.Model.Given(in.Flags), in.Getenv("HONE_MODEL"), in.Getenv("CODESCRIBE_MODEL"), in.Getenv("CSLOOP_MODEL"))
	if typed != "" {
		name, err := modelName(in, typed)
		if err != nil {
			return l, err
		}
		config.Model.Set(in.Values, name)
	}
	v.Typed, v.ReviewerTyped = cmp.Or(typed, config.Model.In(in.Values)), config.ReviewerModel.In(in.Values)
	if err := cmp.Or(maxTokens(in), v.resolveModels(in)); err != nil {
		return l, err
	}
	v.Task = cmp.Or(v.Text, v.File)
	v.System, v.ReviewerSystem = v.Walls.System(System), v.Walls.System(ReviewerSystem)
	if in.Preview {
		return in.Limits(), nil
	}
	return in.Limits(), v.ready(in)
}

func (v *invocation) task(tree *workspace.Tree) (taskFile, error) {
	t, err := Loop{File: v.File, Text: v.Text}.task(tree)
	if err != nil {
		return t, loop.UsageOf(err, "hone init task writes an example")
	}
	return t, nil
}

const reviewerHint = "--reviewer-model gemini/gemini-2.5-flash, or set reviewer-model in the [task] section of .config/hone.toml"

func (v *invocation) resolveModels(in *loop.Input) (err error) {
	if v.Settings, err = in.Settings(); err != nil {
		return err
	}
	if v.Model.Agent != nil {
		v.AgentSystem = AgentSystem
	}
	if v.ReviewerTyped == "" {
		return nil
	}
	name, err := modelName(in, v.ReviewerTyped)
	if err != nil {
		return err
	}
	reviewer, err := in.Model(name)
	switch {
	case err != nil:
		return err
	case reviewer.Agent != nil:
		return loop.Usage(reviewer.Name+": a command-line agent cannot be the reviewer, because the reviewer writes with a tool of hone's", reviewerHint)
	case v.Model.Agent == nil && reviewer.BaseURL != "" && v.Model.Provider() != reviewer.Provider():
		return loop.Usage("--base-url is one address, but executor and reviewer use different providers", "set the providers' own variables instead, such as GOOGLE_GEMINI_BASE_URL and OPENAI_BASE_URL")
	case reviewer.Names() != v.Model.Names():
		v.Reviewer = reviewer
	}
	return nil
}

// It fails if an agent executes and there is no model for the reviewer, if nothing judges several attempts, or if the loop's own
// files cannot be written.
func (v *invocation) ready(in *loop.Input) error {
	if config.Attempts.In(in.Values) > 1 && v.Check == "" {
		return loop.Usage("--attempts needs a check, which decides which attempt is applied", `--check "make test"`)
	}
	if v.Model.Agent != nil && v.Reviewer.Name == "" {
		return loop.Usage(v.Model.Name+" is a command-line agent, which cannot review as well: the reviewer writes with a tool of hone's", reviewerHint)
	}
	if text, _, err := in.Tree.Read(v.File); err == nil && v.File != "" {
		if err := loop.CheckEdited(v.File, string(text), starters, "starters/TASK.toml"); err != nil {
			return err
		}
	}
	return loop.CheckFiles(in.Root, artifactsFolder+"/review.toml")
}

// Build puts loop, tools, check and rules together.
func (v *invocation) Build(s loop.Session) (built loop.Built, err error) {
	l := v.loop(s.Guard())
	r := s.NewRun(l.Rules())
	agent, commands, review := v.walls(s)
	if err := s.SetModel(&l.Executor, &v.Model, agent); err != nil {
		return built, err
	}
	if err := s.SetModel(&l.Reviewer, v.reviewer(), nil); err != nil {
		return built, err
	}
	if l.Tools, err = v.tools(s, commands, review); err != nil {
		return built, err
	}
	r.Words = said
	s.SetCheck(commands, s.Check)
	v.SetJudge(r, v.Check)
	if v.Check != "" {
		r.Trust.CheckFirst = hone.Informed
	}
	built = loop.Built{
		Run:     r,
		Round:   l.Round,
		Turns:   map[string]int{l.Executor.Name: v.Bounds().Turns, l.Reviewer.Name: ReviewTurns(v.Bounds().Turns)},
		Summary: func(hone.End) string { return Summary(r) + "\n" },
		// CodeScribe's users save it with tee.
		VerboseOut: true,
	}
	if !s.Replayed() {
		built.Round = l.Record(r).Round
	}
	if v.Reviewer.Name != "" {
		built.With = fmt.Sprintf("executor %s and reviewer %s", v.Model.Names(), v.Reviewer.Names())
	}
	return built, nil
}

// agent is nil if a model executes. The reviewer's commands cannot change the tree. An agent always has a home of its own,
// because it may write its settings there.
func (v *invocation) walls(s loop.Session) (agent, commands, review loop.Walls) {
	plan := loop.WallPlan{Protect: []string{artifactsHome},
		// Only a directory that exists can be mounted read-only.
		Prepare: func(context.Context) error { return makeHome(s.Root()) }}
	if v.File != "" {
		plan.Protect = append(plan.Protect, v.File)
	}
	if v.Model.Agent != nil {
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
func (v *invocation) tools(s loop.Session, commands, review loop.Walls) (func(programs []string) (execute, review []tool.Tool, err error), error) {
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
		with.Programs = append(v.Programs(), programs...)
		execute, err = s.Tools(with)
		return execute, reviewing, err
	}, nil
}

// Models and tools are not set yet.
func (v *invocation) loop(guard *secret.Guard) Loop {
	l := Loop{File: v.File, Text: v.Text, Check: v.Check, Log: v.Log, Guard: guard, Typed: v.Typed, ReviewerTyped: v.ReviewerTyped,
		Executor: v.Model.Role("executor", v.WithAdvice(v.System)), Reviewer: v.reviewer().Role("reviewer", v.WithAdvice(cmp.Or(v.ReviewerSystem, v.System)))}
	l.Executor.Bounds, l.Reviewer.Bounds = v.Bounds(), v.Bounds()
	l.NoBash = v.Walls.Absent
	if v.Model.Agent != nil {
		l.Executor.System = v.WithAdvice(v.AgentSystem)
	}
	return l
}

// Preview returns the first prompt of the executor.
func (v *invocation) Preview(ctx context.Context, view loop.View) (loop.Prompt, error) {
	p, err := v.loop(view.Guard).Preview(ctx, view.Tree, view.Limits.Rounds)
	p.What = "the task and the instructions"
	if v.Check != "" {
		p.What += "; a run adds what the check reports"
	}
	return p, err
}

//go:embed starters
var starters embed.FS

func starterFiles() loop.Starters {
	return loop.Starters{
		Short: "TASK.toml, a commented task file for you to fill in",
		Files: func(string, func(string)) ([]loop.File, error) { return loop.Files(starters, "starters") },
		Next: func(string) string {
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
