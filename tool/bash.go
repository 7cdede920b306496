package tool

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"

	output "hone/internal/excerpt"
	"hone/internal/reply"
	"hone/sandbox"
	"hone/tool/allow"
)

//go:embed bash.md
var bashDescription string

const bashSchema = `{
  "type": "object",
  "properties": {
    "command": {"type": "string"},
    "timeout": {"type": "integer", "minimum": 1}%s
  },
  "required": ["command"],
  "additionalProperties": false
}`

// lastSchema is for the lines that have a verdict.
const lastSchema = `,
    "last": {"type": "boolean", "description": "if the check passes, end the session with the text of this reply as your last words"}`

// BashConfig configures the bash tool.
type BashConfig struct {
	// Lines defines the allowed command lines. They run in its Dir.
	Lines allow.Lines
	// Env is the entire environment, as KEY=VALUE; nil means an empty one. It
	// must not contain a provider's key (ruling G6).
	Env []string
	// Timeout is the default time limit; 0 means two minutes.
	Timeout time.Duration
	// MaxTimeout is the highest time limit that a call may request; 0 means
	// Timeout.
	MaxTimeout time.Duration
	// MaxOutput limits the stored output of each stream, in bytes; 0 means
	// 1 MiB.
	MaxOutput int64
	// Shell is the shell that runs command lines with -c; empty means bash if
	// it is installed, otherwise sh.
	Shell string
	// Net means that commands have network access. Otherwise a failed command
	// that seems to need the network gets a note about it.
	Net bool
	// Verdict is called with a line of Lines.Always before it runs. The function that it returns
	// says what the result means, as the run itself will understand it (ruling S12). Nil means
	// that no line has a meaning.
	Verdict func(line string) func(sandbox.Result) Verdict
	// CheckTimeout is the default time limit of such a line; 0 means Timeout.
	CheckTimeout time.Duration
	// Redact removes secrets from the output; nil removes nothing.
	Redact func(string) string
}

// Verdict is what the result of a command line means. The zero value says nothing.
type Verdict struct {
	Text   string // empty means nothing
	All    bool   // the output says no more than Text
	Passed bool   // the check passes, and nothing remains to be said about that
}

func (c BashConfig) withDefaults() BashConfig {
	if c.Timeout <= 0 {
		c.Timeout = 2 * time.Minute
	}
	if c.MaxTimeout <= 0 {
		c.MaxTimeout = c.Timeout
	}
	if c.MaxOutput <= 0 {
		c.MaxOutput = 1 << 20
	}
	if c.Shell == "" {
		c.Shell = "sh"
		if _, err := exec.LookPath("bash"); err == nil {
			c.Shell = "bash"
		}
	}
	if c.Redact == nil {
		c.Redact = func(text string) string { return text }
	}
	return c
}

// Bash returns the tool that runs a command line with r if c.Lines allows it.
// The runner provides the walls, if any. The tool's description lists the
// allowed programs.
//
// The result of a refused line or a timeout is Failed; that of a nonzero exit
// status is not. The error of Run is the context's, or that of a command that
// could not be started.
func Bash(r sandbox.Runner, c BashConfig) Tool {
	b := bash{runner: r, BashConfig: c.withDefaults()}
	last := ""
	if b.Verdict != nil {
		last = lastSchema
	}
	return Define(Tool{RunsCommands: true}, "bash", b.description(), fmt.Sprintf(bashSchema, last), b.run)
}

type bash struct {
	BashConfig
	runner sandbox.Runner
}

type bashArgs struct {
	Command string `json:"command"`
	Timeout int64  `json:"timeout"`
	Last    bool   `json:"last"`
}

