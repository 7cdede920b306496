package hone

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"hone/history"
	"hone/journal"
	"hone/workspace"
)

// Reversal is what it takes to put the files that a run changed back to what
// they were at the end of one of its rounds. Only kept files count: git's own
// and, but for those that hone itself wrote, ignored ones are left alone.
type Reversal struct {
	Round int // 0: before the first
	// Back are the paths that can be put back with nothing lost: what stands
	// there is on record. Sorted.
	Back []string
	// Conflicts are those that cannot, and why; sorted.
	Conflicts []Conflict
	// Theirs were changed while the run was stopped and never by the run; they
	// stay as they are.
	Theirs []string
	// Left appeared during the run, and may have been there before, ignored:
	// they stay.
	Left []string
	// Own are the loop's own files: they stay as well.
	Own []string
	// Done are the paths that Carry has put back; sorted.
	Done []string

	unsaid  []string // are as they are to be, and the record has them otherwise
	journal *journal.Journal
	tree    *workspace.Tree
	states  map[string]*trace
	now     map[string]workspace.Entry
	last    workspace.Stored // the run's newest
}

// Conflict is a path that a reversal does not put back by itself.
type Conflict struct {
	Path, Why string
	// Lost says that even by force it cannot be put back.
	Lost bool
}

// trace is what a run's record knows of one path.
type trace struct {
	want   workspace.Entry // at the end of the round; zero: nothing was there
	states []workspace.Entry
	ours   bool // the run changed it
	theirs bool // somebody else did, after the round
	made   bool // hone itself created it
	cut    bool // it changed while a command ran that was cut off, or since
}

// knows reports whether a state of the path is on record.
func (t *trace) knows(e workspace.Entry) bool { return slices.ContainsFunc(t.states, e.Same) }

// Reverse finds out what it takes; it changes nothing. An unknown round is an
// error. The files that own means stay as they are: the loop wrote them for
// people, to say what was done ([Run.Own]; nil: there are none). The workspace has
// to be locked and settled ([Settle]).
func Reverse(ctx context.Context, j *journal.Journal, tree *workspace.Tree, round int, own func(path string) bool) (*Reversal, error) {
	h := pathHistory{home: j.Home(), tree: workspace.Series{Get: j.Home().Get}, round: round,
		traces: map[string]*trace{}, applied: map[string]workspace.Entry{}, ignored: map[string]workspace.Entry{}}
	for _, e := range j.Events() {
		if err := h.take(e); err != nil {
			return nil, fmt.Errorf("read what the run changed: %w", err)
		}
	}
	if err := h.lookOn(ctx, j, tree); err != nil {
		return nil, fmt.Errorf("look at what a command changed that was cut off: %w", err)
	}
	if !h.reached {
		return nil, fmt.Errorf("the run has no tree of round %d", round)
	}
	v := &Reversal{Round: round, journal: j, tree: tree, states: h.traces, now: map[string]workspace.Entry{}}
	for p := range h.traces {
		if own != nil && own(p) {
			v.Own = append(v.Own, p)
			delete(h.traces, p)
		}
	}
	slices.Sort(v.Own)
	v.last = h.tree.Stored()
	if err := v.look(ctx); err != nil {
		return nil, err
	}
	began := j.Events()[0].Time
	for _, p := range slices.Sorted(maps.Keys(h.traces)) {
		if t := h.traces[p]; t.ours && v.now[p].Same(t.want) && !h.state(p).Same(t.want) {
			v.unsaid = append(v.unsaid, p)
		}
		v.sort(p, h.traces[p], workspace.Match(h.freed, p), func(e workspace.Entry) bool { return e.ChangedBefore(began) })
	}
	v.barred()
	return v, nil
}

