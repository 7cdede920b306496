package workspace

import (
	"fmt"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// patterns is a list of globs to match paths against.
type patterns struct {
	globs []glob
	fold  bool
}

// glob is one prepared pattern.
type glob struct {
	text  string // cleaned; folded if the list folds case
	below bool   // it also matches everything below
}

// newPatterns prepares a list. A pattern without glob characters is a path and
// also matches everything below it, and so does a pattern that ends in a slash.
// With fold, matching ignores case. A malformed pattern is an error.
func newPatterns(list []string, fold bool) (patterns, error) {
	out := patterns{fold: fold, globs: make([]glob, 0, len(list))}
	for _, p := range list {
		if !doublestar.ValidatePattern(p) {
			return patterns{}, fmt.Errorf("pattern %q: %w", p, doublestar.ErrBadPattern)
		}
		out.globs = append(out.globs, newGlob(p, fold))
	}
	return out, nil
}

func newGlob(p string, fold bool) glob {
	plain := !strings.ContainsAny(p, `*?[{\`)
	g := glob{text: strings.TrimPrefix(strings.TrimRight(p, "/"), "./"), below: plain || strings.HasSuffix(p, "/")}
	if plain {
		g.text = path.Clean(g.text)
	}
	if fold {
		g.text = Fold(g.text)
	}
	return g
}

// match reports whether one of the patterns matches a cleaned path.
func (ps patterns) match(p string) bool {
	if len(ps.globs) == 0 {
		return false
	}
	if ps.fold {
		p = Fold(p)
	}
	for _, g := range ps.globs {
		if g.match(p) {
			return true
		}
	}
	return false
}

func (g glob) match(p string) bool {
	if g.text == "." && g.below {
		return true
	}
	for ; p != ""; p = parentOf(p) {
		if p == g.text || doublestar.MatchUnvalidated(g.text, p) {
			return true
		}
		if !g.below {
			return false
		}
	}
	return false
}
