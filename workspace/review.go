package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"
)

// Review says what would become of every edit of a change, in its order, and
// writes nothing. Of several rulings the strictest holds: deny, drop, ask,
// allow. Every verdict but a plain Allow has a reason that a person and a
// model can act on; Before and After are filled for every edit whose file
// could be looked at.
//
// Whatever the rules say, it denies (rulings G4, G5) paths that Clean refuses,
// hone's own files and configuration, paths that are not UTF-8 (which a record
// could not carry), a path twice in one change or below
// another path of it (case folded), a path through a symlink or below a file,
// and a target that is anything but a regular file. A file with several hard
// links is no reason: Apply breaks the link and leaves the other names alone.
//
// Case is folded when paths are compared with NotSent, Approve, Immutable and
// hone's own names, never with Scope. A Scope, like every pattern, that is a
// plain path or ends in a slash stands for all that lies below.
//
// An error means that the rules hold a pattern that cannot be read.
func (t *Tree) Review(ch Change, rules Rules) ([]Verdict, error) {
	r, err := newReview(t, rules)
	if err != nil {
		return nil, err
	}
	defer r.cur.close()
	verdicts := make([]Verdict, len(ch.Edits))
	for i, e := range ch.Edits {
		verdicts[i] = r.edit(e)
	}
	return verdicts, nil
}

// review is the state of one Review.
type review struct {
	tree      *Tree
	rules     Rules
	cur       cursor
	immutable patterns
	notSent   patterns
	approve   patterns
	scope     patterns
	files     map[string]string // paths of the change so far: folded to as cleaned
	dirs      map[string]string // their parents, folded, to the path that has them
}

func newReview(t *Tree, rules Rules) (*review, error) {
	r := &review{tree: t, rules: rules, cur: cursor{root: t.root}, files: map[string]string{}, dirs: map[string]string{}}
	for _, list := range []struct {
		name  string
		from  []string
		fold  bool
		ready *patterns
	}{
		{"immutable", rules.Immutable, true, &r.immutable},
		{"not sent", rules.NotSent, true, &r.notSent},
		{"approve", rules.Approve, true, &r.approve},
		{"scope", rules.Scope, false, &r.scope},
	} {
		ps, err := newPatterns(list.from, list.fold)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", list.name, err)
		}
		*list.ready = ps
	}
	return r, nil
}

// edit decides about one edit.
func (r *review) edit(e Edit) Verdict {
	cleaned, err := Clean(e.Path)
	if err != nil {
		return denied(e.Path, reasonOf(err))
	}
	if reason := r.repeated(cleaned); reason != "" {
		return denied(cleaned, reason)
	}
	if reason := r.forbidden(cleaned); reason != "" {
		return denied(cleaned, reason)
	}
	old, before, err := r.look(cleaned)
	if err != nil {
		return denied(cleaned, reasonOf(err))
	}
	v := Verdict{Path: cleaned, Ruling: Allow, Before: before, After: afterOf(e, before)}
	if reason := r.closed(cleaned, old, e); reason != "" {
		v.Ruling, v.Reason = Deny, reason
		return v
	}
	if reason := idle(old, e, before); reason != "" {
		v.Ruling, v.Reason = Drop, reason
		return v
	}
	if reason := r.question(cleaned, before); reason != "" {
		v.Ruling, v.Reason = Ask, reason
	}
	return v
}

func denied(path, reason string) Verdict {
	return Verdict{Path: path, Ruling: Deny, Reason: reason}
}

// reasonOf is an error without the path, which the verdict has.
func reasonOf(err error) string {
	var refused *RefusedError
	var large *TooLargeError
	switch {
	case errors.As(err, &refused):
		return refused.Reason
	case errors.As(err, &large):
		return fmt.Sprintf("%d bytes is more than the limit of %d", large.Size, large.Max)
	}
	return "the file cannot be read: " + plainError(err)
}

