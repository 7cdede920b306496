package workspace

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"hone/internal/gitdir"
	"hone/internal/transient"
	"hone/workspace/internal/nofollow"
	"hone/workspace/treepath"
)

// Review decides on every edit of a change, in order, and writes nothing. If
// several rulings apply, the first of deny, drop, ask, allow wins. Every
// verdict except Allow has a reason that the user and the model can act on.
// Before and After are set for every edit whose file could be inspected.
//
// Whatever the rules say, Review denies (rulings G4, G5):
//   - a path that treepath.Clean refuses
//   - a path that is not UTF-8, because a record could not store it
//   - hone's own files and configuration
//   - a path in a directory that git takes for a repository, or would with this change
//   - closed paths (Tree.Shut)
//   - a path that the change names twice, or that is below or above another path of the
//     change, ignoring case
//   - a path through a symlink, or below a file or in the place of a directory, unless the
//     change deletes the file, or all that is in the directory
//   - a target that is not a regular file
//
// A file with several hard links is allowed: Apply breaks the link and leaves
// the other names alone.
//
// Paths are compared with NotSent, Approve, Immutable, hone's own names and those of tools
// ignoring case, but with Scope exactly. Any pattern that is a plain path or
// ends in a slash also matches everything below.
//
// An error means that the rules contain a malformed pattern, or that a file could not be
// inspected for a reason that may pass (ruling G22).
func (t *Tree) Review(ch Change, rules Rules) ([]Verdict, error) {
	r := &review{tree: t, rules: rules, cur: nofollow.Cursor{Root: t.root}, files: map[string]named{}, dirs: map[string]named{}, rooms: map[int][]string{}}
	for i, e := range ch.Edits {
		path, err := treepath.Clean(e.Path)
		if err != nil {
			continue
		}
		folded := treepath.Fold(path)
		if _, twice := r.files[folded]; !twice {
			r.files[folded] = named{path, e.Delete, i}
		}
		for dir := treepath.Parent(folded); dir != ""; dir = treepath.Parent(dir) {
			if other, ok := r.dirs[dir]; !ok || other.deleted {
				r.dirs[dir] = named{path, e.Delete, i} // a directory in which something is written stays one
			}
		}
	}
	for _, list := range []struct {
		name  string
		from  []string
		fold  bool
		ready *treepath.Patterns
	}{
		{"immutable", rules.Immutable, true, &r.immutable},
		{"not sent", rules.NotSent, true, &r.notSent},
		{"approve", rules.Approve, true, &r.approve},
		{"scope", rules.Scope, false, &r.scope},
	} {
		ps, err := treepath.Compile(list.from, list.fold)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", list.name, err)
		}
		*list.ready = ps
	}
	defer r.cur.Close()
	verdicts := make([]Verdict, len(ch.Edits))
	for i, e := range ch.Edits {
		verdicts[i] = r.edit(i, e)
	}
	if r.err != nil {
		return nil, r.err
	}
	for i, paths := range r.rooms { // a deletion that is not certain makes no room
		for _, v := range verdicts {
			if v.Ruling != Allow && slices.Contains(paths, v.Path) {
				verdicts[i] = deny(verdicts[i].Path, fmt.Sprintf("%s is in its place; delete that first, in a change of its own", treepath.Display(v.Path)))
			}
		}
	}
	return verdicts, nil
}

// named is a path that the change names.
type named struct {
	path    string
	deleted bool
	edit    int // the first with the path
}

type review struct {
	tree      *Tree
	rules     Rules
	cur       nofollow.Cursor
	immutable treepath.Patterns
	notSent   treepath.Patterns
	approve   treepath.Patterns
	scope     treepath.Patterns
	files     map[string]named // by folded path, as some file systems ignore case
	dirs      map[string]named // by folded directory, what the change names below it
	rooms     map[int][]string // the deleted paths that make room for an edit, by its index
	err       error            // that may pass, the first
}

