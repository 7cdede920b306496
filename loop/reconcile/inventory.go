package reconcile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hone/internal/git"
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

// specDiff is the difference of the specifications from main (ruling B3).
type specDiff struct {
	Ref  string `json:"ref,omitempty"` // empty if there is no main
	Text string `json:"text,omitempty"`
	// Added is true if Text is empty and there are newly added specifications.
	Added bool `json:"added,omitempty"`
}

// Files whose contents are omitted are left out, and secrets. The diff lacks the unread files.
func (l *Loop) diff(main git.MainDiff, items []item, unread []string) specDiff {
	if !main.Found {
		return specDiff{}
	}
	hidden, added := map[string]bool{}, false
	for _, it := range items {
		hidden[it.Path] = it.Digest == ""
		added = added || it.Added
	}
	var b strings.Builder
	for _, f := range splitPatch(string(main.Patch)) {
		_, withheld := l.Guard.WithheldName(f.path) // also of a file that no longer exists
		if f.path = l.Guard.Redact(f.path); withheld || hidden[f.path] {
			fmt.Fprintf(&b, "[the diff of %s is omitted, like its contents]\n", render.Path(f.path))
		} else if head, _, _ := strings.Cut(f.text, "\n@@ "); strings.Contains(head, "\nnew file mode ") && !hidden[f.path] {
			fmt.Fprintf(&b, "[%s is new: all of it, as shown above]\n", render.Path(f.path))
		} else {
			b.WriteString(f.text)
		}
	}
	for _, path := range unread {
		fmt.Fprintf(&b, "[the diff of %s is omitted, like its contents]\n", render.Path(l.Guard.Redact(path)))
	}
	text := strings.ToValidUTF8(b.String(), "\uFFFD")
	return specDiff{Ref: main.Base.Name, Text: l.Guard.Redact(text), Added: added && text == ""}
}

type filePatch struct{ path, text string }

// The patch has no renames. Lines of the files start with a sign, so that none of them looks like a header.
func splitPatch(patch string) []filePatch {
	var files []filePatch
	begin, at := 0, 0
	for line := range strings.Lines(patch) {
		if head, ok := strings.CutPrefix(line, "diff --git "); ok {
			path := head[:(len(head)-1)/2] // head is "a/PATH b/PATH", where git may have quoted both
			if unquoted, err := strconv.Unquote(path); err == nil {
				path = unquoted
			}
			begin = at
			files = append(files, filePatch{path: strings.TrimPrefix(path, "a/")})
		}
		at += len(line)
		if n := len(files); n > 0 {
			files[n-1].text = patch[begin:at]
		}
	}
	return files
}
