package allow

import (
	"strings"

	"hone/internal/lazyregexp"

	"mvdan.cc/sh/v3/syntax"
)

var stream = lazyregexp.New(`^[0-9]$`)

func (c *checker) redirect(r *syntax.Redirect) error {
	if r.N != nil && !stream.MatchString(r.N.Value) {
		return refuse("the redirect "+r.N.Value+r.Op.String(), "it sets a variable or opens another stream", "redirect only 1 or 2")
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return c.hereDocument(r)
	case syntax.DplOut, syntax.DplIn:
		if to, ok := literal(r.Word); ok && (to == "-" || stream.MatchString(to)) {
			return nil
		}
	}
	return c.target(r)
}

// hereDocument checks a here-document or a here-string. Its contents are data.
func (c *checker) hereDocument(r *syntax.Redirect) error {
	if c.ReadOnly {
		return readOnlyRedirect(r)
	}
	if _, ok := literal(r.Word); r.Op != syntax.WordHdoc && !ok {
		return refuse("this here-document", "the word that ends it is not plain", "write <<'EOF'")
	}
	return nil
}

// target checks the file of a redirect.
func (c *checker) target(r *syntax.Redirect) error {
	args, err := c.words([]*syntax.Word{r.Word})
	if err != nil {
		return err
	}
	if len(args) != 1 || strings.ContainsAny(r.Word.Lit(), "*?[") {
		return refuse("a redirect to a pattern", "it does not name one file", "write the name of the file")
	}
	switch a := args[0]; {
	case a.text == "/dev/null":
		return nil
	case c.ReadOnly:
		return readOnlyRedirect(r)
	case r.Op != syntax.RdrIn && c.closed(a.text):
		return refuse("a redirect to "+a.text, "commands may not change this directory", "leave it unchanged")
	default:
		return c.path(a)
	}
}

func readOnlyRedirect(r *syntax.Redirect) error {
	return refuse("the redirect "+r.Op.String(), "this session only reads files", "use what the command prints; only >/dev/null and 2>&1 are allowed")
}
