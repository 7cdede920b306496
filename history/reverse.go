package history

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"hone/journal"
	"hone/workspace"
)

// Reversal says how to restore the files that a run changed to their state at
// the end of one of its rounds. It covers only files in manifests: not git's
// own files, and of those that git ignores only what hone's edits wrote.
type Reversal struct {
	Round int // 0 means before the first
	// Changed reports whether the run ever changed a file.
	Changed bool
	// Restorable are the paths that can be restored without loss, because the
	// journal has their current contents; sorted.
	Restorable []string
	// Conflicts are the paths that cannot be restored without loss; sorted.
	Conflicts []Conflict
	// Outside are the paths that were changed outside the run and never by the
	// run. They are not restored.
	Outside []string
	// Doubtful are the paths that appeared during the run, but have not changed since
	// before it: a changed .gitignore has revealed them. They are not restored.
	Doubtful []string
	// Own are the files that the loop itself writes for users. They are not
	// restored.
	Own []string
	// Restored are the paths that [Reversal.Restore] has restored; sorted.
	Restored []string
	// Unstored reports whether the contents of a file are not stored when the restored
	// tree is recorded; nil leaves out none.
	Unstored func(workspace.Entry) bool

	unrecorded []string // restored already, but not recorded as such
	journal    *journal.Journal
	tree       *workspace.Tree
	traces     map[string]*trace
	now        map[string]workspace.Entry
	last       workspace.Stored // the newest manifest of the run
}

// Conflict is a path that is only restored by force.
type Conflict struct {
	Path string `json:"path"`
	Why  string `json:"why"`
	// Lost means that not even force can restore it.
	Lost bool `json:"lost,omitempty"`
}

// ConflictError is the error of [Reversal.Restore] without force.
type ConflictError struct {
	Conflict
}

func (e *ConflictError) Error() string { return e.Path + ": " + e.Why }

// Reverse finds out how to restore the tree to the end of a round; it changes
// nothing. If the round has no recorded tree, that is an error. own reports
// whether the loop itself writes a file for users, such as a log; nil means
// that there are none. The workspace must be locked and settled ([Settle]).
func Reverse(ctx context.Context, j *journal.Journal, tree *workspace.Tree, round int, own func(path string) bool) (*Reversal, error) {
	t, err := track(j, round)
	if err != nil {
		return nil, err
	}
	KeepEdited(Follow(j), tree)
	if err := t.addInterrupted(ctx, j, tree); err != nil {
		return nil, fmt.Errorf("find what an interrupted command changed: %w", err)
	}
	if !t.reached {
		return nil, fmt.Errorf("the run has no tree of round %d", round)
	}
	v := &Reversal{Round: round, journal: j, tree: tree, traces: t.traces, now: map[string]workspace.Entry{}, last: t.tree.Stored()}
	for _, one := range t.traces {
		v.Changed = v.Changed || one.ours
	}
	for p := range v.traces {
		if own != nil && own(p) {
			v.Own = append(v.Own, p)
			delete(v.traces, p)
		}
	}
	slices.Sort(v.Own)
	m, err := v.tree.ManifestOf(ctx, slices.Sorted(maps.Keys(v.traces)), v.last.Manifest) // also what git ignores
	if err != nil {
		return nil, err
	}
	for _, e := range m {
		v.now[e.Path] = e
	}
	began := j.Events()[0].Time
	for _, p := range slices.Sorted(maps.Keys(v.traces)) {
		if v.traces[p].ours && v.now[p].SameState(v.traces[p].want) && !t.state(p).SameState(v.traces[p].want) {
			v.unrecorded = append(v.unrecorded, p)
		}
		v.classify(p, v.now[p].ChangedBefore(began))
	}
	slices.SortFunc(v.Conflicts, func(a, b Conflict) int { return strings.Compare(a.Path, b.Path) })
	return v, nil
}

// KeepEdited adds the files that a run's edits wrote to its tree, because git may ignore
// them.
func KeepEdited(past *Past, tree *workspace.Tree) {
	for _, v := range past.Facts().Edits {
		tree.Keep(v.Path)
	}
}

