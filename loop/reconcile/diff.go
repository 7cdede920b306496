package reconcile

import (
	"fmt"
	"strconv"
	"strings"

	"hone/internal/git"
	"hone/internal/render"
)

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

func (d specDiff) write(b *strings.Builder) {
	switch {
	case d.Ref == "":
		b.WriteString("# How the specifications differ from `main`\n\nThis is unknown: there is no branch `main`, locally or at `origin`.\n\n")
	case d.Added:
		fmt.Fprintf(b, "# How the specifications differ from `%s`\n\nOnly those headed as newly added differ.\n\n", d.Ref)
	case d.Text == "":
		fmt.Fprintf(b, "# How the specifications differ from `%s`\n\nThey do not differ.\n\n", d.Ref)
	default:
		fmt.Fprintf(b, "# How the specifications differ from `%s`\n\nThis is probably the task.\n\n%s\n", d.Ref, d.Text)
	}
}
