package allow

import (
	"hone/internal/lazyregexp"

	"mvdan.cc/sh/v3/syntax"
)

var stream = lazyregexp.New(`^[0-9]$`)

func (c *checker) redirect(r *syntax.Redirect) error {
	if r.N != nil && !stream.MatchString(r.N.Value) {
		return refuse("the redirect "+r.N.Value+r.Op.String(), "it sets a variable or opens another stream", "redirect only 1 or 2")
	}
	text, plain := literal(r.Word)
	switch duplicates := r.Op == syntax.DplOut || r.Op == syntax.DplIn; {
	case duplicates && (text == "-" || stream.MatchString(text)), text == "/dev/null" && !isDocument(r):
		return nil
	case c.ReadOnly:
		return refuse("the redirect "+r.Op.String(), "this session only reads files", "use what the command prints; only >/dev/null and 2>&1 are allowed")
	case r.Op == syntax.WordHdoc, isDocument(r) && plain:
		return nil // data
	case isDocument(r):
		return refuse("this here-document", "the word that ends it is not plain", "write <<'EOF'")
	}
	return c.target(r)
}

func isDocument(r *syntax.Redirect) bool {
	return r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc || r.Op == syntax.WordHdoc
}

// target checks the file of a redirect.
func (c *checker) target(r *syntax.Redirect) error {
	args, err := c.words([]*syntax.Word{r.Word})
	switch {
	case err != nil:
		return err
	case len(args) != 1 || args[0].glob:
		return refuse("a redirect to a pattern", "it does not name one file", "write the name of the file")
	case r.Op != syntax.RdrIn && c.closed(args[0].text):
		return refuse("a redirect to "+args[0].text, "commands may not change this directory", "leave it unchanged")
	}
	writes := *c
	writes.Walled = writes.Walled && r.Op == syntax.RdrIn
	return writes.path(args[0])
}
