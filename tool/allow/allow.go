// Package allow says which shell lines a model may have run: those whose every
// program is on a list and whose every path stays in a folder. Lines are parsed
// by a real shell's grammar, and the arguments of programs that can run others
// or write files (find, sed, awk, git, xargs, tar …) by their own.
package allow

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Lines says which command lines a model may have run (rulings S6 and S7).
//
// It is a courtesy to the model, and no security: a line is read, not
// understood, and a program that is listed does what it does. It tells a model
// early and in words what will not work; what holds is the walls that the line
// runs behind.
//
// Allowed are pipes, &&, ||, ;, newlines, quoting, groups, if, case, for and
// while, where every program in the line is on the list, by a name that is
// written out, and every path that is seen stays in the folder. What runs or
// hides other programs (substitutions, background jobs, functions, eval,
// options such as find -exec) is refused, unless what it runs can be read and
// is listed too. What is not known is refused.
type Lines struct {
	// Programs are the names of the programs that may be run, or paths of
	// programs in Dir, such as ./build.sh. Nil means that there is no list:
	// lines are not looked at, but for ReadOnly. An empty one allows none but
	// the shell's own cd, true, false, exit and the like.
	Programs []string
	// Dir is the working directory, absolute. Paths in a line stay inside.
	Dir string
	// Temp is a folder, absolute, in which paths may lie as well; empty means
	// that there is none.
	Temp string
	// ReadOnly refuses every redirect other than to /dev/null and between the
	// standard streams, such as 2>&1.
	ReadOnly bool
}

// Execution are the programs that an execution agent may run, beside those of
// the task file. The caller owns the slice.
func Execution() []string {
	return []string{"ls", "pwd", "find", "grep", "head", "tail", "wc", "git", "test", "echo", "sed"}
}

// Review are the programs that a review agent may run. The caller owns the
// slice.
func Review() []string {
	return []string{"ls", "stat", "pwd", "find", "grep", "head", "tail", "which", "env", "rg"}
}

const (
	// longestLine keeps a line below what a system takes as one argument, and
	// the parser's work and depth bounded.
	longestLine = 64 << 10
	// deepest is how many brackets a line may hold.
	deepest = 4000
)

// Check says whether a line may be run: nil, or an error worded for the model,
// which says what is refused, why, and what to do instead.
func (l Lines) Check(line string) error {
	if err := readable(line); err != nil {
		return err
	}
	if l.Programs == nil && !l.ReadOnly {
		return nil
	}
	file, err := parseLine(line)
	if err != nil {
		return err
	}
	c := &checker{Lines: l, vars: scope{}, moves: movesAway(file)}
	if l.Programs == nil {
		return c.redirectsOnly(file)
	}
	return c.statements(file.Stmts)
}

// readable refuses what a shell, a person and this package could read
// differently.
func readable(line string) error {
	switch {
	case strings.TrimSpace(line) == "":
		return errors.New("empty command")
	case len(line) > longestLine:
		return disallow("a line of more than 64 KiB", "it is too long for the shell", "write a file with the write tool")
	case !utf8.ValidString(line):
		return disallow("bytes that are not UTF-8", "they are read differently by different programs", "write the line in UTF-8")
	}
	for _, r := range line {
		if odd(r) {
			return disallow(fmt.Sprintf("the character %U", r), "it cannot be seen, or is taken for another one", "write it in plain characters")
		}
	}
	return nil
}

func odd(r rune) bool {
	switch {
	case r == '\n' || r == '\t' || r == ' ':
		return false
	case unicode.IsControl(r), unicode.IsSpace(r), r == '\ufeff', r >= '\u2000' && r <= '\u200f' && r != '\u200d':
		return true
	}
	return unicode.Is(unicode.Bidi_Control, r)
}

func parseLine(line string) (*syntax.File, error) {
	if strings.Count(line, "(")+strings.Count(line, "{")+strings.Count(line, "`") > deepest {
		return nil, disallow("a line with so many brackets", "it cannot be checked", "write it as several calls, or as a script")
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil {
		return nil, fmt.Errorf("could not parse command: line %w", err)
	}
	if len(file.Stmts) == 0 {
		return nil, errors.New("empty command")
	}
	return file, nil
}

// refusal is why a line is not run, for the model.
type refusal struct{ what, why, instead string }

func (r *refusal) Error() string {
	text := "not allowed: " + clipped(r.what) + ": " + r.why
	if r.instead != "" {
		text += "; instead, " + r.instead
	}
	return text
}

// clipped keeps what a model wrote, and is told again, short.
func clipped(text string) string {
	const most = 200
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

func disallow(what, why, instead string) error { return &refusal{what, why, instead} }

// unlisted is what a model reads that asked for a program which is not listed.
func (l Lines) unlisted(name string) error {
	text := fmt.Sprintf("command not allowed: '%s' (allowed: %s)", clipped(name), strings.Join(l.Programs, ", "))
	if strings.Contains(name, "/") {
		text += "; programs are run by name, not by path"
	}
	return errors.New(text)
}

// movesAway reports whether a line changes its folder anywhere.
func movesAway(file *syntax.File) (found bool) {
	syntax.Walk(file, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			name, _ := literalWord(call.Args[0])
			found = found || name == "cd"
		}
		return !found
	})
	return found
}