// repeated denies a path that the change has named already, and paths below
// each other. Case is folded, because on some file systems they are one.
func (r *review) repeated(path string) string {
	folded := Fold(path)
	if other, ok := r.files[folded]; ok {
		return also(path, other, "the change names this path twice")
	}
	if other, ok := r.dirs[folded]; ok {
		return fmt.Sprintf("%s of the same change lies below it", display(other))
	}
	for dir := parentOf(folded); dir != ""; dir = parentOf(dir) {
		if other, ok := r.files[dir]; ok {
			return fmt.Sprintf("it lies below %s of the same change", display(other))
		}
	}
	r.files[folded] = path
	for dir := parentOf(folded); dir != ""; dir = parentOf(dir) {
		r.dirs[dir] = path
	}
	return ""
}

// also adds the other spelling to a reason where there is one.
func also(path, other, reason string) string {
	if path == other {
		return reason
	}
	return fmt.Sprintf("%s, also as %s", reason, display(other))
}

// forbidden denies by the path alone.
func (r *review) forbidden(path string) string {
	if reason := protected(path); reason != "" {
		return reason
	}
	switch {
	case !utf8.ValidString(path):
		return "the path is not UTF-8 text"
	case r.immutable.match(path):
		return "this file may not be changed here"
	case r.notSent.match(path):
		return "its contents are never sent to the model, so it may not be changed by one"
	case r.rules.Scope != nil && !r.scope.match(path):
		return "it lies outside of what may be changed here: " + strings.Join(r.rules.Scope, ", ")
	}
	if reason, ok := r.rules.Guard.WithheldName(path); ok {
		return "it is withheld from the model: " + reason
	}
	return ""
}

// look reads what stands at a path. Nothing there is no error.
func (r *review) look(path string) ([]byte, Image, error) {
	dir, err := r.cur.at(parentOf(path))
	if err == nil {
		var content []byte
		var image Image
		content, image, _, err = r.tree.readIn(dir, path)
		if err == nil {
			return content, image, nil
		}
		return nil, Image{}, orNothing(err)
	}
	return nil, Image{}, orNothing(inTheWay(err))
}

// orNothing is nil for a path that does not exist.
func orNothing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// inTheWay words what was found on the way to a file.
func inTheWay(err error) error {
	var refused *RefusedError
	if errors.As(err, &refused) {
		return refuse(refused.Path, "the way there is closed: %s", refused.Reason)
	}
	return err
}

// afterOf is the image that an edit would leave. A file that exists keeps its
// permission bits; a new one is executable if it begins with "#!".
func afterOf(e Edit, before Image) Image {
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

// closed denies by what the file holds, and by the size of what it would
// hold. What a model writes itself may hold a secret: it knows it already.
func (r *review) closed(path string, old []byte, e Edit) string {
	if size := int64(len(e.Content)); !e.Delete && size > r.tree.maxFile {
		return reasonOf(&TooLargeError{Size: size, Max: r.tree.maxFile})
	}
	if reason, ok := r.rules.Guard.Withheld(path, old); ok {
		return "it is withheld from the model: " + reason
	}
	return ""
}

// idle drops an edit that changes nothing.
func idle(old []byte, e Edit, before Image) string {
	switch {
	case e.Delete && !before.Exists():
		return "nothing there to delete"
	case !e.Delete && before.Exists() && bytes.Equal(old, e.Content):
		return "the file has these contents already"
	}
	return ""
}

// question says what a person has to be asked about, if anything.
func (r *review) question(path string, before Image) string {
	var reasons []string
	if before.Exists() && r.rules.Seen != nil {
		switch digest, ok := r.rules.Seen(path); {
		case !ok:
			reasons = append(reasons, "its contents were not shown to the model")
		case digest != before.Digest:
			reasons = append(reasons, "its contents have changed since they were shown to the model")
		}
	}
	if r.approve.match(path) {
		reasons = append(reasons, "changes to it need approval")
	}
	if r.rules.Protected != nil && r.rules.Protected(path) {
		reasons = append(reasons, "it is protected, as part of what checks the work")
	}
	return strings.Join(reasons, "; ")
}
