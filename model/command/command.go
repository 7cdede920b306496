// Package command is a command-line coding agent as a model: gemini-cli, codex,
// claude, opencode or any other program that does a task by itself and exits.
//
// One [Agent.Generate] is one whole session of the agent. It is given the
// request's texts as arguments and standard input, works with tools of its own
// in its working directory, and what it prints at its end is the reply. Tools
// in the request are ignored by design, and so are the reasoning effort and the
// output limit: an agent has its own.
//
// The package makes no walls, no environment and no forwarder. The
// [sandbox.Runner] that it is given stands behind walls; whoever made that
// also hears from it which protected paths the agent changed. What the agent
// says of its usage is its own word, and it may lie.
//
// What is guaranteed: nothing is given to a shell; at most the last 16 MiB of
// the output are kept, however much is printed; all of it passes through
// [Config.Redact] before anybody sees it; and what cannot be read is a reply
// whose Finish is not a normal end, never a guess.
package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"hone/model"
	"hone/sandbox"
)

// Stdin says what an agent's standard input has.
type Stdin string

// The empty Stdin follows from Argv: StdinAll where neither {prompt} nor
// {context} stands in it, StdinNone where {context} does, else StdinContext.
const (
	StdinContext Stdin = "context" // the context
	StdinAll     Stdin = "all"     // the context, a blank line, the prompt
	StdinNone    Stdin = "none"    // nothing; it is at its end at once
)

// DefaultTimeout is what Config.Timeout of 0 means.
const DefaultTimeout = 30 * time.Minute

// Config is how an agent is called and how its output is read.
type Config struct {
	// Name is what the user calls it, as in [commands.NAME]; it stands in
	// errors and hints. Empty means the program's name.
	Name string
	// Argv is the program and its arguments. In every element {model},
	// {prompt} and {context} are replaced by what they stand for; what is put
	// in is not looked through again, nothing else is expanded, and there is no
	// way to write one of the three literally.
	Argv []string
	// Model is what {model} stands for; it may be empty where Argv has none.
	Model string
	Stdin Stdin
	// Dir is the working directory, and Env the whole environment; see
	// [sandbox.Command].
	Dir string
	Env []string
	// Timeout ends a session; 0 means DefaultTimeout.
	Timeout time.Duration
	// Exits are the exit statuses of a normal end; nil means 0 alone.
	Exits []int
	// Answer is the path of the answer in the agent's JSON output; see [Usage]
	// for the form. Of several strings the last one is the answer. Empty means
	// that all of standard output is.
	Answer string
	// Usage tells where its counts of tokens stand; zero means that it prints
	// none.
	Usage Usage
	// Redact takes secrets out of a text; nil leaves it as it is.
	// Contract: it may be called from several goroutines at once.
	Redact func(string) string
	// Live, if not nil, is shown both streams a line at a time, redacted and
	// without control characters. The contract is that of [sandbox.Command]'s Live.
	Live io.Writer
}

// Agent is a [model.Model]. It keeps nothing between sessions, and several may
// go on at once.
type Agent struct {
	config Config
	runner sandbox.Runner
	answer path
	counts counts
}

var _ model.Model = (*Agent)(nil)

// New checks a configuration. Its error is a [*model.Error] whose hint names
// the section to mend.
func New(r sandbox.Runner, c Config) (*Agent, error) {
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return nil, c.invalid("it has no program to run", "write argv in %s, such as argv = [\"gemini\", \"-p\", \"{prompt}\"]")
	}
	c.Name = cmp.Or(c.Name, c.Argv[0])
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	if c.Exits == nil {
		c.Exits = []int{0}
	}
	if c.Model == "" && c.has("{model}") {
		return nil, c.invalid("its argv has {model}, and no model is named", "write model in %s, or name it as command/NAME/MODEL")
	}
	if err := c.settleStdin(); err != nil {
		return nil, err
	}
	a := &Agent{config: c, runner: r}
	var err error
	if a.answer, err = parsePath(c.Answer); err != nil {
		return nil, c.invalid("answer: "+err.Error(), pathHint)
	}
	if a.counts, err = c.Usage.parse(); err != nil {
		return nil, c.invalid(err.Error(), pathHint)
	}
	return a, nil
}

const pathHint = "see %s; a path is such as answer = \"response\", or usage.input = \"stats.models.*.tokens.prompt\""

// has reports whether a placeholder stands in Argv.
func (c *Config) has(placeholder string) bool {
	return slices.ContainsFunc(c.Argv, func(arg string) bool { return strings.Contains(arg, placeholder) })
}

// settleStdin fills in what standard input has, and sees to it that both texts
// reach the agent.
func (c *Config) settleStdin() error {
	prompt, context := c.has("{prompt}"), c.has("{context}")
	if c.Stdin == "" {
		switch {
		case context:
			c.Stdin = StdinNone
		case prompt:
			c.Stdin = StdinContext
		default:
			c.Stdin = StdinAll
		}
	}
	switch c.Stdin {
	case StdinAll:
		return nil
	case StdinContext:
		context = true
	case StdinNone:
	default:
		return c.invalid(fmt.Sprintf("%q is nothing that standard input can have", c.Stdin), "write stdin = \"context\", \"all\" or \"none\" in %s")
	}
	if !prompt {
		return c.invalid("the prompt would not reach it", "write {prompt} into argv of %s, or stdin = \"all\"")
	}
	if !context {
		return c.invalid("the context would not reach it", "write {context} into argv of %s, or stdin = \"context\"")
	}
	return nil
}

