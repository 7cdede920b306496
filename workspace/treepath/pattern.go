package treepath

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Patterns is a compiled list of globs. The zero Patterns match nothing.
type Patterns struct {
	globs []glob
	fold  bool
}

type glob struct {
	text       string // cleaned; folded if the list folds case
	named      bool   // the text is a pattern of the last name
	start, end string // of what it matches: what is before the first glob character and after the last one
	below      bool   // it also matches everything below
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
	const meta = `*?[]{}\`
	ps := Patterns{fold: fold}
	for _, p := range list {
		if !doublestar.ValidatePattern(p) {
			continue
		}
		plain := !strings.ContainsAny(p, meta)
		g := glob{text: strings.TrimPrefix(strings.TrimRight(p, "/"), "./"), below: plain || strings.HasSuffix(p, "/")}
		if plain {
			g.text = path.Clean(g.text)
		}
		if fold {
			g.text = Fold(g.text)
		}
		if dir, ok := strings.CutSuffix(g.text, "/**"); ok && dir != "" && dir != "." {
			g.text, g.below = dir, true
		}
		if name, ok := strings.CutPrefix(g.text, "**/"); ok && !strings.Contains(name, "/") {
			g.text, g.named = name, true
		}
		if !plain {
			g.start = g.text[:max(0, strings.IndexAny(g.text, meta))]
		}
		g.end = Base(g.text)
		g.end = g.end[strings.LastIndexAny(g.end, meta)+1:]
		ps.globs = append(ps.globs, g)
	}
	return ps
}

// Match reports whether one of the patterns matches a cleaned path.
func (ps Patterns) Match(p string) bool {
	if ps.fold {
		p = Fold(p)
	}
	return slices.ContainsFunc(ps.globs, func(g glob) bool {
		if g.below && g.text == "." {
			return true
		}
		for at := p; at != ""; at = Parent(at) {
			name := at
			if g.named {
				name = Base(at)
			}
			// A file may have the pattern as its name. The start and the end decide almost always.
			if name == g.text || strings.HasPrefix(name, g.start) && strings.HasSuffix(name, g.end) && doublestar.MatchUnvalidated(g.text, name) {
				return true
			}
			if !g.below {
				break
			}
		}
		return false
	})
}

// Match reports whether one of the patterns matches a cleaned path. It ignores
// case and malformed patterns.
func Match(list []string, path string) bool { return CompileValid(list, true).Match(path) }

// Quote returns a pattern that matches exactly a path.
func Quote(path string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`, `\`, `\\`).Replace(path)
}
