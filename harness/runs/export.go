package runs

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"hone"
	"hone/history"
	"hone/internal/git"
	"hone/internal/listing"
	"hone/journal"
	"hone/journal/bundle"
	"hone/journal/objects"
	"hone/workspace"
)

// Export is a run that is written to a file, as far as it was recorded when it was
// opened. A process may continue to work on the run.
type Export struct {
	Dir     string // the workspace
	Run     string
	Start   hone.Start
	Past    *history.Past
	Events  int    // how many are written
	Working bool   // a process works on the run
	Base    string // the commit that is checked out; empty if there is none
	// Withheld are the paths of the files whose contents stay here; sorted.
	Withheld []string
	// Objects is the number of objects that are written.
	Objects int
	// Redacted means that the run's texts are left out. OpenExport sets it for a run whose
	// texts were left out before.
	Redacted bool
	// Since leaves out what the run needed by that event, for a place that has it.
	Since int64
	// Without leaves out the files of a commit, which import takes from its checkout; empty leaves
	// out none.
	Without string

	home   *journal.Home
	events []journal.Event
	needs  []history.Needed
}

// OpenExport opens a run of a home. It writes nothing and does not lock the workspace. The caller
// closes the home when the run is written.
func OpenExport(ctx context.Context, home *journal.Home, run string) (*Export, error) {
	if err := checkHome(home.Dir()); err != nil {
		return nil, err
	}
	if !journal.ValidRun(run) {
		return nil, &hone.UsageError{Why: fmt.Sprintf("%q is not the id of a run", run), Next: hone.Next{Verb: hone.Runs}}
	}
	x := &Export{Dir: home.Workspace(), Run: run, home: home}
	working, _ := home.LockedRun()
	x.Working = working == run // before reading, so that it is not called finished while it works
	var err error
	if x.events, err = home.Read(run); err != nil {
		return nil, explainDamaged(err)
	}
	if x.Start, err = Started(run, x.events); err != nil {
		return nil, err
	}
	x.Past, x.Events, x.Redacted = history.Read(x.events), len(x.events), x.Start.Redacted
	if repo, err := listing.Repository(x.Dir, x.Dir); err == nil && repo != nil {
		x.Base, _ = repo.HeadCommit(ctx) // without it, fewer files can be replaced where the run is imported
	}
	return x, nil
}

// Redact leaves out the run's texts; see [history.Redact]. It replaces [Export.Collect].
func (x *Export) Redact() error {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	events := x.events
	var err error
	if !x.Redacted {
		events, err = history.Redact(events, key)
	}
	if err != nil {
		return err
	}
	manifests, err := history.Manifests(x.home, x.events)
	if err != nil {
		return incompleteError(err)
	}
	x.events, x.Events, x.needs, x.Objects, x.Redacted = events, len(events), manifests, len(manifests), true
	return nil
}

func incompleteError(err error) error {
	return &hone.Stop{Kind: hone.KindFailed, Why: err.Error(), Next: hone.Next{First: "restore .hone from a backup"}}
}

// Collect finds the objects that are written. withheld reports whether the contents of a
// file must stay here.
func (x *Export) Collect(ctx context.Context, withheld func(path string, content []byte) bool) error {
	all, err := history.NeededObjects(x.home, x.events)
	if err != nil {
		return incompleteError(err)
	}
	before, err := history.NeededObjects(x.home, x.events[:min(max(0, x.Since), int64(len(x.events)))])
	if err != nil {
		return incompleteError(err)
	}
	there := map[string]bool{}
	for _, n := range before {
		there[n.Name] = true
	}
	var blobs map[string]string
	if x.Without != "" {
		repo, err := git.OpenAt(x.Dir)
		if err == nil {
			blobs, err = repo.Blobs(ctx, x.Without)
		}
		if err != nil {
			return &hone.UsageError{Why: fmt.Sprintf("there is no commit %s: %v", x.Without, err), Next: hone.Next{First: "name the id of a commit"}}
		}
	}
	for _, n := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		if there[n.Name] {
			continue
		}
		stays := false
		if len(n.Paths) > 0 {
			content, err := x.home.Get(n.Name)
			if err != nil {
				return incompleteError(err)
			}
			for _, path := range n.Paths {
				secret := withheld(path, content)
				if secret {
					x.Withheld = append(x.Withheld, path)
				}
				stays = stays || secret || git.IsBlob(blobs[path], content)
			}
		}
		if !stays {
			x.needs = append(x.needs, n)
		}
	}
	slices.Sort(x.Withheld)
	x.Withheld, x.Objects = slices.Compact(x.Withheld), len(x.needs)
	return nil
}

