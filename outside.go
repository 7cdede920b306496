package hone

import (
	"slices"

	"hone/history"
	"hone/workspace"
	"hone/workspace/treepath"
)

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
	// A change is the user's if no edit explains it, or if the file has other contents now than the edit wrote. A file that a
	// changed .gitignore may have revealed is not new.
	var paths []string
	deltas := want.Diff(r.last)
	revealed := history.Revealed(r.Journal.Home(), deltas)
	for _, d := range deltas {
		_, edited := written[d.Path]
		if !edited && (d.Op() != workspace.Added || !treepath.Match(revealed, d.Path)) {
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
	object, written := r.Past().Expected()
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
