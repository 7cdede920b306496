// Package treepath cleans, compares and matches the paths of files in a tree.
//
// All paths are relative to the tree's root, with slashes. [Clean] refuses
// every path that cannot name a file below the root. [Match] matches globs.
// [Hidden] and [ProtectedReason] recognize hone's and git's own files, and [ToolReason]
// those that other tools of the user run, in every spelling that some file system
// treats as the same. The package opens no
// files.
package treepath

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// journalDir is hone's own directory at the root of a tree. No model sees it.
const journalDir = ".hone"

// TempPrefix starts the names of the temporary files that workspace.Tree.Apply
// creates. These names are reserved:
// such files are never listed or read, and no edit can write them.
const TempPrefix = ".hone~"

// maxName is the longest file name, in bytes, that common file systems support.
const maxName = 255

// RefusedError says why a path must not be used. The reason is written for the
// user and the model.
type RefusedError struct {
	Path   string // as given
	Reason string
}

func (e *RefusedError) Error() string { return Display(e.Path) + ": " + e.Reason }

// Refuse returns a [*RefusedError].
func Refuse(path, format string, args ...any) error {
	return &RefusedError{Path: path, Reason: fmt.Sprintf(format, args...)}
}

// Clean returns the canonical spelling of a path: relative, with slashes,
// without "." and empty components. It returns a [*RefusedError] for every path
// that cannot name a file below the root, whatever the tree contains (ruling
// G5): an empty path, NUL, "..", absolute paths, drive letters and UNC names, a
// trailing slash, a component that some file system treats as .git, and a
// component longer than 255 bytes.
//
// Windows treats a backslash as a separator, so Clean refuses it there.
// Elsewhere a backslash is an ordinary byte. But the tree may be checked out on
// Windows, so Clean refuses a path on every system if reading the backslashes
// as separators would make it invalid (`..\x`, `.git\config`). On Windows,
// Clean also refuses names that alias another file (trailing dots and spaces,
// streams, 8.3 names) and device names.
func Clean(p string) (string, error) {
	if err := checkSpelling(p); err != nil {
		return "", err
	}
	cleaned := path.Clean(p)
	if err := checkSpelling(cleaned); err != nil { // "./C:x" starts with a drive letter too
		return "", err
	}
	if cleaned == "." || strings.HasSuffix(p, "/") || strings.HasSuffix(p, "/.") {
		return "", Refuse(p, "names a directory, not a file")
	}
	for name := range strings.SplitSeq(cleaned, "/") {
		if err := checkName(p, name); err != nil {
			return "", err
		}
	}
	if err := CheckAliases(p, cleaned); err != nil {
		return "", err
	}
	return cleaned, nil
}

func checkSpelling(p string) error {
	switch {
	case p == "":
		return Refuse(p, "the path is empty")
	case strings.ContainsRune(p, 0):
		return Refuse(p, "the path contains a NUL byte")
	case p[0] == '/' || p[0] == '\\':
		return Refuse(p, "the path is absolute; paths are relative to the root of the tree")
	case len(p) >= 2 && p[1] == ':' && isLetter(p[0]):
		return Refuse(p, "the path starts with a drive letter; paths are relative to the root of the tree")
	}
	for name := range strings.FieldsFuncSeq(p, func(r rune) bool { return r == '/' || r == '\\' }) {
		if name == ".." {
			return Refuse(p, `".." is not allowed in a path`)
		}
		if isGit(name) {
			return Refuse(p, "git's own files are protected")
		}
	}
	return nil
}

func checkName(p, name string) error {
	if len(name) > maxName {
		return Refuse(p, "a name of %d bytes is longer than %d", len(name), maxName)
	}
	return nil
}

// Valid reports whether p is a relative path with slashes, without "." and
// empty components, that names something below the root. It need not be UTF-8.
func Valid(p string) bool {
	// Only dots and slashes matter here.
	return p != "." && fs.ValidPath(strings.ToValidUTF8(p, "?"))
}

// CheckAliases refuses a cleaned path that this system would read as a
// different path. Only Windows does so. p is the path as given, for the error.
func CheckAliases(p, cleaned string) error {
	if runtime.GOOS != "windows" {
		return nil
	}
	return checkWindows(p, cleaned)
}

func checkWindows(p, cleaned string) error {
	if strings.ContainsAny(cleaned, `\:`) || !filepath.IsLocal(filepath.FromSlash(cleaned)) {
		return Refuse(p, "the path contains a Windows separator, stream or device name")
	}
	for name := range strings.SplitSeq(cleaned, "/") {
		if strings.TrimRight(name, ". ") != name {
			return Refuse(p, "on Windows, a name that ends in a dot or a space means another file")
		}
		stem, _, _ := strings.Cut(name, ".")
		before, digits, _ := strings.Cut(stem, "~")
		if before != "" && digits != "" && len(stem) <= 8 && strings.Trim(digits, "0123456789") == "" { // CONFIG~1, HONE~1.TOM
			return Refuse(p, "on Windows, an 8.3 short name means another file")
		}
	}
	return nil
}

// isGit reports whether some file system treats the name as .git: case is
// folded; HFS+ ignores certain code points; NTFS ignores trailing dots and
// spaces and everything after a colon, and uses git~1 as the short name.
func isGit(name string) bool {
	n := canonical(name)
	if n == ".git" {
		return true
	}
	digits, found := strings.CutPrefix(n, "git~")
	return found && len(digits) == 1 && digits[0] >= '0' && digits[0] <= '9'
}

