package allow

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

// paths checks arguments that may be paths.
func (c *checker) paths(args []arg) error {
	for _, a := range args {
		if err := c.path(a); err != nil {
			return err
		}
	}
	return nil
}

// path refuses an argument that a program could read as a path outside the
// working directory.
func (c *checker) path(a arg) error {
	for _, p := range candidates(a.text) {
		if c.outside(p) {
			return refuse("the path "+p, "it leads outside the working directory", "use a relative path inside it")
		}
	}
	switch {
	case strings.Contains(a.text, unknown):
		return refuse("the argument "+a.text, "its variable could hold a path outside the working directory",
			`write the value itself, or loop over words: for f in *.go; do … "$f"; done`)
	case a.glob && climbs.MatchString(a.text):
		return refuse("the pattern "+a.text, "it can match ..", "write .[!.]* for names that begin with a dot")
	}
	return nil
}

// caches matches paths in what package managers have installed.
var caches = lazyregexp.New(`/(?:pkg/mod|node_modules|site-packages|dist-packages|\.cargo/registry|\.m2/repository)(?:/|$)`)

// outside reports whether the text of a path leads out of the working directory, from
// where the line is.
func (c *checker) outside(p string) bool {
	p = filepath.ToSlash(p)
	if strings.HasPrefix(p, "~") {
		return true
	}
	rooted := strings.HasPrefix(p, "/") || filepath.VolumeName(p) != ""
	if rooted {
		p = path.Clean(p)
		return p != "/dev/null" && !(c.Walled && caches.MatchString(p)) && !within(c.Dir, p) && !within(c.Temp, p)
	}
	p = path.Join(c.at, p)
	return p == ".." || strings.HasPrefix(p, "../")
}

func within(dir, p string) bool {
	if dir == "" {
		return false
	}
	dir = path.Clean(filepath.ToSlash(dir))
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// closed reports whether a path lies in a directory that the model may not change
// (ruling G5).
func (c *checker) closed(p string) bool {
	p = path.Clean(filepath.ToSlash(p))
	if !path.IsAbs(p) {
		p = path.Join(c.at, p)
	}
	p = strings.TrimPrefix(p, path.Clean(filepath.ToSlash(c.Dir))+"/")
	return slices.ContainsFunc(strings.Split(strings.ToLower(p), "/"), func(part string) bool {
		return part == ".git" || part == ".hone" || part == ".codescribe"
	})
}

var (
	climbs     = lazyregexp.New(`(^|/)\.\.?[*?]`)
	webAddress = lazyregexp.New(`^[A-Za-z][A-Za-z0-9+.-]*://`)
)

// candidates returns the parts of an argument that could be paths: the entire
// argument, and what follows an option letter, =, :, a comma or @.
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
