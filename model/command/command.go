// Package command implements [model.Model] with a command-line coding agent:
// gemini-cli, codex, claude, opencode or any other program that completes a
// task on its own and exits. [New] returns an [Agent].
//
// One call of [Agent.Generate] is one complete session of the agent. The agent
// receives the request's texts as arguments and on standard input, works in
// its working directory with its own tools, and prints its answer. It ignores
// the request's tools, reasoning effort and output limit, because it has its
// own.
//
// The package guarantees that no shell interprets the texts, that it stores at
// most the last 16 MiB of the output, that all output passes through
// [Config.Redact] before it is shown or returned, and that output it cannot
// parse becomes a reply whose Finish is not normal.
//
// It does not provide walls, an environment or a forwarder: the caller passes
// a [sandbox.Runner] that does. The usage is what the agent reports, which may
// be false.
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

// Stdin selects the contents of an agent's standard input. The empty Stdin
// means StdinNone if Argv contains {context}, StdinContext if it contains only
// {prompt}, and StdinAll if it contains neither.
type Stdin string

// The possible contents of standard input.
const (
	StdinContext Stdin = "context" // the context
	StdinAll     Stdin = "all"     // the context, a blank line, the prompt
	StdinNone    Stdin = "none"    // empty
)

// DefaultTimeout is the timeout if Config.Timeout is 0.
const DefaultTimeout = 30 * time.Minute

// Config describes how to call an agent and how to read its output.
type Config struct {
	// Name is the agent's name in the configuration, as in [commands.NAME],
	// for errors and hints. Empty means the program's name.
	Name string
	// Argv is the program and its arguments. In each element {model},
	// {prompt} and {context} are replaced once, so that the texts themselves
	// may contain these words. Nothing else is expanded, and there is no
	// escape for the three.
	Argv []string
	// Model replaces {model}; it may be empty if Argv does not contain it.
	Model string
	Stdin Stdin
	// Dir is the working directory, and Env the entire environment; see
	// [sandbox.Command].
	Dir string
	Env []string
	// Timeout limits a session; 0 means DefaultTimeout.
	Timeout time.Duration
	// Exits are the exit statuses of a successful session; nil means only 0.
	Exits []int
	// Answer is the path of the answer in the agent's JSON output, in the form
	// that [Usage] describes. If it matches several strings, the last one is
	// the answer. Empty means that the entire standard output is the answer.
	Answer string
	// Usage describes where the output contains token counts; zero means that
	// it has none.
	Usage Usage
	// Redact removes secrets from a text; nil removes nothing. It must be
	// safe for concurrent use.
	Redact func(string) string
	// Live, if not nil, receives both output streams line by line, redacted
	// and without control characters, under the same contract as
	// [sandbox.Command]'s Live.
	Live io.Writer
}

// Agent is a [model.Model]. It keeps no state between sessions and is safe for
// concurrent use.
type Agent struct {
	config Config
	runner sandbox.Runner
	answer path
	usage  usagePaths
}

var _ model.Model = (*Agent)(nil)

// New returns the agent that c describes; r runs its sessions. An error is a
// [*model.Error] whose hint names the section of the configuration to fix.
func New(r sandbox.Runner, c Config) (*Agent, error) {
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return nil, c.invalid("argv names no program", "write argv in %s, such as argv = [\"gemini\", \"-p\", \"{prompt}\"]")
	}
	c.Name = cmp.Or(c.Name, c.Argv[0])
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	if c.Exits == nil {
		c.Exits = []int{0}
	}
	if c.Model == "" && c.has("{model}") {
		return nil, c.invalid("argv contains {model}, but no model is set", "write model in %s, or name it as command/NAME/MODEL")
	}
	if err := c.resolveStdin(); err != nil {
		return nil, err
	}
	a := &Agent{config: c, runner: r}
	var err error
	if a.answer, err = parsePath(c.Answer); err != nil {
		return nil, c.invalid("answer: "+err.Error(), pathHint)
	}
	if a.usage, err = c.Usage.parse(); err != nil {
		return nil, c.invalid(err.Error(), pathHint)
	}
	return a, nil
}

const pathHint = "correct the path in %s; examples are answer = \"response\" and usage.input = \"stats.models.*.tokens.prompt\""

// has reports whether Argv contains a placeholder.
func (c *Config) has(placeholder string) bool {
	return slices.ContainsFunc(c.Argv, func(arg string) bool { return strings.Contains(arg, placeholder) })
}

// resolveStdin replaces an empty Stdin and verifies that both texts reach the
// agent.
func (c *Config) resolveStdin() error {
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
		return c.invalid(fmt.Sprintf("unknown stdin %q", c.Stdin), "write stdin = \"context\", \"all\" or \"none\" in %s")
	}
	if !prompt {
		return c.invalid("the agent would not receive the prompt", "add {prompt} to argv in %s, or write stdin = \"all\"")
	}
	if !context {
		return c.invalid("the agent would not receive the context", "add {context} to argv in %s, or write stdin = \"context\"")
	}
	return nil
}

