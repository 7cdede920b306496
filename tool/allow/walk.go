package allow

import (
	"maps"

	"hone/internal/lazyregexp"

	"mvdan.cc/sh/v3/syntax"
)

// checker checks one line in the order in which the shell runs it.
type checker struct {
	Lines
	assigned map[string]assigned // the assignments of the whole line, by variable
	vars     map[string]string   // the values of the variables that are set so far and have a known value
	at       string              // where the line certainly is, below Dir; empty if it may be in Dir or anywhere below
	moves    int                 // how many cds came earlier
	names    bool                // the last program was a find that prints only names, each followed by NUL
	fed      bool                // the next program reads what that prints
	depth    int                 // number of programs that run this one
	steps    int                 // statements and words checked so far
}

// maxSteps limits the work on nested loops and braces.
const maxSteps = 20_000

func (c *checker) line(line string) error {
	file, err := parseLine(line)
	if err != nil {
		return err
	}
	c.assigned, c.vars = assignments(file), map[string]string{}
	for n := range syntax.Preorder(file) {
		r, ok := n.(*syntax.Redirect)
		switch {
		case c.Programs != nil:
			err = c.forbidden(n)
		case ok:
			err = c.redirect(r)
		}
		if err != nil {
			return err
		}
	}
	if c.Programs == nil {
		return nil
	}
	return c.statements(file.Stmts)
}

// forbidden refuses syntax that is never allowed.
func (c *checker) forbidden(n syntax.Node) error {
	switch n := n.(type) {
	case *syntax.Stmt:
		if n.Background || n.Coprocess || n.Disown {
			return refuse("a background job (&)", "no process may outlive the call", "run it in the foreground, or combine commands with &&")
		}
	case *syntax.CmdSubst:
		return refuse("the command substitution "+shellText(n), "its output would become part of the line",
			"run the command in a call of its own, and write its output into the next line")
	case *syntax.ProcSubst:
		return refuse("the process substitution "+shellText(n), "the shell ignores the exit status of its commands", "use a pipe, or a file in the working directory")
	case *syntax.ExtGlob:
		return refuse("the pattern "+shellText(n), "not every shell supports it", "use *, ? and […]")
	case *syntax.SglQuoted:
		if n.Dollar {
			return refuse("$'…'", "it hides its value", "write '…'")
		}
	case *syntax.DblQuoted:
		if n.Dollar {
			return refuse(`$"…"`, "the shell translates it", `write "…"`)
		}
	case *syntax.ParamExp:
		if n.Param == nil || n.Excl || n.Index != nil || n.Names != 0 || n.Slice != nil || n.Exp != nil && setsOrRuns.MatchString(n.Exp.Op.String()) {
			return refuse("the expansion "+shellText(n), "it can set a variable or run a command", "write $NAME, or the value itself")
		}
	case *syntax.ArithmExp:
		if n.Bracket {
			return refuse("$[…]", "not every shell supports it", "write $((…))")
		}
		return c.arithmetic(n)
	case *syntax.Assign:
		if n.Name == nil || n.Index != nil || n.Array != nil || n.Append {
			return refuse("this assignment", "it is not a plain one", "write NAME=VALUE")
		}
		return settable(n.Name.Value)
	case *syntax.WordIter:
		return settable(n.Name.Value)
	}
	return nil
}

var setsOrRuns = lazyregexp.New(`^(:?=|@)$`)

func (c *checker) statements(list []*syntax.Stmt) error {
	for _, s := range list {
		before := c.moves
		if err := c.statement(s); err != nil {
			return err
		}
		c.leave(before)
	}
	return nil
}

// back returns to where the line was before another process changed its directory.
func (c *checker) back(at string, moves int) { c.at, c.moves = at, moves }

// leave notes that a command is over which may have failed before its cd, or after it. From
// Dir itself, .. leads outside first.
func (c *checker) leave(before int) {
	if c.moves != before {
		c.at = ""
	}
}

func (c *checker) statement(s *syntax.Stmt) error {
	if err := c.step(1); err != nil {
		return err
	}
	for _, r := range s.Redirs {
		c.fed = false
		if err := c.redirect(r); err != nil {
			return err
		}
	}
	before := c.moves
	err := c.command(s.Cmd)
	if s.Negated {
		c.leave(before)
	}
	return err
}

// step counts the work on a line, and refuses a line that needs too much.
func (c *checker) step(n int) error {
	if c.steps += n; c.steps > maxSteps {
		return refuse("a line with so many steps", "it is too long to check", "loop over fewer words, or split it into several calls")
	}
	return nil
}

