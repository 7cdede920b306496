// Package judge knows the files that judge a model's work beside the command of a check:
// the scripts that the command starts, and what test runners read (ruling G21).
package judge

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"hone/workspace"
	"hone/workspace/treepath"
)

// Set is the files that judge the work of one run. The zero Set has none.
type Set struct {
	files []treepath.Patterns // nil: none
	line  line
}

// IsZero reports whether the set has no files at all.
func (s Set) IsZero() bool { return s.files == nil }

// Of returns the files that judge the work if a check's command line decides. A script
// or a makefile is one if the line starts it; an operand of another program is not.
// A line that only compiles and lints names the sources under repair, so that no test
// judges it, only the settings of linters do.
func Of(command string) Set {
	line := readCommand(command)
	globs, names := line.scripts(""), linterFiles()
	if line.tests {
		names = append(names, runnerFiles()...)
		for _, folder := range []string{"", "src", "lib"} {
			globs = append(globs, importedFiles(folder)...)
		}
		for _, folder := range inTrees("", line.folders) {
			globs = append(append(globs, importedFiles(folder)...), importedFiles(folder+"/src")...)
		}
	}
	for _, list := range names {
		for name := range strings.FieldsSeq(list) {
			globs = append(globs, atAnyDepth(strings.ReplaceAll(name, "@", languages)))
		}
	}
	return Set{line: line}.with(globs)
}

// Named returns the files that patterns name; nil means none.
func Named(globs []string) Set {
	if len(globs) == 0 {
		return Set{}
	}
	return Set{}.with(globs)
}

func (s Set) with(globs []string) Set {
	s.files = append(slices.Clip(s.files), treepath.CompileValid(globs, true))
	return s
}

// In returns the set of a run in a directory that found some files: executable files judge
// too that the line gives to another program, which may run them, such as flock; and so do
// the targets of links that judge. A program that reads its operands, such as an interpreter
// or a linter, does not count.
func (s Set) In(dir string, found workspace.Manifest) Set {
	if s.files == nil {
		return s
	}
	globs := s.line.scripts(dir)
	operands := treepath.CompileValid(inTrees(dir, s.line.operands), true)
	for _, f := range found {
		if f.Mode&0o111 != 0 && operands.Match(f.Path) {
			globs = append(globs, treepath.Quote(f.Path))
		}
	}
	s = s.with(globs)
	var links workspace.Manifest
	for _, f := range found {
		if f.Target != "" {
			links = append(links, f)
		}
	}
	for range links { // at most so many in a row
		var targets []string
		links = slices.DeleteFunc(links, func(l workspace.Entry) bool {
			list := s.behind(l, dir, found)
			targets = append(targets, list...)
			return len(list) > 0
		})
		if len(targets) == 0 {
			break
		}
		s = s.with(targets)
	}
	return s
}

