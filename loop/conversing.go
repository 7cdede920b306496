package loop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

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

// CheckLine returns a usage error for a check that would run nothing, and so always pass:
// one that has only blanks and comments; and for one that contains a secret, which models and
// receipts would get (ruling G8). An empty line is no check, and no error.
func CheckLine(line string) error {
	if line == "" {
		return nil
	}
	if new(secret.Guard).Redact(line) != line {
		return Usage("the check contains a secret, which a model and the records of the run would get", "put it into a variable, write that in the check, and let commands have it with env in [check]")
	}
	for one := range strings.Lines(line) {
		if one = strings.TrimSpace(one); one != "" && !strings.HasPrefix(one, "#") {
			return nil
		}
	}
	return Usage("the check has only blanks and comments, so it would always pass", `write a command, such as --check "make test"; a variable in it may be empty`)
}

// CheckOfCopies returns a usage error for a check that names a directory by its absolute path
// although it runs in copies of it, which whose says. to is the directory's relative path.
func CheckOfCopies(line, dir, to, whose string) error {
	if !NamesDir(line, dir) {
		return nil
	}
	return Usage("the check names "+dir+" by its absolute path, so it would judge that directory and not the "+whose+", which are in copies",
		"write its paths relative to the directory: "+strings.ReplaceAll(line, dir, to))
}

// NamesDir reports whether a command line names a directory, or something in it, by its
// absolute path. In a copy of the directory it would still mean the original.
func NamesDir(line, dir string) bool {
	if dir = filepath.Clean(dir); !filepath.IsAbs(dir) || dir == filepath.Dir(dir) {
		return false
	}
	_, rest, found := strings.Cut(line, dir)
	for ; found; _, rest, found = strings.Cut(rest, dir) {
		next, _ := utf8.DecodeRuneInString(rest)
		if rest == "" || !unicode.IsLetter(next) && !unicode.IsNumber(next) && !strings.ContainsRune("._+@-", next) {
			return true
		}
	}
	return false
}
