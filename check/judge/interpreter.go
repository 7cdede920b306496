package judge

import (
	"path"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

// interpreters are the programs that run a script, beside the shells, and go, whose run is one.
const interpreters = " python node ruby perl php Rscript julia deno bun lua tsx ts-node pypy jruby pwsh bc dc "

// filters read a script that an option names.
const filters = " awk gawk mawk nawk sed jq "

func isInterpreter(program string) bool {
	return listed(interpreters, strings.TrimRight(program, "0123456789."))
}

// interpreted returns the path of the script, of the module or of the folder that an interpreter
// runs, and the values of options before it that say that they judge. If it is not known what it
// runs, these are all words of the line that say so.
func interpreted(program string, args, all []string) (scripts []string) {
	if listed(filters, program) {
		for i, a := range args {
			if strings.HasPrefix(a, "-") && (strings.HasSuffix(a, "f") || strings.HasSuffix(a, "file")) && i+1 < len(args) {
				scripts = append(scripts, args[i+1])
			}
		}
		return scripts
	}
	compiles := program == "go" && first(args) == "run"
	if !compiles && !isInterpreter(program) {
		return nil
	}
	for i, a := range args {
		_, value, named := strings.Cut(a, "=")
		switch {
		case a == "-m" && i+1 < len(args):
			return append(scripts, strings.ReplaceAll(args[i+1], ".", "/"))
		case a == "-c", a == "-e", a == "--eval":
			return scripts
		case a == "-", isGiven(a):
			return append(scripts, judging(all)...)
		case !strings.HasPrefix(a, "-") && a != "run" && !named:
			return append(scripts, a)
		case named && saysCheck(value):
			scripts = append(scripts, value)
		}
	}
	return append(scripts, judging(all)...)
}

func judging(words []string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool { return !saysCheck(w) })
}

// programFiles returns patterns of a script that may be named without its extension, and of what a
// folder with a main file has.
func programFiles(script string) []string {
	at := inTree(script)
	if path.Ext(script) != "" {
		return []string{at}
	}
	return []string{at, at + ".{py,js,cjs,mjs,ts,mts}", at + "/**"}
}

// saysCheck reports whether the path of a program says that it judges. Any other that an
// interpreter runs may be the program that is under test.
func saysCheck(script string) bool {
	for _, word := range pathWord.FindAllString(strings.TrimSuffix(script, path.Ext(script)), -1) {
		if listed(checkWords, strings.TrimRight(strings.ToLower(word), "0123456789")) {
			return true
		}
	}
	return false
}

var pathWord = lazyregexp.New(`[A-Z]?[a-z0-9]+|[A-Z]`)

const checkWords = " check checks checker checking selfcheck verify verifier verification validate validator validation test tests tester testing runtest runtests testall selftest unittest unittests" +
	" lint linter linters ci judge judges judging grade grader grading assert asserts assertions spec specs acceptance conformance e2e smoke "