func (r *review) edit(i int, e Edit) Verdict {
	cleaned, err := treepath.Clean(e.Path)
	if err != nil {
		return deny(e.Path, r.reason(e.Path, err))
	}
	if reason := r.duplicateReason(i, cleaned, e.Delete); reason != "" {
		return deny(cleaned, reason)
	}
	if reason := r.pathDenial(cleaned); reason != "" {
		return deny(cleaned, reason)
	}
	if reason := r.repositoryDenial(cleaned); reason != "" {
		return deny(cleaned, reason)
	}
	old, before, err := r.currentFile(cleaned)
	if err != nil && !e.Delete && !transient.Is(err) {
		if paths := r.roomFor(cleaned); len(paths) > 0 {
			r.rooms[i], err = paths, nil
		}
	}
	if err != nil {
		return deny(cleaned, r.reason(cleaned, err))
	}
	v := Verdict{Path: cleaned, Ruling: Allow, Before: before, After: imageAfter(e, before)}
	if info, err := r.cur.Lstat(cleaned); err == nil && before.Exists() && !e.Delete {
		v.Linked = info.Links > 1
	}
	switch reason := r.contentDenial(cleaned, old, e); {
	case reason != "":
		v.Ruling, v.Reason = Deny, reason
	case e.Delete && !before.Exists():
		v.Ruling, v.Reason = Drop, "there is no such file to delete"
	case !e.Delete && before.Exists() && bytes.Equal(old, e.Content):
		v.Ruling, v.Reason = Drop, "the file already has these contents"
	default:
		r.ask(&v)
	}
	return v
}

// roomFor returns the deleted paths that make room for a new file: the file in the place of one of
// its directories, or all files of the directory in its place; nil if they do not make room.
func (r *review) roomFor(path string) (paths []string) {
	for dir := treepath.Parent(path); dir != ""; dir = treepath.Parent(dir) {
		if r.deletes(dir) {
			return []string{dir}
		}
	}
	err := r.cur.Walk(path, func(p string, info nofollow.Info, err error) error {
		if err == nil && !info.Mode.IsDir() {
			if paths = append(paths, p); !r.deletes(p) {
				err = fs.ErrExist
			}
		}
		return err
	})
	if r.tree.note(err); err != nil {
		return nil
	}
	return paths
}

// ask decides on an edit that nothing denies: whether the file must be read first, or a
// person asked.
func (r *review) ask(v *Verdict) {
	var reasons []string
	if v.Before.Exists() && r.rules.Seen != nil {
		switch digest, ok := r.rules.Seen(v.Path); {
		case !ok:
			reasons = append(reasons, "its contents were not shown to the model")
		case digest != v.Before.Digest:
			reasons = append(reasons, "its contents have changed since they were shown to the model")
		}
	}
	if len(reasons) > 0 && r.rules.ReadFirst {
		v.Ruling, v.Reason = Unread, reasons[0]
		return
	}
	if r.approve.Match(v.Path) {
		reasons = append(reasons, "changes to it need approval")
	}
	if r.rules.Protected != nil && r.rules.Protected(v.Path) {
		reasons = append(reasons, "it is protected because it is part of what checks the work")
	}
	if why := r.tree.ToolReason(v.Path); why != "" && r.rules.Tools {
		reasons = append(reasons, "changes to it need approval, because "+why)
		v.Tool = true
	}
	if len(reasons) > 0 {
		v.Ruling, v.Reason = Ask, strings.Join(reasons, "; ")
	}
}

func deny(path, reason string) Verdict {
	return Verdict{Path: path, Ruling: Deny, Reason: reason}
}

// The verdict has the path already.
func (r *review) reason(path string, err error) string {
	var refused *treepath.RefusedError
	var large *TooLargeError
	switch {
	case errors.As(err, &refused):
		return refused.Reason
	case errors.As(err, &large):
		return fmt.Sprintf("%d bytes is more than the limit of %d", large.Size, large.Max)
	}
	reason, passing := nofollow.Fact(path, err)
	r.err = cmp.Or(r.err, passing)
	return "the file cannot be read: " + reason
}

