// Package allow checks the command lines that a model asks for against a list
// of programs.
//
// Call [Lines.Check] with each line before a shell runs it. A line passes if
// every program in it is on the list and every path in it lies in the working
// directory. The package parses the line as bash does. For well-known programs a
// table lists the options that take a value, run other programs, or open files
// that the line does not name.
//
// The check is a courtesy to the model, not security: it only reads the line, and
// a listed program may do anything. It tells the model early and clearly what
// will not work. Only the walls around the command protect the machine. Where there
// are none, a line must say in plain words all that it does.
package allow

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Lines defines the command lines that a model may run (rulings S6, S7 and S12).
//
// Commands that only print what is known of dependencies, such as go doc, may run
// although their program is not listed. After cd DIR &&, paths are relative to DIR.
//
// A line may combine programs with pipes, &&, ||, ;, newlines, groups, if, case, for
// and while. A program that runs another one, such as env, passes if the other one is
// listed too. Background jobs, functions and eval never pass. Variables, substitutions
// and programs in arguments (python -c) hide what a line does: they pass where walls hold.
type Lines struct {
	// Programs are the names of the programs that a line may run, or paths of
	// programs in Dir, such as ./build.sh. Nil means that there is no list, and
	// Check enforces only ReadOnly. An empty list allows only the shell's own cd,
	// true, false, exit and the like.
	Programs []string
	// Always are lines that pass unchecked, such as the command of the check.
	// White space around a line does not count.
	Always []string
	// Dir is the absolute path of the working directory. Paths in a line must
	// lie in it.
	Dir string
	// Walled means that walls hold whatever a line does: what it hides passes. It may delete files of Dir that rm names,
	// change them with sed -i, and read the caches of Go, npm, pip and cargo.
	Walled bool
	// ReadOnly refuses every redirect except to /dev/null and between the
	// standard streams, such as 2>&1.
	ReadOnly bool
}

// ExecutionPrograms returns the programs that an execution agent may run in
// addition to those of the task file. The caller owns the slice.
func ExecutionPrograms() []string {
	return []string{"ls", "pwd", "find", "grep", "head", "tail", "wc", "git", "test", "echo", "sed"}
}

// ReviewPrograms returns the programs that a review agent may run. The caller
// owns the slice.
func ReviewPrograms() []string {
	return []string{"ls", "stat", "pwd", "find", "grep", "head", "tail", "which", "env", "rg"}
}

const (
	// maxLine limits a line to what a system accepts as one argument, and limits
	// the work of the parser.
	maxLine = 64 << 10
	// maxBrackets limits the depth of the syntax tree.
	maxBrackets = 4000
)

// Check returns nil if the line may run. Otherwise its error tells the model
// what it refuses, why, and what to do instead.
func (l Lines) Check(line string) error {
	same := func(always string) bool { return strings.TrimSpace(always) == strings.TrimSpace(line) }
	hidden := func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' && r != '\u200d' }
	switch { // what the shell, the user and this package could understand differently
	case strings.TrimSpace(line) == "":
		return errors.New("empty command")
	case slices.ContainsFunc(l.Always, same):
		return nil
	case len(line) > maxLine:
		return refuse("a line of more than 64 KiB", "it is too long for the shell", "write a file with the write tool")
	case !utf8.ValidString(line):
		return refuse("bytes that are not UTF-8", "programs read them differently", "write the line in UTF-8")
	case strings.ContainsFunc(line, hidden):
		r, _ := utf8.DecodeRuneInString(line[strings.IndexFunc(line, hidden):])
		return refuse(fmt.Sprintf("the character %U", r), "it is invisible or looks like another character", "use plain characters")
	case l.Programs == nil && !l.ReadOnly:
		return nil
	}
	file, err := parseLine(line)
	if err != nil {
		return err
	}
	for _, s := range file.Stmts {
		if err := (&checker{Lines: l}).statement(s, false); err != nil {
			return err
		}
	}
	return nil
}

func parseLine(line string) (*syntax.File, error) {
	if strings.Count(line, "(")+strings.Count(line, "{")+strings.Count(line, "`") > maxBrackets {
		return nil, refuse("a line with so many brackets", "it is nested too deeply to check", "split it into several calls")
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

func refuse(what, why, instead string) error {
	return fmt.Errorf("not allowed: %.200s: %s; %s", what, why, instead)
}

const deletion = "leave the files, and name those to delete in your answer"
