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

// checker checks one line, part by part, in its order.
type checker struct {
	Lines
	at string // where the line is, below Dir; empty if it is in Dir
}

func (c *checker) file(file *syntax.File) error {
	for _, s := range file.Stmts {
		c.at = ""
		chain := chained(s)
		for n := range syntax.Preorder(s) {
			if err := c.node(n, chain); err != nil {
				return err
			}
		}
	}
	return nil
}

// chained are the commands of a statement after which others run only if they succeeded: what follows a cd among them is where it leads.
func chained(s *syntax.Stmt) map[syntax.Node]bool {
	chain, followed := map[syntax.Node]bool{}, false
	for {
		b, ok := s.Cmd.(*syntax.BinaryCmd)
		if !ok || b.Op != syntax.AndStmt {
			chain[s.Cmd] = followed && !s.Negated
			return chain
		}
		chain[b.Y.Cmd] = followed && !b.Y.Negated
		s, followed = b.X, true
	}
}

func (c *checker) node(n syntax.Node, chain map[syntax.Node]bool) error {
	if r, ok := n.(*syntax.Redirect); ok {
		return c.redirect(r)
	}
	if c.Programs == nil {
		return nil
	}
	if !c.Walled && dynamic(n) {
		return refuse(shellText(n), "no walls hold here, and the line does not show what stands for it", "write the text itself; if a command prints it, run that in a call of its own first")
	}
	switch n := n.(type) {
	case *syntax.Stmt:
		if n.Background || n.Coprocess || n.Disown {
			return refuse("a background job (&)", "no process may outlive the call", "run it in the foreground, or combine commands with &&")
		}
	case *syntax.CallExpr:
		return c.call(n, chain[n])
	case *syntax.ForClause, *syntax.TestClause, *syntax.DeclClause, *syntax.ArithmCmd, *syntax.LetClause, *syntax.FuncDecl, *syntax.CoprocClause:
		_, function := n.(*syntax.FuncDecl)
		if _, job := n.(*syntax.CoprocClause); function || job || !c.Walled {
			return refuse(shellText(n), "hone cannot check a command of this kind", "use plain commands, pipes, &&, ||, ;, if, case and while")
		}
	}
	return nil
}

func (c *checker) call(call *syntax.CallExpr, chained bool) error {
	if len(call.Assigns) > 0 && !c.Walled {
		return refuse("setting "+shellText(call.Assigns[0]), "it can change which programs and files the line uses, and no walls hold here", "use the program's options")
	}
	if len(call.Args) == 0 {
		return nil
	}
	var args []arg
	for _, w := range call.Args {
		args = append(args, word(w))
		if a := args[len(args)-1]; a.glob {
			if err := c.path(a); err != nil {
				return err
			}
		}
	}
	switch {
	case !args[0].plain():
		return refuse("the program "+shellText(call.Args[0]), "its name is not plain text", "write the program's name")
	case args[0].text == "cd":
		return c.cd(args[1:], chained)
	}
	return c.run(args[0].text, args[1:])
}

// Where a cd fails, what follows uses other files: without walls it must not run then.
func (c *checker) cd(args []arg, chained bool) error {
	if len(args) != 1 || args[0].glob || args[0].text == "" && !args[0].dynamic || strings.HasPrefix(args[0].text, "-") {
		return refuse("cd without one plain directory", "hone could not check later paths", "write cd DIR, with a directory inside the working directory")
	}
	if !chained && !c.Walled {
		return refuse("cd without &&", "it may fail, and no walls hold here", "write cd DIR && COMMAND")
	}
	return c.enter(args[0])
}

func (c *checker) enter(dir arg) error {
	if err := c.path(dir); err != nil {
		return err
	}
	if c.at = c.relative(dir.text); c.at == "." || path.IsAbs(c.at) || dir.dynamic {
		c.at = ""
	}
	return nil
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
		return r != "/dev/null" && !(c.Walled && (caches.MatchString(r) || within("/tmp", r)))
	}
	return r == ".." || strings.HasPrefix(r, "../") || strings.HasPrefix(p, "~")
}

func within(dir, p string) bool {
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
	attached   = lazyregexp.New(`^-[A-Za-z]+([./~].*)$`)
)

// They are the entire argument, and what follows option letters, =, :, a comma or @.
func candidates(text string) (list []string) {
	for _, part := range strings.Split(text, "=") {
		if webAddress.MatchString(part) && !strings.HasPrefix(strings.ToLower(part), "file:") {
			continue
		}
		list = append(list, part)
		list = append(list, strings.FieldsFunc(part, func(r rune) bool { return strings.ContainsRune(":,@", r) })...)
	}
	if m := attached.FindStringSubmatch(text); m != nil {
		list = append(list, m[1])
	}
	return list
}
