package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"hone"
	"hone/check"
	"hone/internal/config"
	"hone/loop/task"
	"hone/model"
	"hone/sandbox"
	"hone/workspace"
)

// taskSettings are all that a task run depends on, resolved: what its start
// event holds. The task file is read in each loop.
type taskSettings struct {
	runSettings
	Reviewer    modelSettings `json:"reviewer_model,omitzero"` // zero: the executor's, which is Model
	System      string        `json:"system"`
	AgentSystem string        `json:"agent_system,omitempty"` // the executor's, where that is an agent; else System is
	File        string        `json:"task_file,omitempty"`    // from the root; empty where Text is the task
	Text        string        `json:"task,omitempty"`
	Turns       int           `json:"turns"`          // most model calls in an execution session
	Calls       int           `json:"max_tool_calls"` // most in a session
	Log         string        `json:"log,omitempty"`  // absolute
	Check       string        `json:"check,omitempty"`
	CheckTime   time.Duration `json:"check_timeout_ns,omitempty"`
	CheckEnv    []string      `json:"check_env,omitempty"`
	CheckFirst  bool          `json:"check_first,omitempty"` // the first loop begins with what the check reports
}

// Bounds of a session (ruling S11, and the seed).
const (
	taskTurns = 30
	taskCalls = 120
)

func (a *app) taskCommand() *cobra.Command {
	f := taskFlags{loopFlags: loopFlags{agents: true, walls: wallFlags{standard: string(sandbox.Auto)}}}
	c := &cobra.Command{
		Use:   `task TASK.toml|"TEXT"`,
		Short: "execute and review until complete",
		Long: `task gives a model tools (read, glob, grep, write, edit, bash) and a task, and lets it work. Then a
reviewer that cannot change anything says what is left, and that begins the next loop. What the
reviewer is told of the work is computed from the tool calls, never taken from the model's word.
A check, where there is one, has the last word.

The task is a file in CodeScribe's form, or a text. Commands are limited to a list of programs, which
the task file can extend, and run behind walls, without network. CodeScribe's command line works as
well: the options of code-scribe loop, and models written openai-NAME.

The executor may also be a command-line agent of the configuration, command/NAME, behind the same
walls. What it did is then read off the files, and the reviewer needs a model of its own.`,
		Example: `  hone task TASK.toml
  hone task "make the tests in ./parse pass" --check "go test ./parse"
  hone task TASK.toml -nloop 3 -niter 40 -m anthropic-claude-sonnet-5
  hone task TASK.toml -m command/gemini --reviewer-model gemini/gemini-2.5-flash`,
		Args: oneTask,
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.valid(c); err != nil {
				return err
			}
			return a.startTask(c.Context(), f, args[0])
		},
	}
	f.register(c)
	return c
}

// startTask resolves everything before anything is written.
func (a *app) startTask(ctx context.Context, f taskFlags, arg string) error {
	root, s, limits, err := a.resolveTask(f, arg)
	if err != nil {
		return err
	}
	if err := s.reviewed(); err != nil {
		return err
	}
	if err := s.Trust.provable(s.Check != ""); err != nil {
		return err
	}
	start, err := startOf("task", root, s.Model, limits, s)
	if err != nil {
		return err
	}
	models := []modelSettings{s.Model}
	if s.Reviewer.Name != "" {
		models = append(models, s.Reviewer)
	}
	return a.begin(ctx, root, start, f.output, func(o session) error { return a.driveTask(ctx, o, s) }, models...)
}

// resumeTask goes on with a run by the settings in its start event.
func (a *app) resumeTask(ctx context.Context, o session, start hone.Start, baseURL string) error {
	var s taskSettings
	models := []*modelSettings{&s.Model}
	if len(askedBy(start)) > 1 {
		models = append(models, &s.Reviewer)
	}
	if err := a.goOn(&o, start, &s, baseURL, models...); err != nil {
		return err
	}
	return a.driveTask(ctx, o, s)
}

// driveTask puts loop, tools, check and rules together, and ends with
// CodeScribe's own line (ruling S9).
func (a *app) driveTask(ctx context.Context, o session, s taskSettings) error {
	l := s.loop(a, o.models[0], o.models[len(o.models)-1])
	r := o.run(l.Rules(), s.runSettings)
	r.Own = s.own(o.root)
	if s.CheckFirst {
		r.Trust.CheckFirst = hone.Informed
	}
	walls := a.taskWalls(o, r, s)
	if err := a.employ(&l, r, s, walls); err != nil {
		return err
	}
	seen, err := treeWithout(o.root, taskFolder)
	if err != nil {
		return err
	}
	defer seen.Close()
	l.Tools = s.tools(seen, l.Guard, r, walls.commands)
	return a.drive(ctx, o, r, driven{
		loop: "task", settings: s.runSettings, walls: walls, with: s.staff(), secrets: []string{s.Reviewer.whole()},
		round: func(live io.Writer) hone.Round {
			made := func(dir string, walls *runWalls) check.Func { return a.taskCheck(s, dir, l.Guard, walls, live) }
			r.Check = made(o.root, walls.commands)
			s.Trust.prove(r, o.root, walls.commands, made)
			return l.Round
		},
		turns:   map[string]int{l.Executor.Name: s.Turns, l.Reviewer.Name: task.ReviewTurns(s.Turns)},
		finish:  func(end hone.End) error { return l.Finish(r, end, exitStatus(end.Kind)) },
		summary: func(hone.End) string { return task.Summary(r) + "\n" },
	})
}

// own tells the loop's own files, a log that a person placed in the tree among
// them.
func (s taskSettings) own(root string) func(path string) bool {
	log, err := filepath.Rel(root, s.Log)
	if s.Log == "" || err != nil {
		return task.Own
	}
	return func(path string) bool { return path == filepath.ToSlash(log) || task.Own(path) }
}