// sort puts a path into one of the lists.
func (v *Reversal) sort(p string, t *trace, freed bool, older func(workspace.Entry) bool) {
	now := v.now[p]
	switch {
	case now.Same(t.want):
	case !t.ours:
		v.Theirs = append(v.Theirs, p)
	case t.want.Kind == "" && !t.made && (freed || older(now)):
		v.Left = append(v.Left, p)
	case t.want.Kind == workspace.Regular && !v.journal.Home().Has(t.want.Digest):
		v.Conflicts = append(v.Conflicts, Conflict{p, "what it held was not kept: it is larger than [undo] max-file, holds a provider's key, or could not be read", true})
	case t.want.Kind == workspace.Other:
		v.Conflicts = append(v.Conflicts, Conflict{p, cmp.Or(t.want.Note, "it was no file and no link"), true})
	case t.theirs:
		v.Conflicts = append(v.Conflicts, Conflict{p, "somebody else changed it too, while the run was stopped", false})
	case t.cut && !t.knows(now):
		v.Conflicts = append(v.Conflicts, Conflict{p, "a command that was cut off changed it, or somebody has since", now.Kind == workspace.Other})
	case !t.knows(now):
		v.Conflicts = append(v.Conflicts, Conflict{p, "it was changed since", now.Kind == workspace.Other})
	default:
		v.Back = append(v.Back, p)
	}
}

// look reads how the paths are now, whatever git says of them.
func (v *Reversal) look(ctx context.Context) error {
	m, err := v.tree.At(ctx, slices.Sorted(maps.Keys(v.states)), v.last.Manifest)
	for _, e := range m {
		v.now[e.Path] = e
	}
	return err
}

// Carry puts the files back, all of them or none, and records that; also what an
// undo had put back that died before its record. With force
// the conflicts are put back as well, but for those that are lost; what stands
// there is kept before, and the answer names the files that hold it, by path.
// Without force a conflict is an error, and nothing is changed.
func (v *Reversal) Carry(ctx context.Context, force bool) (kept map[string]string, err error) {
	todo := slices.Clone(v.Back)
	for _, c := range v.Conflicts {
		switch {
		case !force:
			return nil, &Stop{Kind: KindBlocked, Why: fmt.Sprintf("%s: %s", c.Path, c.Why)}
		case !c.Lost:
			todo = append(todo, c.Path)
		}
	}
	if len(todo)+len(v.unsaid) == 0 {
		return nil, nil
	}
	slices.Sort(todo)
	r := &Run{Tree: v.tree, Journal: v.journal}
	if kept, err = v.keep(ctx, r); err != nil {
		return nil, err
	}
	var list []workspace.Restoration
	for _, p := range todo {
		list = append(list, workspace.Restoration{Path: p, Want: v.states[p].want, From: []workspace.Entry{v.now[p]}})
	}
	if _, err := v.tree.Restore(ctx, list, r.contents); err != nil {
		return kept, fmt.Errorf("put files back: %w", err)
	}
	v.Done = todo
	r.last, r.stored = v.last.Manifest, v.last
	object, tree, err := r.manifest(ctx)
	if err != nil {
		return kept, err
	}
	paths := slices.Concat(todo, v.unsaid)
	slices.Sort(paths)
	_, err = r.append(journal.Entry{Type: history.TypeUndo, Payload: history.Undone{Round: v.Round, Paths: paths, Manifest: object, Tree: tree}, Sync: true})
	return kept, err
}

// keep stores what the conflicts hold now, so that even force loses nothing, and
// says where, by path.
func (v *Reversal) keep(ctx context.Context, r *Run) (map[string]string, error) {
	kept := map[string]string{}
	var m workspace.Manifest
	for _, c := range v.Conflicts {
		if e := v.now[c.Path]; e.Kind == workspace.Regular && !c.Lost {
			m = append(m, e)
		}
	}
	m, err := r.keepContents(ctx, m)
	if err != nil {
		return nil, err
	}
	home := r.Journal.Home()
	for _, e := range m {
		v.now[e.Path] = e
		held, err := home.Get(e.Digest)
		if err != nil {
			return nil, err
		}
		name, err := home.Put(held) // not in a pack: a person shall find it
		if err != nil {
			return nil, err
		}
		kept[e.Path] = home.ObjectPath(name)
	}
	return kept, nil
}

// pathHistory folds a journal into what was made of each path.
type pathHistory struct {
	home   *journal.Home
	round  int
	traces map[string]*trace // of all paths that ever changed

	tree    workspace.Series           // at the newest manifest
	applied map[string]workspace.Entry // by hone since that manifest
	ignored map[string]workspace.Entry // files that hone wrote and no manifest has
	cut     bool                       // the record ends within a command
	reached bool                       // the round's end has been passed
	freed   []string                   // globs of what a changed .gitignore may have made appear
}

