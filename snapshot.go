package hone

import (
	"context"
	"fmt"
	"slices"

	"hone/check/judge"
	"hone/history"
	"hone/internal/render"
	"hone/workspace"
	"hone/workspace/treepath"
)

type view struct {
	last      workspace.Manifest // the newest manifest
	age       age                // what may have changed the tree since
	stored    workspace.Stored   // the manifest that was stored last
	found     workspace.Manifest // the tree as the run found it; nil before the first round
	judges    judge.Set          // Trust.Judges, with what follows from that tree
	protected judge.Set          // the files of Trust.Protect, with the targets of links in that tree
	ignored   *[]string          // what Ignored returned after the last command; nil before
}

type age int

const (
	outdated age = iota // the run itself, or the user while the run waited
	aged                // only the user, while a step took its time
	current             // nothing: only records were written
)

// Manifest returns the current manifest of the tree. It reads the tree only if
// something may have changed it since the last manifest.
func (r *Run) Manifest(ctx context.Context) (workspace.Manifest, error) {
	if r.age == outdated {
		if err := r.snapshot(ctx); err != nil {
			return nil, err
		}
	}
	return r.last, nil
}

// manifest returns the object with the manifest of the tree as it is now, and the manifest's digest.
func (r *Run) manifest(ctx context.Context) (object, tree string, err error) {
	if r.age != current {
		if err := r.snapshot(ctx); err != nil {
			return "", "", err
		}
		r.age = current
	}
	return r.storeManifest()
}

func (r *Run) storeManifest() (object, tree string, err error) {
	r.stored, err = history.KeepManifest(r.Journal, r.stored, r.last)
	return r.stored.Name, r.last.Digest(), err
}

// find learns what the run found in the tree, once it is recorded.
func (r *Run) find() (err error) {
	o := r.Past().Facts().Opened
	if o == nil || r.found != nil {
		return nil
	}
	found, err := r.readManifest(o.Manifest)
	if err != nil {
		return err
	}
	r.found = append(workspace.Manifest{}, found...) // an empty tree is found too
	r.judges = r.Trust.Judges.In(r.Tree.Dir(), r.found)
	r.protected = judge.Named(r.Trust.Protect).In(r.Tree.Dir(), r.found)
	return nil
}

func (r *Run) snapshot(ctx context.Context) error {
	if r.replaying != nil {
		r.last, r.stored, r.age = r.replaying.tree.Manifest, r.replaying.tree, aged
		return nil
	}
	known := r.last
	if known == nil && r.Before != nil {
		known = r.Before()
	}
	m, err := r.takeManifest(ctx, known)
	if err != nil {
		return err
	}
	r.last, r.age = m, aged
	return r.recordOutside()
}

// It leaves out the loop's own files, which undo does not restore, and names those that are too large.
func (r *Run) takeManifest(ctx context.Context, known workspace.Manifest) (workspace.Manifest, error) {
	var large []string
	history.KeepEdited(r.Past(), r.Tree)
	m, err := history.TakeManifest(ctx, r.Tree, r.Journal, r.last, known, func(e workspace.Entry, contents []byte) bool {
		if contents == nil && !r.isOwn(e.Path) && r.isLarge(e) {
			large = append(large, treepath.Display(e.Path))
		}
		return r.isUnstored(e, contents)
	})
	if err != nil || len(large) == 0 {
		return m, err
	}
	slices.Sort(large)
	return m, r.Notice(fmt.Sprintf("the contents of files larger than %s are not stored, so undo cannot restore them if a command changes them: %s; "+
		"[undo] max-file in .config/hone.toml sets the limit (0: none)", render.Bytes(r.Largest), listed(slices.Compact(large))))
}

// The contents of a file with a key are never stored (ruling G6). contents are nil if they were not read. A file that is too large
// to be read is not a text with a key.
func (r *Run) isUnstored(e workspace.Entry, contents []byte) bool {
	switch {
	case r.isOwn(e.Path), r.isLarge(e):
		return true
	case r.HasKey == nil:
		return false
	case contents == nil:
		var err error
		if contents, _, err = r.Tree.Read(e.Path); err != nil {
			return false
		}
	}
	return r.HasKey(contents)
}

func (r *Run) isLarge(e workspace.Entry) bool { return r.Largest > 0 && e.Size > r.Largest }

func (r *Run) readManifest(object string) (workspace.Manifest, error) {
	switch object {
	case "":
		return nil, nil
	case r.stored.Name:
		return r.stored.Manifest, nil
	}
	return history.ReadManifest(object, r.Journal.Home().Get)
}

func (r *Run) isOwn(path string) bool { return r.Own != nil && r.Own(path) }

// changes leaves out the loop's own files.
func (r *Run) changes(from, to workspace.Manifest) []workspace.Delta {
	return slices.DeleteFunc(from.Diff(to), func(d workspace.Delta) bool { return r.isOwn(d.Path) })
}

// If the tree changes between two snapshots, and neither an edit nor a command of hone
// explains it, the change is the user's (ruling G16). A change while a command or the check
// runs counts as the command's, because hone cannot tell the two apart, unless walls keep
// commands from the file.

// The run left the newest recorded manifest with the edits since. If a command or a server was running since, only the files
// that these cannot change are recorded.
func (r *Run) recordOutside() error {
	object, written, certain := r.Past().NewestManifest()
	if object == "" || !certain && r.Reach == nil {
		return nil
	}
	want, err := r.readManifest(object)
	if err != nil {
		return err
	}
	// A change is the user's if no edit explains it, or if the file has other contents now than the edit wrote. A file that is
	// older than the run is not new: a changed .gitignore has revealed it.
	var paths []string
	began := r.Past().First().Time
	for _, d := range want.Diff(r.last) {
		_, edited := written[d.Path]
		if !edited && (d.Op() != workspace.Added || !d.After.ChangedBefore(began)) {
			paths = append(paths, d.Path)
		}
	}
	for path, image := range written {
		if !r.Tree.Holds(path, image) {
			paths = append(paths, path)
		}
	}
	paths = slices.DeleteFunc(paths, r.isOwn)
	slices.Sort(paths)
	if !certain {
		paths = slices.DeleteFunc(paths, r.Reach)
	}
	if len(paths) == 0 {
		return nil
	}
	if object, _, err = r.storeManifest(); err != nil {
		return err
	}
	return r.tell(history.TypeOutside, history.Outside{Paths: paths, Manifest: object})
}

// A snapshot must then record the user's change before an edit hides it.
func (r *Run) unexpected(vs []workspace.Verdict) bool {
	object, written, _ := r.Past().NewestManifest()
	if object == "" || r.last == nil {
		return false
	}
	return slices.ContainsFunc(vs, func(v workspace.Verdict) bool {
		image, ok := written[v.Path]
		if !ok {
			e, _ := r.last.Entry(v.Path)
			image.Digest = e.Digest
		}
		return v.Ruling != workspace.Deny && image.Digest != v.Before.Digest
	})
}
