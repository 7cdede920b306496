package allow

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"hone/internal/lazyregexp"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/pattern"
	"mvdan.cc/sh/v3/syntax"
)

// checker checks one line in the order in which the shell runs it.
type checker struct {
	Lines
	at    string // where the line certainly is, below Dir; empty if it may be in Dir or anywhere below
	moves int    // how many cds came earlier
}

func (c *checker) file(file *syntax.File) error {
	lists := [][]*syntax.Stmt{file.Stmts}
	for n := range syntax.Preorder(file) {
		r, redirects := n.(*syntax.Redirect)
		switch {
		case c.Programs == nil && redirects:
			if err := c.redirect(r); err != nil {
				return err
			}
		case c.Programs == nil:
		case !c.Walled && dynamic(n):
			return refuse(shellText(n), "no walls hold here, and the line does not show what stands for it", "write the text itself; if a command prints it, run that in a call of its own first")
		}
		switch n := n.(type) {
		case *syntax.CmdSubst:
			lists = append(lists, n.Stmts)
		case *syntax.ProcSubst:
			lists = append(lists, n.Stmts)
		}
	}
	for _, list := range lists {
		c.at, c.moves = "", 0
		if err := c.statements(list); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) statements(list []*syntax.Stmt) error {
	if c.Programs == nil {
		return nil
	}
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
	if s.Background || s.Coprocess || s.Disown {
		return refuse("a background job (&)", "no process may outlive the call", "run it in the foreground, or combine commands with &&")
	}
	for _, r := range s.Redirs {
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

func (c *checker) command(cmd syntax.Command) error {
	switch cmd := cmd.(type) {
	case nil:
		return nil
	case *syntax.CallExpr:
		return c.call(cmd)
	case *syntax.BinaryCmd:
		return c.binary(cmd)
	case *syntax.Subshell:
		defer c.back(c.at, c.moves)
		return c.statements(cmd.Stmts)
	case *syntax.Block, *syntax.IfClause, *syntax.CaseClause, *syntax.TimeClause:
		return c.statements(inner(cmd))
	case *syntax.WhileClause:
		c.at = ""
		return c.statements(inner(cmd))
	case *syntax.ForClause:
		if c.Walled {
			c.at = ""
			return c.statements(inner(cmd))
		}
	case *syntax.TestClause, *syntax.DeclClause, *syntax.ArithmCmd, *syntax.LetClause:
		if c.Walled {
			return nil
		}
	}
	return refuse(shellText(cmd), "hone cannot check a command of this kind", "use plain commands, pipes, &&, ||, ;, if, case and while")
}

func inner(cmd syntax.Command) (list []*syntax.Stmt) {
	syntax.Walk(cmd, func(n syntax.Node) bool {
		s, ok := n.(*syntax.Stmt)
		if ok {
			list = append(list, s)
		}
		_, word := n.(*syntax.Word)
		return !ok && !word
	})
	return list
}

func (c *checker) binary(b *syntax.BinaryCmd) error {
	at, before := c.at, c.moves
	if err := c.statement(b.X); err != nil {
		return err
	}
	switch b.Op {
	case syntax.Pipe, syntax.PipeAll:
		c.back(at, before)
		defer c.back(at, before)
	case syntax.OrStmt:
		c.leave(before)
		defer c.leave(before)
	}
	return c.statement(b.Y)
}

func (c *checker) call(call *syntax.CallExpr) error {
	if len(call.Assigns) > 0 && !c.Walled {
		return refuse("setting "+shellText(call.Assigns[0]), "it can change which programs and files the line uses, and no walls hold here", "use the program's options")
	}
	if len(call.Args) == 0 {
		return nil
	}
	args, err := c.words(call.Args)
	switch {
	case err != nil:
		return err
	case !args[0].plain():
		return refuse("the program "+shellText(call.Args[0]), "its name is not plain text", "write the program's name")
	}
	return c.run(args[0].text, args[1:])
}

var stream = lazyregexp.New(`^[0-9]$`)

func (c *checker) redirect(r *syntax.Redirect) error {
	if r.N != nil && !stream.MatchString(r.N.Value) {
		return refuse("the redirect "+r.N.Value+r.Op.String(), "it sets a variable or opens another stream", "redirect only 1 or 2")
	}
	document := r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc || r.Op == syntax.WordHdoc
	file := word(r.Word)
	duplicates := r.Op == syntax.DplOut || r.Op == syntax.DplIn
	switch {
	case !document && file.text == "/dev/null", duplicates && (file.text == "-" || stream.MatchString(file.text)):
		return nil
	case c.ReadOnly:
		return refuse("the redirect "+r.Op.String(), "this session only reads files", "use what the command prints; only >/dev/null and 2>&1 are allowed")
	case document:
		return nil // data
	case file.glob || file.dynamic && !c.Walled:
		return refuse("a redirect to a pattern", "it does not name one file", "write the name of the file")
	case r.Op != syntax.RdrIn && c.closed(file.text):
		return refuse("a redirect to "+file.text, "commands may not change this directory", "leave it unchanged")
	case r.Op != syntax.RdrIn && caches.MatchString(file.text):
		return refuse("a redirect to "+file.text, "it leads outside the working directory, to a cache that is only read", "use a relative path inside it")
	}
	return c.path(file)
}

type arg struct {
	text    string // empty if dynamic
	glob    bool   // the text is a pattern, and the argument stands for matching names
	dynamic bool   // the line does not show the text, or how many arguments it is
}

// The text is exactly what the program receives.
func (a arg) plain() bool { return !a.glob && !a.dynamic }

func dynamic(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.ParamExp:
		return !n.Short || n.Param.Value != "?" // that is a number
	case *syntax.CmdSubst, *syntax.ArithmExp, *syntax.ProcSubst, *syntax.ExtGlob:
		return true
	case *syntax.DblQuoted:
		return n.Dollar
	case *syntax.Word:
		literal := ""
		for _, part := range n.Parts {
			if lit, ok := part.(*syntax.Lit); ok {
				literal += lit.Value
			}
		}
		return braces.MatchString(literal)
	}
	return false
}

var braces = lazyregexp.New(`\{.*(,|\.\.).*\}`)

// Patterns that match paths outside the working directory are refused.
func (c *checker) words(list []*syntax.Word) (args []arg, err error) {
	for _, w := range list {
		args = append(args, word(w))
		if a := args[len(args)-1]; a.glob {
			if err := c.path(a); err != nil {
				return nil, err
			}
		}
	}
	return args, nil
}

func word(w *syntax.Word) arg {
	for n := range syntax.Preorder(w) {
		if dynamic(n) {
			return arg{dynamic: true}
		}
	}
	fields, err := expand.Fields(expansion, w)
	if err != nil || len(fields) != 1 {
		return arg{dynamic: true}
	}
	meta, _ := expand.Pattern(expansion, w)
	return arg{text: fields[0], glob: pattern.HasMeta(meta, 0)}
}

// expansion leaves the home directory as ~.
var expansion = &expand.Config{Env: expand.FuncEnviron(func(name string) string {
	if name == "?" {
		return "0"
	}
	return "~" + strings.TrimPrefix(strings.TrimPrefix(name, "HOME"), " ")
})}

func shellText(n syntax.Node) string {
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.SingleLine(true)).Print(&b, n); err != nil {
		return "this part of the line"
	}
	return b.String()
}

func (c *checker) paths(args []arg) error {
	for _, a := range args {
		if err := c.path(a); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) path(a arg) error {
	for _, p := range candidates(a.text) {
		if c.outside(p) {
			return refuse("the path "+p, "it leads outside the working directory", "use a relative path inside it")
		}
	}
	if a.glob && climbs.MatchString(a.text) {
		return refuse("the pattern "+a.text, "it can match ..", "write .[!.]* for names that begin with a dot")
	}
	return nil
}

// caches matches paths in what package managers have installed.
var caches = lazyregexp.New(`/(?:pkg/mod|node_modules|site-packages|dist-packages|\.cargo/registry|\.m2/repository)(?:/|$)`)

// A path elsewhere stays absolute.
func (c *checker) relative(p string) string {
	p = filepath.ToSlash(p)
	if !path.IsAbs(p) && filepath.VolumeName(p) == "" {
		return path.Join(c.at, p)
	}
	if p = path.Clean(p); within(c.Dir, p) {
		return strings.TrimPrefix(p[len(path.Clean(filepath.ToSlash(c.Dir))):], "/")
	}
	return p
}

func (c *checker) outside(p string) bool {
	r := c.relative(p)
	if path.IsAbs(r) || filepath.VolumeName(r) != "" {
		return r != "/dev/null" && !(c.Walled && (caches.MatchString(r) || within("/tmp", r))) && !within(c.Temp, r)
	}
	return r == ".." || strings.HasPrefix(r, "../") || strings.HasPrefix(p, "~")
}

func within(dir, p string) bool {
	if dir == "" {
		return false
	}
	dir = path.Clean(filepath.ToSlash(dir))
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// The model may not change these directories (ruling G5).
func (c *checker) closed(p string) bool {
	return slices.ContainsFunc(strings.Split(strings.ToLower(c.relative(p)), "/"), func(part string) bool {
		return part == ".git" || part == ".hone" || part == ".codescribe"
	})
}

var (
	climbs     = lazyregexp.New(`(^|/)\.\.?[*?]`)
	webAddress = lazyregexp.New(`^[A-Za-z][A-Za-z0-9+.-]*://`)
)

// They are the entire argument, and what follows an option letter, =, :, a comma or @.
func candidates(text string) (list []string) {
	for _, part := range strings.Split(text, "=") {
		if webAddress.MatchString(part) && !strings.HasPrefix(strings.ToLower(part), "file:") {
			continue
		}
		list = append(list, part)
		list = append(list, strings.FieldsFunc(part, func(r rune) bool { return strings.ContainsRune(":,@", r) })...)
	}
	if strings.HasPrefix(text, "-") && len(text) > 2 {
		list = append(list, text[2:])
	}
	return list
}
