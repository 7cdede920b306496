package reconcile

import (
	"slices"
	"strings"

	"hone/internal/render"
	"hone/workspace"
)

type item struct {
	render.File
	Added bool `json:"added,omitempty"` // a specification that git does not track yet (ruling B4)
}

// specDirs returns the directories of specifications (rulings B12 and B14).
func (l *Loop) specDirs() []string {
	if l.Task == "" {
		return []string{"specs"}
	}
	return []string{"specs", l.Task + "/specs"}
}

func (l *Loop) specPlaces() string {
	var names []string
	for _, dir := range l.specDirs() {
		names = append(names, "`"+render.Path(l.Guard.Redact(dir))+"/`")
	}
	return strings.Join(names, " and ")
}

func (l *Loop) isSpec(path string) bool {
	return slices.ContainsFunc(l.specDirs(), func(dir string) bool { return strings.HasPrefix(path, dir+"/") })
}

// Specifications come first. Each file has its contents, or a note why they are omitted.
func (l *Loop) inventory(tree *workspace.Tree, files workspace.Manifest) ([]item, error) {
	read := render.Reader{Tree: tree, Guard: l.Guard, NotSent: l.NotSent}
	if err := l.checkSize(read, files); err != nil {
		return nil, err
	}
	var specs, rest []item
	for _, e := range files {
		if !l.within(e.Path) {
			continue
		}
		f, ok := read.File(e)
		if e.Path == l.Checker { // its source is not sent (ruling B2)
			f, ok = render.File{Path: e.Path, Size: e.Size, Note: "contents omitted: this is the correctness checker"}, true
		}
		switch {
		case !ok: // it no longer exists
		case l.isSpec(e.Path):
			specs = append(specs, item{f, e.Untracked})
		default:
			rest = append(rest, item{File: f})
		}
	}
	return append(specs, rest...), nil
}

func (l *Loop) within(path string) bool {
	return l.Task == "" || l.isSpec(path) || strings.HasPrefix(path, l.Task+"/")
}

// It fails, before the files are read, if they are several times larger than the model's context.
func (l *Loop) checkSize(read render.Reader, files workspace.Manifest) error {
	var total int64
	var big []item
	for _, e := range files {
		if l.within(e.Path) && read.OmitReason(e) == "" && e.Size <= workspace.DefaultMaxFile {
			total += e.Size
			big = append(big, item{File: render.File{Path: e.Path, Digest: "unread", Size: e.Size}})
		}
	}
	if l.Editor.Context == 0 || total/16 < l.Editor.Context {
		return nil
	}
	return l.explain(l.Editor.Fits(total), prompt{Items: big})
}
