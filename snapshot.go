package hone

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"hone/history"
	"hone/internal/render"
	"hone/workspace"
	"hone/workspace/treepath"
)

// Manifest returns the current manifest of the tree. It reads the tree only if
// something may have changed it since the last manifest.
func (r *Run) Manifest(ctx context.Context) (workspace.Manifest, error) {
	if r.stale || r.last == nil {
		if err := r.snapshot(ctx); err != nil {
			return nil, err
		}
	}
	return r.last, nil
}

func (r *Run) storeManifest() (object string, err error) {
	r.stored, err = history.KeepManifest(r.Journal, r.stored, r.last)
	return r.stored.Name, err
}

func (r *Run) snapshot(ctx context.Context) error {
	if r.replaying != nil {
		r.last, r.stored, r.stale = r.replaying.tree.Manifest, r.replaying.tree, false
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
	r.last, r.stale = m, false
	return r.recordOutside()
}

// It leaves out the loop's own files, which undo does not restore, and names each file that is too large once.
func (r *Run) takeManifest(ctx context.Context, known workspace.Manifest) (workspace.Manifest, error) {
	var large workspace.Manifest
	history.KeepEdited(r.Past(), r.Tree)
	if r.named == nil {
		r.named = map[string]bool{}
	}
	m, stored, err := history.TakeManifest(ctx, r.Tree, r.Journal, r.last, known, func(e workspace.Entry, contents []byte) bool {
		if contents == nil && !r.isOwn(e.Path) && r.isLarge(e) && !r.named[e.Path] {
			large, r.named[e.Path] = append(large, e), true
		}
		return r.isOwn(e.Path) || r.isLarge(e) || r.hasKey(e.Path, contents)
	})
	if err == nil && len(large) > 0 {
		err = r.Notice(largeNote(large, r.Largest))
	}
	if err != nil || stored < noticeBytes {
		return m, err
	}
	return m, r.Notice(fmt.Sprintf("%s of files were copied into .hone, so that undo can restore them; to copy less, list in .gitignore what undo need not restore "+
		"(without git, run git init first), or lower [undo] max-file in .config/hone.toml", render.Bytes(stored)))
}

func (r *Run) isUnstored(e workspace.Entry) bool {
	return r.isOwn(e.Path) || r.isLarge(e) || r.hasKey(e.Path, nil)
}

func (r *Run) isLarge(e workspace.Entry) bool { return r.Largest > 0 && e.Size > r.Largest }

// noticeBytes is how many bytes must be stored at once for the user to be told
// about the space that they take.
const noticeBytes = 256 << 20

// maxNamed is how many files a notice names.
const maxNamed = 3

func largeNote(large workspace.Manifest, limit int64) string {
	slices.SortStableFunc(large, func(a, b workspace.Entry) int { return cmp.Compare(b.Size, a.Size) })
	var names []string
	for _, e := range large[:min(len(large), maxNamed)] {
		names = append(names, fmt.Sprintf("%s (%s)", treepath.Display(e.Path), render.Bytes(e.Size)))
	}
	if more := len(large) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("the contents of files larger than %s are not stored, so undo cannot restore them if a command changes them: %s; "+
		"[undo] max-file in .config/hone.toml sets the limit (0: none)", render.Bytes(limit), strings.Join(names, ", "))
}

// Such contents are never stored (ruling G6). contents are nil if they were not read. A file that is too large to be read is
// not a text with a key.
func (r *Run) hasKey(path string, contents []byte) bool {
	if r.HasKey == nil {
		return false
	}
	if contents == nil {
		var err error
		if contents, _, err = r.Tree.Read(path); err != nil {
			return false
		}
	}
	return r.HasKey(contents)
}

func (r *Run) readManifest(object string) (workspace.Manifest, error) {
	return history.ReadManifest(object, r.Journal.Home().Get)
}

// isOwn reports whether the loop itself writes a file for the user.
func (r *Run) isOwn(path string) bool { return r.Own != nil && r.Own(path) }

func (r *Run) withoutOwn(m workspace.Manifest) workspace.Manifest {
	if r.Own == nil {
		return m
	}
	var others workspace.Manifest
	for _, e := range m {
		if !r.isOwn(e.Path) {
			others = append(others, e)
		}
	}
	return others
}
