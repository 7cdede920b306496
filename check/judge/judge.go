// Package judge knows the files that judge a model's work beside the command of a check:
// the scripts that the command starts, and what test runners read (ruling G21).
package judge

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"hone/workspace/treepath"
)

// Set is the files that judge the work of one run. The zero Set has none.
type Set struct {
	files *treepath.Patterns // nil: none
}

// IsZero reports whether the set has no files at all.
func (s Set) IsZero() bool { return s.files == nil }

// Of returns the files that judge the work if a check's command line decides. A script
// or a makefile is one if the line starts it; an operand of another program is not.
// A line that only compiles and lints names the sources under repair, so that no test
// judges it, only the settings of linters do.
func Of(command string) Set {
	started, tests := readCommand(command)
	names := linterFiles()
	if tests {
		names = append(names, runnerFiles()...)
	}
	globs := started
	for _, line := range names {
		for name := range strings.FieldsSeq(line) {
			globs = append(globs, atAnyDepth(name))
		}
	}
	files := treepath.CompileValid(globs, true)
	return Set{&files}
}

func atAnyDepth(name string) string {
	if strings.HasSuffix(name, "/") {
		name += "**"
	}
	if top, ok := strings.CutPrefix(name, "/"); ok {
		return top
	}
	return "**/" + name
}

// Has reports whether a file judges the work, as a whole or in part; see [Merge].
func (s Set) Has(cleaned string) bool { return s.files != nil && s.files.Match(cleaned) }

// Scripts returns patterns of the scripts and makefiles that a command line starts, and of
// those that it gives to an interpreter, such as python bench.py.
func Scripts(command string) []string {
	started, _ := readCommand(command)
	list, _ := calls(command)
	for _, words := range list {
		if !listed(interpreters, strings.TrimRight(path.Base(words[0]), "0123456789.")) {
			continue
		}
		for _, a := range words[1:] {
			if a == "-c" || a == "-m" || a == "-e" {
				break
			}
			if !strings.HasPrefix(a, "-") && a != "run" {
				started = append(started, inTree(a))
				break
			}
		}
	}
	return started
}

// interpreters are the programs that run a script, beside the shells.
const interpreters = " python node ruby perl php Rscript julia deno bun lua "

// calls returns the words of each program that a command line calls; ok is false if no shell
// can read it.
func calls(line string) (list [][]string, ok bool) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil {
		return nil, false
	}
	for n := range syntax.Preorder(file) {
		call, is := n.(*syntax.CallExpr)
		if !is || len(call.Args) == 0 {
			continue
		}
		var words []string
		for _, w := range call.Args {
			words = append(words, text(w))
		}
		list = append(list, words)
	}
	return list, true
}

// tests means that the line may run tests. A line that is not a shell's runs everything.
func readCommand(line string) (started []string, tests bool) {
	list, ok := calls(line)
	if !ok {
		return nil, true
	}
	for _, words := range list {
		names, runs := readCall(words)
		started, tests = append(started, names...), tests || runs
	}
	return started, tests
}

// A part that only the shell knows is left out.
func text(w *syntax.Word) string {
	var b strings.Builder
	for n := range syntax.Preorder(w) {
		switch n := n.(type) {
		case *syntax.Lit:
			b.WriteString(strings.ReplaceAll(n.Value, `\`, ""))
		case *syntax.SglQuoted:
			b.WriteString(n.Value)
		}
	}
	return b.String()
}

func readCall(words []string) (started []string, tests bool) {
	for len(words) > 1 && (listed(wrappers, words[0]) || strings.Contains(words[0], "=")) {
		words = words[1:]
		for len(words) > 1 && (strings.HasPrefix(words[0], "-") || isDuration(words[0]) || strings.Contains(words[0], "=")) {
			words = words[1:]
		}
	}
	program, args := path.Base(words[0]), words[1:]
	if strings.Contains(words[0], "/") && !path.IsAbs(words[0]) {
		started = append(started, inTree(words[0]))
	}
	if names, ok := makers()[program]; ok {
		for name := range strings.FieldsSeq(names) {
			started = append(started, atAnyDepth(name))
		}
		for i, a := range args {
			if (a == "-f" || a == "--file" || a == "--makefile" || a == "--justfile") && i+1 < len(args) {
				started = append(started, inTree(args[i+1]))
			}
		}
	}
	if listed(shells, program) {
		for i, a := range args {
			if strings.HasPrefix(a, "-") && strings.HasSuffix(a, "c") && i+1 < len(args) { // sh -c LINE
				inner, runs := readCommand(args[i+1])
				return append(started, inner...), runs
			}
			if !strings.HasPrefix(a, "-") {
				return append(started, inTree(a)), true
			}
		}
	}
	switch {
	case listed(linters, program), len(args) > 0 && listed(lintingWords, program+":"+args[0]):
		return started, false
	case listed(" cd echo printf test [ true false export set exit : pushd popd mkdir rm cat ", program):
		return started, false
	case strings.HasPrefix(program, "python") && len(args) > 1 && args[0] == "-m":
		return started, !listed(linters, args[1]) && args[1] != "compileall"
	}
	return started, true
}

func listed(list, word string) bool { return word != "" && strings.Contains(list, " "+word+" ") }

// Such a word is an operand of timeout.
func isDuration(word string) bool {
	return word != "" && strings.Trim(word, "0123456789.smhd") == "" && strings.ContainsAny(word, "0123456789")
}

// The line may be in any directory by then.
func inTree(script string) string {
	script = path.Clean(script)
	for strings.HasPrefix(script, "../") {
		script = script[len("../"):]
	}
	return "**/" + treepath.Quote(script)
}