func (b bash) description() string {
	text := strings.TrimSpace(bashDescription) + fmt.Sprintf("\n- A line is killed after timeout seconds (default %d, maximum %d).", int(b.Timeout.Seconds()), int(b.MaxTimeout.Seconds()))
	if b.Lines.Programs == nil {
		return text
	}
	also := b.lookups()
	if b.Lines.Walled && !b.Lines.ReadOnly {
		also = append([]string{"`rm FILE`"}, also...)
	}
	never := "without substitutions such as `$(…)`, variables, programs in arguments such as `python -c`, background jobs and functions"
	if b.Lines.Walled {
		never = "without background jobs and functions"
	}
	text += "\n- Allowed programs: " + strings.Join(b.Lines.Programs, ", ") + "."
	if len(also) > 0 {
		text += " Also " + strings.Join(also, ", ") + "."
	}
	text += " Combine them with pipes, `&&`, `||`, `;`, `if` and `while`, " + never + ". Paths must be relative and stay in the working directory."
	text += b.alwaysText()
	if b.Lines.ReadOnly {
		text += " The only allowed redirects are to /dev/null and 2>&1."
	}
	return text
}

// A language is known by the programs of the check. A file at the root would tell it as well, but a run may create that, and
// what a model was told must be the same when the run is resumed.
func (b bash) lookups() (also []string) {
	named := strings.FieldsFunc(strings.Join(b.Lines.Always, "\n"), func(r rune) bool { return !unicode.IsLetter(r) })
	for _, of := range []struct{ programs, lines string }{
		{"go", "`go doc`, `go list -m`"},
		{"npm npx node yarn pnpm", "`npm ls`"},
		{"pip python pytest", "`pip show`"},
	} {
		if slices.ContainsFunc(strings.Fields(of.programs), func(p string) bool { return slices.Contains(named, p) }) {
			also = append(also, of.lines)
		}
	}
	return also
}

func (b bash) alwaysText() (text string) {
	for _, line := range b.Lines.Always {
		text += fmt.Sprintf(" This exact line is always allowed, without additions: `%s`.", line)
	}
	return text
}

func (b bash) run(ctx context.Context, _ Input, args bashArgs) (Result, error) {
	if err := b.Lines.Check(args.Command); err != nil {
		return refused(err.Error() + ". No part of the line was run." + b.alwaysText()), nil
	}
	limit, understand := min(b.Timeout, b.MaxTimeout), func(sandbox.Result) (v Verdict) { return v }
	if args.Timeout > 0 {
		limit = min(b.MaxTimeout, time.Duration(min(args.Timeout, 1<<30))*time.Second)
	}
	if slices.Contains(b.Lines.Always, args.Command) {
		if args.Timeout <= 0 {
			limit = cmp.Or(b.CheckTimeout, limit)
		}
		if b.Verdict != nil {
			understand = b.Verdict(args.Command)
		}
	}
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
	v := understand(got)
	result := b.result(got, limit, v, args.Last)
	result.Ends = args.Last && v.Passed
	return result, nil
}

func (b bash) result(got sandbox.Result, limit time.Duration, v Verdict, last bool) Result {
	stdout, stderr := b.Redact(output.Output(got.Stdout)), b.Redact(output.Output(got.Stderr)) // as a terminal shows them
	head, text, notes := fmt.Sprintf("exit_code: %d", got.Exit), "", ""
	if v.Text != "" {
		head += "; " + v.Text
	}
	for _, stream := range []struct{ name, text string }{{"STDOUT", stdout}, {"STDERR", stderr}} {
		if stream.text != "" {
			text += "\n" + stream.name + ":\n" + strings.TrimSuffix(stream.text, "\n")
		}
	}
	for _, note := range b.notes(got, stdout+stderr, v.Text != "") {
		notes += "\nNOTE: " + note
	}
	if last && !v.Passed && got.Exit == 0 {
		notes += "\nNOTE: the session goes on: `last` ends it only with the check's exact line, if that passes without changes to the check itself."
	}
	result := Result{Text: head + text + notes, Exit: &got.Exit}
	if got.TimedOut {
		head = fmt.Sprintf("Error: the command timed out after %s; it and all processes that it started were killed.\n%s", limit, head)
		result.Text, result.Failed = head+text+notes, true
	}
	if v.All {
		result.Text, result.Head = head+notes+text, len(head+notes)
	}
	return result
}