// behind returns patterns of the files that judge by the name that a link gives them.
func (s Set) behind(l workspace.Entry, dir string, found workspace.Manifest) (globs []string) {
	target, ok := strings.CutPrefix(l.Target, dir+"/")
	if !ok {
		target = path.Join(path.Dir(l.Path), l.Target)
	}
	if s.Has(l.Path) {
		globs = append(globs, treepath.Quote(target))
	}
	if s.Has(l.Path + "/x") { // all below
		return append(globs, treepath.Quote(target)+"/**", treepath.Quote(l.Path))
	}
	for _, f := range found {
		if below, ok := strings.CutPrefix(f.Path, target+"/"); ok && s.Has(l.Path+"/"+below) {
			globs = append(globs, treepath.Quote(f.Path), treepath.Quote(l.Path))
		}
	}
	return globs
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
func (s Set) Has(cleaned string) bool {
	return slices.ContainsFunc(s.files, func(ps treepath.Patterns) bool { return ps.Match(cleaned) })
}

// Scripts returns patterns of the scripts and makefiles that a command line starts, and of
// all that it gives to an interpreter, such as python bench.py.
func Scripts(command string) []string {
	line := readCommand(command)
	return append(line.scripts(""), line.interpreted...)
}

// calls returns the programs that a command line calls, with their operands, all of its words, and the
// folders in which it lets Python or Ruby look for modules; ok is false if no shell can read it.
func calls(line string) (list [][]string, all, folders []string, ok bool) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil {
		return nil, nil, nil, false
	}
	vars := variables{}
	for n := range syntax.Preorder(file) {
		switch n := n.(type) {
		case *syntax.WordIter:
			vars[n.Name.Value] = given
		case *syntax.Assign:
			if n.Name == nil || n.Value == nil {
				break
			}
			vars[n.Name.Value] = vars.text(n.Value)
			if name := n.Name.Value; name == "PYTHONPATH" || name == "RUBYLIB" {
				folders = append(folders, strings.Split(vars.text(n.Value), ":")...)
			}
		case *syntax.CallExpr:
			var words []string
			for _, w := range n.Args {
				text := vars.text(w)
				if _, is := w.Parts[0].(*syntax.ParamExp); is && len(w.Parts) == 1 && text != given {
					words = append(words, strings.Fields(text)...)
				} else {
					words = append(words, text)
				}
			}
			list = append(list, words)
		case *syntax.Word: // printf may have written commands
			text := strings.NewReplacer(given, "*", `\n`, " ").Replace(vars.text(n))
			all = append(all, strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n;&|<>()'\"`", r) })...)
		}
	}
	return list, slices.DeleteFunc(all, func(w string) bool { return strings.HasPrefix(w, "-") || strings.Trim(w, "./*") == "" }), folders, true
}

// variables are those that the line assigns.
type variables map[string]string

// Of a word, given is what only the shell knows: a variable of a loop, or what a command prints. Of the
// variables that the environment has, the directory is known if a path begins with it, and others are left out.
const given, unknown = "\x00", "\x01"

func (v variables) text(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	var b strings.Builder
	v.add(&b, w.Parts)
	text := b.String()
	if strings.HasPrefix(text, unknown+"/") || strings.HasPrefix(text, given+"/") {
		text = "." + text[1:]
	}
	return strings.ReplaceAll(text, unknown, "")
}

// quoted removes the backslashes that quote in double quotes. Others stay there.
var quoted = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\$`, `$`, "\\`", "`", "\\\n", "")

func (v variables) add(b *strings.Builder, parts []syntax.WordPart) {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(strings.ReplaceAll(p.Value, `\`, ""))
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, part := range p.Parts {
				if lit, is := part.(*syntax.Lit); is {
					b.WriteString(quoted.Replace(lit.Value))
				} else {
					v.add(b, []syntax.WordPart{part})
				}
			}
		case *syntax.ParamExp:
			value, ok := v[p.Param.Value]
			if !ok {
				value = unknown
			}
			b.WriteString(value)
		default:
			b.WriteString(given)
		}
	}
}

// line is what a command line says of the files that judge.
type line struct {
	started  []string // scripts and makefiles, as the line has them
	globs    []string // what makers read, as patterns
	operands []string // of programs that may run them
	folders  []string // that programs run in, or find modules in
	tests    bool     // it may run tests
	// interpreted are patterns of what interpreters run, whatever its name is.
	interpreted []string
	all         []string // its words
}

// scripts returns patterns of what the line starts.
func (l line) scripts(dir string) []string { return slices.Concat(inTrees(dir, l.started), l.globs) }

// A line that is not a shell's runs everything. If it starts what only the shell knows, any of
// its words may name that.
func readCommand(text string) (l line) {
	list, all, folders, ok := calls(text)
	l.tests, l.folders, l.all = !ok, folders, all
	for _, words := range list {
		l.read(words)
	}
	return l
}

func (l *line) include(o line) {
	l.started, l.globs, l.operands = append(l.started, o.started...), append(l.globs, o.globs...), append(l.operands, o.operands...)
	l.folders, l.tests = append(l.folders, o.folders...), l.tests || o.tests
	l.interpreted = append(l.interpreted, o.interpreted...)
}

func (l *line) read(words []string) {
	task := false // of the project, as in pipenv run test
	for len(words) > 1 && (listed(wrappers, words[0]) || strings.Contains(words[0], "=")) {
		task, words = words[0] == "run", words[1:]
		for len(words) > 1 && (strings.HasPrefix(words[0], "-") || isDuration(words[0]) || strings.Contains(words[0], "=")) {
			words = words[1:]
		}
	}
	if len(words) == 0 {
		return
	}
	program, args := base(words[0]), words[1:]
	for i, w := range words {
		if isGiven(w) && (i == 0 || strings.HasPrefix(words[i-1], "-exec") || strings.HasPrefix(words[i-1], "-ok")) {
			l.started = append(l.started, l.all...)
		}
	}
	if strings.Contains(words[0], "/") {
		l.started = append(l.started, words[0])
	}
	builtin := listed(builtins, words[0]) // ./test is none
	l.tests = l.tests || !builtin && runsTests(program, args) || task && builtin
	for _, script := range interpreted(program, args, l.all) {
		globs := programFiles(script)
		if l.interpreted = append(l.interpreted, globs...); saysCheck(script) {
			l.globs = append(l.globs, globs...)
		}
	}
	switch {
	case program == "trap":
		l.include(readCommand(first(args)))
	case program == "eval" && slices.ContainsFunc(args, isGiven):
		l.started = append(l.started, l.all...)
	case program == "eval":
		l.include(readCommand(strings.Join(args, " ")))
	case program == "cd", program == "pushd":
		l.folders = append(l.folders, args...)
		return
	case builtin:
		return
	case !listed(readers+linters, program) && !isInterpreter(program) && !listed(lintingWords, program+":"+first(args)):
		l.operands = append(l.operands, args...)
	}
	for i, a := range args {
		if value, ok := strings.CutPrefix(a, "-I"); ok && program == "ruby" {
			l.folders = append(l.folders, cmp.Or(value, first(args[i+1:])))
		}
	}
	for i, w := range words { // a wrapper may run it
		if names, ok := makers()[base(w)]; ok {
			l.make(names, words[i+1:])
		}
		if listed(shells, base(w)) && (i == 0 || w != "." && w != "source") {
			l.shell(words[i+1:])
			return
		}
	}
}

func base(program string) string {
	if program == "" {
		return ""
	}
	return path.Base(program)
}

func first(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

func (l *line) make(names string, args []string) {
	for name := range strings.FieldsSeq(names) {
		l.globs = append(l.globs, atAnyDepth(name))
	}
	for i, a := range args {
		for _, flag := range []string{"-f", "--file", "--makefile", "--justfile", "-I", "--include-dir"} {
			value, ok := strings.CutPrefix(a, flag)
			switch {
			case !ok:
				continue
			case value == "" && i+1 < len(args):
				value = args[i+1]
			case strings.HasPrefix(flag, "--"):
				if value, ok = strings.CutPrefix(value, "="); !ok {
					continue
				}
			}
			if flag == "-I" || flag == "--include-dir" {
				l.globs = append(l.globs, inTree(value)+"/**")
			} else {
				l.started = append(l.started, value)
			}
		}
	}
}

// The first operand is a script. What is on the standard input, a part of the line may have written.
func (l *line) shell(args []string) {
	l.tests = true
	for i, a := range args {
		switch {
		case strings.HasPrefix(a, "-") && strings.HasSuffix(a, "c") && i+1 < len(args) && !isGiven(args[i+1]): // sh -c LINE
			l.include(readCommand(args[i+1]))
			return
		case isGiven(a):
			l.started = append(l.started, l.all...)
			return
		case a != "" && !strings.HasPrefix(a, "-"):
			l.started = append(l.started, a)
			return
		}
	}
	l.started = append(l.started, l.all...)
}

// find and xargs write braces.
func isGiven(word string) bool { return strings.Contains(word, given) || strings.Contains(word, "{}") }

func runsTests(program string, args []string) bool {
	switch {
	case listed(linters, program), len(args) > 0 && listed(lintingWords, program+":"+args[0]):
		return false
	case listed(" cat eval"+shells, program): // a shell's operands say it
		return false
	case strings.HasPrefix(program, "python") && len(args) > 1 && args[0] == "-m":
		return !listed(linters, args[1]) && args[1] != "compileall"
	}
	return true
}

func listed(list, word string) bool { return word != "" && strings.Contains(list, " "+word+" ") }

// Such a word is an operand of timeout.
func isDuration(word string) bool {
	return word != "" && strings.Trim(word, "0123456789.smhd") == "" && strings.ContainsAny(word, "0123456789")
}

// inTrees returns patterns of paths in a directory; those that are outside are left out.
func inTrees(dir string, words []string) (globs []string) {
	for _, w := range words {
		if below, ok := strings.CutPrefix(w, dir+"/"); ok && dir != "" {
			w = below
		}
		if w != "" && !path.IsAbs(w) && path.Clean(w) != "." {
			globs = append(globs, inTree(w))
			if strings.ContainsAny(w, "*?[{") { // the shell replaces it by files
				globs = append(globs, anywhere(w))
			}
		}
	}
	return globs
}

func inTree(script string) string { return anywhere(treepath.Quote(path.Clean(script))) }

// The line may be in any directory by then.
func anywhere(glob string) string {
	glob = path.Clean(glob)
	for strings.HasPrefix(glob, "../") {
		glob = glob[len("../"):]
	}
	return "**/" + glob
}
