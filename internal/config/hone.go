package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// File is what .config/hone.toml says. What it does not say is zero, here and
// in the sections below, and whoever uses it has a default for that. A dash in
// a key may be written as an underscore and the other way round; what a person
// names, a model or an agent, is as it is written.
type File struct {
	Model     Model
	Limits    Limits
	Check     Check
	Guard     Guard
	Sandbox   Sandbox
	Undo      Undo
	Prices    map[string]Price // by "provider/name"
	Commands  map[string]Agent // by NAME, as in "command/NAME"; nil where there is none
	Reconcile Reconcile
	Implement Implement
	Task      Task
	Phase     Phase
}

// Model is the [model] section.
type Model struct {
	Model        string        // "provider/name"
	BaseURL      string        // the provider's endpoint, http or https
	Reasoning    string        // "low", "medium" or "high"
	Wire         string        // "responses" or "chat"
	Tools        string        // how tools are called: "native" or "text"
	Context      int64         // the model's window, in tokens
	MaxOutput    int64         // the most that one reply may have, in tokens
	IdleTimeout  time.Duration // without a byte from the provider
	TotalTimeout time.Duration // for one attempt
	Attempts     int           // most tries at one call, the first included
}

// Limits is the [limits] section: a run's budget.
type Limits struct {
	Rounds    int
	MaxTokens int64
	MaxCost   float64 // in USD
	MaxTime   time.Duration
	Patience  int    // rounds that may end as an earlier one did before the run stops; 0 for as many as there are
	Keep      string // the tree that a run leaves when it ends short: "best" or "last"; empty where nothing is said
}

// Check is the [check] section.
type Check struct {
	Command string   // given to a shell
	Env     []string // names of variables that it has although they hold keys (ruling G6)
	Timeout time.Duration
	Protect []string // globs of what may not be changed without approval where it was there at a run's start; nil for nothing
	Flaky   int      // most reruns of a check that fails; 0 for none
	Prove   string   // "off", "on" or "strict"; empty where nothing is said
}

// Guard is the [guard] section.
type Guard struct {
	Send []string // globs of what is sent although it looks secret (ruling G8)
}

// Sandbox is the [sandbox] section: the walls. Of the paths, ~ is the person's
// home, and what is not absolute is relative to the project's root.
type Sandbox struct {
	Wall      string   // "auto", "hidden", "bwrap", "landlock", "firejail" or "none"; empty where nothing is said
	Net       bool     // commands may reach the network
	Write     []string // what else may be changed
	Read      []string // what else may be read, or may only be read
	Hide      []string // what else is not there
	Env       []string // names of variables that are passed on, be they keys (ruling G6)
	Memory    int64    // bytes a command may use; 0 where nothing is said
	Processes int      // that a command may have at once
}

// Undo is the [undo] section: what is kept so that a run can be taken back.
type Undo struct {
	Include []string // globs of what git ignores and is kept all the same; nil for nothing
	MaxFile int64    // bytes of the largest file whose contents are kept; 0 for no limit
}

// Reconcile is the [reconcile] section.
type Reconcile struct {
	Rounds  int
	Approve string // "ask", "none" or "all" (ruling G2)
}

// Implement is the [implement] section.
type Implement struct {
	Rounds       int
	MaxOutput    int // bytes of the build's output that the model is shown (ruling C11)
	BuildTimeout time.Duration
}

// Task is the [task] section.
type Task struct {
	Rounds       int
	Turns        int    // most model calls in one execution session
	MaxToolCalls int    // most tool calls in one session
	Approve      string // "ask", "none" or "all" (ruling G2)
	// ReviewerModel is the reviewer's, "provider/name"; empty where it is the
	// executor's.
	ReviewerModel string
}

// Load reads .config/hone.toml below root.
func Load(root string) (File, error) {
	text, ok, err := read(root, HonePath)
	if err != nil || !ok {
		return File{}, err
	}
	return parseHone(text)
}

// parseHone reads the file as a tree, and then one leaf after the other in the
// order of their lines.
func parseHone(text []byte) (File, error) {
	var tree map[string]any
	if err := toml.Unmarshal(text, &tree); err != nil {
		return File{}, syntaxError(err)
	}
	var f File
	prices, commands := priceList{}, commandList{}
	seen := map[string]leaf{}
	for _, l := range leaves(text, tree) {
		if first, twice := seen[l.id()]; twice {
			return File{}, l.wrong(fmt.Sprintf("it stands in line %d as %s already", first.line, first.name()), "keep one of the two")
		}
		seen[l.id()] = l
		set := f.take
		switch l.path[0] {
		case "prices":
			set = prices.take
		case "commands":
			set = commands.take
		}
		if err := set(l); err != nil {
			return File{}, err
		}
	}
	var err error
	if f.Prices, err = prices.complete(); err != nil {
		return File{}, err
	}
	if f.Commands, err = commands.complete(); err != nil {
		return File{}, err
	}
	return f, nil
}

