package allow

import (
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// inside lets an argument pass that is one path in the folder.
func (c *checker) inside(a arg) error {
	switch {
	case a.unknown:
		return unknownPath(a)
	case c.outside(a.text):
		return c.beyond(a.text)
	case a.active && couldClimb(a.text):
		return disallow("the pattern "+a.text, "it can stand for ..", "write .[!.]* for names that begin with a dot")
	}
	return nil
}

func unknownPath(a arg) error {
	what := "an argument with a variable in it"
	if a.text != "" {
		what += " (…" + a.text + ")"
	}
	return disallow(what, "its value is not known here and could be a path outside of the working directory", "write the value itself, or loop over words: for f in *.go; do … \"$f\"; done")
}

func (c *checker) beyond(p string) error {
	return disallow("the path "+p, "it leads out of the working directory", "use paths inside of it, relative and without leading ..")
}

// outside reports whether a path leads, by its text, out of where paths may
// lie. A cd only ever goes deeper, so that what is inside from the working
// directory is inside from there too.
func (c *checker) outside(p string) bool {
	p = slashed(p)
	switch {
	case strings.HasPrefix(p, "~"):
		return true
	case absolute(p):
		p = path.Clean(p)
		return p != "/dev/null" && !within(slashed(c.Dir), p) && !within(slashed(c.Temp), p)
	}
	p = path.Clean(p)
	return p == ".." || strings.HasPrefix(p, "../")
}

// slashed is a path with the separators of the shell.
func slashed(p string) string {
	if runtime.GOOS == "windows" {
		return strings.ReplaceAll(filepath.ToSlash(p), `\`, "/")
	}
	return p
}

func absolute(p string) bool {
	drive := runtime.GOOS == "windows" && len(p) > 1 && p[1] == ':'
	return strings.HasPrefix(p, "/") || drive
}

func within(dir, p string) bool {
	if dir == "" {
		return false
	}
	dir = path.Clean(dir)
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}

// closed reports whether a path lies in a folder that is not to be written.
func (c *checker) closed(p string) bool {
	p = path.Clean(slashed(p))
	if rest, ok := strings.CutPrefix(p, path.Clean(slashed(c.Dir))+"/"); ok {
		p = rest
	}
	return slices.ContainsFunc(strings.Split(strings.ToLower(p), "/"), func(part string) bool {
		return part == ".git" || part == ".hone" || part == ".codescribe"
	})
}

// couldClimb reports whether a component of a pattern can match "..".
func couldClimb(pattern string) bool {
	return slices.ContainsFunc(strings.Split(pattern, "/"), func(part string) bool {
		if !strings.HasPrefix(part, ".") || part == "." {
			return false
		}
		ok, err := path.Match(strings.ReplaceAll(part, "[!", "[^"), "..")
		return ok || err != nil
	})
}

// path lets an argument pass in which a program could see a path: it, or what
// stands behind an option's letter, =, :, a comma or @ in it.
func (c *checker) path(a arg) error {
	if a.unknown {
		return unknownPath(a)
	}
	if a.active {
		if err := c.inside(a); err != nil {
			return err
		}
	}
	for _, p := range candidates(a.text) {
		if c.outside(p) {
			return c.beyond(p)
		}
	}
	return nil
}

var (
	address  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	attached = regexp.MustCompile(`^-[A-Za-z0-9]+(\.\.(/|$)|~)`)
)

// candidates are the parts of an argument that could be paths.
func candidates(text string) []string {
	list := []string{text}
	if strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "--") && len(text) > 2 {
		list = append(list, text[2:])
		if attached.MatchString(text) {
			list = append(list, strings.TrimLeft(text[2:], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"))
		}
	}
	for _, part := range strings.Split(text, "=") {
		if address.MatchString(part) && !strings.HasPrefix(strings.ToLower(part), "file:") {
			continue
		}
		list = append(list, strings.FieldsFunc(part, func(r rune) bool { return strings.ContainsRune(":,@", r) })...)
	}
	if address.MatchString(text) && !strings.HasPrefix(strings.ToLower(text), "file:") {
		list = list[1:]
	}
	return list
}
