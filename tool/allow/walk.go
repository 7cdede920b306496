package allow

import (
	"path"
	"path/filepath"
	"strings"

	"hone/internal/lazyregexp"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/pattern"
	"mvdan.cc/sh/v3/syntax"
)

// checker checks one statement, part by part, in its order.
type checker struct {
	Lines
	at string // where it is by then, below Dir; empty if it is in Dir
}

// followed says that others run only if the statement succeeds: what follows a cd is where it leads.
func (c *checker) statement(s *syntax.Stmt, followed bool) error {
	if b, ok := s.Cmd.(*syntax.BinaryCmd); ok && b.Op == syntax.AndStmt && !s.Background {
		if err := c.statement(b.X, true); err != nil {
			return err
		}
		return c.statement(b.Y, followed)
	}
	for n := range syntax.Preorder(s) {
		if err := c.node(n, followed && n == s.Cmd && !s.Negated); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) node(n syntax.Node, followed bool) error {
	if r, ok := n.(*syntax.Redirect); ok {
		return c.redirect(r)
	}
	if c.Programs == nil {
		return nil
	}
	hidden := false
	switch n := n.(type) {
	case *syntax.Stmt:
		if n.Background || n.Coprocess || n.Disown {
			return refuse("a background job (&)", "no process may outlive the call", "run it in the foreground, or combine commands with &&")
		}
	case *syntax.CallExpr:
		return c.call(n, followed)
	case *syntax.ForClause, *syntax.TestClause, *syntax.DeclClause, *syntax.ArithmCmd, *syntax.LetClause:
		hidden = !c.Walled
	case *syntax.FuncDecl, *syntax.CoprocClause:
		hidden = true
	}
	if hidden {
		return refuse(shellText(n), "hone cannot check a command of this kind", "use plain commands, pipes, &&, ||, ;, if, case and while")
	}
	return nil
}

func (c *checker) call(call *syntax.CallExpr, followed bool) error {
	if len(call.Assigns) > 0 && !c.Walled {
		return refuse("setting "+shellText(call.Assigns[0]), "it can change which programs and files the line uses, and no walls hold here", "use the program's options")
	}
	if len(call.Args) == 0 {
		return nil
	}
	var args []arg
	for _, w := range call.Args {
		a := word(w)
		if a.dynamic && !c.Walled {
			return refuse(shellText(w), "no walls hold here, and the line does not show what stands for it", "write the text itself; if a command prints it, run that in a call of its own first")
		}
		if a.glob {
			if err := c.path(a); err != nil {
				return err
			}
		}
		args = append(args, a)
	}
	switch {
	case !args[0].plain():
		return refuse("the program "+shellText(call.Args[0]), "its name is not plain text", "write the program's name")
	case args[0].text == "cd":
		return c.cd(args[1:], followed)
	}
	return c.run(args[0].text, args[1:])
}

// Where a cd fails, what follows uses other files: without walls it must not run then.
func (c *checker) cd(args []arg, followed bool) error {
	if len(args) != 1 || args[0].glob || args[0].text == "" && !args[0].dynamic || strings.HasPrefix(args[0].text, "-") {
		return refuse("cd without one plain directory", "hone could not check later paths", "write cd DIR, with a directory inside the working directory")
	}
	if !followed && !c.Walled {
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
	case r.Op != syntax.RdrIn && (closed.MatchString(c.relative(file.text)) || caches.MatchString(file.text)):
		return refuse("a redirect to "+file.text, "commands may not change this directory", "leave it unchanged")
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

func word(w *syntax.Word) arg {
	apart := *w
	syntax.SplitBraces(&apart)
	for n := range syntax.Preorder(&apart) {
		switch n := n.(type) {
		case *syntax.CmdSubst, *syntax.ArithmExp, *syntax.ProcSubst, *syntax.ExtGlob, *syntax.BraceExp:
			return arg{dynamic: true}
		case *syntax.ParamExp:
			if !n.Short || n.Param.Value != "?" { // that is a number
				return arg{dynamic: true}
			}
		case *syntax.DblQuoted:
			if n.Dollar {
				return arg{dynamic: true}
			}
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

// closed matches paths in directories that the model may not change (ruling G5).
var closed = lazyregexp.New(`(?i)(?:^|/)\.(?:git|hone|codescribe)(?:/|$)`)

// A path elsewhere stays absolute.
func (c *checker) relative(p string) string {
	p = filepath.ToSlash(p)
	if !path.IsAbs(p) && filepath.VolumeName(p) == "" {
		return path.Join(c.at, p)
	}
	if below, err := filepath.Rel(c.Dir, p); err == nil && filepath.IsLocal(below) {
		return filepath.ToSlash(below)
	}
	return path.Clean(p)
}

func (c *checker) outside(p string) bool {
	r := c.relative(p)
	if path.IsAbs(r) || filepath.VolumeName(r) != "" {
		return r != "/dev/null" && !(c.Walled && (caches.MatchString(r) || strings.HasPrefix(r+"/", "/tmp/")))
	}
	return r == ".." || strings.HasPrefix(r, "../") || strings.HasPrefix(p, "~")
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
