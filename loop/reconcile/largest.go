package reconcile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hone/internal/render"
)

// It has the number of files in a prompt that does not fit, and its largest files and directories (ruling G10).
func (p prompt) sizeReport() string {
	sent := slices.DeleteFunc(slices.Clone(p.knownFiles()), func(it item) bool { return it.Digest == "" })
	var b strings.Builder
	fmt.Fprintf(&b, "%d files are sent in full; the largest files and directories:\n", len(sent))
	for _, l := range largest(sent, 5) {
		fmt.Fprintf(&b, "  %10d bytes  %s\n", l.Size, render.Path(l.Path))
	}
	for _, l := range largest(folders(sent), 5) {
		fmt.Fprintf(&b, "  %10d bytes  %s\n", l.Size, render.Path(l.Path))
	}
	return strings.TrimRight(b.String(), "\n")
}

const remedy = `exclude files with "not-sent" in .config/bork.json or with .gitignore, name a SOURCE_DIR`

func largest(items []item, n int) []item {
	sorted := slices.Clone(items)
	slices.SortStableFunc(sorted, func(a, b item) int { return cmp.Compare(b.Size, a.Size) })
	return sorted[:min(n, len(sorted))]
}

// The size of each is that of all its files that are sent.
func folders(items []item) []item {
	var tops []item
	at := map[string]int{}
	for _, it := range items {
		top, _, ok := strings.Cut(it.Path, "/")
		if !ok {
			continue
		}
		if _, known := at[top]; !known {
			at[top] = len(tops)
			tops = append(tops, item{File: render.File{Path: top + "/"}})
		}
		tops[at[top]].Size += it.Size
	}
	return tops
}
