package allow

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// scope is what the variables of a line hold, by name.
type scope map[string]value

// apart runs what cannot change the variables of what comes after it.
func (c *checker) apart(do func() error) error {
	before := maps.Clone(c.vars)
	err := do()
	c.vars = before
	return err
}

// maybe runs what may or may not be run.
func (c *checker) maybe(do func() error) error {
	before := maps.Clone(c.vars)
	err := do()
	for name, v := range c.vars {
		old, ok := before[name]
		c.vars[name] = old.or(v)
		if !ok {
			c.vars[name] = value{unknown: true}
		}
	}
	return err
}

// mostValues is how many values of a variable are followed.
const mostValues = 64

// or is the value of what holds one or the other.
func (v value) or(w value) value {
	same := slices.EqualFunc(v.fields, w.fields, func(a, b field) bool { return slices.Equal(a, b) })
	switch {
	case v.unknown || w.unknown || len(v.fields)+len(w.fields) > mostValues && !same:
		return value{unknown: true}
	case same:
		return v
	}
	return value{fields: append(slices.Clone(v.fields), w.fields...)}
}

// loop runs what may be run more than once: what is set in it is not known
// there, but for numbers that stay numbers.
func (c *checker) loop(n syntax.Node, do func() error) error {
	var numbers []string
	for name, calculated := range sets(n) {
		old := c.vars[name]
		c.vars[name] = value{unknown: true}
		if calculated && !old.unknown && old.pieces().integer() {
			numbers = append(numbers, name)
		}
	}
	for _, name := range numbers {
		c.vars[name] = value{fields: []field{{{kind: someNumber, text: "0"}}}}
	}
	return c.maybe(do)
}

// sets are the variables that are set inside of a node, and whether to nothing
// but the results of calculations.
func sets(n syntax.Node) map[string]bool {
	names := map[string]bool{}
	add := func(name string, calculated bool) {
		before, ok := names[name]
		names[name] = calculated && (before || !ok)
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil {
				add(n.Name.Value, calculation(n.Value))
			}
		case *syntax.WordIter:
			add(n.Name.Value, false)
		}
		return true
	})
	return names
}

func calculation(w *syntax.Word) bool {
	if w == nil || len(w.Parts) != 1 {
		return false
	}
	_, ok := w.Parts[0].(*syntax.ArithmExp)
	return ok
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// assignable refuses variables by which shells and programs find, load or run
// others, or read something other than what stands in the line.
func assignable(name string) error {
	if identifier.MatchString(name) && !steering(name) {
		return nil
	}
	return disallow("setting "+name, "it changes which programs, options or files others use", "leave it as it is, and give the program options")
}

func steering(name string) bool {
	upper := strings.ToUpper(name)
	for _, prefix := range strings.Fields(`LD_ DYLD_ BASH GIT_ PYTHON PERL RUBY JAVA_ _JAVA JDK_ MAVEN_ GRADLE_
		NPM_ YARN_ CARGO_ RUSTC RUSTDOC LESS MALLOC_ SSH_ XDG_ GCC_ AWK CMAKE_ DOCKER_ PIP_ UV_ LUA_ PHP GEM_ BUNDLE_ CCACHE_ TERMINFO`) {
		if strings.HasPrefix(upper, prefix) {
			return true
		}
	}
	for _, suffix := range []string{"PATH", "PAGER", "EDITOR", "_OPTIONS", "_OPTS"} {
		if strings.HasSuffix(upper, suffix) {
			return true
		}
	}
	return slices.Contains(strings.Fields(`IFS ENV VISUAL PROMPT_COMMAND PS0 PS1 PS2 PS3 PS4 SHELL SHELLOPTS HOME PWD
		OLDPWD TMPDIR GLOBIGNORE FIGNORE EXECIGNORE POSIXLY_CORRECT MANOPT BROWSER CC CXX CPP LD AR AS FC RUSTFLAGS GOFLAGS GOROOT
		GOTOOLCHAIN GOPROXY GOENV MAKEFLAGS GNUMAKEFLAGS MAKEFILES MFLAGS MAKE NODE_REPL_EXTERNAL_MODULE ANT_ARGS HOSTALIASES
		TAPE RSYNC_RSH CVS_RSH FCEDIT HISTFILE INPUTRC TIMEFORMAT COLUMNS LINES OPTIND OPTERR _ USER LOGNAME TERMCAP TZ`), upper) ||
		strings.HasPrefix(upper, "BASH_FUNC")
}