// invalid is an error that no other attempt can mend, and for which nothing was
// used. The hint's %s stands for the section.
func (c *Config) invalid(message, hint string) *model.Error {
	return &model.Error{
		Kind: model.Invalid, Message: cmp.Or(c.Name, "the agent") + ": " + message,
		Hint: strings.ReplaceAll(hint, "%s", c.section()), Usage: &model.Usage{},
	}
}

// failed is the error of a session that ended badly, or could not begin. The
// caller names the agent. remedy's %s stand for the section.
func (c *Config) failed(message string, help remedy, used *model.Usage) *model.Error {
	return &model.Error{Kind: model.Failed, Message: message, Usage: used,
		Hint: help.first, Or: strings.ReplaceAll(help.or, "%s", c.section())}
}

// remedy is what the user can do about a session that ended badly: before
// another try, or instead of one. A run keeps the settings that it began with.
type remedy struct{ first, or string }

// section is where an agent stands in a configuration.
func (c *Config) section() string { return "[commands." + cmp.Or(c.Name, "NAME") + "]" }

// Generate runs one session. The request's last text, which must be in its last
// message, is the prompt: a short instruction. The system text and all texts
// before it, whoever's they are, joined by blank lines, are the context.
//
// The reply has the answer as its one part, or none where it is empty, and is
// given to the request's Stream whole. Its Finish is Stop, or Other where the
// agent ended normally and its output holds no answer, which by ruling G3 makes
// it unreadable; Detail says so then.
//
// The error is the context's, or a [*model.Error] that is never temporary: a
// session is too dear, and has changed too much, to be repeated unseen. Its
// Kind is Invalid where the request cannot be put to the agent, and otherwise
// Failed: it says how the agent ended, with the end of what it printed, and in
// Usage what it told of its usage until then.
func (a *Agent) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	prompt, before := texts(req)
	if prompt == "" {
		return model.Reply{}, a.config.invalid("the request's last message has no text", "")
	}
	argv, err := a.argv(prompt, before)
	if err != nil {
		return model.Reply{}, err
	}
	s := a.listen()
	result, err := a.runner.Run(ctx, sandbox.Command{
		Argv: argv, Dir: a.config.Dir, Env: a.config.Env, Stdin: a.stdin(prompt, before), Timeout: a.config.Timeout,
		// The ends of the streams are kept here, not their beginnings there.
		MaxOutput: 1, LiveOut: s.stdout, LiveErr: s.stderr,
	})
	s.close()
	if ctx.Err() != nil && (err != nil || result.Exit < 0) {
		return model.Reply{}, fmt.Errorf("%s: %w", a.config.Name, context.Cause(ctx))
	}
	if err != nil {
		return model.Reply{}, a.config.failed("it could not be started: "+oneLine(a.clean(err.Error())), remedy{or: "fix argv in %s, or the PATH that it runs with, and start a new run"}, &model.Usage{})
	}
	t := a.read(s.stdout.kept())
	if how, help := a.ending(result); how != "" {
		return model.Reply{}, a.config.failed(how+"; "+a.lastWords(s), help, t.usage)
	}
	reply := a.reply(t, s)
	if req.Stream != nil && len(reply.Parts) > 0 {
		req.Stream(reply.Text())
	}
	return reply, nil
}

// ending says how a session ended, and what to do about it; empty where it
// ended normally.
func (a *Agent) ending(r sandbox.Result) (how string, help remedy) {
	switch {
	case r.OverLimit != "":
		return "it went over its limit of " + r.OverLimit + ", and was ended", remedy{or: "raise " + r.OverLimit + " in [sandbox] and start a new run"}
	case r.TimedOut:
		return fmt.Sprintf("it had not ended after %v, and was ended", a.config.Timeout), remedy{or: "raise timeout in %s and start a new run"}
	case r.Signal != "":
		return "a signal ended it (" + r.Signal + ")", remedy{}
	case !slices.Contains(a.config.Exits, r.Exit):
		return fmt.Sprintf("it ended with exit status %d", r.Exit),
			remedy{"fix what it says", fmt.Sprintf("add %d to exits in %%s, if that is a normal end, and start a new run", r.Exit)}
	}
	return "", remedy{}
}

// reply is what a session that ended normally answered.
func (a *Agent) reply(t told, s *streams) model.Reply {
	reply := model.Reply{Finish: model.Stop, Usage: t.usage}
	switch {
	case t.found && t.answer != "":
		reply.Parts = []model.Part{{Text: t.answer}}
	case t.found:
	case a.config.Answer == "":
		reply.Finish, reply.Detail = model.Other, fmt.Sprintf("it printed more than the %d bytes that an answer may have", mostOutput)
	default:
		reply.Finish, reply.Detail = model.Other, fmt.Sprintf("no answer stands at %q in its output; %s", a.config.Answer, a.lastWords(s))
	}
	return reply
}
