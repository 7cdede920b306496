package allow

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// checker walks through one line, with what it knows of the variables.
type checker struct {
	Lines
	vars  scope
	moves bool // the line has a cd somewhere
	fed   bool // the command gets names of find -print0 on its standard input
	inner int  // how many programs deep it is in programs that run others
}

func (c *checker) statements(list []*syntax.Stmt) error {
	for _, s := range list {
		if err := c.statement(s); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) statement(s *syntax.Stmt) error {
	if s.Background || s.Coprocess || s.Disown {
		return disallow("a background job (&)", "nothing may go on after the call", "run it in the foreground, or join commands with &&")
	}
	for _, r := range s.Redirs {
		if err := c.redirect(r); err != nil {
			return err
		}
	}
	return c.command(s.Cmd)
}

func (c *checker) command(cmd syntax.Command) error {
	switch cmd := cmd.(type) {
	case nil:
		return nil
	case *syntax.CallExpr:
		return c.call(cmd)
	case *syntax.BinaryCmd:
		return c.binary(cmd)
	case *syntax.Block:
		return c.statements(cmd.Stmts)
	case *syntax.Subshell:
		return c.apart(func() error { return c.statements(cmd.Stmts) })
	case *syntax.IfClause:
		return c.ifClause(cmd)
	case *syntax.WhileClause:
		return c.loop(cmd, func() error {
			if err := c.statements(cmd.Cond); err != nil {
				return err
			}
			return c.statements(cmd.Do)
		})
	case *syntax.ForClause:
		return c.forClause(cmd)
	case *syntax.CaseClause:
		return c.caseClause(cmd)
	case *syntax.TestClause:
		return c.testExpr(cmd.X)
	case *syntax.DeclClause:
		return c.declare(cmd)
	case *syntax.TimeClause:
		if cmd.Stmt == nil {
			return nil
		}
		return c.statement(cmd.Stmt)
	}
	return refusedCommand(cmd)
}

func refusedCommand(cmd syntax.Command) error {
	switch cmd.(type) {
	case *syntax.FuncDecl:
		return disallow("a function", "it could take the name of a listed program", "write the commands out")
	case *syntax.CoprocClause:
		return disallow("a coprocess", "nothing may go on in the background", "use a pipe")
	case *syntax.ArithmCmd, *syntax.LetClause:
		return disallow("an arithmetic command", "it can set variables and run what they hold", "use [ … ] and $((…))")
	}
	return disallow("this shell syntax", "it is not among what is checked here", "use plain commands, pipes, &&, if, for and while")
}

// binary is a pipe, && or ||.
func (c *checker) binary(b *syntax.BinaryCmd) error {
	if b.Op == syntax.Pipe || b.Op == syntax.PipeAll {
		return c.pipe(stages(b))
	}
	if err := c.statement(b.X); err != nil {
		return err
	}
	return c.maybe(func() error { return c.statement(b.Y) })
}

// stages are a pipe's commands, from left to right.
func stages(b *syntax.BinaryCmd) (list []*syntax.Stmt) {
	for _, s := range []*syntax.Stmt{b.X, b.Y} {
		inner, ok := s.Cmd.(*syntax.BinaryCmd)
		if ok && (inner.Op == syntax.Pipe || inner.Op == syntax.PipeAll) && len(s.Redirs) == 0 && !s.Negated && !s.Background {
			list = append(list, stages(inner)...)
			continue
		}
		list = append(list, s)
	}
	return list
}

func (c *checker) pipe(list []*syntax.Stmt) error {
	for i, s := range list {
		c.fed = i > 0 && listsNames(list[i-1]) && len(s.Redirs) == 0 && isCall(s)
		err := c.apart(func() error { return c.statement(s) })
		c.fed = false
		if err != nil {
			return err
		}
	}
	return nil
}

func isCall(s *syntax.Stmt) bool {
	_, ok := s.Cmd.(*syntax.CallExpr)
	return ok
}

// listsNames reports whether a command is a find that prints names that end in
// NUL, and nothing else.
func listsNames(s *syntax.Stmt) bool {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	if name, _ := literalWord(call.Args[0]); name != "find" {
		return false
	}
	prints := false
	for _, w := range call.Args[1:] {
		text, ok := literalWord(w)
		if !ok || text != "-print0" && findActs(text) {
			return false
		}
		prints = prints || text == "-print0"
	}
	return prints
}

func (c *checker) ifClause(clause *syntax.IfClause) error {
	if err := c.statements(clause.Cond); err != nil {
		return err
	}
	if err := c.maybe(func() error { return c.statements(clause.Then) }); err != nil {
		return err
	}
	if clause.Else == nil {
		return nil
	}
	return c.maybe(func() error { return c.ifClause(clause.Else) })
}

func (c *checker) forClause(clause *syntax.ForClause) error {
	iter, ok := clause.Loop.(*syntax.WordIter)
	if !ok || clause.Select || !iter.InPos.IsValid() {
		return disallow("this kind of loop", "only loops over words are checked", "write for NAME in WORD WORD; do …; done")
	}
	if err := assignable(iter.Name.Value); err != nil {
		return err
	}
	var items value
	for _, w := range iter.Items {
		list, err := c.operands(w)
		if err != nil {
			return err
		}
		items.fields = append(items.fields, list...)
	}
	return c.loop(clause, func() error {
		c.vars[iter.Name.Value] = items
		return c.statements(clause.Do)
	})
}

func (c *checker) caseClause(clause *syntax.CaseClause) error {
	if _, err := c.data(clause.Word); err != nil {
		return err
	}
	for _, item := range clause.Items {
		for _, p := range item.Patterns {
			if _, err := c.data(p); err != nil {
				return err
			}
		}
		if err := c.maybe(func() error { return c.statements(item.Stmts) }); err != nil {
			return err
		}
	}
	return nil
}

// testExpr is what stands in [[ ]].
func (c *checker) testExpr(x syntax.TestExpr) error {
	switch x := x.(type) {
	case *syntax.Word:
		_, err := c.data(x)
		return err
	case *syntax.ParenTest:
		return c.testExpr(x.X)
	case *syntax.UnaryTest:
		return c.unaryTest(x)
	case *syntax.BinaryTest:
		return c.binaryTest(x)
	}
	return disallow("this test", "it is not among what is checked here", "use [ … ]")
}

func (c *checker) unaryTest(x *syntax.UnaryTest) error {
	w, ok := x.X.(*syntax.Word)
	if !ok {
		return c.testExpr(x.X)
	}
	f, err := c.data(w)
	if err != nil {
		return err
	}
	return c.tested(x.Op.String(), f.arg())
}

func (c *checker) binaryTest(x *syntax.BinaryTest) error {
	for _, side := range []syntax.TestExpr{x.X, x.Y} {
		if err := c.testExpr(side); err != nil {
			return err
		}
		w, ok := side.(*syntax.Word)
		if !ok {
			continue
		}
		f, _ := c.data(w)
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			if !f.integer() {
				return disallow("a comparison of "+f.arg().text, "[[ calculates what stands there, and can run it", "compare with [ … ]")
			}
		case syntax.TsNewer, syntax.TsOlder, syntax.TsDevIno:
			if err := c.path(f.arg()); err != nil {
				return err
			}
		}
	}
	return nil
}

