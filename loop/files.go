package loop

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"hone"
	"hone/internal/lazyregexp"
	"hone/internal/render"
	"hone/workspace"
	"hone/workspace/secret"
)

// The limits of the list of files in a session's first prompt.
const (
	maxFiles     = 200
	maxFilesText = 8 << 10 // bytes
)

// FilesText lists the files of a tree but for those that git ignores and the loop's own, so that a model need not ask for
// them: all of them, or those that are the least deep; and in a line those that judge its work. It is empty if there are none.
// own and judges may be nil.
func FilesText(tree workspace.Manifest, guard *secret.Guard, own, judges func(path string) bool) string {
	files := slices.DeleteFunc(slices.Clone(tree), func(f workspace.Entry) bool { return f.Ignored || own != nil && own(f.Path) })
	if len(files) == 0 {
		return ""
	}
	part := ""
	if judges != nil {
		part = guard.Redact(partOfCheck(files, judges))
	}
	text, listed := namesOf(files, guard)
	if listed == len(files) {
		return "Files:\n" + text + part
	}
	slices.SortStableFunc(files, func(a, b workspace.Entry) int {
		return cmp.Compare(strings.Count(a.Path, "/"), strings.Count(b.Path, "/"))
	})
	text, listed = namesOf(files, guard)
	return fmt.Sprintf("Files (%d of %d; none of the others is less deep):\n%s", listed, len(files), text+part)
}

// likeTest matches the names of tests, which are told as a pattern.
var likeTest = lazyregexp.New(`^(?:(test_).+(\.\w+)|.+([_.-](?:test|spec)\.\w+))$`)

// maxParts is how many names and patterns of files that are part of the check are told.
const maxParts = 12

func partOfCheck(files workspace.Manifest, judges func(path string) bool) string {
	others := map[string]bool{} // directories that have files that are not
	var judging workspace.Manifest
	for _, f := range files {
		if judges(f.Path) {
			judging = append(judging, f)
			continue
		}
		for dir := path.Dir(f.Path); dir != "." && !others[dir]; dir = path.Dir(dir) {
			others[dir] = true
		}
	}
	var parts []string
	for _, f := range judging {
		part := render.Line(f.Path)
		if m := likeTest.FindStringSubmatch(path.Base(f.Path)); m != nil {
			part = m[1] + "*" + m[2] + m[3]
		}
		for dir := path.Dir(f.Path); dir != "." && !others[dir]; dir = path.Dir(dir) {
			part = render.Line(dir) + "/"
		}
		if slices.Contains(parts, part) {
			continue
		}
		if len(parts) == maxParts {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return ""
	}
	return "Part of the check, which must pass without edits of these: " + strings.Join(parts, ", ") + "\n"
}

func namesOf(files workspace.Manifest, guard *secret.Guard) (text string, listed int) {
	var dirs []string
	names, size := map[string][]string{}, 0
	for _, f := range files[:min(len(files), maxFiles)] {
		dir, name := path.Split(render.Line(guard.Redact(f.Path)))
		if strings.Contains(name, ", ") {
			name = strconv.Quote(name)
		}
		if _, withheld := guard.WithheldName(f.Path); withheld {
			name += " (withheld)"
		}
		if size += len(name) + len(", "); names[dir] == nil {
			size += len(dir)
		}
		if size > maxFilesText {
			break
		}
		if names[dir] == nil {
			dirs = append(dirs, dir)
		}
		names[dir] = append(names[dir], name)
		listed++
	}
	var b strings.Builder
	for _, dir := range dirs {
		list := strings.Join(names[dir], ", ")
		if dir != "" {
			list = dir + ": " + list
		}
		b.WriteString("  " + list + "\n")
	}
	return b.String(), listed
}

// Look tells a model where it works: the directory and the files of the run's tree but for its own. It is looked at once a round.
func Look(ctx context.Context, r *hone.Run, guard *secret.Guard) (string, error) {
	return hone.Step(ctx, r, "look", nil, func(ctx context.Context) (string, error) {
		tree, err := r.Manifest(ctx)
		return fmt.Sprintf("\nWorking directory: %s\n%s", render.Line(guard.Redact(r.Tree.Dir())), FilesText(tree, guard, r.Own, r.Judges)), err
	})
}

// Advised is the end of a prompt with the user's advice; empty if there is none.
func Advised(advice string) string {
	if advice == "" {
		return ""
	}
	return "\nThe user adds this advice:\n\n" + strings.TrimSpace(advice) + "\n"
}
