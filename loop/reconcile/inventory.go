package reconcile

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"hone/internal/config"
	"hone/internal/git"
	"hone/internal/render"
	"hone/workspace"
	"hone/workspace/secret"
	"hone/workspace/treepath"
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

// The user may not expect that there are no specifications, or that entries of the configuration match nothing (ruling B14).
func (l *Loop) warnings(dir string, files workspace.Manifest, items []item) []string {
	texts := l.namesOutside(files, items)
	if !slices.ContainsFunc(files, func(e workspace.Entry) bool { return l.isSpec(e.Path) }) {
		texts = append(texts, "there are no specifications: no files in "+strings.Join(l.specDirs(), "/ or ")+"/")
	}
	if ignored := l.ignoredSpecs(dir, files); len(ignored) > 0 {
		texts = append(texts, fmt.Sprintf("git ignores these specifications, so they are not sent: %s; change .gitignore, or git add --force", render.Names(ignored)))
	}
	for _, list := range []struct {
		key      string
		patterns []string
	}{{"edits-require-approval", l.Approve}, {"not-sent", l.NotSent}} {
		for _, pattern := range list.patterns {
			match := treepath.CompileValid([]string{pattern}, true)
			// A file that git ignores counts only if the pattern is its path.
			_, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(pattern)))
			if err != nil && !slices.ContainsFunc(files, func(e workspace.Entry) bool { return match.Match(e.Path) }) {
				texts = append(texts, fmt.Sprintf("%s: %q in %s matches no file; patterns are relative to the root of the repository", config.BorkPath, pattern, list.key))
			}
		}
	}
	return texts
}

func (l *Loop) ignoredSpecs(dir string, files workspace.Manifest) (ignored []string) {
	known := map[string]bool{}
	for _, e := range files {
		known[e.Path] = true
	}
	for _, specs := range l.specDirs() {
		// What cannot be read is not known to be a specification.
		_ = filepath.WalkDir(filepath.Join(dir, filepath.FromSlash(specs)), func(at string, d fs.DirEntry, err error) error {
			rel, relErr := filepath.Rel(dir, at)
			if rel = filepath.ToSlash(rel); err == nil && relErr == nil && d.Type().IsRegular() && !known[rel] {
				ignored = append(ignored, rel)
			}
			return nil
		})
	}
	return ignored
}

// namesOutside returns warnings about specifications that name files outside SOURCE_DIR
// by their paths (ruling B15).
func (l *Loop) namesOutside(files workspace.Manifest, items []item) (texts []string) {
	outside := map[string]bool{}
	for _, e := range files {
		outside[e.Path] = !l.within(e.Path) && strings.ContainsAny(e.Path, "./")
	}
	noPath := func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("_./-", c)
	}
	for _, it := range items {
		if l.Task == "" || !l.isSpec(it.Path) {
			continue
		}
		var named []string
		for _, word := range strings.FieldsFunc(string(it.Content), noPath) {
			if word = path.Clean(strings.TrimRight(word, ".")); outside[word] && !slices.Contains(named, word) {
				named = append(named, word)
			}
		}
		if len(named) > 0 {
			texts = append(texts, fmt.Sprintf("%s names files outside %s, which are not sent and cannot be changed: %s", render.Path(it.Path), render.Path(l.Task), render.Names(named)))
		}
	}
	return texts
}

// They tell the user which contents the model does not get.
func (l *Loop) contentNotices(p prompt) []string {
	var texts []string
	if p.Diff.Ref == "" {
		texts = append(texts, "there is no branch main, locally or at origin: the prompt does not show how specs/ changed")
	}
	for _, it := range p.knownFiles() {
		if !strings.HasPrefix(it.Note, render.Withheld) {
			continue
		}
		text := render.Path(it.Path) + ": " + it.Note
		switch {
		case strings.HasSuffix(it.Note, secret.OwnKeyReason): // no setting lets that out
		case treepath.Match(l.Approve, it.Path):
			text += fmt.Sprintf("; changes to it are therefore refused, not asked about (to send it and be asked: send = [%q] in [guard] of .config/hone.toml)", it.Path)
		default:
			text += " (to send it: [guard] send in .config/hone.toml)"
		}
		texts = append(texts, text)
	}
	return texts
}