// A model can make only other lines than the check's print less.
func (b bash) notes(got sandbox.Result, output string, isCheck bool) (notes []string) {
	if got.TimedOut && output == "" {
		notes = append(notes, "the command printed nothing. It may hang, or it may still have been compiling: the first build of a run is slow if the caches behind the walls are empty. Run it again before you look for an endless loop; compiled results are kept.")
	}
	if got.OverLimit != "" {
		notes = append(notes, "the command was killed because it exceeded its limit of "+got.OverLimit+".")
	} else if got.Signal != "" && !got.TimedOut {
		notes = append(notes, "the command was killed by a signal: "+got.Signal+".")
	}
	if got.Discarded > 0 {
		note := fmt.Sprintf("%d more bytes of output followed and were discarded", got.Discarded)
		if !isCheck {
			note += "; print less"
		}
		notes = append(notes, note+".")
	}
	for _, r := range got.Restored {
		note := r.Path + " is protected: the command's change to it was undone."
		if r.NotRestored != "" {
			note = r.Path + " is protected, and the command changed it: " + r.NotRestored
		}
		notes = append(notes, b.Redact(note))
	}
	for _, r := range got.Repositories {
		if r.MovedTo != "" {
			notes = append(notes, b.Redact(r.Note()+"; only the user can allow it. Work without it."))
		}
	}
	if note := got.HiddenNote(); note != "" {
		notes = append(notes, note)
	}
	if !b.Net && got.Exit != 0 && sandbox.WantsNetwork(output) {
		notes = append(notes, "commands have no network access, and only the user can enable it. Work without it, or say in your answer what needs it.")
	}
	return notes
}

// Other programs give these names. They have no underscores and are in lower case.
func aliases() map[string][]string {
	return map[string][]string{
		"path":    {"filepath", "file", "filename", "targetfile", "absolutepath"},
		"content": {"contents", "filetext", "text", "filecontent", "filecontents", "newcontents"},
		"oldText": {"oldstring", "oldstr", "search", "oldcode", "searchtext"},
		"newText": {"newstring", "newstr", "replace", "replacement", "newcode", "replacetext"},
		"command": {"cmd", "commandline"},
	}
}

// rename gives unknown members of an object the names that they certainly mean: of
// a required member that is missing and has another spelling or an alias.
func rename(s *jsonschema.Schema, v map[string]any) {
	targets := slices.Clone(s.Required)
	if _, items := itemList(s); items != nil {
		targets = append(targets, items.Required...)
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		member := v[name]
		if _, known := s.Properties[name]; known {
			continue
		}
		for _, target := range targets {
			_, taken := v[target]
			plain := reply.PlainName(name)
			if !taken && name != target && (plain == reply.PlainName(target) || slices.Contains(aliases()[target], plain)) {
				v[target] = member
				delete(v, name)
				break
			}
		}
	}
}

func itemList(s *jsonschema.Schema) (name string, items *jsonschema.Schema) {
	for _, one := range s.Required {
		if sub := s.Properties[one]; sub != nil && sub.Type == "array" && sub.Items != nil && sub.Items.Type == "object" {
			name, items = one, sub.Items
		}
	}
	return name, items
}

// fold makes a list of one object out of its members, if they are in the object
// around the list, and the list is missing.
func fold(s *jsonschema.Schema, v map[string]any) {
	name, items := itemList(s)
	if _, given := v[name]; items == nil || given {
		return
	}
	item := map[string]any{}
	for _, member := range items.Required {
		value, ok := v[member]
		if !ok {
			return
		}
		item[member] = value
	}
	for member := range item {
		delete(v, member)
	}
	v[name] = []any{item}
}
