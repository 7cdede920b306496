package reconcile

import (
	"strings"

	"hone/internal/render"
	"hone/workspace"
)

// item is one file as a prompt shows it.
type item struct {
	render.File
	Added bool `json:"added,omitempty"` // a specification that git does not track yet (ruling B4)
}

// same reports whether a model that was shown a still knows b.
func (a item) same(b item) bool {
	return a.Digest == b.Digest && a.Note == b.Note && a.Added == b.Added
}

func isSpec(path string) bool { return strings.HasPrefix(path, "specs/") }

// inventory lists what belongs into the prompt, specifications first, each
// file with its contents or with the reason why they are left out.
func (l Loop) inventory(tree *workspace.Tree, files workspace.Manifest) ([]item, error) {
	read := render.Reader{Tree: tree, Guard: l.Guard, NotSent: l.NotSent}
	if err := l.tooMuch(read, files); err != nil {
		return nil, err
	}
	var specs, rest []item
	for _, e := range files {
		if !l.within(e.Path) {
			continue
		}
		it, ok := l.item(read, e)
		switch {
		case !ok:
		case isSpec(e.Path):
			specs = append(specs, it)
		default:
			rest = append(rest, it)
		}
	}
	return append(specs, rest...), nil
}

func (l Loop) within(path string) bool {
	return l.Scope == "" || isSpec(path) || strings.HasPrefix(path, l.Scope+"/")
}

// item reads one file. ok is false where it is gone by now. The checker's
// source is not sent (ruling B2).
func (l Loop) item(read render.Reader, e workspace.Entry) (it item, ok bool) {
	if e.Path == l.Checker {
		return item{File: render.File{Path: e.Path, Size: e.Size, Note: "contents omitted: this is the correctness checker"}}, true
	}
	f, ok := read.File(e)
	return item{File: f, Added: isSpec(e.Path) && e.Untracked}, ok
}

// tooMuch refuses a tree whose files alone pass the model's context several
// times over, before all of it is read.
func (l Loop) tooMuch(read render.Reader, files workspace.Manifest) error {
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
