package harness

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hone"
	"hone/harness/internal/state"
	"hone/sandbox"
	"hone/sandbox/prove"
	"hone/sandbox/wall"
	"hone/workspace"
	"hone/workspace/treepath"
)

// forModel returns the walls for the commands that a model asks for. They differ from those of
// the check, which is the user's, only in that files of the user's own tools are read-only
// (ruling G26), and what these commands may not change.
func (w *Walls) forModel(ctx context.Context) (*wall.Walls, error) {
	w.modelMu.Lock()
	defer w.modelMu.Unlock()
	if w.models != nil {
		return w.models, nil
	}
	var readOnly []string
	if w.guardTools {
		readOnly = w.secretFiles.Tools
	}
	if len(w.only) > 0 && w.tree != nil {
		more, err := outside(ctx, w.tree, w.only, w.Grade().Wall)
		if err != nil {
			return nil, err
		}
		readOnly = slices.Concat(readOnly, more)
	}
	// The check may have put a link in the place of such a file: what it leads to is not shown.
	readOnly = slices.DeleteFunc(slices.Clone(readOnly), func(path string) bool {
		real, err := filepath.EvalSymlinks(path)
		return err == nil && real != path && !sandbox.Within(w.Root, real)
	})
	if len(readOnly) == 0 {
		w.models = w.built
		return w.models, nil
	}
	p := w.policy
	p.Wall = w.Grade().Wall
	p.Read = slices.Concat(p.Read, readOnly)
	p.Doors = slices.Clone(p.Doors)
	for i := range p.Doors {
		p.Doors[i].Addr = w.built.DoorAddr(i) // where the commands were told that it is
	}
	built, err := wall.Build(ctx, p)
	if err != nil {
		return nil, err
	}
	built.SetKeeper(w.keeper)
	w.models = built
	return built, nil
}

// maxReadOnly limits how many paths are made read-only. The engine puts back what a command
// changes in others.
const maxReadOnly = 1000

// outside returns the largest directories of the tree's files, and the files, in which nothing
// matches a glob: no command of a model needs to write them. Where walls cannot hide a part of
// a directory, it returns none.
func outside(ctx context.Context, tree *workspace.Tree, only []string, kind sandbox.Wall) ([]string, error) {
	if kind == sandbox.Landlock || kind == sandbox.NoWall {
		return nil, nil
	}
	files, err := tree.Files(ctx)
	if err != nil {
		return nil, err
	}
	may := treepath.CompileValid(only, false)
	holds := func(dir string) bool { // something that matches, now or later
		return slices.ContainsFunc(only, func(glob string) bool {
			base, below := path.Clean(glob), true
			if i := strings.IndexAny(base, `*?[{\`); i >= 0 {
				rest := base[strings.LastIndexByte(base[:i], '/')+1:]
				below = strings.ContainsAny(rest, "/{") || strings.Contains(rest, "**") || strings.HasSuffix(glob, "/")
				base = path.Dir(base[:i] + "x")
			}
			return base == dir || strings.HasPrefix(base, dir+"/") || below && (base == "." || strings.HasPrefix(dir, base+"/"))
		})
	}
	var list []string
	for _, f := range files { // sorted, so that those of a directory are together
		at := f.Path
		if may.Match(at) || f.Kind != workspace.Regular {
			continue
		}
		for dir := treepath.Parent(at); dir != "" && !holds(dir); dir = treepath.Parent(dir) {
			at = dir
		}
		at = filepath.Join(tree.Dir(), filepath.FromSlash(at))
		switch n := len(list); {
		case n > 0 && list[n-1] == at:
		case n == maxReadOnly:
			return list, nil
		default:
			list = append(list, at)
		}
	}
	return list, nil
}

// proofRecord is the proof of one kind of walls, as stored in the state folder.
type proofRecord struct {
	Conditions string    `json:"conditions"` // see [prove.Conditions]
	When       time.Time `json:"when"`
}

// proveOnce returns when walls of a grade were proved under the present conditions: earlier, or
// now, by attempts to cross them. An attempt that succeeds is an error. The time is
// zero for walls that prevent nothing. tree is that of [prove.Wall].
func proveOnce(ctx context.Context, g sandbox.Grade, tree string) (time.Time, error) {
	if g.Wall == sandbox.NoWall {
		return time.Time{}, nil
	}
	conditions, unknown := prove.Conditions(g.Wall, tree)
	file := string(g.Wall) + ".json"
	var p proofRecord
	if unknown == nil && state.Load(&p, "proofs", file) == nil && p.Conditions == conditions {
		return p.When, nil
	}
	report, err := prove.Short(ctx, g.Wall, tree)
	if err != nil {
		return time.Time{}, err
	}
	if err := report.Err(); err != nil {
		return time.Time{}, &hone.Stop{Kind: hone.KindFailed, Why: err.Error(),
			Next: hone.Next{Verb: hone.Doctor, Or: &hone.Next{Flags: []hone.Flag{{Name: "sandbox", Value: "bwrap or landlock"}}}}}
	}
	p = proofRecord{Conditions: conditions, When: time.Now().UTC()}
	if unknown == nil {
		_ = state.Save(p, "proofs", file) // otherwise the next start proves them again
	}
	return p.When, nil
}
