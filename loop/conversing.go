package loop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"hone"
	"hone/check"
	"hone/internal/artifact"
	"hone/internal/config"
	"hone/internal/excerpt"
	"hone/internal/render"
	"hone/workspace/secret"
)

// OneArg returns the end of a command line with one argument, which may begin with a dash;
// nil if it is empty.
func OneArg(arg string) []string {
	if arg == "" {
		return nil
	}
	return []string{"--", arg}
}

// FindingText returns the text of a finding for a prompt, after its place if it has one,
// as compilers write it. A test that is named after the file of the place is not named again.
func FindingText(f check.Finding) string {
	if f.File == "" {
		return f.Text
	}
	return render.Line(f.Place()) + ": " + strings.TrimPrefix(f.Text, f.File+" > ")
}

// FindingTexts returns the texts of findings for a prompt, with an empty line between them.
func FindingTexts(findings []check.Finding) string {
	var texts []string
	for _, f := range findings {
		texts = append(texts, strings.TrimRight(FindingText(f), "\r\n"))
	}
	return strings.Join(texts, "\n\n")
}

// BlockingFirst returns findings with the blocking ones before the advisory ones.
func BlockingFirst(findings []check.Finding) []check.Finding {
	return append(check.BlockingOf(findings), slices.DeleteFunc(slices.Clone(findings), check.Finding.Blocks)...)
}

// Explain adds to a [*hone.ContextError] what takes the room of the prompt, and what the user can do (ruling G10). It
// returns any other error as it is, also nil.
func Explain(err error, room func() string, remedy string) error {
	var c *hone.ContextError
	if errors.As(err, &c) && c.Room == "" {
		c.Room, c.Remedy = room(), remedy
	}
	return err
}

// Indented returns a text without the space around it, as a block of code in Markdown.
func Indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
}

// Text returns the command's one argument; empty if there is none. "-" stands for
// what standard input contains, which must not be a terminal or empty. A secret in it is
// replaced (ruling G8): users pipe logs and diffs.
func (in *Input) Text() (string, error) {
	switch {
	case len(in.Args) == 0:
		return "", nil
	case in.Args[0] != "-":
		return new(secret.Guard).Redact(in.Args[0]), nil
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
	return new(secret.Guard).Redact(string(text)), nil
}

// maxReported is how much of the file of --findings is kept beside the findings, in bytes.
const maxReported = 256 << 10

// Reported returns what a check found elsewhere, of the file that the user named; nil if there is none. It depends on the
// resolved settings.
func (in *Input) Reported(ctx context.Context) (*hone.Reported, error) {
	name := config.Findings.In(in.Values)
	read := func() ([]byte, error) { return artifact.Input(name) }
	switch {
	case name == "":
		return nil, nil
	case name == "-" && len(in.Args) > 0 && in.Args[0] == "-":
		return nil, Usage("the advice and --findings cannot both be standard input", "give --findings the name of a file")
	case name == "-":
		name, read = "standard input", func() ([]byte, error) { return artifact.InputFrom(in.In, "standard input") }
	}
	b, err := read()
	if err != nil {
		return nil, UsageOf(fmt.Errorf("--findings: %w", err), "name the log or the report of a check")
	}
	guard, err := in.Guard(ctx)
	if err != nil {
		return nil, err
	}
	text := guard.Redact(string(b))
	found := &hone.Reported{Name: name, Findings: in.ReadFindings(text), Text: excerpt.Middle(excerpt.Output([]byte(text)), maxReported)}
	if !check.Blocking(found.Findings) {
		return nil, Usage("hone finds no findings in "+name,
			`name its format, such as --check-format "%f:%l: %m"; or leave out --findings, and hone runs the check`)
	}
	return found, nil
}
