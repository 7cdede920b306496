package treepath

import (
	"cmp"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"hone/internal/lazyregexp"
)

// decoration has the characters that do not belong to a path.
const decoration = "\t `*\"'()[]{}<>:=,;|"

var (
	// remark matches what models write after a path.
	remark = lazyregexp.New(`(?i)^(\S.*?\S)\s+(?:[(\[](?:the )?(?:new|modified|updated|changed|created|edited|deleted|unchanged|fixed|complete|full|continued|existing)\b[^)\]]*[)\]]|# .*|- (?:new|modified|updated|changed|created)\b.*)$`)
	// scheme matches the start of a URL.
	scheme = lazyregexp.New(`^(?i:([a-z][a-z0-9+.-]+):/(?:/+(?:localhost/)?)?)`)
	// foreign matches the beginning of an absolute path.
	foreign = lazyregexp.New(`^(?:[A-Za-z]:)?/`)
	// variable matches a first name that a shell would expand.
	variable = lazyregexp.New(`^(?:~|\$[A-Z_][A-Z0-9_]*|\$\{\w+\}|\$\(\w+\)|%[A-Z_]+%)(?:[/\\]+|$)`)
)

// notPaths are words of the formats that models write in place of a path, or before
// it.
func notPaths() []string { return []string{"start", "end", "delete", "path", "file", "filename"} }

// CheckNew checks a name, as a model wrote it, of a file that does not exist in a tree. The
// [*RefusedError] says what cannot be meant, and names the path that is probably meant: one
// that exists and that this one contains or looks like, or this one spelled as a path. What
// exists is never refused, nor is a new file because of the directory that it is in.
func CheckNew(name string, tree fs.FS) error {
	exists := func(p string) bool {
		_, err := fs.Lstat(tree, path.Clean(p))
		return err == nil
	}
	if exists(name) {
		return nil
	}
	known := 0 // bytes of the directories that exist
	for i := range len(name) {
		if name[i] == '/' && i > 0 && exists(name[:i]) {
			known = i + 1
		}
	}
	spelled, fault := respell(name[known:])
	meant := name[:known] + spelled
	found := alike(meant, tree)
	if plain, err := url.PathUnescape(meant); found == "" && err == nil && plain != meant {
		found = alike(plain, tree)
	}
	if found == "" && foreign.MatchString(meant) {
		found = suffix(meant, exists)
	}
	if found != "" && found != path.Clean(name) {
		if fault == "" {
			fault = "it does not exist, but a name that looks the same does"
		}
		return Refuse(name, "%s; did you mean %s?%s", fault, Display(found), codes(name, found))
	}
	switch {
	case fault != "" && (spelled == "" || foreign.MatchString(meant) || variable.MatchString(name[known:]) || scheme.MatchString(name[known:])):
		return Refuse(name, "%s; write the path relative to the root of the tree", fault)
	case fault != "":
		return Refuse(name, "%s; did you mean %s?", fault, Display(meant))
	}
	if contained := containedIn(name, exists); contained != "" {
		return Refuse(name, "it does not exist; did you mean %s? Write the path alone", Display(contained))
	}
	if slices.Contains(notPaths(), strings.ToLower(name)) {
		return Refuse(name, "it is not the path of a file; write the path alone")
	}
	return nil
}

// respell returns a name as a path would be spelled, and what is wrong with the name; empty
// if nothing is.
func respell(name string) (spelled, fault string) {
	spelled = name
	if m := scheme.FindString(spelled); m != "" {
		spelled, fault = spelled[len(m):], "it is a URL"
	}
	if m := variable.FindString(spelled); m != "" {
		spelled, fault = spelled[len(m):], strings.TrimRight(m, `/\`)+" is not expanded"
	}
	if strings.Contains(spelled, `\`) {
		spelled = strings.ReplaceAll(spelled, `\`, "/")
		fault = cmp.Or(fault, `names in a path are separated by "/", not by "\"`)
	}
	parts := strings.Split(spelled, "/")
	for i, part := range parts {
		parts[i] = strings.TrimFunc(part, func(r rune) bool { return unicode.IsSpace(r) || Invisible(r) })
	}
	if trimmed := strings.Join(parts, "/"); trimmed != spelled {
		spelled, fault = trimmed, cmp.Or(fault, "a name in it begins or ends with a blank, a line feed or an invisible character")
	}
	visible := strings.Map(func(r rune) rune {
		if Invisible(r) && r != '\u200c' && r != '\u200d' { // these two join letters and emoji
			return -1
		}
		return r
	}, spelled)
	if visible != spelled {
		spelled, fault = visible, cmp.Or(fault, "it contains an invisible character")
	}
	return spelled, fault
}

// alike returns the path of what exists and looks like a path; empty if nothing does.
func alike(meant string, tree fs.FS) string {
	at := ""
	for name := range strings.SplitSeq(path.Clean(meant), "/") {
		if _, err := fs.Lstat(tree, Join(at, name)); err != nil {
			if name = sameLook(tree, at, name); name == "" {
				return ""
			}
		}
		at = Join(at, name)
	}
	return at
}

// suffix returns the longest end of a path that exists; empty if there is none.
func suffix(name string, exists func(string) bool) string {
	for {
		_, rest, ok := strings.Cut(name, "/")
		if !ok || rest == "" {
			return ""
		}
		if name = rest; exists(name) {
			return path.Clean(name)
		}
	}
}

func sameLook(tree fs.FS, dir, name string) string {
	dir = path.Clean(dir)
	if info, err := fs.Lstat(tree, dir); err != nil || !info.IsDir() {
		return ""
	}
	look, _ := Look(name)
	entries, _ := fs.ReadDir(tree, dir)
	for _, e := range entries {
		if other, _ := Look(e.Name()); other == look {
			return e.Name()
		}
	}
	return ""
}

// codes says which code points differ in two names that look the same; empty if the
// difference can be seen.
func codes(name, found string) string {
	if strconv.QuoteToASCII(name) == strconv.Quote(name) && strconv.QuoteToASCII(found) == strconv.Quote(found) {
		return ""
	}
	return fmt.Sprintf(" It is %s, and you wrote %s", strconv.QuoteToASCII(found), strconv.QuoteToASCII(name))
}

// containedIn returns the path that exists and that a name contains among words and
// decoration, or the name without a remark such as "(modified)"; empty if there is none.
func containedIn(name string, exists func(string) bool) string {
	meant := ""
	if m := remark.FindStringSubmatch(name); m != nil {
		meant = m[1]
	}
	words := strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune(decoration, r) })
	if side, rest, ok := strings.Cut(name, "/"); ok && (side == "a" || side == "b") && !exists(side) {
		words = append(words, rest) // the sides of a diff
	}
	for _, word := range words {
		likely := strings.ContainsAny(word, "./") || len(words) == 2 && slices.Contains(notPaths(), strings.ToLower(words[0]))
		if likely && word != name && exists(word) {
			meant = word
		}
	}
	return meant
}
