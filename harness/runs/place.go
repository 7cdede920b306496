package runs

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"

	"hone"
	"hone/history"
	"hone/internal/git"
)

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
