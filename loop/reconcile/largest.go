package reconcile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"hone/internal/render"
)

const remedy = `exclude files with "not-sent" in .config/bork.json or with .gitignore, name a SOURCE_DIR`

// It has the number of files in a prompt that does not fit, and the largest of them and of the directories (ruling G10).
func (p prompt) sizeReport() string {
	sent, sizes := 0, map[string]int64{}
	for _, it := range p.knownFiles() {
		if it.Digest == "" {
			continue
		}
		sent++
		sizes[it.Path] += it.Size
		if top, _, ok := strings.Cut(it.Path, "/"); ok {
			sizes[top+"/"] += it.Size
		}
	}
	text := fmt.Sprintf("%d files are sent in full; the largest files and directories:", sent)
	largest := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int { return cmp.Or(cmp.Compare(sizes[b], sizes[a]), cmp.Compare(a, b)) })
	for _, path := range largest[:min(10, len(largest))] {
		text += fmt.Sprintf("\n  %10d bytes  %s", sizes[path], render.Path(path))
	}
	return text
}