// take takes in the next event.
func (h *pathHistory) take(e journal.Event) error {
	var seen struct {
		Manifest string   `json:"manifest"`
		Paths    []string `json:"paths"`
		Round    int      `json:"round"`
		history.Applied
	}
	if e.Type == history.TypeStart {
		return nil
	}
	if err := e.Decode(&seen); err != nil {
		return err
	}
	if e.Type == history.TypeApply && e.Phase == journal.Record {
		h.apply(seen.Verdicts)
	}
	h.cut = h.runs(e, seen.Manifest != "")
	if seen.Manifest == "" {
		return nil
	}
	first := h.tree.Name() == ""
	if e.Type != history.TypeOutside {
		seen.Paths = nil
	}
	err := h.pass(seen.Manifest, seen.Paths)
	if first && h.round == 0 || h.round > 0 && e.Type == history.TypeRound && seen.Round == h.round {
		h.mark()
	}
	return err
}

// pass goes on to the next manifest; theirs are paths that somebody else
// changed on the way there.
func (h *pathHistory) pass(object string, theirs []string) error {
	if object == h.tree.Name() {
		return nil
	}
	deltas, err := h.tree.Go(object)
	if err != nil {
		return err
	}
	for _, d := range deltas {
		h.delta(d, slices.Contains(theirs, d.Path))
	}
	for p, e := range h.applied {
		if _, listed := h.tree.Entry(p); !listed {
			h.ignored[p] = e
		}
	}
	clear(h.applied)
	return nil
}

// delta takes in what became of a path between two manifests.
func (h *pathHistory) delta(d workspace.Delta, theirs bool) {
	t := h.trace(d.Path, h.standing(d.Path, d.Before))
	t.states = append(t.states, d.Before, d.After)
	t.ours = t.ours || !theirs
	t.theirs = t.theirs || theirs && h.reached
	if path.Base(d.Path) == ".gitignore" {
		h.reruled(d)
	}
}

// apply takes in edits that hone made.
func (h *pathHistory) apply(vs []workspace.Verdict) {
	for _, v := range vs {
		was := h.state(v.Path)
		t := h.trace(v.Path, was)
		if was.Kind == "" && v.Before.Exists() { // an ignored file, which no manifest has
			was = entryOf(v.Path, v.Before)
			t.want = was
			t.states = append(t.states, was)
		}
		t.ours, t.made = true, t.made || !v.Before.Exists()
		h.applied[v.Path] = after(was, v)
		t.states = append(t.states, h.applied[v.Path])
	}
}

// trace is a path's, made where there is none: was is how it stands.
func (h *pathHistory) trace(p string, was workspace.Entry) *trace {
	t, ok := h.traces[p]
	if !ok {
		t = &trace{want: was, states: []workspace.Entry{was}}
		h.traces[p] = t
	}
	return t
}

// state is how a path stands by the record so far; zero where nothing does.
func (h *pathHistory) state(p string) workspace.Entry {
	e, _ := h.tree.Entry(p)
	return h.standing(p, e)
}

// standing is how a path stands that the newest manifest has so; zero where it
// has none.
func (h *pathHistory) standing(p string, listed workspace.Entry) workspace.Entry {
	if e, ok := h.applied[p]; ok {
		return e
	}
	if listed.Kind != "" {
		return listed
	}
	return h.ignored[p]
}

// mark notes that the end of the round is passed: how the paths stand now is
// how they are to stand.
func (h *pathHistory) mark() {
	h.reached = true
	for p, t := range h.traces {
		t.want, t.theirs = h.state(p), false
	}
}

// entryOf is a file's image as a manifest has it.
func entryOf(p string, i workspace.Image) workspace.Entry {
	if !i.Exists() {
		return workspace.Entry{}
	}
	return workspace.Entry{Path: p, Kind: workspace.Regular, Mode: fs.FileMode(i.Mode).Perm(), Size: i.Size, Digest: i.Digest}
}
