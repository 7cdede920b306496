// Package agent lets a command-line coding agent, such as gemini-cli, codex or claude, take the
// place of a model (ruling A8).
//
// An [Agent] is a [model.Model]. One call of [Agent.Generate] is one complete session of the
// agent. The agent receives the request's texts as arguments and on standard input, works in
// its working directory with its own tools, and prints its answer. It ignores
// the request's tools, reasoning effort and output limit, because it has its
// own. No shell interprets the texts, at most the last 16 MiB of the output are stored,
// all output passes through [Config.Redact] before it is shown or returned, and output that cannot
// be parsed becomes a reply whose Finish is not normal. Walls and an environment are the caller's:
// a [sandbox.Runner] has them. The usage is what the agent reports, which may be false.
//
// A [Forward] is a proxy between an agent and its provider that keeps a budget. Behind its wall the
// agent has no network and a dummy key. Its base URL variable points to a loopback address there,
// and a Forward outside of the wall serves the connections to that address. It forwards only the
// provider's generation calls, token counts and lists of models, with the headers and query
// parameters that they need, and answers all other requests with an error in the provider's format.
// It adds the real key, removes it from every response, and lowers each call's output limit to what
// the budget allows.
//
// Every call is reserved before it is sent (ruling G11) and settled exactly once: with the usage
// that the provider reports, with zero if the provider rejected the request, and otherwise in full,
// for example if the response was cut or the agent disconnected.
//
// Unless [ForwardConfig.Hosted] is set, a Forward refuses requests that make the provider access
// the network or read stored data. They would bypass the wall, and also the reservation, which
// assumes at most one token per byte. It does not guard against expensive service tiers, documents
// and images with more tokens than bytes, or anything that the agent learns from the model.
package agent

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"hone/model"
	"hone/sandbox"
)

// Config describes how to call an agent and how to read its output.
type Config struct {
	// Name is the agent's name in the configuration, as in [commands.NAME],
	// for errors and hints.
	Name string
	// Argv is the program and its arguments; it must not be empty. In each element {model},
	// {prompt} and {context} are replaced once, so that the texts themselves
	// may contain these words. Nothing else is expanded, and there is no
	// escape for the three. Standard input has the rest: context, blank line, prompt,
	// without what Argv contains.
	Argv []string
	// Model replaces {model}; it may be empty if Argv does not contain it.
	Model string
	// Dir is the working directory; see [sandbox.Command].
	Dir string
	// Timeout limits a session; 0 means 30 minutes.
	Timeout time.Duration
	// Exits are the exit statuses of a successful session; empty means only 0.
	Exits []int
	// Answer is the path of the answer in the agent's JSON output, in the form
	// that [Usage] describes. The last string that it selects is the answer.
	// Empty means that the entire standard output is the answer.
	Answer string
	// Usage describes where the output contains token counts; zero means that
	// it has none.
	Usage Usage
	// Redact removes secrets from a text; nil removes nothing. It must be
	// safe for concurrent use.
	Redact func(string) string
}

// Agent is a [model.Model]. It keeps no state between sessions and is safe for
// concurrent use.
type Agent struct {
	config Config
	runner sandbox.Runner
}

var _ model.Model = (*Agent)(nil)

// New returns the agent that c describes; r runs its sessions. An error is a
// [*model.Error] whose hint names the section of the configuration to fix.
func New(r sandbox.Runner, c Config) (*Agent, error) {
	c.Timeout = cmp.Or(c.Timeout, 30*time.Minute)
	if len(c.Exits) == 0 {
		c.Exits = []int{0}
	}
	if c.Redact == nil {
		c.Redact = func(text string) string { return text }
	}
	switch {
	case c.Model == "" && c.has("{model}"):
		return nil, c.invalid("argv contains {model}, but no model is set", "write model in %s, or name it as command/NAME/MODEL")
	case c.Usage != (Usage{}) && (c.Usage.Input == "" || c.Usage.Output == ""):
		return nil, c.invalid("usage needs both input and output", "add the other path in %s")
	}
	return &Agent{config: c, runner: r}, nil
}

func (c *Config) has(placeholder string) bool {
	return slices.ContainsFunc(c.Argv, func(arg string) bool { return strings.Contains(arg, placeholder) })
}

// No session was started, so nothing was used. In the hint, %s stands for the section.
func (c *Config) invalid(message, hint string) *model.Error {
	return &model.Error{Kind: model.Invalid, Message: c.Name + ": " + message, Hint: c.inSection(hint), Usage: &model.Usage{}}
}

