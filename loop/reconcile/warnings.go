package reconcile

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"hone/internal/config"
	"hone/internal/render"
	"hone/workspace"
	"hone/workspace/secret"
	"hone/workspace/treepath"
)

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
