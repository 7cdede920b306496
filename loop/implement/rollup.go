package implement

import (
	"bytes"
	"fmt"
	"strings"

	"hone/internal/render"
	"hone/workspace"
	"hone/workspace/treepath"
)

// RollupName is the file that holds the code base, where there is one.
const RollupName = "codeRollup.txt"

const (
	rule   = "===="
	header = "--- File: "
)

// Rollup writes a tree into one text, in the shape that code-commit's users
// have: a rule, a header, a rule, the contents, an empty line. What no model
// may see is named with the reason why it is left out.
func Rollup(read render.Reader, files workspace.Manifest) []byte {
	text, _ := rollup(read, files)
	return text
}

// rollup is Rollup, and which files it shows.
func rollup(read render.Reader, files workspace.Manifest) (text []byte, shown []string) {
	var b bytes.Buffer
	for _, e := range files {
		if Own(e.Path) {
			continue
		}
		f, ok := read.File(e)
		switch {
		case !ok:
		case f.Digest == "":
			fmt.Fprintf(&b, "%s\n%s%s (%s)\n%s\n\n", rule, header, render.Path(f.Path), f.Note, rule)
		default:
			fmt.Fprintf(&b, "%s\n%s%s\n%s\n%s", rule, header, render.Path(f.Path), rule, f.Content)
			if n := len(f.Content); n > 0 && f.Content[n-1] != '\n' {
				b.WriteByte('\n')
			}
			b.WriteByte('\n')
			shown = append(shown, f.Path)
		}
	}
	return b.Bytes(), shown
}

// Own reports whether a file is one of the loop's, which are no part of the
// code base.
func Own(path string) bool {
	for _, name := range append([]string{OutputName}, Inputs...) {
		if path == name {
			return true
		}
	}
	return strings.HasPrefix(path, LogsName+"/")
}

// shownIn are the files that a rollup shows, by its headers. It has none where
// somebody wrote it in another way.
func shownIn(rollup string) []string {
	var paths []string
	for line := range strings.Lines(rollup) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), header)
		if !ok || leftOut(path) {
			continue
		}
		if cleaned, err := treepath.Clean(strings.TrimSpace(path)); err == nil {
			paths = append(paths, cleaned)
		}
	}
	return paths
}

// leftOut reports whether a header of [Rollup] says why there are no contents.
func leftOut(path string) bool {
	return strings.HasSuffix(path, ")") && (strings.Contains(path, " (contents ") || strings.Contains(path, " (symbolic link to "))
}