func (c *Config) inSection(hint string) string {
	return strings.ReplaceAll(hint, "%s", "[commands."+c.Name+"]")
}

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
	// A replacer makes one pass, so a prompt may contain "{context}".
	fill := strings.NewReplacer("{model}", a.config.Model, "{prompt}", prompt, "{context}", before)
	argv := make([]string, len(a.config.Argv))
	for i, template := range a.config.Argv {
		argv[i] = fill.Replace(template)
	}
	var rest []string
	if !a.config.has("{context}") {
		rest = append(rest, before)
	}
	if !a.config.has("{prompt}") {
		rest = append(rest, prompt)
	}
	stdout, stderr := &stream{limit: maxStdout}, &stream{limit: maxStderr}
	result, err := a.runner.Run(ctx, sandbox.Command{
		Argv: argv, Dir: a.config.Dir, Stdin: strings.NewReader(joinTexts(rest...)), Timeout: a.config.Timeout,
		// The runner stores the beginning of the output, but the end is needed.
		MaxOutput: 1, LiveOut: stdout, LiveErr: stderr,
	})
	if ctx.Err() != nil && (err != nil || result.Exit < 0) {
		return model.Reply{}, fmt.Errorf("%s: %w", a.config.Name, context.Cause(ctx))
	}
	// The message does not name the agent, because the caller adds its own name for it.
	failed := &model.Error{Kind: model.Failed, Usage: &model.Usage{}}
	if err != nil {
		failed.Message = "it could not be started: " + model.OneLine(a.config.Redact(err.Error()))
		failed.Alternative = a.config.inSection("correct argv in %s or the PATH it runs with, or leave {context} out of argv if it is too long, then start a new run")
		return model.Reply{}, failed
	}
	out := a.parse(stdout.tail())
	tails := a.tail("stderr", stderr) + a.tail("stdout", stdout)
	tails = cmp.Or(tails, "; it printed nothing")
	switch {
	case result.OverLimit != "":
		failed.Message = "it exceeded its limit of " + result.OverLimit
		failed.Alternative = "increase " + result.OverLimit + " in [sandbox] and start a new run"
	case result.TimedOut:
		failed.Message = fmt.Sprintf("it timed out after %v", a.config.Timeout)
		failed.Alternative = a.config.inSection("increase timeout in %s and start a new run")
	case result.Signal != "":
		failed.Message = "it was killed by a signal (" + result.Signal + ")"
	case !slices.Contains(a.config.Exits, result.Exit):
		failed.Message = fmt.Sprintf("it failed with exit status %d", result.Exit)
		failed.Hint = "fix what it reports"
		failed.Alternative = a.config.inSection(fmt.Sprintf("if status %d means success, add it to exits in %%s and start a new run", result.Exit))
	}
	if failed.Message != "" {
		failed.Message += tails
		failed.Usage = out.usage
		return model.Reply{}, failed
	}
	reply := model.Reply{Finish: model.Stop, Usage: out.usage}
	switch {
	case out.answer != "":
		reply.Parts = []model.Part{{Text: out.answer}}
		if req.Stream != nil {
			req.Stream(out.answer)
		}
	case out.found:
	case a.config.Answer == "":
		reply.Finish, reply.Detail = model.Other, fmt.Sprintf("its output is longer than %d bytes, too long for an answer", maxStdout)
	default:
		reply.Finish, reply.Detail = model.Other, fmt.Sprintf("its output has no answer at %q%s", a.config.Answer, tails)
	}
	return reply, nil
}

func splitPrompt(req model.Request) (prompt, before string) {
	all := []string{req.System}
	for i, m := range req.Messages {
		for _, p := range m.Parts {
			if p.Text == "" {
				continue
			}
			all = append(all, p.Text)
			if i == len(req.Messages)-1 {
				prompt = p.Text
			}
		}
	}
	if prompt == "" {
		return "", ""
	}
	return prompt, joinTexts(all[:len(all)-1]...)
}

func joinTexts(texts ...string) string {
	var all []string
	for _, t := range texts {
		if t = strings.TrimRight(t, "\n"); t != "" {
			all = append(all, t)
		}
	}
	return strings.Join(all, "\n\n")
}

// Limits of the stored output, in bytes.
const (
	maxStdout = 16 << 20
	maxStderr = 64 << 10
	maxTail   = 450 // of one stream, in an error
)

// stream stores the end of an output stream. Agents print the answer and the token
// counts last.
type stream struct {
	end       []byte
	limit     int
	truncated bool // the beginning of the output is lost
}

// Write never fails. It removes old output when it holds twice the limit.
func (s *stream) Write(p []byte) (int, error) {
	s.end = append(s.end, p...)
	if len(s.end) > 2*s.limit {
		s.end, s.truncated = append(s.end[:0], s.end[len(s.end)-s.limit:]...), true
	}
	return len(p), nil
}

func (s *stream) tail() (end []byte, complete bool) {
	if len(s.end) > s.limit {
		return s.end[len(s.end)-s.limit:], false
	}
	return s.end, !s.truncated
}

func (a *Agent) tail(name string, s *stream) string {
	end, _ := s.tail()
	text := strings.Join(strings.Fields(a.readable(string(end[max(0, len(end)-maxStderr):]))), " ")
	// The secrets are removed before, because shortening could split one.
	if len(text) > maxTail {
		text = "…" + strings.ToValidUTF8(text[len(text)-maxTail:], "")
	}
	if text == "" {
		return ""
	}
	return "; its " + name + " ends with: " + model.OneLine(text)
}

// It is valid UTF-8 without terminal escape sequences and without control characters except tabs and line feeds. Secrets are
// removed last, because escape sequences may interrupt one.
func (a *Agent) readable(printed string) string {
	escape := regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))`)
	return a.config.Redact(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, escape.ReplaceAllString(strings.ToValidUTF8(printed, "�"), "")))
}
