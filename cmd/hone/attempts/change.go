package attempts

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"hone"
	"hone/history"
	"hone/internal/render"
	"hone/journal"
	"hone/workspace"
)

// edit is one file of a change that a run in a copy made, as it is recorded. Its contents
// are an object of the run that applies it.
type edit struct {
	Path   string `json:"path"`
	Before state  `json:"before"` // that the copy had; the tree must have the same
	After  state  `json:"after"`
}

// state is what a path is; zero if nothing is there.
type state struct {
	Kind   workspace.Kind `json:"kind,omitempty"`
	Mode   fs.FileMode    `json:"mode,omitempty"`
	Digest string         `json:"digest,omitempty"`
	Target string         `json:"target,omitempty"` // of a link
	Note   string         `json:"note,omitempty"`   // why it could not be read
}

func stateOf(e workspace.Entry) state { return state{e.Kind, e.Mode, e.Digest, e.Target, e.Note} }

// same reports whether both are known and equal.
func (s state) same(o state) bool { return s == o && s.Note == "" }

// editsOf returns what a run changed in its copy, as far as its journal tells. It leaves
// out the loop's own files, such as logs.
func editsOf(past *history.Past, home *journal.Home, own func(string) bool) ([]edit, error) {
	deltas, err := past.AllChanges(home.Get)
	if err != nil {
		return nil, fmt.Errorf("read what the attempt changed: %w", err)
	}
	var edits []edit
	for _, d := range deltas {
		if own == nil || !own(d.Path) {
			edits = append(edits, edit{d.Path, stateOf(d.Before), stateOf(d.After)})
		}
	}
	return edits, nil
}

// reversed returns the edits that take edits back.
func reversed(edits []edit) (back []edit) {
	for _, e := range edits {
		back = append(back, edit{e.Path, e.After, e.Before})
	}
	return back
}

// followedBy returns the edits that have the same effect as edits and then those of next.
func followedBy(edits, next []edit) []edit {
	all := map[string]edit{}
	for _, e := range edits {
		all[e.Path] = e
	}
	for _, e := range next {
		if first, ok := all[e.Path]; ok {
			e.Before = first.Before
		}
		all[e.Path] = e
	}
	var joined []edit
	for _, e := range all {
		if !e.Before.same(e.After) {
			joined = append(joined, e)
		}
	}
	slices.SortFunc(joined, func(a, b edit) int { return cmp.Compare(a.Path, b.Path) })
	return joined
}

// problem returns why an edit cannot be made with the contents that a copy's journal
// stored; empty if it can. hone's edits write and remove regular files.
func (e edit) problem(has func(digest string) bool) string {
	regular := func(s state) bool { return s.Kind == "" || s.Kind == workspace.Regular }
	switch {
	case e.Before.Note != "" || e.After.Note != "":
		return "it could not be read"
	case !regular(e.Before) || !regular(e.After):
		return "it is not a regular file"
	case e.After.Kind != "" && !has(e.After.Digest):
		return "its contents were not stored: it is larger than [undo] max-file, contains a provider's key, or could not be read"
	case e.Before.Kind != "" && e.After.Kind != "" && (e.Before.Mode^e.After.Mode)&0o111 != 0:
		return "it became executable, or no longer is"
	}
	return ""
}

// change is what a run applies to its tree. It is recorded whole, so that neither a
// resumed run nor a replay needs the copy.
type change struct {
	Edits    []edit   `json:"edits"`
	Problems []string `json:"problems,omitempty"` // why it cannot be applied
}

// changeOf returns the change of edits. It stores the contents, of which get returns
// each by its digest, in the home of the run that applies it.
func changeOf(edits []edit, get history.Get, has func(string) bool, home *journal.Home) (c change, err error) {
	c.Edits = edits
	for _, e := range edits {
		why := e.problem(has)
		if why == "" && e.After.Kind != "" {
			if why, err = e.store(get, home); err != nil {
				return c, fmt.Errorf("read what the attempt made of %s: %w", e.Path, err)
			}
		}
		if why != "" {
			c.Problems = append(c.Problems, render.Line(e.Path)+": "+why)
		}
	}
	return c, nil
}