// invalid returns the error for a wrong configuration or request. No session
// was started, so nothing was used. In the hint, %s stands for the section.
func (c *Config) invalid(message, hint string) *model.Error {
	return &model.Error{
		Kind: model.Invalid, Message: cmp.Or(c.Name, "the agent") + ": " + message,
		Hint: strings.ReplaceAll(hint, "%s", c.section()), Usage: &model.Usage{},
	}
}

// failed returns the error for a session that failed or did not start. The
// message does not name the agent, because the caller adds its own name for it.
// In help, %s stands for the agent's section.
func (c *Config) failed(message string, help remedy, used *model.Usage) *model.Error {
	return &model.Error{Kind: model.Failed, Message: message, Usage: used,
		Hint: help.first, Alternative: strings.ReplaceAll(help.or, "%s", c.section())}
}

// remedy is what the user can do about a failed session: before another try, or
// instead of one. A run keeps the settings that it started with.
type remedy struct{ first, or string }

// section returns the agent's section in the configuration.
func (c *Config) section() string { return "[commands." + cmp.Or(c.Name, "NAME") + "]" }

// Generate runs one session. The request's last text, which must be in its last
// message, is the prompt, a short instruction. The system text and all earlier
// texts, joined by blank lines, are the context.
//
// The reply has the answer as its only part, or no part if it is empty;
// Generate passes the complete answer to the request's Stream. The Finish is
// Stop. If the agent succeeds but its output contains no answer, it is Other,
// which makes the reply unreadable (ruling G3), and Detail gives the reason.
//
// The error is the context's, or a [*model.Error] that is never temporary: a
// session costs and changes too much to be repeated automatically. Its Kind is
// Invalid if the request cannot be passed to the agent, otherwise Failed. Then
// its message tells how the agent ended, with the end of its output, and its
// Usage is what the agent reported until then.
func (a *Agent) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	prompt, before := splitPrompt(req)
	if prompt == "" {
		return model.Reply{}, a.config.invalid("the request's last message has no text", "")
	}
	argv, err := a.argv(prompt, before)
	if err != nil {
		return model.Reply{}, err
	}
	s := a.newStreams()
	result, err := a.runner.Run(ctx, sandbox.Command{
		Argv: argv, Dir: a.config.Dir, Env: a.config.Env, Stdin: a.stdin(prompt, before), Timeout: a.config.Timeout,
		// The runner stores the beginning of the output, but the end is needed.
		MaxOutput: 1, LiveOut: s.stdout, LiveErr: s.stderr,
	})
	s.close()
	if ctx.Err() != nil && (err != nil || result.Exit < 0) {
		return model.Reply{}, fmt.Errorf("%s: %w", a.config.Name, context.Cause(ctx))
	}
	if err != nil {
		return model.Reply{}, a.config.failed("it could not be started: "+oneLine(a.redact(err.Error())), remedy{or: "correct argv in %s or the PATH it runs with, then start a new run"}, &model.Usage{})
	}
	out := a.parse(s.stdout.tail())
	if message, help := a.failure(result); message != "" {
		return model.Reply{}, a.config.failed(message+"; "+a.tails(s), help, out.usage)
	}
	reply := a.reply(out, s)
	if req.Stream != nil && len(reply.Parts) > 0 {
		req.Stream(reply.Text())
	}
	return reply, nil
}

// failure describes how a session failed and what to do about it; both are
// empty if it succeeded.
func (a *Agent) failure(r sandbox.Result) (message string, help remedy) {
	switch {
	case r.OverLimit != "":
		return "it exceeded its limit of " + r.OverLimit, remedy{or: "increase " + r.OverLimit + " in [sandbox] and start a new run"}
	case r.TimedOut:
		return fmt.Sprintf("it timed out after %v", a.config.Timeout), remedy{or: "increase timeout in %s and start a new run"}
	case r.Signal != "":
		return "it was killed by a signal (" + r.Signal + ")", remedy{}
	case !slices.Contains(a.config.Exits, r.Exit):
		return fmt.Sprintf("it failed with exit status %d", r.Exit),
			remedy{"fix what it reports", fmt.Sprintf("if status %d means success, add it to exits in %%s and start a new run", r.Exit)}
	}
	return "", remedy{}
}

// reply returns the reply of a successful session.
func (a *Agent) reply(out output, s *streams) model.Reply {
	reply := model.Reply{Finish: model.Stop, Usage: out.usage}
	switch {
	case out.found && out.answer != "":
		reply.Parts = []model.Part{{Text: out.answer}}
	case out.found:
	case a.config.Answer == "":
		reply.Finish, reply.Detail = model.Other, fmt.Sprintf("its output is longer than %d bytes, too long for an answer", maxStdout)
	default:
		reply.Finish, reply.Detail = model.Other, fmt.Sprintf("its output has no answer at %q; %s", a.config.Answer, a.tails(s))
	}
	return reply
}
