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
	named map[string][]glob // by the last name of what they match, or by its extension if that is all that is known
	other []glob
	fold  bool
}

type glob struct {
	text       string // cleaned; folded if the list folds case
	named      bool   // the text is a pattern of the last name
	below      bool   // it also matches everything below
	start, end string // of the last name of what it matches
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
	ps := Patterns{named: map[string][]glob{}, fold: fold}
	for _, p := range list {
		if !doublestar.ValidatePattern(p) {
			continue
		}
		plain := !strings.ContainsAny(p, meta)
		text, below := strings.TrimPrefix(strings.TrimRight(p, "/"), "./"), plain || strings.HasSuffix(p, "/")
		if plain {
			text = path.Clean(text)
		}
		if fold {
			text = Fold(text)
		}
		if dir, ok := strings.CutSuffix(text, "/**"); ok && dir != "" && dir != "." {
			text, below = dir, true
		}
		ps.add(text, below)
	}
	return ps
}

func (ps *Patterns) add(text string, below bool) {
	list := alternatives(text)
	if len(list) > 1 {
		list = append(list, Quote(text)) // a file may have the pattern as its name
	}
	for _, text := range list {
		name := Base(text)
		g, key := glob{text: text, below: below}, name
		if first := strings.IndexAny(name, meta); first >= 0 {
			g.end = name[strings.LastIndexAny(name, meta)+1:]
			if key = extension(g.end); !strings.ContainsAny(name, "]}") { // otherwise it may be one of several names
				g.start = name[:first]
			}
		}
		if text == "**/"+name {
			g.text, g.named = name, true
		}
		if key == "" || text == "." { // a dot is everything
			ps.other = append(ps.other, g)
		} else {
			ps.named[key] = append(ps.named[key], g)
		}
	}
}

const meta = `*?[]{}\`

// maxAlternatives is how many patterns may stand for one.
const maxAlternatives = 256

// alternatives returns patterns that together match what a pattern does, without braces in the last name if that is easy.
func alternatives(p string) []string {
	list := []string{p}
	for {
		var next []string
		for _, p := range list {
			next = append(next, choices(p)...)
		}
		if len(next) == len(list) || len(next) > maxAlternatives {
			return list
		}
		list = next
	}
}

// choices returns a pattern for each choice of the first braces of the last name; one with escapes is left as it is.
func choices(p string) (list []string) {
	name := Base(p)
	before, rest, ok := strings.Cut(name, "{")
	inside, after, closed := strings.Cut(rest, "}")
	if !ok || !closed || strings.ContainsAny(inside, "{[]") || strings.Contains(p, `\`) || strings.Count(before, "[") != strings.Count(before, "]") {
		return []string{p}
	}
	for choice := range strings.SplitSeq(inside, ",") {
		chosen := before + choice + after
		if chosen == "**" { // it would match slashes
			return []string{p}
		}
		list = append(list, p[:len(p)-len(name)]+chosen)
	}
	return list
}

// extension returns the part of a name that begins at its last dot; empty if it has none.
func extension(name string) string {
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		return name[dot:]
	}
	return ""
}

// Match reports whether one of the patterns matches a cleaned path.
func (ps Patterns) Match(p string) bool {
	if len(ps.named) == 0 && len(ps.other) == 0 {
		return false
	}
	if ps.fold {
		p = Fold(p)
	}
	for at := p; ; at = Parent(at) {
		name := Base(at)
		ext := extension(name)
		if match(ps.named[name], at, p) || ext != name && match(ps.named[ext], at, p) || match(ps.other, at, p) {
			return true
		}
		if at == "" {
			return false
		}
	}
}

// match reports whether one of the patterns matches a path; those that match what is below something may match an ancestor.
func match(globs []glob, at, path string) bool {
	return slices.ContainsFunc(globs, func(g glob) bool {
		switch {
		case at != path && !g.below:
			return false
		case at == "":
			return g.text == "."
		case !strings.HasSuffix(at, g.end) || !strings.HasPrefix(Base(at), g.start):
			return false
		case g.named:
			return Base(at) == g.text || doublestar.MatchUnvalidated(g.text, Base(at))
		}
		return at == g.text || doublestar.MatchUnvalidated(g.text, at)
	})
}

// Match reports whether one of the patterns matches a cleaned path. It ignores
// case and malformed patterns.
func Match(list []string, path string) bool { return CompileValid(list, true).Match(path) }

// Quote returns a pattern that matches exactly a path.
func Quote(path string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`, `\`, `\\`).Replace(path)
}
