package allow

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"hone/internal/lazyregexp"
)

// anyNumber stands for any number.
const anyNumber = "7"

// assigned describes all assignments of a line to one variable.
type assigned struct {
	times   int
	numbers bool // all values are numbers
}

// assignments returns the variables that a line assigns.
func assignments(file *syntax.File) map[string]assigned {
	all := map[string]assigned{}
	add := func(name string, value *syntax.Word) {
		before := all[name]
		all[name] = assigned{before.times + 1, numeric(value) && (before.numbers || before.times == 0)}
	}
	for n := range syntax.Preorder(file) {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil && !n.Naked {
				add(n.Name.Value, n.Value)
			}
		case *syntax.WordIter:
			add(n.Name.Value, nil)
		}
	}
	return all
}

var number = lazyregexp.New(`^-?[0-9]{1,18}$`)

// numeric reports whether a word is a number, or the result of a calculation.
func numeric(w *syntax.Word) bool {
	if w == nil || len(w.Parts) != 1 {
		return false
	}
	_, calculated := w.Parts[0].(*syntax.ArithmExp)
	return calculated || number.MatchString(w.Lit())
}

// set stores the value of a variable if it is the only one, or if all are numbers.
func (c *checker) set(name, value string) {
	switch {
	case c.assigned[name].numbers:
		c.vars[name] = anyNumber
	case c.assigned[name].times == 1:
		c.vars[name] = value
	}
}

// value returns what a variable holds at this point of the line.
func (c *checker) value(name string) string {
	value, ok := c.vars[name]
	user, isUser := strings.CutPrefix(name, "HOME ")
	switch {
	case name == "?", name == "#", name == "$":
		return anyNumber
	case name == "PWD":
		return path.Join(c.Dir, c.at)
	case name == "IFS":
		return " \t\n" // the usual one, because no line can set it
	case name == "HOME":
		return home
	case isUser:
		return "~" + user
	case ok:
		return value
	}
	return unknown
}

var operator = lazyregexp.New(`^([-+*/%&|^~]|[<>]=?|[!=]=|!|\*\*|<<|>>|&&|\|\||[?:,])$`)

// arithmetic refuses calculations that set a variable, and those with anything except
// numbers, because the shell runs commands in the values of other variables.
func (c *checker) arithmetic(x *syntax.ArithmExp) error {
	for n := range syntax.Preorder(x) {
		op := "+"
		switch n := n.(type) {
		case *syntax.UnaryArithm:
			op = n.Op.String()
		case *syntax.BinaryArithm:
			op = n.Op.String()
		case *syntax.Word:
			if !c.assigned[n.Lit()].numbers && !number.MatchString(c.word(n).text) {
				return refuse("arithmetic with "+shellText(n), "the shell can run a command in the variable", "use numbers, and variables that the line itself sets to numbers")
			}
		}
		if !operator.MatchString(op) {
			return refuse("arithmetic that sets a variable", "the line does not show the value", "write NAME=$((NAME + 1))")
		}
	}
	return nil
}

var steering = lazyregexp.New(`^(LD_|DYLD_|BASH|GIT_|SSH_|PYTHON|PERL|RUBY|LUA_|PHP|JAVA_|_JAVA|JDK_|LESS|RUSTC|RUSTDOC|XDG_|PS[0-4]$)` +
	`|(PATH|PAGER|EDITOR|WRAPPER|_OPTIONS|_OPTS|FLAGS)$` +
	`|^(IFS|ENV|VISUAL|PROMPT_COMMAND|SHELL|SHELLOPTS|HOME|PWD|OLDPWD|TMPDIR|GLOBIGNORE|POSIXLY_CORRECT|BROWSER|CC|CXX|LD|AR|MAKE|GOROOT|GOTOOLCHAIN|RSYNC_RSH|_)$`)

// calculated matches variables whose values bash calculates when it assigns them:
// it then runs the command in an index such as a[$(./x)].
var calculated = lazyregexp.New(`^(S?RANDOM|HISTCMD|OPTIND|SECONDS|LINENO|EPOCHSECONDS|EPOCHREALTIME|FUNCNEST|PPID|E?UID)$`)

// settable refuses variables that decide what the shell or programs find, load or
// run.
func settable(name string) error {
	switch {
	case steering.MatchString(name):
		return refuse("setting "+name, "it can change which programs and files other programs use", "leave it unset, and use the program's options")
	case calculated.MatchString(name):
		return refuse("setting "+name, "the shell can run a command in the value", "use another name")
	}
	return nil
}
