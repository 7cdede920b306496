package implement

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"hone"
	"hone/history"
	"hone/internal/render"
	"hone/workspace"
	"hone/workspace/treepath"
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

// seenFiles are the digests of the files whose contents a prompt shows, by path (ruling C13): in the first round of all files of
// the rollup, later of those that have changed since.
type seenFiles map[string]string

// digest is a [hone.Seen].
func (s seenFiles) digest(path string) (string, bool) {
	digest, ok := s[path]
	return digest, ok
}

// The model has seen or written these files, and the build or the user has changed them. A file that differed from the user's
// rollup stays unseen. later is what the model has seen by writing it.
func (s seenFiles) changed(ctx context.Context, r *hone.Run, written []history.Applied) (files workspace.Manifest, later seenFiles, err error) {
	made := map[string]string{}
	for _, e := range written {
		for _, v := range e.Verdicts {
			made[v.Path] = v.After.Digest
		}
	}
	known := maps.Clone(made)
	maps.Copy(known, s)
	all, err := r.Manifest(ctx)
	if err != nil {
		return nil, later, err
	}
	now, err := r.Tree.ManifestOf(ctx, slices.Collect(maps.Keys(known)), all)
	later = seenFiles{}
	for _, e := range now {
		switch {
		case e.Digest == s[e.Path]:
		case e.Digest != "" && e.Digest == made[e.Path]:
			later[e.Path] = e.Digest
		case s[e.Path] != differs:
			files = append(files, e)
		}
	}
	return files, later, err
}

// The largest file, and how much of all files, that a later prompt shows because they
// have changed, in bytes.
const (
	maxChanged    = 64 << 10
	maxAllChanged = 256 << 10
)

// A file that is too long is named, and stays unseen.
func showChanged(read render.Reader, changed workspace.Manifest) (text string, seen seenFiles) {
	var shown workspace.Manifest
	var omitted strings.Builder
	left := int64(maxAllChanged)
	for _, e := range changed {
		if e.Size > min(maxChanged, left) {
			fmt.Fprintf(&omitted, "%s\n%s%s (contents omitted: %d bytes)\n%s\n\n", rule, header, render.Path(read.Guard.Redact(e.Path)), e.Size, rule)
			continue
		}
		left -= e.Size
		shown = append(shown, e)
	}
	contents, digests := rollup(read, shown)
	if len(contents)+omitted.Len() == 0 {
		return "", seen
	}
	return fill("changed", string(contents)+omitted.String()), digests
}

// A file that differs counts as changed by the user. If no header is known, every tracked file that is not newer than the
// rollup counts as seen. The warnings are for the user.
func seenInRollup(tree *workspace.Tree, text string, files workspace.Manifest) (seen seenFiles, warnings []string, err error) {
	seen = seenFiles{}
	known, stale := false, []string(nil)
	text = strings.ReplaceAll(text, "\r\n", "\n")
	for text != "" {
		line, rest, _ := strings.Cut(text, "\n")
		text = rest
		path, ok := headerPath(line)
		if !ok {
			continue
		}
		content, image, err := tree.Read(path)
		known = known || err == nil || strings.HasPrefix(strings.TrimSpace(line), header)
		if err != nil { // it does not exist, or no model may change it
			continue
		}
		switch after, same := afterContent(rest, strings.ReplaceAll(string(content), "\r\n", "\n")); {
		case same:
			seen[path], text = image.Digest, after
		case seen[path] == "":
			seen[path] = differs
		}
	}
	if !known {
		return seenByAge(tree, files)
	}
	for path, digest := range seen {
		if digest == differs {
			stale = append(stale, path)
		}
	}
	if slices.Sort(stale); len(stale) > 0 {
		remedy := "remove " + RollupName + ", so that hone makes one for each run"
		if slices.ContainsFunc(files, func(e workspace.Entry) bool { return e.Path == "codeRollup.sh" }) {
			remedy = "run bash codeRollup.sh, or " + remedy
		}
		differing := render.Names(stale) + " differ"
		if len(stale) == 1 {
			differing += "s"
		}
		warnings = append(warnings, fmt.Sprintf("%s is out of date: %s. The model gets the old contents, and may not overwrite these files; %s",
			RollupName, differing, remedy))
	}
	return seen, warnings, nil
}

// differs is in place of the digest of a file of which a rollup shows other contents.
const differs = "differs from " + RollupName

// The rollup has no known headers.
func seenByAge(tree *workspace.Tree, files workspace.Manifest) (seen seenFiles, warnings []string, err error) {
	root, err := os.OpenRoot(tree.Dir())
	if err != nil {
		return seen, nil, fmt.Errorf("read the code base: %w", err)
	}
	defer root.Close()
	info, err := root.Lstat(RollupName)
	if err != nil {
		return seen, nil, fmt.Errorf("read the code base: %w", err)
	}
	made := info.ModTime().Add(slack)
	seen = seenFiles{}
	var newer []string
	for _, e := range files {
		if e.Untracked || e.Digest == "" {
			continue
		}
		seen[e.Path] = e.Digest
		if info, err := root.Lstat(e.Path); err == nil && info.ModTime().After(made) {
			seen[e.Path] = differs
			newer = append(newer, e.Path)
		}
	}
	warning := fmt.Sprintf("%s has no headers that hone knows (%sPATH, --- PATH ---), so every file that git tracks counts as shown to the model", RollupName, header)
	if len(newer) > 0 {
		warning += fmt.Sprintf(", except those that are newer than it: %s", render.Names(newer))
	}
	return seen, []string{warning}, nil
}

// slack is how much newer than a rollup a file may be, because a checkout writes both
// within moments.
const slack = 2 * time.Second

// A header is "--- File: PATH" or "--- PATH ---", as code-commit's scripts and [Rollup] write it. ok is false for one that
// states why there are no contents.
func headerPath(line string) (string, bool) {
	line = strings.TrimSpace(line)
	path, ok := strings.CutPrefix(line, header)
	if !ok {
		later, isLater := strings.CutPrefix(line, "--- ")
		if path, ok = strings.CutSuffix(later, " ---"); !ok || !isLater {
			return "", false
		}
	}
	if strings.HasSuffix(path, ")") && (strings.Contains(path, " (contents ") || strings.Contains(path, " (symbolic link to ")) {
		return "", false
	}
	cleaned, err := treepath.Clean(strings.TrimSpace(path))
	return cleaned, err == nil
}

// The text starts with exactly the contents, after lines that only decorate them. Empty lines at their end do not count.
func afterContent(text, content string) (rest string, ok bool) {
	content = strings.TrimRight(content, "\n")
	for {
		if rest, ok = strings.CutPrefix(text, content); ok && sectionEnds(content, rest) {
			return rest, true
		}
		if text == "" || !decorative(text) {
			return "", false
		}
		_, text, _ = strings.Cut(text, "\n")
	}
}

func sectionEnds(content, rest string) bool {
	if content != "" && rest != "" && rest[0] != '\n' {
		return false
	}
	for line := range strings.Lines(rest) {
		if _, next := headerPath(line); next {
			return true
		}
		if !decorative(line) {
			return false
		}
	}
	return true
}

// A rule, a Markdown fence or an empty line belongs to no file.
func decorative(text string) bool {
	line, _, _ := strings.Cut(text, "\n")
	line = strings.TrimSpace(line)
	return strings.Trim(line, "=-") == "" || strings.HasPrefix(line, "```") || strings.HasPrefix(line, header)
}
