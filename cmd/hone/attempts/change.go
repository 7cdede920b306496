package attempts

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
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

// The own files of the loop, such as logs, are left out.
func changesOf(o group.Outcome, home *journal.Home, kinds []loop.Kind) ([]workspace.Delta, error) {
	deltas, err := o.Past.AllChanges(home.Get)
	if err != nil {
		return nil, fmt.Errorf("read what the attempt changed: %w", err)
	}
	start, err := runs.Started(o.Run, o.Events)
	i := slices.IndexFunc(kinds, func(k loop.Kind) bool { return err == nil && k.Name == start.Loop })
	if i < 0 {
		return deltas, nil
	}
	l, err := runs.Settings(kinds[i], start)
	if err != nil {
		return deltas, nil
	}
	own := l.Own(start.Dir)
	return slices.DeleteFunc(deltas, func(d workspace.Delta) bool { return own != nil && own(d.Path) }), nil
}

// They take those of former back and make those of next. Both are changes of the same tree. What both make of a file is not made
// again, but the file is compared.
func inPlaceOf(former, next []workspace.Delta) []workspace.Delta {
	all := map[string]workspace.Delta{}
	for _, d := range former {
		all[d.Path] = d.Back()
	}
	for _, d := range next {
		if back, ok := all[d.Path]; ok {
			d.Before = back.Before
		}
		all[d.Path] = d
	}
	return slices.SortedFunc(maps.Values(all), func(a, b workspace.Delta) int { return cmp.Compare(a.Path, b.Path) })
}

// change is what a run applies to its tree. It is recorded whole, so that neither a
// resumed run nor a replay needs the copy.
type change struct {
	Edits    []workspace.Delta `json:"edits"`
	Problems []string          `json:"problems,omitempty"` // why it cannot be applied
}

// get returns the contents by digest. They become objects of the run that applies the change.
func changeOf(edits []workspace.Delta, get history.Get, has func(string) bool, j *journal.Journal) (change, error) {
	c := change{Edits: edits}
	for _, e := range edits {
		why, err := storeEdit(e, get, has, j)
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
func storeEdit(e workspace.Delta, get history.Get, has func(digest string) bool, j *journal.Journal) (why string, err error) {
	regular := func(e workspace.Entry) bool { return e.Kind == "" || e.Kind == workspace.Regular }
	switch {
	case e.Before.SameState(e.After):
		return "", nil
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
		_, err = j.Put(content)
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
		changed, err := mismatches(ctx, r.Tree, c.Edits, func(e workspace.Delta, is workspace.Entry) bool {
			return is.SameState(e.Before) || is.SameState(e.After)
		})
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
		if e.Before.SameState(e.After) {
			continue
		}
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

func mismatches(ctx context.Context, tree *workspace.Tree, edits []workspace.Delta, as func(e workspace.Delta, is workspace.Entry) bool) (others []string, err error) {
	var paths []string
	for _, e := range edits {
		paths = append(paths, e.Path)
	}
	now, err := tree.ManifestOf(ctx, paths, nil)
	if err != nil {
		return nil, fmt.Errorf("read the tree: %w", err)
	}
	for _, e := range edits {
		if entry, _ := now.Entry(e.Path); !as(e, entry) {
			others = append(others, render.Line(e.Path))
		}
	}
	return others, nil
}