func (r *review) duplicateReason(edit int, path string, deleted bool) string {
	folded := treepath.Fold(path)
	if other := r.files[folded]; other.edit != edit && other.path == path {
		return "the change names this path twice"
	} else if other.edit != edit {
		return "the change names this path twice, also as " + treepath.Display(other.path)
	}
	if other, ok := r.dirs[folded]; ok && other.deleted == deleted {
		return fmt.Sprintf("the same change also names %s, which is below it", treepath.Display(other.path))
	}
	for dir := treepath.Parent(folded); dir != ""; dir = treepath.Parent(dir) {
		if other, ok := r.files[dir]; ok && other.deleted == deleted {
			return fmt.Sprintf("it is below %s, which the same change also names", treepath.Display(other.path))
		}
	}
	return ""
}

func (r *review) deletes(path string) bool {
	file := r.files[treepath.Fold(path)]
	return file.deleted && file.path == path
}

func (r *review) pathDenial(path string) string {
	if err := r.tree.Refusal(path); err != nil {
		return r.reason(path, err)
	}
	if reason := treepath.ProtectedReason(path); reason != "" {
		return reason
	}
	switch {
	case r.rules.Denied[path] != "":
		return r.rules.Denied[path]
	case !utf8.ValidString(path):
		return "the path is not valid UTF-8"
	case r.immutable.Match(path):
		return "this file may not be changed here"
	case r.notSent.Match(path):
		return "its contents are never sent to the model, so a model may not change it"
	case r.rules.Scope != nil && !r.scope.Match(path):
		return "it is outside the paths that may be changed: " + strings.Join(r.rules.Scope, ", ")
	}
	if reason, ok := r.rules.Guard.WithheldName(path); ok {
		return "it is withheld from the model: " + reason
	}
	return ""
}

// repositoryDenial denies a path in a directory that git takes for a repository, or that
// the change would make one: git would obey the settings and hooks there (ruling G5). It
// returns an empty string for other paths.
func (r *review) repositoryDenial(path string) string {
	for dir := treepath.Parent(path); ; dir = treepath.Parent(dir) {
		if gitdir.IsComplete(func(name string) bool { return r.has(treepath.Join(dir, name), name == "HEAD") }) {
			if dir == "" {
				dir = "."
			}
			return fmt.Sprintf("git would take the directory %s for a repository, because of the names HEAD, objects, refs or commondir in it, and obey what is written there", treepath.Display(dir))
		}
		if dir == "" {
			return ""
		}
	}
}

// has reports whether there is something at a path, or would be with the change; with
// isFile, something that is not a directory.
func (r *review) has(path string, isFile bool) bool {
	folded := treepath.Fold(path)
	if file, ok := r.files[folded]; ok && !file.deleted {
		return true
	}
	if dir, ok := r.dirs[folded]; ok && !dir.deleted && !isFile {
		return true
	}
	info, err := r.cur.Lstat(path)
	if transient.Is(err) {
		r.err = cmp.Or(r.err, nofollow.ReadError(path, err))
	}
	return err == nil && !(isFile && info.Mode.IsDir())
}

func (r *review) currentFile(path string) ([]byte, Image, error) {
	if err := r.cur.Enter(treepath.Parent(path)); err != nil {
		if refused := (*treepath.RefusedError)(nil); errors.As(err, &refused) {
			err = treepath.Refuse(refused.Path, "a parent directory cannot be used: %s", refused.Reason)
		}
		return nil, Image{}, ignoreNotExist(err)
	}
	content, image, err := r.tree.readAt(&r.cur, path)
	return content, image, ignoreNotExist(err)
}

func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func imageAfter(e Edit, before Image) Image {
	if e.Delete {
		return Image{}
	}
	mode := fs.FileMode(0o644)
	if bytes.HasPrefix(e.Content, []byte("#!")) {
		mode = 0o755
	}
	if before.Exists() {
		mode = os.FileMode(before.Mode)
	}
	return imageOf(e.Content, mode)
}

// New contents may include a secret: the model that writes them knows it already.
func (r *review) contentDenial(path string, old []byte, e Edit) string {
	if size := int64(len(e.Content)); !e.Delete && size > r.tree.maxFile {
		return r.reason(path, &TooLargeError{Size: size, Max: r.tree.maxFile})
	}
	if reason, ok := r.rules.Guard.Withheld(path, old); ok {
		return "it is withheld from the model: " + reason
	}
	if r.rules.Typed && !e.Delete {
		return encodingDenial(old, e.Content)
	}
	return ""
}
