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
	"hone/group"
	"hone/harness/runs"
	"hone/history"
	"hone/internal/render"
	"hone/journal"
	"hone/loop"
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

func (s state) same(o state) bool { return s == o && s.Note == "" }

// The own files of the loop, such as logs, are left out.
func editsOf(o group.Outcome, home *journal.Home, kinds []loop.Kind) (edits []edit, err error) {
	own := func(string) bool { return false }
	if start, err := runs.Started(o.Events); err == nil {
		i := slices.IndexFunc(kinds, func(k loop.Kind) bool { return k.Name == start.Loop })
		if i >= 0 {
			if l, err := runs.Settings(kinds[i], start); err == nil {
				own = l.Own(start.Dir)
			}
		}
	}
	deltas, err := o.Past.AllChanges(home.Get)
	if err != nil {
		return nil, fmt.Errorf("read what the attempt changed: %w", err)
	}
	for _, d := range deltas {
		if own == nil || !own(d.Path) {
			edits = append(edits, edit{d.Path, stateOf(d.Before), stateOf(d.After)})
		}
	}
	return edits, nil
}

// They take those of former back and make edits. Both are edits of the same tree.
func inPlaceOf(former, edits []edit) []edit {
	all := map[string]edit{}
	for _, e := range former {
		all[e.Path] = edit{e.Path, e.After, e.Before}
	}
	for _, e := range edits {
		if back, ok := all[e.Path]; ok {
			e.Before = back.Before
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

// change is what a run applies to its tree. It is recorded whole, so that neither a
// resumed run nor a replay needs the copy.
type change struct {
	Edits    []edit   `json:"edits"`
	Problems []string `json:"problems,omitempty"` // why it cannot be applied
}

// get returns the contents by digest. They are stored in the home of the run that applies the change.
func changeOf(edits []edit, get history.Get, has func(string) bool, home *journal.Home) (change, error) {
	c := change{Edits: edits}
	for _, e := range edits {
		why, err := e.store(get, has, home)
		if err != nil {
			return c, fmt.Errorf("read what the attempt made of %s: %w", e.Path, err)
		}
		if why != "" {
			c.Problems = append(c.Problems, render.Line(e.Path)+": "+why)
		}
	}
	return c, nil
}

// It returns why the edit cannot be made; empty if it can. hone writes and removes regular files, and makes a new one
// executable only if it starts with "#!".
func (e edit) store(get history.Get, has func(digest string) bool, home *journal.Home) (why string, err error) {
	regular := func(s state) bool { return s.Kind == "" || s.Kind == workspace.Regular }
	switch {
	case e.Before.Note != "" || e.After.Note != "":
		return "it could not be read", nil
	case !regular(e.Before) || !regular(e.After):
		return "it is not a regular file", nil
	case e.After.Kind == "":
		return "", nil
	case !has(e.After.Digest):
		return "its contents were not stored: it is larger than [undo] max-file, contains a provider's key, or could not be read", nil
	case e.Before.Kind != "" && (e.Before.Mode^e.After.Mode)&0o111 != 0:
		return "it became executable, or no longer is", nil
	}
	content, err := get(e.After.Digest)
	if err == nil {
		_, err = home.Put(content)
	}
	if err == nil && e.Before.Kind == "" && e.After.Mode&0o111 != 0 && !bytes.HasPrefix(content, []byte("#!")) {
		why = "it is executable, and no script"
	}
	return why, err
}

// All of it is made or nothing. what names the attempt, and again continues or repeats it once the user has restored files.
func (c change) apply(ctx context.Context, r *hone.Run, what string, again hone.Next) error {
	stop := func(why string, paths []string, next hone.Next) error {
		next.Or = again.Or
		return &hone.Stop{Kind: hone.KindBlocked, Why: fmt.Sprintf("%s, but it is not applied: %s\n%s", what, why, strings.Join(paths, "\n")), Next: next}
	}
	if len(c.Problems) > 0 {
		return stop("hone cannot make these changes", c.Problems, hone.Next{})
	}
	_, err := hone.Step(ctx, r, "compare", nil, func(ctx context.Context) (struct{}, error) {
		changed, err := mismatches(ctx, r.Tree, c.Edits, func(e edit, is state) bool { return is.same(e.Before) || is.same(e.After) })
		if err == nil && len(changed) > 0 {
			err = stop("these files are not as the attempts found them", changed, hone.Next{First: "restore these files", Verb: again.Verb, Run: again.Run})
		}
		return struct{}{}, err
	})
	if err != nil {
		return err
	}
	known := map[string]string{} // the digests that the files must have
	var todo workspace.Change
	for _, e := range c.Edits {
		t := workspace.Edit{Path: e.Path, Delete: e.After.Kind == ""}
		if !t.Delete {
			if t.Content, err = r.Journal.Home().Get(e.After.Digest); err != nil {
				return fmt.Errorf("read what the attempt made of %s: %w", e.Path, err)
			}
		}
		if e.Before.Kind != "" {
			known[e.Path] = e.Before.Digest
		}
		todo.Edits = append(todo.Edits, t)
	}
	vs, ok, err := r.ApplyAll(ctx, todo, func(path string) (string, bool) { digest, ok := known[path]; return digest, ok })
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
