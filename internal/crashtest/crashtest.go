// Package crashtest kills a run at every point at which something has just
// become durable or is about to, lets it go on, and compares what comes of it
// with a run that nothing disturbed. Every loop is tested with it.
package crashtest

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/journal"
	"hone/model"
)

// Scene is a workspace and a run on it.
type Scene struct {
	// Furnish fills an empty workspace.
	Furnish func(t testing.TB, dir string)
	// Play starts the run, or goes on with the one there is, as a new process
	// would: it shares nothing with an earlier call but the workspace and the
	// model. The observer is the journal's.
	Play func(t testing.TB, dir string, m model.Model, o journal.Observer) hone.End
	// Replies are the model's, in order.
	Replies []model.Reply
}

// killed is what a killed run panics with.
type killed struct{}

// most is about how many points of a scene are tried, evenly spread, unless
// HONE_TEST_ALL is set: the rest is for those who change how steps are taken.
const most = 40

// Sampled reports whether a point of so many is tried.
func Sampled(point, points int) bool {
	return os.Getenv("HONE_TEST_ALL") != "" || point%max(1, points/most) == 0
}

// Run plays the scene once undisturbed, then once for each point that is tried
// with a kill there, and compares: the same tree, the same end, and the same
// number of model calls, but for exactly one more where the kill came between a
// reply and its record.
func (s Scene) Run(t *testing.T) {
	want := s.undisturbed(t)
	if want.points == 0 {
		t.Fatal("the run appended nothing")
	}
	for point := range want.points {
		if !Sampled(point, want.points) {
			continue
		}
		t.Run(fmt.Sprintf("kill at point %d of %d", point, want.points), func(t *testing.T) {
			got := s.disturbed(t, point)
			if diff := cmp.Diff(want.tree, got.tree); diff != "" {
				t.Errorf("the tree after a kill %s (-undisturbed +resumed):\n%s", got.where, diff)
			}
			if got.end.Result != want.end.Result || got.end.Exit != want.end.Exit {
				t.Errorf("the end after a kill %s: %+v, undisturbed %+v", got.where, got.end, want.end)
			}
			calls := want.calls
			if got.lost {
				calls++
			}
			if got.calls != calls {
				t.Errorf("%d model calls after a kill %s, want %d", got.calls, got.where, calls)
			}
		})
	}
}

// outcome is what is compared.
type outcome struct {
	tree   map[string]string
	end    hone.End
	calls  int
	points int
	where  string
	lost   bool // a reply was in and not on record
}

func (s Scene) undisturbed(t *testing.T) outcome {
	dir := t.TempDir()
	s.Furnish(t, dir)
	m := &script{replies: s.Replies}
	var o outcome
	o.end = s.Play(t, dir, m, journal.Observer{
		Before: func(journal.Entry) { o.points++ },
		After:  func(journal.Event) { o.points++ },
	})
	o.tree, o.calls = Tree(t, dir), m.calls
	return o
}

func (s Scene) disturbed(t *testing.T, point int) outcome {
	dir := t.TempDir()
	s.Furnish(t, dir)
	m := &script{replies: s.Replies}
	var o outcome
	pending := 0 // replies that are in and not recorded
	at := func(what string) {
		if o.points == point {
			o.where, o.lost = what, m.calls > pending
			panic(killed{})
		}
		o.points++
	}
	untilKilled(func() {
		s.Play(t, dir, m, journal.Observer{
			Before: func(n journal.Entry) { at(fmt.Sprintf("before %s %s", n.Type, n.Phase)) },
			After: func(e journal.Event) {
				if e.Type == "reply" {
					pending++
				}
				at(fmt.Sprintf("after %s %s", e.Type, e.Phase))
			},
		})
	})
	o.end = s.Play(t, dir, m, journal.Observer{})
	o.tree, o.calls = Tree(t, dir), m.calls
	return o
}

func untilKilled(f func()) {
	defer func() {
		if p := recover(); p != nil && p != (killed{}) {
			panic(p)
		}
	}()
	f()
}

// Tree reads all files below a directory but hone's own.
func Tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if d.IsDir() && (rel == journal.HomeName || d.Name() == ".git") {
			return fs.SkipDir
		}
		if d.Type().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			tree[filepath.ToSlash(rel)] = string(b)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// script answers with the reply that the run has not got yet.
type script struct {
	replies []model.Reply
	calls   int
}

func (s *script) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	if err := ctx.Err(); err != nil {
		return model.Reply{}, err
	}
	s.calls++
	if req.Seq >= len(s.replies) {
		return model.Reply{}, &model.Error{Kind: model.Invalid, Message: fmt.Sprintf("there is no reply %d", req.Seq+1)}
	}
	return s.replies[req.Seq], nil
}