// older says that the file may be older than the run.
func (v *Reversal) classify(p string, older bool) {
	t, now := v.traces[p], v.now[p]
	switch {
	case now.SameState(t.want):
	case !t.ours:
		v.Outside = append(v.Outside, p)
	case t.want.Kind == "" && !t.made && older:
		v.Doubtful = append(v.Doubtful, p)
	case t.want.Kind == workspace.Regular && !v.journal.Home().Has(t.want.Digest):
		v.conflict(p, "its contents were not stored: it is larger than [undo] max-file, contains a provider's key, or could not be read", true)
	case t.want.Kind == workspace.Other:
		v.conflict(p, cmp.Or(t.want.Note, "it was neither a file nor a link"), true)
	case t.theirs:
		v.conflict(p, "it was also changed outside the run", false)
	case t.interrupted && !t.had(now):
		v.conflict(p, "an interrupted command changed it, or it was changed since", false)
	case !t.had(now):
		v.conflict(p, "it was changed since", false)
	default:
		v.Restorable = append(v.Restorable, p)
	}
}

// A conflict is lost also if the current contents cannot be copied.
func (v *Reversal) conflict(p, why string, lost bool) {
	switch now := v.now[p]; {
	case now.IsUnread() && !lost:
		why, lost = why+", and is now too large for a copy: move it away", true
	case now.Kind == workspace.Regular && now.Digest == "" && !lost:
		why, lost = fmt.Sprintf("%s, and cannot be copied (%s): move it away", why, now.Note), true
	case now.Kind == workspace.Other:
		lost = true
	}
	v.Conflicts = append(v.Conflicts, Conflict{p, why, lost})
}

// Restore restores the files, all of them or none, and records that. It also
// records files that an earlier undo restored before its process died.
//
// Without force, a conflict is a [*ConflictError] and nothing is changed. With
// force it also restores the conflicts, except those that are Lost. First it
// copies the current contents, and returns the paths of the copies, by path.
func (v *Reversal) Restore(ctx context.Context, force bool) (kept map[string]string, err error) {
	todo := slices.Clone(v.Restorable)
	for _, c := range v.Conflicts {
		switch {
		case !force:
			return nil, &ConflictError{c}
		case !c.Lost:
			todo = append(todo, c.Path)
		}
	}
	if len(todo)+len(v.unrecorded) == 0 {
		return nil, nil
	}
	slices.Sort(todo)
	var overwritten workspace.Manifest // even force loses nothing
	for _, c := range v.Conflicts {
		if e := v.now[c.Path]; e.Kind == workspace.Regular && !c.Lost {
			overwritten = append(overwritten, e)
		}
	}
	if overwritten, err = KeepContents(ctx, v.tree, v.journal, nil, overwritten, nil); err != nil {
		return nil, err
	}
	kept = map[string]string{}
	for _, e := range overwritten {
		v.now[e.Path] = e
		if kept[e.Path], err = v.journal.Home().KeepFile(e.Digest); err != nil {
			return nil, err
		}
	}
	var list []workspace.Delta
	for _, p := range todo {
		list = append(list, workspace.Delta{Path: p, Before: v.now[p], After: v.traces[p].want})
	}
	if _, err := v.tree.Apply(ctx, list, v.journal.Home().OpenObject); err != nil {
		return kept, fmt.Errorf("restore files: %w", err)
	}
	v.Restored = todo
	return kept, v.record(ctx)
}

func (v *Reversal) record(ctx context.Context) error {
	m, err := v.tree.Manifest(ctx, v.last.Manifest)
	if err != nil {
		return fmt.Errorf("read the tree: %w", err)
	}
	if m, err = KeepContents(ctx, v.tree, v.journal, v.last.Manifest, m, v.Unstored); err != nil {
		return err
	}
	stored, err := KeepManifest(v.journal, v.last, m)
	if err := cmp.Or(err, v.tree.Fault()); err != nil {
		return err
	}
	paths := slices.Concat(v.Restored, v.unrecorded)
	slices.Sort(paths)
	_, err = v.journal.Append(journal.Entry{Type: TypeUndo, Sync: true,
		Payload: Undone{Round: v.Round, Paths: paths, Manifest: stored.Name, Tree: m.Digest()}})
	return err
}
