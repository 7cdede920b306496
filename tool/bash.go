package tool

import (
	"context"
	_ "embed" // the description
	"fmt"
	"os/exec"
	"strings"
	"time"

	"hone/sandbox"
	"hone/tool/allow"
)

//go:embed bash.md
var bashDescription string

const bashSchema = `{
  "type": "object",
  "properties": {
    "command": {"type": "string", "description": "The command line."},
    "timeout": {"type": "integer", "minimum": 1, "description": "Seconds after which it is ended."}
  },
  "required": ["command"],
  "additionalProperties": false
}`

// BashConfig is what command lines are run with.
type BashConfig struct {
	// Lines says which lines are allowed. Its Dir is where they run.
	Lines allow.Lines
	// Env is the whole environment, as KEY=VALUE; nil means an empty one.
	// Contract: no key of a provider is in it (ruling G6).
	Env []string
	// Timeout is how long a line may take that names no time; 0 means two
	// minutes.
	Timeout time.Duration
	// Ceiling is the most that a line may ask for; 0 means Timeout.
	Ceiling time.Duration
	// MaxOutput is how many bytes of each stream are kept; 0 means 1 MiB.
	MaxOutput int64
	// Shell is the program that reads lines, called with -c; empty means bash
	// where there is one, and sh elsewhere.
	Shell string
	// Net says that commands have the network, so that nothing needs to be
	// said about its absence.
	Net bool
	// Redact takes secrets out of what a command printed; nil leaves it as it
	// is.
	Redact func(string) string
}

func (c BashConfig) withDefaults() BashConfig {
	if c.Timeout <= 0 {
		c.Timeout = 2 * time.Minute
	}
	if c.Ceiling <= 0 {
		c.Ceiling = c.Timeout
	}
	if c.MaxOutput <= 0 {
		c.MaxOutput = 1 << 20
	}
	if c.Shell == "" {
		c.Shell = shell()
	}
	if c.Redact == nil {
		c.Redact = func(text string) string { return text }
	}
	return c
}

func shell() string {
	if _, err := exec.LookPath("bash"); err == nil {
		return "bash"
	}
	return "sh"
}

// Bash runs a command line that c.Lines allows, by r, which stands behind
// walls where the caller wants them. Its description lists the programs.
//
// A line that is refused, and one that took too long, is a Result that Failed;
// one that exits with another status than 0 is not. The error of its Run is
// the context's, or says that no command could be started.
func Bash(r sandbox.Runner, c BashConfig) Tool {
	b := bash{runner: r, BashConfig: c.withDefaults()}
	return define(Tool{Commands: true}, "bash", b.description(), bashSchema, b.run)
}

type bash struct {
	BashConfig
	runner sandbox.Runner
}

type bashArgs struct {
	Command string `json:"command"`
	Timeout int64  `json:"timeout"`
}

func (b bash) description() string {
	text := strings.TrimSpace(bashDescription) + fmt.Sprintf("\n- Time: %s unless `timeout` says less or more, and %s at most.", b.Timeout, b.Ceiling)
	if b.Lines.Programs == nil {
		return text
	}
	text += "\n- Programs that may be run: " + strings.Join(b.Lines.Programs, ", ") + ". Pipes, `&&`, `||`, `;`, `if`, `for` and `while` may join them." +
		" Substitutions such as `$(…)`, background jobs and functions are refused."
	for _, line := range b.Lines.Always {
		text += fmt.Sprintf(" This line may always be run as it stands: `%s`.", line)
	}
	if b.Lines.ReadOnly {
		text += " Redirects go to /dev/null or are 2>&1."
	}
	return text
}

func (b bash) run(ctx context.Context, _ Input, args bashArgs) (Result, error) {
	if err := b.Lines.Check(args.Command); err != nil {
		return Failure(err.Error() + " (nothing of the line was run)"), nil
	}
	limit := b.limit(args.Timeout)
	got, err := b.runner.Run(ctx, sandbox.Command{
		Argv:      []string{b.Shell, "-c", "--", args.Command},
		Dir:       b.Lines.Dir,
		Env:       b.Env,
		Timeout:   limit,
		MaxOutput: b.MaxOutput,
	})
	switch {
	case ctx.Err() != nil:
		return Result{}, fmt.Errorf("run a command: %w", context.Cause(ctx))
	case err != nil:
		return Result{}, fmt.Errorf("run a command: %w", err)
	}
	return b.result(got, limit), nil
}

// limit is how long a line may take that asks for so many seconds; 0 means
// that it asks for none.
func (b bash) limit(seconds int64) time.Duration {
	if seconds <= 0 {
		return min(b.Timeout, b.Ceiling)
	}
	if seconds > int64(b.Ceiling/time.Second) {
		return b.Ceiling
	}
	return time.Duration(seconds) * time.Second
}

func (b bash) result(got sandbox.Result, limit time.Duration) Result {
	stdout, stderr := b.stream(got.Stdout), b.stream(got.Stderr)
	text := fmt.Sprintf("exit_code: %d\nSTDOUT:\n%s\nSTDERR:\n%s", got.Exit, stdout, stderr)
	if notes := b.notes(got, stdout+stderr); len(notes) > 0 {
		text += "\nNOTE: " + strings.Join(notes, "\nNOTE: ")
	}
	result := Result{Text: text, Exit: &got.Exit}
	if got.TimedOut {
		result.Text = fmt.Sprintf("Error: the command timed out after %s; it and everything that it started was ended.\n%s", limit, text)
		result.Failed = true
	}
	return result
}

// stream is what a command printed, as text without secrets.
func (b bash) stream(out []byte) string {
	return b.Redact(strings.ToValidUTF8(string(out), "\uFFFD"))
}

// notes tell what the output does not.
func (b bash) notes(got sandbox.Result, output string) (notes []string) {
	if got.OverLimit != "" {
		notes = append(notes, "it was ended because it went over the limit of "+got.OverLimit+".")
	} else if got.Signal != "" && !got.TimedOut {
		notes = append(notes, "it was ended by a signal: "+got.Signal+".")
	}
	if got.Lost > 0 {
		notes = append(notes, fmt.Sprintf("%d more bytes of output were not kept; print less.", got.Lost))
	}
	for _, r := range got.Restored {
		note := r.Path + " is protected: what the command changed there was put back."
		if r.Lost != "" {
			note = r.Path + " is protected, and the command changed it: " + r.Lost
		}
		notes = append(notes, b.Redact(note))
	}
	if !b.Net && got.Exit != 0 && sandbox.WantsNetwork(output) {
		notes = append(notes, "the network is off for commands, and only the person who started this run can open it (--net). Do without it, or say in your answer what needs it.")
	}
	return notes
}
