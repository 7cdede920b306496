package runs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"hone"
	"hone/history"
	"hone/internal/config"
	"hone/internal/git"
	"hone/journal"
	"hone/loop"
	"hone/workspace"
)

// Recorded is a recorded run with its workspace, which is locked and settled
// and includes the ignored files that the run includes.
type Recorded struct {
	*Workspace
	Journal *journal.Journal
	Past    *history.Past
	Start   hone.Start
	// MaxFile is the size in bytes above which contents are not stored; 0 means no limit.
	MaxFile int64
}

// Find opens a run of the workspace that a directory belongs to. ref is an id,
// a unique prefix of one, or "last". The error is a [*hone.UsageError] if the run
// is neither the user's nor accepted ([Inspection.Accept]). The caller closes the
// run.
func Find(ctx context.Context, dir, ref string) (*Recorded, error) {
	root, err := FindRoot(dir)
	if err != nil {
		return nil, err
	}
	r := &Recorded{}
	if r.Workspace, err = Enter(ctx, root, false); err != nil {
		return nil, err
	}
	if err = r.checkUntracked(ctx); err == nil {
		err = r.open(ref)
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Recorded) open(ref string) error {
	run, err := r.Home.FindRun(ref)
	if err != nil {
		return &hone.UsageError{Why: err.Error(), Err: err, Next: hone.Next{Verb: hone.Runs}}
	}
	if r.Journal, err = r.Home.Open(run); err != nil {
		return explainDamaged(r.explainForeign(err))
	}
	r.Past = history.Follow(r.Journal)
	if r.Start, err = Started(run, r.Journal.Events()); err != nil {
		return err
	}
	if err := CheckWhole(run, r.Start); err != nil {
		return err
	}
	var shared loop.Settings
	_ = json.Unmarshal(r.Start.Settings, &shared) // unreadable settings include no files
	r.MaxFile = config.MaxFile.In(shared.Values)
	if err := r.Use(shared.Values); err != nil {
		return err
	}
	ShutOutputs(r.Tree, slices.Concat(r.Past.Facts().Outputs, OutputsIn(r.Dir, []*os.File{os.Stdout, os.Stderr})))
	return nil
}

// Close closes the journal and unlocks the workspace.
func (r *Recorded) Close() {
	if r.Journal != nil {
		r.Journal.Close()
	}
	r.Workspace.Close()
}

// Started returns the start of a run, which is its first event. The error is a [*hone.UsageError].
func Started(run string, events []journal.Event) (hone.Start, error) {
	why := "it has no recorded start, because its process died too early; start a new run"
	if len(events) > 0 {
		switch p := history.Decode(events[0]).Payload.(type) {
		case hone.Start:
			return p, nil
		case history.Unreadable:
			why = p.Err.Error()
		}
	}
	return hone.Start{}, &hone.UsageError{Why: "run " + run + ": " + why, Next: hone.Next{Verb: hone.Runs}}
}

// CheckWhole returns an error if a run was redacted, so that it can only be shown.
func CheckWhole(run string, start hone.Start) error {
	if !start.Redacted {
		return nil
	}
	return &hone.UsageError{Why: "run " + run + " was exported without its texts, so it can only be shown", Next: hone.Next{Verb: hone.Show, Run: run}}
}

// Settings decodes the settings of a recorded run for its loop.
func Settings(k loop.Kind, start hone.Start) (loop.Loop, error) {
	l := k.New()
	if err := json.Unmarshal(start.Settings, l); err != nil {
		return nil, fmt.Errorf("read the settings of the run: %w", err)
	}
	return l, nil
}

// Placement finds out how to bring the tree into the state in which an imported run left
// its own. It is nil if the run was not imported, or if [Recorded.Place] has done that, or
// something was recorded here since: then the tree is the run's. own reports which files
// the loop itself writes for users; nil means none. It changes nothing.
//
// A file may be replaced if the run recorded its state, or if it is as in the commit that
// was checked out where the run was exported.
func (r *Recorded) Placement(ctx context.Context, own func(path string) bool) (*history.Placement, error) {
	i := r.Home.Imported(r.Journal.Run())
	if i.Head == "" || i.Placed || i.Head != r.Journal.Head() {
		return nil, nil
	}
	return history.Place(ctx, r.Journal, r.Tree, own, func(paths []string) (committed map[string]bool, err error) {
		if r.Repo == nil || i.Base == "" {
			return nil, nil
		}
		blobs, err := r.Repo.Blobs(ctx, i.Base)
		if err != nil {
			return nil, ctx.Err() // the commit does not exist here, so no file matches it
		}
		committed = map[string]bool{}
		for _, path := range paths {
			if id, ok := blobs[path]; ok {
				content, _, err := r.Tree.Read(path)
				committed[path] = err == nil && git.IsBlob(id, content)
			}
		}
		return committed, nil
	})
}

// Place carries out a placement; see [history.Placement.Restore].
func (r *Recorded) Place(ctx context.Context, p *history.Placement) error {
	if err := p.Restore(ctx); err != nil {
		return err
	}
	return r.Home.SetPlaced(r.Journal.Run())
}

// Relocated returns the start of a run with settings for another directory than the one
// in which it was recorded: paths below the old directory become paths below the new one.
func Relocated(start hone.Start, dir string) hone.Start {
	var settings any
	d := json.NewDecoder(bytes.NewReader(start.Settings))
	d.UseNumber()
	if start.Dir == dir || start.Dir == "" || d.Decode(&settings) != nil {
		return start
	}
	moved, err := json.Marshal(relocatedValue(settings, start.Dir, dir))
	if err == nil {
		start.Settings = moved
	}
	return start
}

func relocatedValue(v any, from, to string) any {
	switch v := v.(type) {
	case string:
		if rest, ok := strings.CutPrefix(v, from); ok && (rest == "" || rest[0] == '/' || rest[0] == filepath.Separator) {
			return to + rest
		}
	case []any:
		for i := range v {
			v[i] = relocatedValue(v[i], from, to)
		}
	case map[string]any:
		for key := range v {
			v[key] = relocatedValue(v[key], from, to)
		}
	}
	return v
}

// ShutOutputs closes the files of a tree into which hone writes its output: what is written
// there is neither a change of the run nor anybody else's (ruling G24).
func ShutOutputs(tree *workspace.Tree, outputs []string) {
	tree.Shut("hone writes its own output there", outputs...)
}

// OutputsIn returns which of some open files are regular files below a directory: their
// paths, with slashes.
func OutputsIn(root string, files []*os.File) (paths []string) {
	for _, f := range files {
		info, err := f.Stat()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if rel, ok := pathIn(root, f.Name(), info); ok && !slices.Contains(paths, rel) {
			paths = append(paths, rel)
		}
	}
	return paths
}

// name leads to the file on systems where /dev/stdout is a link to it; elsewhere the directory is searched.
func pathIn(root, name string, info fs.FileInfo) (rel string, ok bool) {
	real, err := filepath.EvalSymlinks(name)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if found, statErr := os.Stat(real); err == nil && statErr == nil && !strings.HasPrefix(real, "/dev/") && os.SameFile(found, info) {
		rel, err := filepath.Rel(root, real)
		return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
	}
	// Directories are searched after those above them: an output is rarely deep.
	const most = 200_000
	seen := 0
	for dirs := []string{"."}; len(dirs) > 0 && seen < most; dirs = dirs[1:] {
		entries, _ := os.ReadDir(filepath.Join(root, filepath.FromSlash(dirs[0])))
		for _, e := range entries {
			at := path.Join(dirs[0], e.Name())
			seen++
			if e.IsDir() && e.Name() != ".git" && e.Name() != journal.HomeName {
				dirs = append(dirs, at)
			} else if now, err := e.Info(); err == nil && e.Type().IsRegular() && os.SameFile(now, info) {
				return at, true
			}
		}
	}
	return "", false
}