// Write writes the bundle. version is that of this program.
func (x *Export) Write(ctx context.Context, w io.Writer, version string) error {
	h := bundle.Header{Hone: version, Base: x.Base, Without: x.Without, Withheld: x.Withheld}
	var list []bundle.Object
	for _, n := range x.needs {
		list = append(list, bundle.Object{Name: n.Name, Size: n.Size})
	}
	return bundle.Write(w, h, x.events, list, func(name string) (io.ReadCloser, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		o, err := x.home.OpenObject(name)
		if err != nil {
			return nil, incompleteError(err)
		}
		return stored{o}, nil
	})
}

// stored is an object that is read for an export. Its errors say what to do.
type stored struct{ io.ReadCloser }

func (s stored) Read(b []byte) (int, error) {
	n, err := s.ReadCloser.Read(b)
	if err != nil && err != io.EOF {
		err = incompleteError(err)
	}
	return n, err
}

// Import is a run that was imported.
type Import struct {
	Dir    string // the workspace
	Header bundle.Header
	Start  hone.Start
	Past   *history.Past
	// Before is how many events the run had here before. If the bundle does not have more,
	// nothing was changed.
	Before int
}

// DivergedError says that the workspace has the imported run already, with other events.
type DivergedError struct {
	Run   string
	Event int64 // the first event that differs
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("run %s is here already, and differs from event %d on", e.Run, e.Event)
}

// ReadImport imports a run from a bundle to the workspace that a directory belongs to. It
// locks the workspace, and changes nothing outside hone's own directory: see
// [Recorded.Place]. limit is how many bytes the bundle may contain, decompressed.
//
// If the run is here already, the longer of the two journals stays. If neither is the
// beginning of the other, the error is a [*DivergedError].
func ReadImport(ctx context.Context, dir string, in io.Reader, limit int64) (*Import, error) {
	root, err := FindRoot(dir)
	if err != nil {
		return nil, err
	}
	b, err := bundle.NewReader(in, limit)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	i := &Import{Dir: root, Header: b.Header, Past: history.Read(b.Events)}
	if i.Start, err = Started(b.Header.Run, b.Events); err != nil {
		return nil, &bundle.DamageError{Why: "the run cannot be read", Err: err}
	}
	w := &Workspace{Dir: root}
	defer w.Close()
	if err := w.lockHome(ctx, true); err != nil {
		return nil, explainLocked(err)
	}
	if err := w.checkUntracked(ctx); err != nil {
		return nil, err
	}
	if i.Before, err = eventsHere(w.Home, b.Events); err != nil || i.Before > len(b.Events) {
		return i, err
	}
	// If there are no new events, this stores objects again that were lost here.
	pack := w.Home.Pack(b.Header.Run)
	err = storeObjects(ctx, w.Home, pack, b, i.Start.Redacted)
	if err == nil && b.Header.Without != "" {
		err = storeCommitted(w.Home, pack, i.Past, root)
	}
	if err == nil {
		err = pack.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, pack.Discard())
	}
	if err := pack.Close(); err != nil {
		return nil, err
	}
	if i.Before == len(b.Events) {
		return i, nil
	}
	return i, w.Home.Import(b.Events, b.Header.Base)
}

// The error is a *DivergedError if neither the run's events here nor the given ones are the beginning of the others.
func eventsHere(home *journal.Home, events []journal.Event) (int, error) {
	old, err := home.Read(events[0].Run)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, explainDamaged(err)
	}
	for i := range min(len(old), len(events)) {
		if !bytes.Equal(old[i].Line(), events[i].Line()) {
			return 0, &DivergedError{Run: events[0].Run, Event: old[i].Seq}
		}
	}
	return len(old), nil
}

// It stores all of them, and checks that those are here without which the run cannot be read.
func storeObjects(ctx context.Context, home *journal.Home, pack *objects.Pack, b *bundle.Reader, redacted bool) error {
	for {
		_, object, err := b.Next()
		if err == io.EOF {
			break
		}
		if err == nil {
			_, _, err = pack.Add(object)
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
	needs := history.NeededObjects
	if redacted {
		needs = history.Manifests
	}
	if _, err := needs(home, b.Events); err != nil {
		return &bundle.DamageError{Why: "it lacks something that its journal needs", Err: err}
	}
	return nil
}

// The run began with these files, and its bundle therefore leaves them out.
func storeCommitted(home *journal.Home, pack *objects.Pack, past *history.Past, dir string) error {
	opened := past.Facts().Opened
	if opened == nil {
		return nil
	}
	m, err := history.ReadManifest(opened.Manifest, home.Get)
	if err != nil {
		return err
	}
	tree, err := workspace.Open(dir, workspace.Options{})
	if err != nil {
		return err
	}
	defer tree.Close()
	for _, e := range m {
		if e.Kind != workspace.Regular || pack.Has(e.Digest) {
			continue
		}
		if content, image, err := tree.Read(e.Path); err == nil && image.Digest == e.Digest {
			if _, err := pack.Put(content); err != nil {
				return err
			}
		}
	}
	return nil
}