// ProtectedReason returns why no loop may write a cleaned path (ruling G5), or
// an empty string.
func ProtectedReason(cleaned string) string {
	switch {
	case Hidden(cleaned):
		return "hone's own files are protected"
	case sameNames(cleaned, ".config/hone.toml"), sameNames(cleaned, ".config/bork.json"):
		return "a model may not change the configuration"
	}
	return ""
}

// Hidden reports whether a path is never listed or read: .git at any depth,
// .hone at the root, and temporary files.
func Hidden(p string) bool {
	first := true
	for name := range strings.SplitSeq(p, "/") {
		if HiddenName(name, first) {
			return true
		}
		first = false
	}
	return false
}

// HiddenName reports whether a component hides itself and everything below it.
func HiddenName(name string, atRoot bool) bool {
	// Fast path: listings call this for every name, and almost none is hidden.
	if plainName(name) {
		return false
	}
	n := canonical(name)
	return isGit(name) || strings.HasPrefix(n, TempPrefix) || atRoot && (n == journalDir || strings.HasPrefix(n, "hone~"))
}

// IsHoneName reports whether hone created the file of that name in a directory
// for itself: .hone at the root, and temporary files.
func IsHoneName(name string, atRoot bool) bool {
	return strings.HasPrefix(name, TempPrefix) || atRoot && canonical(name) == journalDir
}

// plainName reports whether a name is ASCII and starts with a letter or digit
// that starts no alias of a hidden name.
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

// IsBelow reports whether a cleaned path is the named directory at the top of the
// tree, or in it. It ignores case, and what some file systems ignore in names.
func IsBelow(path, dir string) bool {
	first, _, _ := strings.Cut(path, "/")
	return canonical(first) == canonical(dir)
}

func sameNames(p, wanted string) bool {
	rest, ok := cutNames(p, wanted)
	return ok && rest == ""
}

// cutNames returns what of p is below the wanted path, which is empty for the root, and
// whether some file system treats the start of p as that path.
func cutNames(p, wanted string) (below string, ok bool) {
	for w := range strings.SplitSeq(wanted, "/") {
		if w == "" {
			break
		}
		name, rest, _ := strings.Cut(p, "/")
		if canonical(name) != w {
			return "", false
		}
		p = rest
	}
	return p, true
}

// canonical returns a name in the form that file systems compare when they fold
// case, ignore code points or trim trailing characters.
func canonical(name string) string {
	name, _, _ = strings.Cut(name, ":")
	return strings.TrimRight(Fold(strings.Map(dropIgnored, name)), ". ")
}

func dropIgnored(r rune) rune {
	switch {
	case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
		return -1
	}
	return r
}

// Fold returns the same string for all paths that differ only in case, using
// Unicode simple folding. Bytes that are not UTF-8 are unchanged. Names that
// differ in normalization (é as one code point or two) stay different.
func Fold(p string) string {
	for i := range len(p) {
		if p[i] >= utf8.RuneSelf {
			return foldRunes(p)
		}
	}
	return strings.ToLower(p)
}

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

// foldRune returns one member of the set of runes that fold to each other, the
// lower-case letter for ASCII.
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

// Display returns a path for messages, quoted if it contains anything
// unprintable.
func Display(p string) string {
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

// Parent returns the parent directory of a cleaned path, "" for the root.
func Parent(p string) string {
	i := strings.LastIndexByte(p, '/')
	return p[:max(i, 0)]
}

// Join returns the path of a name in a directory, "" for the root.
func Join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isAlnum(c byte) bool { return isLetter(c) || isDigit(c) }

// Base returns the last name of a cleaned path.
func Base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// Contains reports whether dir is path or an ancestor of it; "" is an ancestor
// of every path.
func Contains(dir, path string) bool {
	return dir == "" || path == dir || len(path) > len(dir) && path[len(dir)] == '/' && path[:len(dir)] == dir
}

// Look returns what a text looks like: the same string for all texts that a reader cannot
// tell apart, because they differ only in normalization (é as one code point or two), in
// invisible characters, or in the kind of a space, a hyphen or a quotation mark. at has the
// offset in the text of each byte of the look.
func Look(text string) (look string, at []int) {
	b := make([]byte, 0, len(text))
	at = make([]int, 0, len(text))
	var segments norm.Iter
	segments.InitString(norm.NFC, text)
	for !segments.Done() {
		start := segments.Pos()
		for _, r := range string(segments.Next()) {
			if r = lookOf(r); r < 0 {
				continue
			}
			b = append(b, string(r)...)
			for len(at) < len(b) {
				at = append(at, start)
			}
		}
	}
	return string(b), at
}

func lookOf(r rune) rune {
	switch {
	case Invisible(r), unicode.Is(unicode.Variation_Selector, r):
		return -1
	case unicode.Is(unicode.Zs, r):
		return ' '
	case r == '\u2010' || r == '\u2011' || r == '\u2212':
		return '-'
	case r == '\u2018' || r == '\u2019':
		return '\''
	case r == '\u201c' || r == '\u201d':
		return '"'
	}
	return r
}

// Invisible reports whether a character is never seen: it has no width, or only controls
// how others are shown.
func Invisible(r rune) bool { return unicode.Is(unicode.Cf, r) || r == '\u034f' }