// loop is the loop of the settings, but for its tools and what an agent is run
// by.
func (s taskSettings) loop(a *app, executor, reviewer model.Model) task.Loop {
	bounds := hone.Bounds{Turns: s.Turns, Calls: s.Calls}
	l := task.Loop{File: s.File, Text: s.Text, Log: s.Log, Guard: a.guard(s.runSettings),
		Executor: s.Model.role("executor", s.System, executor), Reviewer: s.reviewer().role("reviewer", s.System, reviewer)}
	l.Guard.Known = knownKeys(a.env, s.Model.whole(), s.Reviewer.whole())
	l.Executor.Bounds, l.Reviewer.Bounds = bounds, bounds
	if s.Model.Agent != nil {
		l.Executor.Agent, l.Executor.System = true, s.AgentSystem
	}
	return l
}

// taskCheck is the command that has the last word; nil where there is none. It
// runs behind the walls, and has the variables with keys that the
// configuration gives it, which a model's commands have not.
func (a *app) taskCheck(s taskSettings, root string, guard *workspace.Guard, walls *runWalls, live io.Writer) check.Func {
	if s.Check == "" {
		return nil
	}
	return check.Command(walls.with(s.CheckEnv), check.CommandConfig{
		Command: s.Check, Dir: root, Timeout: s.CheckTime, Redact: guard.Redact, Live: live})
}

// resolveTask reads flags, environment, task file and configuration, in that
// order of precedence.
func (a *app) resolveTask(f taskFlags, arg string) (root string, s taskSettings, l hone.Limits, err error) {
	if root, err = folder(f.dir); err != nil {
		return root, s, l, err
	}
	file, err := config.Load(root)
	if err != nil {
		return root, s, l, configError(err)
	}
	s = taskSettings{System: task.System, CheckTime: file.Check.Timeout, CheckEnv: file.Check.Env,
		Turns: cmp.Or(f.turns, file.Task.Turns, taskTurns), Calls: cmp.Or(f.calls, file.Task.MaxToolCalls, taskCalls)}
	if s.File, s.Text, err = taskArgument(root, arg); err != nil {
		return root, s, l, err
	}
	asked, err := s.asked(root)
	if err != nil {
		return root, s, l, err
	}
	s.Check = cmp.Or(f.check, asked.Check, file.Check.Command)
	s.CheckFirst = s.Check != ""
	if s.Log, err = f.logFile(); err != nil {
		return root, s, l, err
	}
	if f.model, err = a.taskModel(f.model); err != nil {
		return root, s, l, err
	}
	if err := a.resolveStaff(&s, f, root, file); err != nil {
		return root, s, l, err
	}
	s.Approve = cmp.Or(f.approve, file.Task.Approve, "ask")
	rounds := cmp.Or(file.Task.Rounds, file.Limits.Rounds, task.Loops)
	return root, s, resolveLimits(f.limits, file.Limits, rounds), nil
}

// asked is the task as it stands now: what is wrong with its file is wrong
// before anything is sent.
func (s taskSettings) asked(root string) (task.Task, error) {
	if s.File == "" {
		return task.Plain(s.Text), nil
	}
	tree, err := workspace.Open(root, workspace.Options{})
	if err != nil {
		return task.Task{}, err
	}
	defer tree.Close()
	t, err := task.Load(tree, s.File)
	if err != nil {
		return t, usage(err.Error(), "hone init task writes an example")
	}
	return t, nil
}

func (a *app) promptTaskCommand() *cobra.Command {
	f := taskFlags{loopFlags: loopFlags{agents: true}}
	c := &cobra.Command{
		Use:   `task TASK.toml|"TEXT"`,
		Short: "what task would send first",
		Args:  oneTask,
		RunE: func(c *cobra.Command, args []string) error {
			return a.promptTask(f, args[0])
		},
	}
	registerDir(c, &f.dir)
	c.Flags().StringVarP(&f.model, "model", "m", "", "whose context the size is compared with, as PROVIDER/NAME")
	c.Flags().BoolVar(&f.output.json, "json", false, "the request as one JSON object")
	c.Flags().SetNormalizeFunc(codescribeName)
	return c
}

// promptTask needs no key, as [app.promptReconcile] needs none.
func (a *app) promptTask(f taskFlags, arg string) error {
	root, s, limits, err := a.resolveTask(f, arg)
	unnamed := errors.Is(err, errNoModel)
	if unnamed {
		f.model = "script/none"
		root, s, limits, err = a.resolveTask(f, arg)
	}
	if err != nil {
		return err
	}
	tree, err := workspace.Open(root, workspace.Options{})
	if err != nil {
		return err
	}
	defer tree.Close()
	v, err := s.loop(a, nil, nil).Preview(tree, limits.Rounds)
	if err != nil {
		return err
	}
	whose := s.Model.Name
	if unnamed {
		whose = ""
	}
	what := "the task and the instructions"
	if s.CheckFirst {
		what += "; a run adds what the check reports"
	}
	return a.preview(preview{System: v.System, Text: v.Text, what: what}, v.Fits, whose, f.output.json)
}

func (a *app) initTaskCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "task",
		Short: "TASK.toml, a task file that can be run as it is",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			root, err := folder(dir)
			if err != nil {
				return err
			}
			if err := a.start(root, "task"); err != nil {
				return err
			}
			return a.next("say in TASK.toml what you want, then: hone prompt task TASK.toml && hone task TASK.toml")
		},
	}
	registerDir(c, &dir)
	c.Flags().SetNormalizeFunc(codescribeName)
	return c
}
