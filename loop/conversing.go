package loop

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"hone"
	"hone/check"
	"hone/check/judge"
	"hone/internal/artifact"
	"hone/internal/render"
)

// The default bounds of a session.
const (
	DefaultTurns = 30
	DefaultCalls = 120
)

// Conversing are the settings of a loop whose model works in sessions with tools. A
// Loop embeds it in addition to [Settings].
type Conversing struct {
	Turns int      `json:"turns"`           // limit of model calls in a session
	Calls int      `json:"max_tool_calls"`  // limit of tool calls in a session
	Allow []string `json:"allow,omitempty"` // programs that commands may run in addition to the loop's list
	Judge string   `json:"judge,omitempty"` // what may change what judges the work: "ask", "keep" or "free" (ruling G21)
}

// DefaultJudge lets a model change what judges its work, confirms the check without these
// changes, and asks the user if it fails.
const DefaultJudge = "ask"

// AddFlags adds --turns, --max-tool-calls, --allow and --judge.
func (c *Conversing) AddFlags(fs *pflag.FlagSet) {
	fs.IntVar(&c.Turns, "turns", 0, fmt.Sprintf("maximum number of model calls in one session (default %d)", DefaultTurns))
	fs.IntVar(&c.Calls, "max-tool-calls", 0, fmt.Sprintf("maximum number of tool calls in one session (default %d)", DefaultCalls))
	fs.StringVar(&c.Judge, "judge", "", "changes to tests and whatever else judges the work: ask (if the check fails without them), keep (take them back), or free (default ask)")
	fs.StringSliceVar(&c.Allow, "allow", nil, "programs that the model may run in addition to the standard list, such as go,make; the check itself is always allowed")
}

// ValidFlags returns what is wrong with the flags of AddFlags.
func (c *Conversing) ValidFlags(in *Input) error {
	return in.CheckPositive(map[string]bool{"turns": c.Turns > 0, "max-tool-calls": c.Calls > 0})
}

// SetJudge sets what judges the work of a run whose check is a command; none if it is
// empty.
func (c *Conversing) SetJudge(r *hone.Run, command string) {
	if command != "" && c.Judge != "free" {
		r.Trust.Judges, r.Trust.Keep = judge.Of(command), c.Judge == "keep"
	}
}

// RepeatArgs returns --allow, if there is a list, --judge if it is not the default, and
// then the argument if it is not empty; see [Repeater].
func (c *Conversing) RepeatArgs(arg string) []string {
	var args []string
	if len(c.Allow) > 0 {
		args = append(args, "--allow", strings.Join(c.Allow, ","))
	}
	if c.Judge != "" && c.Judge != DefaultJudge {
		args = append(args, "--judge", c.Judge)
	}
	return append(args, OneArg(arg)...)
}

// OneArg returns the end of a command line with one argument, which may begin with a dash;
// nil if it is empty.
func OneArg(arg string) []string {
	if arg == "" {
		return nil
	}
	return []string{"--", arg}
}

// ConversingTable is the table in .config/hone.toml of a loop that embeds
// Conversing. A loop with further settings embeds it in a struct of its own. 0 and
// the empty string mean that there is no value.
type ConversingTable struct {
	Rounds       int    `toml:"rounds" valid:"positive" opens:"-"`
	Turns        int    `toml:"turns" valid:"positive" opens:"-"`          // limit of model calls in a session
	MaxToolCalls int    `toml:"max-tool-calls" valid:"positive" opens:"-"` // limit of tool calls in a session
	Approve      string `toml:"approve" valid:"ask|none|all" opens:"changes to protected files are approved in this way"`
}

// Complete sets the values for flags that were not given: the configuration's, turns
// and calls, or the default if these are 0.
func (c *Conversing) Complete(turns, calls int) {
	c.Turns, c.Calls = cmp.Or(c.Turns, turns, DefaultTurns), cmp.Or(c.Calls, calls, DefaultCalls)
}

// Bounds returns the bounds of a session.
func (c *Conversing) Bounds() hone.Bounds { return hone.Bounds{Turns: c.Turns, Calls: c.Calls} }

// FindingText returns the text of a finding for a prompt, after its place if it has one,
// as compilers write it.
func FindingText(f check.Finding) string {
	if f.File == "" {
		return f.Text
	}
	return render.Line(f.Place()) + ": " + f.Text
}

// FindingTexts returns the texts of findings for a prompt, with an empty line between them.
func FindingTexts(findings []check.Finding) string {
	var texts []string
	for _, f := range findings {
		texts = append(texts, strings.TrimRight(FindingText(f), "\r\n"))
	}
	return strings.Join(texts, "\n\n")
}

// Indented returns a text without the space around it, as a block of code in Markdown.
func Indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
}

// OneText is an Args function of a [Kind] that accepts one text or none.
func OneText(args []string) error {
	if len(args) > 1 {
		return Usage(fmt.Sprintf("one text is expected, but there are %d arguments", len(args)),
			`put the text in quotes; the check is a flag: --check "make test"`)
	}
	return nil
}

// Text returns the command's one argument; empty if there is none. "-" stands for
// what standard input contains, which must not be a terminal or empty.
func (in *Input) Text() (string, error) {
	switch {
	case len(in.Args) == 0:
		return "", nil
	case in.Args[0] != "-":
		return in.Args[0], nil
	}
	hint := fmt.Sprintf(`hone %[1]s - < FILE, or: hone %[1]s "TEXT"`, in.Kind.Name)
	if f, ok := in.In.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return "", Usage("- reads the text from standard input, which is a terminal", hint)
	}
	text, err := artifact.InputFrom(in.In, "standard input")
	switch {
	case err != nil:
		return "", Usage(err.Error(), hint)
	case strings.TrimSpace(string(text)) == "":
		return "", Usage("- reads the text from standard input, which is empty", hint)
	}
	return string(text), nil
}
