package allow

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"hone/internal/lazyregexp"

	"mvdan.cc/sh/v3/syntax"
)

// cd checks a cd, which may only lead into a directory below the working directory.
func (c *checker) cd(args []arg) error {
	if len(args) != 1 || !args[0].known() || args[0].text == "" || strings.HasPrefix(args[0].text, "-") {
		return refuse("cd without one plain directory", "hone could not check later paths", "write cd DIR, with a directory inside the working directory")
	}
	c.moves++
	if err := c.path(args[0]); err != nil {
		return err
	}
	c.enter(args[0].text)
	return nil
}

// enter follows a change of the directory.
func (c *checker) enter(dir string) {
	dir = path.Clean(filepath.ToSlash(dir))
	switch below, inside := strings.CutPrefix(dir+"/", strings.TrimSuffix(path.Clean(filepath.ToSlash(c.Dir)), "/")+"/"); {
	case inside:
		c.at = strings.TrimSuffix(below, "/")
	case path.IsAbs(dir):
		c.at = ""
	default:
		c.at = path.Join(c.at, dir)
	}
	if c.at == "." {
		c.at = ""
	}
}

// inner checks the command that a program runs.
func (c *checker) inner(name string, rest []arg) error {
	switch {
	case len(rest) == 0:
		return nil
	case !rest[0].known():
		return notWritten(name)
	case rest[0].text == "cd":
		return refuse(name+" cd", "hone could not check later paths", "write cd DIR as a separate command")
	}
	return c.run(rest[0].text, rest[1:])
}

func notWritten(name string) error {
	return refuse(name+" without a program", "the line does not show what it runs", "write the name of the program after "+name)
}

// wrapped checks the command in the operands of a program such as env or timeout.
// It starts after skip of them.
func (c *checker) wrapped(name string, rest []arg, skip int) error {
	if len(rest) < skip || slices.ContainsFunc(rest[:skip], func(a arg) bool { return !a.known() }) {
		return notWritten(name)
	}
	rest = rest[skip:]
	for name == "env" && len(rest) > 0 {
		variable, _, assigns := strings.Cut(rest[0].text, "=")
		if !assigns && variable != "-" {
			break
		}
		if err := settable(variable); err != nil {
			return err
		}
		if err := c.path(rest[0]); err != nil {
			return err
		}
		rest = rest[1:]
	}
	return c.inner(name, rest)
}

// anyName stands for any name in the working directory that a program finds.
const anyName = "./x"

// xargs checks an xargs, which may only follow find -print0: then each argument
// that it adds is a path in the working directory.
func (c *checker) xargs(args []arg, fed bool) error {
	parsed, err := c.parse("xargs", row("xargs"), args)
	switch {
	case err != nil:
		return err
	case !fed || len(parsed.values("0 null")) == 0:
		return refuse("this xargs", "the line does not show the paths that it adds", "write find … -print0 | xargs -0 PROGRAM, or find … -exec PROGRAM {} +")
	case len(parsed.operands) == 0:
		return notWritten("xargs")
	}
	rest := parsed.operands
	for _, mark := range parsed.values("I replace") {
		if !mark.known() || mark.text == "" {
			return notWritten("xargs -I")
		}
		rest = filled(rest, mark.text)
	}
	return c.inner("xargs", append(slices.Clone(rest), arg{anyName, true}))
}

// filled replaces a mark with anyName.
func filled(args []arg, mark string) []arg {
	out := slices.Clone(args)
	for i, a := range out {
		if strings.Contains(a.text, mark) {
			out[i] = arg{strings.ReplaceAll(a.text, mark, anyName), true}
		}
	}
	return out
}

var findPrints = lazyregexp.New(`^-(exec|print|printf|ls)$`)

// find checks an expression word by word.
func (c *checker) find(args []arg) (err error) {
	p := row("find")
	names, prints := false, false
	for err == nil && len(args) > 0 {
		word, rest := args[0], args[1:]
		listed := func(list string) bool { return slices.Contains(strings.Fields(list), word.text) }
		names = names || word.text == "-print0"
		prints = prints || findPrints.MatchString(word.text)
		switch {
		case word.startsWithPattern():
			err = leadingPattern(word)
		case listed(p.refuse):
			err = refuse("find "+word.text, p.why, p.instead)
		case listed("-exec"):
			rest, err = c.findExec(rest)
		case listed("-delete"):
			err = c.deletes("find -delete")
		case listed(p.text) && len(rest) > 0 && !rest[0].glob:
			rest = rest[1:]
		default:
			err = c.path(word)
		}
		args = rest
	}
	c.names = names && !prints
	return err
}

// findExec checks the command of -exec and returns the arguments after it. In the
// command {} is a path in the working directory.
func (c *checker) findExec(args []arg) ([]arg, error) {
	for i, a := range args {
		if a.text == ";" || a.text == "+" && i > 0 && args[i-1].text == "{}" {
			return args[i+1:], c.inner("find -exec", filled(args[:i], "{}"))
		}
	}
	return nil, refuse("find -exec without an end", "the line does not show what it runs", `end the command with \; or {} +`)
}

