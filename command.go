package hone

import (
	"context"
	"slices"

	"hone/history"
	"hone/workspace"
)

// Once does what must not be repeated automatically, such as a command that a
// model asked for. If a resumed run finds that it was started but not recorded,
// Once calls interrupted instead of do, with the files that changed since the
// start, and records its result. Snapshots before and after separate its
// changes from the user's.
func Once[T any](ctx context.Context, r *Run, name string, input any, do func(context.Context) (T, error), interrupted Interrupted[T]) (T, error) {
	begin := func(before history.Before) (any, error) { return history.CommandBegun{Before: before}, nil }
	v, _, err := once(ctx, r, &stepSpec{event: history.TypeCommand, name: name}, input, begin, do, interrupted)
	return v, err
}

// Interrupted returns the result of something that was started but not
// recorded. changed are the files that changed since; nil if there are none.
type Interrupted[T any] func(ctx context.Context, changed []string) (T, error)

// once runs a command: a step that is not repeated automatically. If it was started but not recorded, interrupted makes its
// result; begin makes the payload of its begin. Then once takes a snapshot, and restores the protected files that the command
// changed. It also returns the record of the snapshot.
func once[T any](ctx context.Context, r *Run, s *stepSpec, input any, begin func(history.Before) (any, error), do func(context.Context) (T, error), interrupted Interrupted[T]) (v T, o history.Snapshot, err error) {
	s.command = true
	open := func(ctx context.Context) (any, error) {
		if _, err := r.Manifest(ctx); err != nil {
			return nil, err
		}
		manifest, _, err := r.storeManifest()
		if err != nil {
			return nil, err
		}
		before := history.Before{Manifest: manifest}
		if s.models {
			before.Ignored = r.ignoredTools()
		}
		return begin(before)
	}
	v, err = step(ctx, r, s, input, open, func(ctx context.Context) (none T, err error) {
		if !s.cutOff {
			return do(ctx)
		}
		var changed []string
		if object := r.begun(s.name).Manifest(); object != "" {
			was, err := r.readManifest(object)
			if err != nil {
				return none, err
			}
			now, err := r.Manifest(ctx)
			if err != nil {
				return none, err
			}
			for _, d := range r.changes(was, now) {
				changed = append(changed, d.Path)
			}
		}
		return interrupted(ctx, changed)
	})
	if err != nil {
		return v, o, err
	}
	var begun history.Before // the tree before what a model asked for
	if s.models {
		begun = r.begun(s.name).Before()
	}
	o, err = Step(ctx, r, history.StepSnapshot, nil, func(ctx context.Context) (history.Snapshot, error) { return r.snapshotAfter(ctx, begun) })
	if err == nil && len(o.Restored) > 0 {
		_, err = Step(ctx, r, history.StepRestore, nil, func(ctx context.Context) (history.Snapshot, error) { return r.undoProtected(ctx, begun.Manifest, o) })
	}
	return v, o, err
}

// The protected files that the command changed are recorded before they are restored, so that the model and the user learn of
// them even if this process is killed. begun is the tree before a model's command, or zero.
func (r *Run) snapshotAfter(ctx context.Context, begun history.Before) (s history.Snapshot, err error) {
	before, err := r.readManifest(begun.Manifest)
	if err != nil {
		return s, err
	}
	if begun.Manifest != "" { // git may ignore what the command has added, also by a rule that it has written
		for _, path := range r.ignoredTools() {
			if !slices.Contains(begun.Ignored, path) {
				r.Tree.Keep(path)
			}
		}
	}
	if err := r.snapshot(ctx); err != nil {
		return s, err
	}
	undo, err := r.undoes(before)
	if err != nil {
		return s, err
	}
	list, err := r.protectedChanges(before, undo)
	if err != nil {
		return s, err
	}
	for _, p := range list {
		why, tool := "with it the run would have changed more than "+plural(r.Limits.Lines, "line", "lines"), r.Tree.ToolReason(p.Path)
		switch {
		case r.keeps(p.Path):
			why = "it is protected, because it is part of the check; the code is to be changed"
		case !r.Trust.mayChange(p.Path):
			why = r.Trust.outsideReason()
		case r.Trust.Tools && tool != "":
			why = tool + "; an edit of it is put to the user, and tools = false in [guard] of .config/hone.toml allows it"
		}
		s.Restored = append(s.Restored, history.Restored{Path: p.Path, Why: why})
	}
	s.Said, s.Outside = putBackText(s.Restored), r.Past().Facts().Untold
	s.Manifest, s.Tree, err = r.storeManifest()
	return s, err
}

// undoProtected restores the files that a snapshot says must be restored. Of those that Trust does not keep, it leaves out what
// is no longer as the snapshot has it: what the user has changed since then stays.
func (r *Run) undoProtected(ctx context.Context, begun string, after history.Snapshot) (history.Snapshot, error) {
	before, err := r.readManifest(begun)
	if err != nil {
		return history.Snapshot{}, err
	}
	left, err := r.readManifest(after.Manifest)
	if err != nil {
		return history.Snapshot{}, err
	}
	if _, err := r.Manifest(ctx); err != nil {
		return history.Snapshot{}, err
	}
	list, err := r.protectedChanges(before, func(path string) bool {
		return slices.ContainsFunc(after.Restored, func(one history.Restored) bool { return one.Path == path })
	})
	if err != nil {
		return history.Snapshot{}, err
	}
	return r.putBack(ctx, slices.DeleteFunc(list, func(one workspace.Delta) bool {
		was, _ := left.Entry(one.Path)
		return !r.keeps(one.Path) && !was.SameState(one.Before) && one.Before.Note == ""
	}))
}

func (r *Run) putBack(ctx context.Context, list []workspace.Delta) (history.Snapshot, error) {
	if _, err := r.restoreProtected(ctx, list); err != nil {
		return history.Snapshot{}, err
	}
	if _, err := r.Manifest(ctx); err != nil { // a resumed process may not have read the tree yet
		return history.Snapshot{}, err
	}
	object, tree, err := r.storeManifest()
	return history.Snapshot{Manifest: object, Tree: tree}, err
}

func (r *Run) begun(name string) history.Event {
	id, _ := r.Taken(name)
	begin, _ := r.Past().Begin(id)
	return begin
}
