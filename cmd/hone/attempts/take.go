package attempts

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"hone"
	"hone/check"
	"hone/group"
	"hone/harness/runs"
	"hone/history"
	"hone/internal/render"
	"hone/journal"
	"hone/loop"
	"hone/workspace"
)

// TakeName is the name of the loop that applies another attempt.
const TakeName = "take"

// TakeKind returns the loop of "hone take". kinds are those of which an attempt may be.
func TakeKind(kinds []loop.Kind) loop.Kind {
	return loop.Kind{Name: TakeName, Modelless: true, New: func() loop.Loop { return NewTaking(kinds) }}
}

// NewTaking returns an invocation of that loop without settings.
func NewTaking(kinds []loop.Kind) *Taking { return &Taking{kinds: kinds} }

// Taking is a run that applies one attempt in place of another.
type Taking struct {
	loop.Settings
	Of     string `json:"of"` // the run of the attempts
	Number int    `json:"attempt"`
	Run    string `json:"attempt_run"`
	Dir    string `json:"attempt_dir"`

	kinds []loop.Kind
	run   *hone.Run
}

// Models returns nil: none is asked.
func (v *Taking) Models() []loop.RoleModel { return nil }

// Found is an attempt that a user named.
type Found struct {
	history.Attempt
	Of string // the run of the attempts
}

// Find returns the attempt whose run a user means by ref: an id, or a unique prefix of
// one or of its last part, as in [journal.Home.FindRun]. The error is a
// [*journal.NotFoundError] if there is none.
func Find(home *journal.Home, ref string) (f Found, err error) {
	missing := &journal.NotFoundError{Ref: ref}
	err = eachRun(home, func(run string, past *history.Past, start hone.Start) error {
		for _, a := range past.Attempts() {
			if start.Loop == Name && ref != "" && (strings.HasPrefix(a.Run, ref) || strings.HasPrefix(journal.ShortRun(a.Run), ref)) {
				f, missing.Matches = Found{a, run}, append(missing.Matches, a.Run)
			}
		}
		return nil
	})
	if err == nil && len(missing.Matches) != 1 {
		return Found{}, missing
	}
	return f, err
}

// Only runs that can be read count, the newest first.
func eachRun(home *journal.Home, do func(run string, past *history.Past, start hone.Start) error) error {
	all, err := home.Runs()
	for _, run := range slices.Backward(all) {
		events, broken := home.Read(run)
		start, none := runs.Started(run, events)
		if err == nil && broken == nil && none == nil {
			err = do(run, history.Read(events), start)
		}
	}
	return err
}

// plan is the record of the step that decides what to do.
type plan struct {
	Own    []workspace.Delta `json:"own"`                // how the attempt changed the tree that all attempts found
	Former int               `json:"replaced,omitempty"` // the attempt that was applied; 0 if none was
	Why    string            `json:"why"`                // how the attempt ended
	change
	history.Report
}

// Build returns the run and its one round.
func (v *Taking) Build(s loop.Session) (loop.Built, error) {
	v.run = s.NewRun(workspace.Rules{Guard: s.Guard()})
	v.run.Trust.Tools = false // the attempt has asked, or was refused
	return loop.Built{Run: v.run, Round: v.round, With: "no model"}, nil
}

func (v *Taking) round(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
	p, err := hone.Step(ctx, r, "plan", nil, func(ctx context.Context) (plan, error) { return v.plan(ctx) })
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("attempt %d (%s)", v.Number, p.Why)
	// Resume would keep the plan, which may expect files of the attempt that was applied.
	if err := p.apply(ctx, r, name, hone.Next{Verb: hone.Take, Run: v.Run, Or: byHand(v.Dir)}); err != nil {
		return nil, err
	}
	if r.Trust.Passed = "applied " + name; p.Former > 0 {
		r.Trust.Passed += fmt.Sprintf(" in place of attempt %d", p.Former)
	}
	return nil, nil
}

func (v *Taking) plan(ctx context.Context) (p plan, err error) {
	copied, err := OpenCopy(v.Number, v.Dir)
	if err != nil {
		return p, err
	}
	defer copied.Close()
	home := v.run.Journal.Home()
	o, err := group.Recorded(v.Dir)
	if err != nil {
		return p, err
	}
	if p.Own, err = changesOf(o, copied, v.kinds); err != nil {
		return p, err
	}
	former, edits, err := Applied(home, v.Of, v.run.Journal.Run())
	if err != nil {
		return p, err
	}
	if former != 0 { // unless the user has restored the files by hand, or wants to apply the same attempt again
		others, err := mismatches(ctx, v.run.Tree, slices.Concat(edits, p.Own), func(e workspace.Delta, is workspace.Entry) bool { return is.SameState(e.Before) })
		if err != nil {
			return p, err
		}
		if len(others) == 0 || former == v.Number {
			former, edits = 0, nil
		}
	}
	p.Former, p.Why = former, "not verified"
	switch n := left(o); {
	case o.End().Kind == hone.KindDone:
		p.Why = o.End().Why
	case n != nil:
		p.Why = render.Count(*n, "finding") + " left, not verified"
	}
	get := func(digest string) ([]byte, error) {
		if home.Has(digest) {
			return home.Get(digest)
		}
		return copied.Get(digest)
	}
	has := func(digest string) bool { return home.Has(digest) || copied.Has(digest) }
	p.change, err = changeOf(inPlaceOf(edits, p.Own), get, has, v.run.Journal)
	p.Said = fmt.Sprintf("attempt %d changes %s", v.Number, render.Count(len(p.Own), "file"))
	return p, err
}

// OpenCopy opens the home of an attempt's run, which is in its copy.
func OpenCopy(number int, dir string) (*journal.Home, error) {
	home, err := group.OpenHome(dir)
	if home == nil && err == nil {
		err = &hone.UsageError{Why: fmt.Sprintf("the copy of attempt %d was removed: %s", number, dir), Next: hone.Next{Verb: hone.NewRun, Remark: "which makes the attempts again"}}
	}
	return home, err
}

// Applied returns which attempt of a run is applied to the tree, according to the runs
// of its workspace except one, and the edits that it made to what the attempts found; 0
// if none is, because none was or because it was undone.
func Applied(home *journal.Home, of, except string) (number int, edits []workspace.Delta, err error) {
	found := errors.New("found")
	err = eachRun(home, func(run string, past *history.Past, start hone.Start) error {
		now := past.Facts()
		made := run == of && now.End.Kind == hone.KindDone || len(now.Edits) > 0 // a take that changed nothing found its attempt applied
		if run == except || run < of || !made || now.RestoredTo != nil && *now.RestoredTo == 0 {
			return nil
		}
		if run == of {
			w, err := recordOf[winner](home, past, "attempts")
			number, edits = w.Number, w.Edits
			return cmp.Or(err, found)
		}
		var taken Taking
		if start.Loop != TakeName || json.Unmarshal(start.Settings, &taken) != nil || taken.Of != of {
			return nil
		}
		p, err := recordOf[plan](home, past, "plan")
		number, edits = taken.Number, p.Own
		return cmp.Or(err, found)
	})
	if err == found {
		err = nil
	}
	return number, edits, err
}

func recordOf[T any](home *journal.Home, past *history.Past, name string) (v T, err error) {
	records := past.Records(name)
	if len(records) == 0 {
		return v, fmt.Errorf("the run has no record of its step %q", name)
	}
	return history.ReadResult[T](records[0].Event, home.Get)
}

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