func (c *checker) command(cmd syntax.Command) error {
	switch cmd := cmd.(type) {
	case nil:
		return nil
	case *syntax.CallExpr:
		return c.call(cmd)
	case *syntax.DeclClause:
		if cmd.Variant.Value == "export" {
			return c.assign(cmd.Args, true, true)
		}
	case *syntax.BinaryCmd:
		return c.binary(cmd)
	case *syntax.Block:
		return c.statements(cmd.Stmts)
	case *syntax.Subshell:
		defer c.back(c.at, c.moves)
		return c.scoped(cmd.Stmts)
	case *syntax.IfClause:
		for ; cmd != nil; cmd = cmd.Else {
			if err := c.scoped(cmd.Cond, cmd.Then); err != nil {
				return err
			}
		}
		return nil
	case *syntax.WhileClause:
		c.at = ""
		return c.scoped(cmd.Cond, cmd.Do)
	case *syntax.ForClause:
		if iter, ok := cmd.Loop.(*syntax.WordIter); ok && !cmd.Select && iter.InPos.IsValid() {
			return c.forEach(iter, cmd.Do)
		}
	case *syntax.CaseClause:
		for _, item := range cmd.Items {
			if err := c.scoped(item.Stmts); err != nil {
				return err
			}
		}
		return nil
	case *syntax.TestClause:
		return c.testClause(cmd)
	case *syntax.TimeClause:
		if cmd.Stmt == nil {
			return nil
		}
		return c.statement(cmd.Stmt)
	}
	return refuse(shellText(cmd), "hone cannot check a command of this kind", "use plain commands, NAME=VALUE, pipes, &&, if, case, while and for NAME in WORDS")
}

// scoped checks statements that the shell may skip, repeat or run in another
// process. Afterwards the variables that they set are unknown.
func (c *checker) scoped(lists ...[]*syntax.Stmt) error {
	outer := c.vars
	defer func() { c.vars = outer }()
	c.vars = maps.Clone(outer)
	for _, list := range lists {
		if err := c.statements(list); err != nil {
			return err
		}
	}
	return nil
}

// binary checks a pipe, && or ||.
func (c *checker) binary(b *syntax.BinaryCmd) (err error) {
	at, before := c.at, c.moves
	if b.Op == syntax.Pipe || b.Op == syntax.PipeAll {
		err = c.scoped([]*syntax.Stmt{b.X})
		c.back(at, before)
		c.fed = c.names && lastProgram(b.X)
	} else {
		err = c.statement(b.X)
	}
	if err != nil {
		return err
	}
	if b.Op == syntax.AndStmt {
		outer := c.vars
		defer func() { c.vars = outer }()
		c.vars = maps.Clone(outer)
		return c.statement(b.Y)
	}
	c.leave(before)
	return c.scoped([]*syntax.Stmt{b.Y})
}

// lastProgram reports whether the end of a pipe is a program.
func lastProgram(s *syntax.Stmt) bool {
	if pipe, ok := s.Cmd.(*syntax.BinaryCmd); ok && pipe.Op == syntax.Pipe {
		s = pipe.Y
	}
	_, ok := s.Cmd.(*syntax.CallExpr)
	return ok
}

// forEach checks a loop once for each word.
func (c *checker) forEach(iter *syntax.WordIter, do []*syntax.Stmt) error {
	items, err := c.words(iter.Items)
	c.at = ""
	outer := c.vars
	defer func() { c.vars = outer }()
	for _, item := range items {
		c.vars = maps.Clone(outer)
		c.set(iter.Name.Value, item.text)
		if err := c.statements(do); err != nil {
			return err
		}
	}
	return err
}

// assign checks assignments. Exported variables reach programs, which could open a
// path in the value. Lasting ones remain set after the command.
func (c *checker) assign(list []*syntax.Assign, exported, lasting bool) error {
	for _, a := range list {
		var value arg
		if a.Value != nil {
			value = c.word(a.Value)
		}
		if exported {
			if err := c.path(value); err != nil {
				return err
			}
		}
		if lasting && !a.Naked {
			c.set(a.Name.Value, value.text)
		}
	}
	return nil
}

// call checks a simple command.
func (c *checker) call(call *syntax.CallExpr) error {
	runs := len(call.Args) > 0
	if err := c.assign(call.Assigns, runs, !runs); err != nil || !runs {
		return err
	}
	name, ok := literal(call.Args[0])
	if !ok {
		return refuse("the program "+shellText(call.Args[0]), "its name is not plain text", "write the program's name")
	}
	args, err := c.words(call.Args[1:])
	if err != nil {
		return err
	}
	return c.run(name, args)
}