// declare lets export NAME=VALUE pass.
func (c *checker) declare(d *syntax.DeclClause) error {
	plain := !slices.ContainsFunc(d.Args, func(a *syntax.Assign) bool { return a.Name == nil || a.Naked && a.Value != nil })
	if d.Variant.Value != "export" || !plain {
		return disallow(d.Variant.Value+" with options", "it can change what names mean", "write NAME=VALUE, or export NAME=VALUE")
	}
	for _, a := range d.Args {
		if a.Naked {
			if err := assignable(a.Name.Value); err != nil {
				return err
			}
			continue
		}
		if err := c.assign(a, true); err != nil {
			return err
		}
	}
	return nil
}

// assign is NAME=VALUE; handed on is what programs find in their environment.
func (c *checker) assign(a *syntax.Assign, handed bool) error {
	f, err := c.assigned(a)
	if err != nil {
		return err
	}
	if handed {
		if err := c.path(f.arg()); err != nil {
			return err
		}
	}
	c.vars[a.Name.Value] = value{fields: []field{f}}
	return nil
}

func (c *checker) assigned(a *syntax.Assign) (field, error) {
	switch {
	case a.Index != nil || a.Array != nil:
		return nil, disallow("an array", "its index can run commands", "use plain variables")
	case a.Append:
		return nil, disallow(a.Name.Value+"+=", "what comes of it is not followed", "write the whole value")
	}
	if err := assignable(a.Name.Value); err != nil {
		return nil, err
	}
	if a.Value == nil {
		return field{}, nil
	}
	return c.data(a.Value)
}