// store stores the contents that an edit writes, and returns why it cannot be made with
// them; empty if it can. hone makes a new file executable only if it starts with "#!".
func (e edit) store(get history.Get, home *journal.Home) (why string, err error) {
	content, err := get(e.After.Digest)
	if err == nil {
		_, err = home.Put(content)
	}
	if err == nil && e.Before.Kind == "" && e.After.Mode&0o111 != 0 && !bytes.HasPrefix(content, []byte("#!")) {
		why = "it is executable, and no script"
	}
	return why, err
}

// apply makes a change, all of it or nothing, if the tree has what the copy had. what
// names the change. If it cannot be applied, the error is a [*hone.Stop], and again.Or is
// what the user can do; again is what applies it once the user has restored files.
func (c change) apply(ctx context.Context, r *hone.Run, what string, again hone.Next) error {
	stop := func(why string, paths []string, next hone.Next) error {
		next.Or = again.Or
		return &hone.Stop{Kind: hone.KindBlocked, Why: fmt.Sprintf("%s, but it is not applied: %s\n%s", what, why, strings.Join(paths, "\n")), Next: next}
	}
	if len(c.Problems) > 0 {
		return stop("hone cannot make these changes", c.Problems, hone.Next{})
	}
	if len(c.Edits) == 0 {
		return nil
	}
	_, err := hone.Step(ctx, r, "compare", nil, func(ctx context.Context) (struct{}, error) {
		changed, err := c.changed(ctx, r.Tree)
		if err == nil && len(changed) > 0 {
			err = stop("these files are not as the attempts found them", changed, hone.Next{First: "restore these files", Verb: again.Verb, Run: again.Run})
		}
		return struct{}{}, err
	})
	if err != nil {
		return err
	}
	todo, err := c.edits(r.Journal.Home())
	if err != nil {
		return err
	}
	vs, ok, err := r.ApplyAll(ctx, todo, c.knownDigest)
	if err != nil || ok {
		return err
	}
	var refused []string
	for _, v := range vs {
		if v.Ruling != workspace.Allow && v.Ruling != workspace.Drop {
			refused = append(refused, v.Path+": "+v.Reason)
		}
	}
	return stop("hone does not make these changes", refused, hone.Next{})
}

// changed returns the files that the tree has in another state than the edits expect.
func (c change) changed(ctx context.Context, tree *workspace.Tree) ([]string, error) {
	return mismatches(ctx, tree, c.Edits, func(e edit, is state) bool { return is.same(e.Before) || is.same(e.After) })
}

// before and after report whether a file is as an edit expects it, and as it leaves it.
func before(e edit, is state) bool { return is.same(e.Before) }
func after(e edit, is state) bool  { return is.same(e.After) }

// mismatches returns the files of edits whose state in the tree is not as a function wants it.
func mismatches(ctx context.Context, tree *workspace.Tree, edits []edit, as func(e edit, is state) bool) (others []string, err error) {
	var paths []string
	for _, e := range edits {
		paths = append(paths, e.Path)
	}
	now, err := tree.ManifestOf(ctx, paths, nil)
	if err != nil {
		return nil, fmt.Errorf("read the tree: %w", err)
	}
	for _, e := range edits {
		if entry, _ := now.Entry(e.Path); !as(e, stateOf(entry)) {
			others = append(others, render.Line(e.Path))
		}
	}
	return others, nil
}

// knownDigest returns the digest of a file's contents before the edits; ok is false if no
// edit changes the file, or if that is unknown.
func (c change) knownDigest(path string) (digest string, ok bool) {
	i := slices.IndexFunc(c.Edits, func(e edit) bool { return e.Path == path })
	if i < 0 || c.Edits[i].Before.Kind == "" {
		return "", false
	}
	return c.Edits[i].Before.Digest, true
}

// edits returns the edits with their contents.
func (c change) edits(home *journal.Home) (ch workspace.Change, err error) {
	for _, e := range c.Edits {
		todo := workspace.Edit{Path: e.Path, Delete: e.After.Kind == ""}
		if !todo.Delete {
			if todo.Content, err = home.Get(e.After.Digest); err != nil {
				return ch, fmt.Errorf("read what the attempt made of %s: %w", e.Path, err)
			}
		}
		ch.Edits = append(ch.Edits, todo)
	}
	return ch, nil
}
