package treepath

import (
	"fmt"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Patterns is a compiled list of globs. The zero Patterns match nothing.
type Patterns struct {
	globs []glob
	fold  bool
}

type glob struct {
	text  string // cleaned; folded if the list folds case
	below bool   // it also matches everything below
}

// Compile returns the patterns of a list. A pattern without glob characters is
// a path and also matches everything below it, and so does a pattern that ends
// in a slash. With fold, matching ignores case. A malformed pattern is an
// error.
func Compile(list []string, fold bool) (Patterns, error) {
	for _, p := range list {
		if !doublestar.ValidatePattern(p) {
			return Patterns{}, fmt.Errorf("pattern %q: %w", p, doublestar.ErrBadPattern)
		}
	}
	return CompileValid(list, fold), nil
}

// CompileValid is like Compile, but it ignores malformed patterns.
func CompileValid(list []string, fold bool) Patterns {
	out := Patterns{fold: fold, globs: make([]glob, 0, len(list))}
	for _, p := range list {
		if doublestar.ValidatePattern(p) {
			out.globs = append(out.globs, newGlob(p, fold))
		}
	}
	return out
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

// Match reports whether one of the patterns matches a cleaned path.
func (ps Patterns) Match(p string) bool {
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
	for ; p != ""; p = Parent(p) {
		if p == g.text || doublestar.MatchUnvalidated(g.text, p) {
			return true
		}
		if !g.below {
			return false
		}
	}
	return false
}

// Match reports whether one of the patterns matches a cleaned path. It ignores
// case and malformed patterns.
func Match(list []string, path string) bool { return CompileValid(list, true).Match(path) }

// Quote returns a pattern that matches exactly a path.
func Quote(path string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`, `\`, `\\`).Replace(path)
}
