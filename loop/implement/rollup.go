package implement

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"hone/internal/render"
	"hone/workspace"
)

// RollupName is the file with the user's own rollup of the code base.
const RollupName = "codeRollup.txt"

const (
	rule   = "===="
	header = "--- File: "
)

// Rollup returns a tree as one text in the form of code-commit: for each file a rule,
// a header, a rule, the contents and an empty line. The header of a file that no
// model may see states why its contents are omitted.
func Rollup(read render.Reader, files workspace.Manifest) []byte {
	text, _ := rollup(read, base(files))
	return text
}

// rollup is Rollup, and returns the digests of the files whose contents it includes.
func rollup(read render.Reader, files workspace.Manifest) (text []byte, digests map[string]string) {
	var b bytes.Buffer
	digests = map[string]string{}
	for _, e := range files {
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
			digests[f.Path] = f.Digest
		}
	}
	return b.Bytes(), digests
}

func base(files workspace.Manifest) workspace.Manifest {
	return slices.DeleteFunc(slices.Clone(files), func(e workspace.Entry) bool { return Own(e.Path) })
}

// Own reports whether a file is one of the loop's own, which are not part of the code
// base.
func Own(path string) bool {
	for _, name := range append([]string{OutputName}, Inputs...) {
		if path == name {
			return true
		}
	}
	return strings.HasPrefix(path, LogsName+"/")
}
