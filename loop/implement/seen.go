package implement

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/render"
	"hone/workspace"
	"hone/workspace/treepath"
)

// seenFiles are the files whose contents a prompt shows (ruling C13). The commands and
// edits of the run may change them further; the user's changes are never seen.
type seenFiles struct {
	// Digests are those of the contents, by path: in the first round all files of the
	// rollup, later those that the run has changed since.
	Digests map[string]string `json:"digests,omitempty"`
	// Users are the files that the user changed after they were shown.
	Users []string `json:"users,omitempty"`
}

// add adds what a later round has seen.
func (s *seenFiles) add(later seenFiles) {
	if s.Digests == nil {
		s.Digests = map[string]string{}
	}
	maps.Copy(s.Digests, later.Digests)
	s.Users = append(s.Users, later.Users...)
}

// earlierSeen returns what the model has seen in the rounds before.
func earlierSeen(r *hone.Run, past []prompt) (seen seenFiles, err error) {
	for _, p := range past {
		seen.add(p.Seen)
	}
	changed, err := hone.Earlier[seenFiles](r, usersStep)
	for _, c := range changed {
		seen.add(c)
	}
	return seen, err
}

// usersStep is the name of the step of usersChanges.
const usersStep = "changed by the user"

// digest is a [hone.Seen].
func (s seenFiles) digest(path string) (string, bool) {
	digest, ok := s.Digests[path]
	return digest, ok
}

// since returns what changed in the files that the model has seen, in the round after
// the edits of written. What the model wrote is seen, and so is what the build changed
// in it or in other files. Changes that the findings report as made by the user are
// not.
func (s seenFiles) since(ctx context.Context, r *hone.Run, written []history.Applied, prior []check.Finding) (later seenFiles, err error) {
	made := map[string]string{}
	for _, e := range written {
		for _, v := range e.Verdicts {
			made[v.Path] = v.After.Digest
		}
	}
	known := maps.Clone(made)
	maps.Copy(known, s.Digests)
	for _, f := range prior {
		if f.Source == "outside" {
			later.Users = append(later.Users, f.File)
		}
	}
	users := append(slices.Clone(s.Users), later.Users...)
	now, err := manifestOf(ctx, r, slices.Collect(maps.Keys(known)))
	later.Digests = map[string]string{}
	for _, e := range now {
		if s.Digests[e.Path] != e.Digest && (made[e.Path] == e.Digest || !slices.Contains(users, e.Path)) {
			later.Digests[e.Path] = e.Digest
		}
	}
	return later, err
}

// usersChanges returns the files that the user changed while the model was answering.
func (s seenFiles) usersChanges(ctx context.Context, r *hone.Run) (seenFiles, error) {
	return hone.Step(ctx, r, usersStep, nil, func(ctx context.Context) (changed seenFiles, err error) {
		now, err := manifestOf(ctx, r, slices.Collect(maps.Keys(s.Digests)))
		for _, e := range now {
			if s.Digests[e.Path] != e.Digest && !slices.Contains(s.Users, e.Path) {
				changed.Users = append(changed.Users, e.Path)
			}
		}
		return changed, err
	})
}

// manifestOf reads the current state of files.
func manifestOf(ctx context.Context, r *hone.Run, paths []string) (workspace.Manifest, error) {
	known, err := r.Manifest(ctx)
	if err != nil {
		return nil, err
	}
	return r.Tree.ManifestOf(ctx, paths, known)
}

// seenInRollup compares the user's own rollup with the files. A file that differs
// counts as changed by the user. If no header is known, every tracked file that is not
// newer than the rollup counts as seen. The warnings are for the user.
func seenInRollup(tree *workspace.Tree, text string, files workspace.Manifest) (seen seenFiles, warnings []string, err error) {
	seen.Digests = map[string]string{}
	known := false
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
			seen.Digests[path], text = image.Digest, after
		case seen.Digests[path] == "":
			seen.Digests[path] = differs
		}
	}
	if !known {
		return seenByAge(tree, files)
	}
	for path, digest := range seen.Digests {
		if digest == differs {
			seen.Users = append(seen.Users, path)
		}
	}
	if slices.Sort(seen.Users); len(seen.Users) > 0 {
		remedy := "remove " + RollupName + ", so that hone makes one for each run"
		if slices.ContainsFunc(files, func(e workspace.Entry) bool { return e.Path == "codeRollup.sh" }) {
			remedy = "run bash codeRollup.sh, or " + remedy
		}
		warnings = append(warnings, fmt.Sprintf("%s is out of date: %s. The model gets the old contents, and may not overwrite these files; %s",
			RollupName, several(seen.Users, "differs", "differ"), remedy))
	}
	return seen, warnings, nil
}

// differs is in place of the digest of a file of which a rollup shows other contents.
const differs = "differs from " + RollupName

// seenByAge returns what counts as seen with a rollup without known headers.
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
	seen.Digests = map[string]string{}
	for _, e := range files {
		if e.Untracked || e.Digest == "" || Own(e.Path) {
			continue
		}
		seen.Digests[e.Path] = e.Digest
		if info, err := root.Lstat(e.Path); err == nil && info.ModTime().After(made) {
			seen.Digests[e.Path] = differs
			seen.Users = append(seen.Users, e.Path)
		}
	}
	warning := fmt.Sprintf("%s has no headers that hone knows (%sPATH, --- PATH ---), so every file that git tracks counts as shown to the model", RollupName, header)
	if len(seen.Users) > 0 {
		warning += fmt.Sprintf(", except those that are newer than it: %s newer", several(seen.Users, "is", "are"))
	}
	return seen, []string{warning}, nil
}

// slack is how much newer than a rollup a file may be, because a checkout writes both
// within moments.
const slack = 2 * time.Second

// several lists at most five paths before a verb.
func several(paths []string, verb, verbs string) string {
	var names []string
	for _, p := range paths[:min(5, len(paths))] {
		names = append(names, render.Path(p))
	}
	if more := len(paths) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	if len(names) == 1 {
		return names[0] + " " + verb
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last] + " " + verbs
}

// headerPath returns the path in a header of a rollup, as code-commit's scripts and
// [Rollup] write it: "--- File: PATH" or "--- PATH ---". It returns false for a header
// that states why there are no contents.
func headerPath(line string) (string, bool) {
	line = strings.TrimSpace(line)
	path, ok := strings.CutPrefix(line, header)
	if !ok {
		later, isLater := strings.CutPrefix(line, "--- ")
		if path, ok = strings.CutSuffix(later, " ---"); !ok || !isLater {
			return "", false
		}
	}
	if omitted(path) {
		return "", false
	}
	cleaned, err := treepath.Clean(strings.TrimSpace(path))
	return cleaned, err == nil
}

// afterContent returns the text after a file's contents if a text starts with exactly
// these, after lines that only decorate them. Empty lines at their end do not count.
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

// sectionEnds reports whether nothing but decoration follows contents until the next
// header or the end.
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

// decorative reports whether a text starts with a line that belongs to no file: a rule,
// a Markdown fence or an empty line.
func decorative(text string) bool {
	line, _, _ := strings.Cut(text, "\n")
	line = strings.TrimSpace(line)
	return strings.Trim(line, "=-") == "" || strings.HasPrefix(line, "```") || strings.HasPrefix(line, header)
}