// syntaxError is an error with the line where the file is no TOML.
func syntaxError(err error) error {
	e := &Error{File: HonePath, Problem: strings.TrimPrefix(err.Error(), "toml: "), Hint: "write TOML: sections in brackets, and lines such as rounds = 5"}
	if at, ok := errors.AsType[*toml.DecodeError](err); ok {
		e.Line, _ = at.Position()
		e.Key = keyText(at.Key())
	}
	return e
}

// keys are the settings that there are, as the documentation spells them, and
// where each goes.
func (f *File) keys() map[string]setter {
	keys := map[string]setter{
		"model.model":         text(&f.Model.Model, badModel),
		"model.base-url":      text(&f.Model.BaseURL, badURL),
		"model.reasoning":     choice(&f.Model.Reasoning, "low", "medium", "high"),
		"model.wire":          choice(&f.Model.Wire, "responses", "chat"),
		"model.tools":         choice(&f.Model.Tools, "native", "text"),
		"model.context":       whole(&f.Model.Context, "context = 200000"),
		"model.max-output":    whole(&f.Model.MaxOutput, "max-output = 32000"),
		"model.idle-timeout":  span(&f.Model.IdleTimeout),
		"model.total-timeout": span(&f.Model.TotalTimeout),
		"model.attempts":      whole(&f.Model.Attempts, "attempts = 6"),
		"limits.rounds":       whole(&f.Limits.Rounds, "rounds = 5"),
		"limits.max-tokens":   whole(&f.Limits.MaxTokens, "max-tokens = 5000000"),
		"limits.max-cost":     amount(&f.Limits.MaxCost, false, "max-cost = 2.50"),
		"limits.max-time":     span(&f.Limits.MaxTime),
		"limits.patience":     count(&f.Limits.Patience, "patience = 2"),
		"limits.keep":         choice(&f.Limits.Keep, "best", "last"),
		"check.command":       text(&f.Check.Command, badCommand),
		"check.env":           list(&f.Check.Env, badVariable, `env = ["DATABASE_URL"]`),
		"check.timeout":       span(&f.Check.Timeout),
		"check.protect":       list(&f.Check.Protect, badPattern, `protect = ["tests/**"]`),
		"check.flaky":         count(&f.Check.Flaky, "flaky = 2"),
		"check.prove":         choice(&f.Check.Prove, "off", "on", "strict"),
		"guard.send":          list(&f.Guard.Send, badPattern, `send = ["testdata/**"]`),
		"sandbox.wall":        choice(&f.Sandbox.Wall, "auto", "hidden", "bwrap", "landlock", "firejail", "none"),
		"sandbox.net":         truth(&f.Sandbox.Net),
		"sandbox.write":       list(&f.Sandbox.Write, badPath, `write = ["~/.cache/pre-commit"]`),
		"sandbox.read":        list(&f.Sandbox.Read, badPath, `read = ["/opt/data"]`),
		"sandbox.hide":        list(&f.Sandbox.Hide, badPath, `hide = ["private"]`),
		"sandbox.env":         list(&f.Sandbox.Env, badVariable, `env = ["DATABASE_URL"]`),
		"sandbox.memory":      size(&f.Sandbox.Memory),
		"sandbox.processes":   whole(&f.Sandbox.Processes, "processes = 512"),
		"undo.include":        list(&f.Undo.Include, badPattern, `include = [".env.local"]`),
		"undo.max-file":       sizeOrNone(&f.Undo.MaxFile),
		"reconcile.rounds":    whole(&f.Reconcile.Rounds, "rounds = 5"),
		"reconcile.approve":   choice(&f.Reconcile.Approve, "ask", "none", "all"),

		"implement.rounds":        whole(&f.Implement.Rounds, "rounds = 8"),
		"implement.max-output":    whole(&f.Implement.MaxOutput, "max-output = 65536"),
		"implement.build-timeout": span(&f.Implement.BuildTimeout),

		"task.rounds":         whole(&f.Task.Rounds, "rounds = 5"),
		"task.turns":          whole(&f.Task.Turns, "turns = 30"),
		"task.max-tool-calls": whole(&f.Task.MaxToolCalls, "max-tool-calls = 120"),
		"task.approve":        choice(&f.Task.Approve, "ask", "none", "all"),
		"task.reviewer-model": text(&f.Task.ReviewerModel, badModel),
	}
	maps.Copy(keys, f.Phase.keys())
	return keys
}

// take takes in one leaf of a section other than prices and commands.
func (f *File) take(l leaf) error {
	keys := f.keys()
	if _, set, ok := find(keys, l.path); ok {
		return set(l)
	}
	sections := map[string][]string{"prices": nil, "commands": nil}
	for _, key := range sorted(keys) {
		section, name, _ := strings.Cut(key, ".")
		sections[section] = append(sections[section], name)
	}
	names, ok := sections[l.path[0]]
	switch {
	case !ok:
		return l.upTo(1).wrong("there is no such section", unknownHint(l.path[0], sorted(sections)))
	case len(l.path) == 1 && !l.empty():
		return l.wrong("it is a section", fmt.Sprintf("write [%s], and its keys below", l.path[0]))
	case len(l.path) == 1:
		return nil
	}
	return l.wrong("there is no such key", unknownHint(l.path[1], names))
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
