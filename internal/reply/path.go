package reply

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

// Unquoted returns a path without a pair of backticks around it.
func Unquoted(name string) string {
	if len(name) > 2 && name[0] == '`' && name[len(name)-1] == '`' && strings.Count(name, "`") == 2 {
		return strings.TrimSpace(name[1 : len(name)-1])
	}
	return name
}

// decoration has the characters that do not belong to a path.
const decoration = "\t `*\"'()[]{}<>:=,;|"

// remark matches what models write after a path.
var remark = lazyregexp.New(`(?i)^(\S.*?\S)\s+(?:[(\[](?:the )?(?:new|modified|updated|changed|created|edited|deleted|unchanged|fixed|complete|full|continued|existing)\b[^)\]]*[)\]]|# .*|- (?:new|modified|updated|changed|created)\b.*)$`)

// notPaths are words of the formats that models write in place of a path, or before
// it.
func notPaths() []string { return []string{"start", "end", "delete", "path", "file", "filename"} }

// CheckPath checks the path of a file that a model wants to create. exists reports
// whether there is such a file. The error names the path that is probably meant:
// one that exists and that this one contains, or this one without a remark such as
// "(modified)". Any other path is accepted.
func CheckPath(name string, exists func(path string) bool) error {
	if exists(path.Clean(name)) {
		return nil
	}
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
		if likely && word != name && exists(path.Clean(word)) {
			meant = word
		}
	}
	switch {
	case meant != "":
		return fmt.Errorf("%q does not exist; did you mean %s? Write the path alone", name, meant)
	case slices.Contains(notPaths(), strings.ToLower(name)):
		return fmt.Errorf("%q is not the path of a file; write the path alone", name)
	}
	return nil
}