// call is a simple command.
func (c *checker) call(call *syntax.CallExpr) error {
	if len(call.Args) == 0 {
		for _, a := range call.Assigns {
			if err := c.assign(a, false); err != nil {
				return err
			}
		}
		return nil
	}
	for _, a := range call.Assigns {
		f, err := c.assigned(a)
		if err != nil {
			return err
		}
		if err := c.path(f.arg()); err != nil {
			return err
		}
		// Some shells keep it, if the program is one of their own.
		c.vars[a.Name.Value] = value{unknown: true}
	}
	name, ok := literalWord(call.Args[0])
	if !ok {
		return disallow("a program's name that is not written out", "it cannot be seen what would run", "write the name of the program itself")
	}
	args, err := c.arguments(call.Args[1:])
	if err != nil {
		return err
	}
	return c.run(name, args)
}

// arguments are what a program is given for the words.
func (c *checker) arguments(words []*syntax.Word) ([]arg, error) {
	var args []arg
	for _, w := range words {
		list, err := c.operands(w)
		if err != nil {
			return nil, err
		}
		for _, f := range list {
			args = append(args, f.arg())
		}
	}
	return args, nil
}

var fileNumber = regexp.MustCompile(`^[0-9]$`)

func (c *checker) redirect(r *syntax.Redirect) error {
	if r.N != nil && !fileNumber.MatchString(r.N.Value) {
		return disallow("the redirect "+r.N.Value+r.Op.String(), "it sets a variable, or a stream that nobody reads", "redirect 1 or 2")
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return c.here(r)
	case syntax.DplOut, syntax.DplIn:
		if w, ok := literalWord(r.Word); ok && (w == "-" || fileNumber.MatchString(w)) {
			return nil
		}
		if r.Op == syntax.DplIn {
			return disallow("<& with a word", "it is not among what is checked here", "write < FILE")
		}
	case syntax.RdrOut, syntax.AppOut, syntax.RdrIn, syntax.RdrInOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
	default:
		return disallow("the redirect "+r.Op.String(), "it is not among what is checked here", "use > or >>")
	}
	return c.target(r)
}

// here is a here-document or a here-string, which is data.
func (c *checker) here(r *syntax.Redirect) error {
	if c.ReadOnly {
		return readOnlyRedirect(r)
	}
	if r.Op == syntax.WordHdoc {
		_, err := c.data(r.Word)
		return err
	}
	if name, ok := literalWord(r.Word); !ok || !identifier.MatchString(name) {
		return disallow("this here-document", "where it ends is read differently by different shells", "end it with a plain word, such as <<'EOF'")
	}
	if r.Hdoc == nil {
		return nil
	}
	_, err := c.data(r.Hdoc)
	return err
}

func readOnlyRedirect(r *syntax.Redirect) error {
	return disallow("the redirect "+r.Op.String(), "this session only looks; redirects go to /dev/null or are 2>&1", "use what the command prints")
}

func (c *checker) target(r *syntax.Redirect) error {
	list, err := c.operands(r.Word)
	if err != nil {
		return err
	}
	if len(list) != 1 || list[0].active() {
		return disallow("a redirect to a pattern", "its target is not one file", "name the file")
	}
	a := list[0].arg()
	if a.text == "/dev/null" && a.exact {
		return nil
	}
	if c.ReadOnly {
		return readOnlyRedirect(r)
	}
	if err := c.inside(a); err != nil {
		return err
	}
	if r.Op != syntax.RdrIn && c.closed(a.text) {
		return disallow("a redirect to "+a.text, "this folder is not the model's to change", "leave it alone")
	}
	return nil
}

// redirectsOnly checks nothing else, for lines without a list.
func (c *checker) redirectsOnly(file *syntax.File) (err error) {
	syntax.Walk(file, func(n syntax.Node) bool {
		r, ok := n.(*syntax.Redirect)
		if ok && err == nil && r.Op != syntax.Hdoc && r.Op != syntax.DashHdoc {
			err = c.redirect(r)
		}
		return err == nil
	})
	return err
}

// shellText is how a node was written, in a line, for messages.
func shellText(n syntax.Node) string {
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.SingleLine(true)).Print(&b, n); err != nil {
		return fmt.Sprintf("%T", n)
	}
	text := b.String()
	if len(text) > 60 {
		text = strings.ToValidUTF8(text[:60], "") + "…"
	}
	return text
}
