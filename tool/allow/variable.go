package allow

import (
	"regexp"

	"mvdan.cc/sh/v3/syntax"
)

// holding says what a variable of a line can hold; 0 is a variable that the line
// does not set.
type holding int

const (
	oneValue holding = iota + 1 // the line sets it once
	numbers                     // the line sets it only to numbers
	several                     // any of several values, which are not followed
)

// aNumber stands for any number.
var aNumber = arg{text: "0"}

// holdings returns what the variables that a line sets can hold.
func holdings(file *syntax.File) map[string]holding {
	held := map[string]holding{}
	set := func(name string, numeric bool) {
		switch before := held[name]; {
		case numeric && (before == 0 || before == numbers):
			held[name] = numbers
		case before == 0:
			held[name] = oneValue
		default:
			held[name] = several
		}
	}
	for n := range syntax.Preorder(file) {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil && !n.Naked {
				set(n.Name.Value, numeric(n.Value))
			}
		case *syntax.WordIter:
			set(n.Name.Value, false)
		}
	}
	return held
}

var number = regexp.MustCompile(`^-?[0-9]{1,18}$`)

// numeric reports whether a word is a number, or the result of a calculation.
func numeric(w *syntax.Word) bool {
	if w == nil || len(w.Parts) != 1 {
		return false
	}
	_, calculated := w.Parts[0].(*syntax.ArithmExp)
	return calculated || number.MatchString(w.Lit())
}

// set keeps the value of a variable that the line sets once.
func (c *checker) set(name string, value arg) {
	if c.held[name] == oneValue {
		c.vars[name] = value
	}
}

// value returns what an expansion stands for.
func (c *checker) value(p *syntax.ParamExp) arg {
	name := p.Param.Value
	switch {
	case p.Length, name == "?", name == "#", name == "$", c.held[name] == numbers && p.Exp == nil && p.Repl == nil:
		return aNumber
	case p.Exp != nil, p.Repl != nil:
		return arg{text: unknown}
	case name == "PWD":
		return arg{text: c.Dir}
	}
	if a, ok := c.vars[name]; ok {
		return a
	}
	return arg{text: unknown}
}

// calculates refuses to calculate with anything but numbers, because the shell
// runs the commands in what other variables hold.
func (c *checker) calculates(x *syntax.ArithmExp) error {
	for n := range syntax.Preorder(x) {
		w, ok := n.(*syntax.Word)
		if ok && c.held[w.Lit()] != numbers && !number.MatchString(c.word(w.Parts, false).text) {
			return refuse("arithmetic with "+shellText(w), "the shell can run what the variable holds", "use numbers, and variables that the line itself sets to numbers")
		}
	}
	return nil
}

var steering = regexp.MustCompile(`^(LD_|DYLD_|BASH|GIT_|SSH_|PYTHON|PERL|RUBY|LUA_|PHP|JAVA_|_JAVA|JDK_|LESS|RUSTC|RUSTDOC|XDG_|PS[0-4]$)` +
	`|(PATH|PAGER|EDITOR|WRAPPER|_OPTIONS|_OPTS|FLAGS)$` +
	`|^(IFS|ENV|VISUAL|PROMPT_COMMAND|SHELL|SHELLOPTS|HOME|PWD|OLDPWD|TMPDIR|GLOBIGNORE|POSIXLY_CORRECT|BROWSER|CC|CXX|LD|AR|MAKE|GOROOT|GOTOOLCHAIN|RSYNC_RSH|_)$`)

// calculated matches variables that hold integers: bash calculates the value that
// it assigns to them, and runs the command in an index such as a[$(./x)].
var calculated = regexp.MustCompile(`^(S?RANDOM|HISTCMD|OPTIND|SECONDS|LINENO|EPOCHSECONDS|EPOCHREALTIME|FUNCNEST|PPID|E?UID)$`)

// settable refuses variables by which the shell and programs find, load or run
// others.
func settable(name string) error {
	switch {
	case steering.MatchString(name):
		return refuse("setting "+name, "it changes which programs or files others use", "leave it as it is, and give the program options")
	case calculated.MatchString(name):
		return refuse("setting "+name, "the shell can run a command in the value", "use another name")
	}
	return nil
}