var (
	gitPlain = lazyregexp.New(`^(-P|--no-pager|--no-optional-locks|--literal-pathspecs|--version)$`)
	gitReads = lazyregexp.New(`^(--get|--get-all|--get-regexp|get|--list|-l|list)$`)
)

// git checks a git command and its options. It refuses commands that are not in
// the table, because an alias can run any program.
func (c *checker) git(args []arg) error {
	defer c.back(c.at, c.moves)
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		switch {
		case gitPlain.MatchString(args[0].text):
			args = args[1:]
		case args[0].text == "-C" && len(args) > 1:
			if err := c.path(args[1]); err != nil {
				return err
			}
			c.enter(args[1].text)
			args = args[2:]
		default:
			return refuse("git "+args[0].text, "options before the command can run programs, or lead to another repository", "write git COMMAND, or git -C DIR COMMAND")
		}
	}
	if len(args) == 0 {
		return nil
	}
	name := args[0].text
	p := row("git-" + name)
	if p.names == "" {
		return refuse("git "+name, "hone cannot check that it stays in this repository", "use status, diff, log, show, add, commit or a similar command")
	}
	if err := c.gitDeletes(name, args[1:]); err != nil {
		return err
	}
	if name == "config" && (len(args) < 2 || len(args) > 3 || !gitReads.MatchString(args[1].text)) {
		return refuse("this git config", "it could change what git runs", "use git config --get NAME")
	}
	return c.plain("git "+name, p, args[1:])
}

// gitDeletes refuses the git commands that delete files, unless rm is listed, and those
// that delete what the user may have stashed, which no undo restores.
func (c *checker) gitDeletes(name string, args []arg) error {
	has := func(word string) bool { return slices.ContainsFunc(args, func(a arg) bool { return a.text == word }) }
	switch {
	case name == "stash" && (has("drop") || has("clear")):
		return refuse("git stash drop and clear", "the user may have stashed it", "leave the stash, or use git stash pop")
	case name == "clean", name == "rm" && !has("--cached"):
		return c.deletes("git " + name)
	}
	return nil
}

func (c *checker) deletes(what string) error {
	if slices.Contains(c.Programs, "rm") && !c.ReadOnly {
		return nil
	}
	return refuse(what, "it deletes files, and rm is not listed", "name the files to delete in your answer")
}

// tar checks a tar, whose first argument may be option letters without a dash.
func (c *checker) tar(name string, args []arg) error {
	p := row(name)
	if len(args) > 0 && !strings.HasPrefix(args[0].text, "-") {
		if !args[0].known() || strings.ContainsAny(args[0].text, "IFTPXg") {
			return refuse("tar "+args[0].text, "it can run programs or use files that the line does not show", "use only c, x, t, z, v and f")
		}
		args = args[1:]
	}
	for _, a := range args {
		if strings.Contains(a.text, ":") {
			return refuse("tar with "+a.text, "tar reads a name before a colon as another machine", "use a name without a colon")
		}
	}
	return c.plain(name, p, args)
}

// shell checks a listed shell, which may run a file, or a line that passes the same
// checks.
func (c *checker) shell(name string, args []arg) error {
	switch {
	case len(args) == 2 && args[0].text == "-c" && args[1].known():
		return (&checker{Lines: c.Lines, at: c.at, moves: c.moves, depth: c.depth}).line(args[1].text)
	case len(args) > 0 && args[0].known() && !strings.HasPrefix(args[0].text, "-"):
		return c.paths(args)
	}
	return refuse(name+" without a file", "the line does not show what it runs", "write the commands directly, or "+name+" FILE")
}

var (
	fileTest = lazyregexp.New(`^-([a-hkprsuwxGLNOS]|nt|ot|ef)$`)
	runnable = lazyregexp.New("\\$\\(|`")
)

// tests checks the arguments of test, [ and [[. The operand of a file test is a
// path. Some operators run the command in an array index.
func (c *checker) tests(args []arg) error {
	for i, a := range args {
		if runnable.MatchString(a.text) {
			return refuse("the operand "+a.text+" of a test", "the shell can run the command in it", "compare plain words and numbers")
		}
		if i > 0 && fileTest.MatchString(args[i-1].text) {
			if err := c.path(a); err != nil {
				return err
			}
		}
	}
	return nil
}

// testClause checks [[ ]]. It puts each operator before its operands.
func (c *checker) testClause(clause *syntax.TestClause) error {
	var args []arg
	for n := range syntax.Preorder(clause.X) {
		switch n := n.(type) {
		case *syntax.UnaryTest:
			args = append(args, arg{text: n.Op.String()})
		case *syntax.BinaryTest:
			args = append(args, arg{text: n.Op.String()})
		case *syntax.Word:
			args = append(args, c.word(n))
		}
	}
	return c.tests(args)
}
