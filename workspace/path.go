package workspace

import (
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// journalDir is hone's own folder at the root of a tree; no model sees it.
const journalDir = ".hone"

// tempPrefix begins the names of the temporary files that Apply and Restore
// make beside their targets. The names are reserved: such files are not listed, not read
// and cannot be written on request.
const tempPrefix = ".hone~"

// maxName is the longest name of one file, in bytes, that common file systems
// hold.
const maxName = 255

// RefusedError says why a path may not be used. The reason is worded for a
// person and for a model.
type RefusedError struct {
	Path   string // as it was given
	Reason string
}

func (e *RefusedError) Error() string { return display(e.Path) + ": " + e.Reason }

// refuse makes a RefusedError.
func refuse(path, format string, args ...any) error {
	return &RefusedError{Path: path, Reason: fmt.Sprintf(format, args...)}
}

// Clean returns the one spelling of a path that hone uses: relative, with
// slashes, without "." and empty components. It refuses, with a
// [*RefusedError], everything that names no file below the root whatever the
// tree holds (ruling G5): an empty path, NUL, "..", absolute paths, drive
// letters and UNC names, a trailing slash, a component that some file system
// takes for .git, and a component of more than 255 bytes.
//
// A backslash is refused on Windows, where it separates. Elsewhere it is a
// byte like any other, but a path that would be refused were it a separator
// (`..\x`, `.git\config`) is refused as well, because the tree may be checked
// out on Windows. On Windows names that it aliases (trailing dots and spaces,
// streams, 8.3 names) or reserves for devices are refused too.
func Clean(p string) (string, error) {
	if err := checkSpelling(p); err != nil {
		return "", err
	}
	cleaned := path.Clean(p)
	if err := checkSpelling(cleaned); err != nil { // "./C:x" begins with a drive letter as well
		return "", err
	}
	if cleaned == "." || strings.HasSuffix(p, "/") || strings.HasSuffix(p, "/.") {
		return "", refuse(p, "names a directory, not a file")
	}
	for name := range strings.SplitSeq(cleaned, "/") {
		if err := checkName(p, name); err != nil {
			return "", err
		}
	}
	if runtime.GOOS == "windows" {
		if err := checkWindows(p, cleaned); err != nil {
			return "", err
		}
	}
	return cleaned, nil
}

// checkSpelling refuses what can be told from the path as a whole.
func checkSpelling(p string) error {
	switch {
	case p == "":
		return refuse(p, "the path is empty")
	case strings.ContainsRune(p, 0):
		return refuse(p, "the path holds a NUL byte")
	case p[0] == '/' || p[0] == '\\':
		return refuse(p, "the path is absolute; paths are relative to the root of the tree")
	case len(p) >= 2 && p[1] == ':' && isLetter(p[0]):
		return refuse(p, "the path begins with a drive letter; paths are relative to the root of the tree")
	}
	for name := range strings.FieldsFuncSeq(p, isSeparator) {
		if name == ".." {
			return refuse(p, `".." is not allowed in a path`)
		}
		if isGit(name) {
			return refuse(p, "git's own files are protected")
		}
	}
	return nil
}

// checkName refuses what no file system of ours can hold under one name.
func checkName(p, name string) error {
	if len(name) > maxName {
		return refuse(p, "a name of %d bytes is longer than %d", len(name), maxName)
	}
	return nil
}

// checkWindows refuses what Windows would read as another name.
func checkWindows(p, cleaned string) error {
	if strings.ContainsAny(cleaned, `\:`) || !filepath.IsLocal(filepath.FromSlash(cleaned)) {
		return refuse(p, "the path holds a separator, stream or device name of Windows")
	}
	for name := range strings.SplitSeq(cleaned, "/") {
		if strings.TrimRight(name, ". ") != name {
			return refuse(p, "a name that ends in a dot or a space is another name on Windows")
		}
		if isShortName(name) {
			return refuse(p, "a short 8.3 name is another name on Windows")
		}
	}
	return nil
}

// isShortName reports whether a name has the form of an 8.3 alias, such as
// CONFIG~1 or HONE~1.TOM.
func isShortName(name string) bool {
	stem, _, _ := strings.Cut(name, ".")
	before, digits, found := strings.Cut(stem, "~")
	if !found || before == "" || digits == "" || len(stem) > 8 {
		return false
	}
	return strings.Trim(digits, "0123456789") == ""
}

// isGit reports whether some file system takes the name for .git: case is
// folded; HFS+ ignores certain code points; NTFS ignores trailing dots and
// spaces and what follows a colon, and knows git~1 as the short name.
func isGit(name string) bool {
	n := canonical(name)
	if n == ".git" {
		return true
	}
	digits, found := strings.CutPrefix(n, "git~")
	return found && len(digits) == 1 && digits[0] >= '0' && digits[0] <= '9'
}

// protected says why a cleaned path may not be written in any loop, or
// returns an empty string (ruling G5).
func protected(cleaned string) string {
	switch {
	case hidden(cleaned):
		return "hone's own files are protected"
	case sameNames(cleaned, ".config/hone.toml"), sameNames(cleaned, ".config/bork.json"):
		return "the configuration may not be changed by a model"
	}
	return ""
}

// hidden reports whether a path is never listed or read: .git at any depth,
// .hone at the root, and the temporary files of Apply and Restore.
func hidden(p string) bool {
	first := true
	for name := range strings.SplitSeq(p, "/") {
		if hiddenName(name, first) {
			return true
		}
		first = false
	}
	return false
}

// hiddenName reports whether a component hides what lies at and below it.
func hiddenName(name string, atRoot bool) bool {
	// Hardly any name comes near a hidden one, and whole trees pass through
	// here.
	if plainName(name) {
		return false
	}
	n := canonical(name)
	return isGit(name) || strings.HasPrefix(n, tempPrefix) || atRoot && (n == journalDir || strings.HasPrefix(n, "hone~"))
}

// plainName reports whether a name is ASCII and begins with a letter or digit
// that begins no alias of a hidden name.
func plainName(name string) bool {
	if name == "" || strings.IndexByte("ghGH", name[0]) >= 0 || !isAlnum(name[0]) {
		return false
	}
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// sameNames reports whether a path names the wanted one on some file system.
func sameNames(p, wanted string) bool {
	for w := range strings.SplitSeq(wanted, "/") {
		name, rest, _ := strings.Cut(p, "/")
		if canonical(name) != w {
			return false
		}
		p = rest
	}
	return p == ""
}

// canonical reduces a name to what file systems that fold case, ignore code
// points or trim ends compare.
func canonical(name string) string {
	name, _, _ = strings.Cut(name, ":")
	return strings.TrimRight(Fold(strings.Map(dropIgnored, name)), ". ")
}

// dropIgnored removes the code points that HFS+ ignores in names.
func dropIgnored(r rune) rune {
	switch {
	case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
		return -1
	}
	return r
}

// Fold returns a spelling that is equal for all paths that differ in case
// alone, by Unicode's simple folding. Bytes that are not UTF-8 stay as they
// are. Names that differ in normalisation (é as one code point or two) stay
// different.
func Fold(p string) string {
	for i := range len(p) {
		if p[i] >= utf8.RuneSelf {
			return foldRunes(p)
		}
	}
	return strings.ToLower(p)
}

// foldRunes is Fold for a path that is not ASCII.
func foldRunes(p string) string {
	var b strings.Builder
	b.Grow(len(p))
	for i := 0; i < len(p); {
		r, size := utf8.DecodeRuneInString(p[i:])
		if r == utf8.RuneError && size == 1 {
			b.WriteByte(p[i])
		} else {
			b.WriteRune(foldRune(r))
		}
		i += size
	}
	return b.String()
}

// foldRune returns one member of the set of runes that fold to each other,
// the lower case letter where that is ASCII.
func foldRune(r rune) rune {
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	if least >= 'A' && least <= 'Z' {
		return least + ('a' - 'A')
	}
	return least
}

// display returns a path as a person can read it: quoted when it holds
// anything that does not print.
func display(p string) string {
	for _, r := range p {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return strconv.Quote(p)
		}
	}
	if p == "" {
		return `""`
	}
	return p
}

// parentOf returns the directory of a cleaned path, "" for the root.
func parentOf(p string) string {
	i := strings.LastIndexByte(p, '/')
	return p[:max(i, 0)]
}

// join puts a name below a directory, of which "" is the root.
func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

func isSeparator(r rune) bool { return r == '/' || r == '\\' }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isAlnum(c byte) bool { return isLetter(c) || isDigit(c) }
