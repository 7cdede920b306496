package judge

import (
	"path"
	"strings"

	"hone/internal/lazyregexp"
)

// interpreters are the programs that run a script, beside the shells, and go, whose run is one.
const interpreters = " python node ruby perl php Rscript julia deno bun lua tsx ts-node pypy jruby pwsh "

func isInterpreter(program string) bool {
	return listed(interpreters, strings.TrimRight(program, "0123456789."))
}

// interpreted returns the path of the script, of the module or of the folder that an
// interpreter runs; empty if there is none.
func interpreted(program string, args []string) string {
	compiles := program == "go" && first(args) == "run"
	if !compiles && !isInterpreter(program) {
		return ""
	}
	for i, a := range args {
		switch {
		case a == "-m" && i+1 < len(args):
			return strings.ReplaceAll(args[i+1], ".", "/")
		case a == "-c", a == "-e", a == "--eval", a == "-":
			return ""
		case !strings.HasPrefix(a, "-") && a != "run" && !strings.Contains(a, "="):
			return a
		}
	}
	return ""
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

const checkWords = " check checks checker verify verifier verification validate validator validation test tests tester testing runtest runtests testall selftest unittest unittests" +
	" lint linter ci judge grade grader assert asserts assertions spec specs acceptance conformance e2e smoke "
