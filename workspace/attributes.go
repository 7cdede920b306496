package workspace

import (
	"strings"

	"hone/workspace/treepath"
)

// EndsInCRLF reports whether git's attributes in the tree want the lines of a file to end in
// CRLF (eol=crlf). The innermost .gitattributes with a matching line decides, and in it the
// last such line.
func (t *Tree) EndsInCRLF(path string) bool {
	crlf := false
	dir := ""
	for {
		content, _, _ := t.Read(treepath.Join(dir, ".gitattributes"))
		rest := strings.TrimPrefix(path[len(dir):], "/")
		for line := range strings.Lines(string(content)) {
			words := strings.Fields(line)
			if len(words) < 2 || words[0][0] == '#' || !attributed(words[0], rest) {
				continue
			}
			for _, attribute := range words[1:] {
				switch attribute {
				case "eol=crlf":
					crlf = true
				case "eol=lf", "-eol", "!eol", "-text", "binary":
					crlf = false
				}
			}
		}
		name, _, below := strings.Cut(rest, "/")
		if !below {
			return crlf
		}
		dir = treepath.Join(dir, name)
	}
}

// attributed reports whether a pattern of .gitattributes matches a path below its directory.
func attributed(pattern, path string) bool {
	pattern = strings.Trim(pattern, `"`)
	if strings.Contains(pattern, "/") {
		pattern = strings.TrimPrefix(pattern, "/")
	} else {
		path = treepath.Base(path)
	}
	return treepath.Match([]string{pattern}, path)
}
