// Package crashtest kills a run at every point at which something has just
// become durable or is about to, lets it go on, and compares what comes of it
// with a run that nothing disturbed. Every loop is tested with it.
package crashtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/history"
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
	// Prompts says that no request depends on how often the run was killed: it
	// runs no command of a model's, which could be cut off. Then the requests are
	// compared as well.
	Prompts bool
	// Most is about how many points are tried where HONE_TEST_ALL is not set; 0
	// means 20.
	Most int
}

// killed is what a killed run panics with.
type killed struct{}

// most is about how many points of a scene are tried, evenly spread, unless
// HONE_TEST_ALL is set: the rest is for those who change how steps are taken.
const most = 20

// Sampled reports whether a point of so many is tried.
func Sampled(point, points int) bool { return sampled(point, points, share(most)) }

func sampled(point, points, most int) bool {
	// An odd distance: points before and after an event take turns.
	return all() || point%(points/most|1) == 0
}

func all() bool { return os.Getenv("HONE_TEST_ALL") != "" }

// Run plays the scene once undisturbed, then once for each point that is tried
// with a kill there, and compares: the same tree, the same end, and the same
// number of model calls, but for exactly one more where the kill came between a
// reply and its record. Some of the processes that go on are killed as well.
// Where a change of several files has been announced, it is killed with none,
// some and all of them in place too.
func (s Scene) Run(t *testing.T) {
	want := s.play(t)
	if len(want.points) == 0 {
		t.Fatal("the run appended nothing")
	}
	t.Logf("undisturbed, %d points and %d model calls to %q in round %d: %s", len(want.points), want.calls, want.end.Kind, want.end.Rounds, want.end.Why)
	tries := s.Most
	if tries == 0 {
		tries = most
	}
	tries = share(tries)
	for point, edits := range want.points {
		name := fmt.Sprintf("kill at point %d of %d", point, len(want.points))
		if sampled(point, len(want.points), tries) {
			s.compare(t, name, want, kill{at: point})
		}
		if again := point * 7 % 23; sampled(point, len(want.points), max(1, tries/3)) {
			s.compare(t, fmt.Sprintf("%s and again after %d", name, again), want, kill{at: point}, kill{at: again})
		}
		for made := range edits + 1 {
			if edits > 1 || edits > 0 && all() {
				s.compare(t, fmt.Sprintf("%s with %d of %d files", name, made, edits), want, kill{at: point, torn: true, made: made})
			}
		}
	}
}

// compare plays the scene with kills, and holds what came of it against what
// comes of it without.
func (s Scene) compare(t *testing.T, name string, want outcome, kills ...kill) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		got := s.play(t, kills...)
		for _, one := range []struct {
			what      string
			want, got any
		}{
			{"tree", want.tree, got.tree},
			{"end", []any{want.end.Kind, want.end.Rounds, want.end.Findings}, []any{got.end.Kind, got.end.Rounds, got.end.Findings}},
			{"model calls", want.calls + got.lost, got.calls},
			{"changes that are taken for somebody else's", want.outside, got.outside},
			{"requests", want.requests, got.requests},
		} {
			if diff := cmp.Diff(one.want, one.got); diff != "" {
				t.Errorf("the %s after a kill %s (-undisturbed +resumed):\n%s", one.what, strings.Join(got.where, ", then "), diff)
			}
		}
	})
}

// kill is where a process dies.
type kill struct {
	at   int  // after so many points of its life
	torn bool // in the middle of the change of files that is announced there
	made int  // of which so many are in place, and the others about to be
}

// outcome is what is compared.
type outcome struct {
	tree     map[string]string
	end      hone.End
	calls    int
	lost     int // replies that were in and not on record, which had to be asked for again
	outside  []string
	requests map[int]string // of the model, by how many replies there were; the last of each

	points   []int    // how many edits each point of a life that is not killed announces
	where    []string // it was killed
	recorded int      // replies
}

// play plays the scene with a kill in each of the first lives.
func (s Scene) play(t *testing.T, kills ...kill) outcome {
	dir := t.TempDir()
	s.Furnish(t, dir)
	m := &script{dir: dir, replies: s.Replies, requests: map[int]string{}}
	var o outcome
	over := false
	for _, k := range kills {
		if over = untilKilled(func() { o.end = s.Play(t, dir, m, o.until(k, dir)) }); over {
			break
		}
		o.lost = m.calls - o.recorded
	}
	if !over {
		o.end = s.Play(t, dir, m, journal.Observer{
			Before: func(journal.Entry) { o.points = append(o.points, 0) },
			After:  func(e journal.Event) { o.points = append(o.points, len(announced(e))) },
		})
	}
	o.tree, o.calls, o.outside = Tree(t, dir), m.calls, outside(dir)
	if s.Prompts {
		o.requests = m.requests
	}
	return o
}

// until observes a life that is killed.
func (o *outcome) until(k kill, dir string) journal.Observer {
	left := k.at
	at := func(what string, typ journal.Type, phase journal.Phase) bool {
		if left == 0 {
			o.where = append(o.where, fmt.Sprintf("%s %s %s", what, typ, phase))
		}
		left--
		return left < 0 // for good: nothing of a killed process goes on
	}
	return journal.Observer{
		Before: func(n journal.Entry) {
			if at("before", n.Type, n.Phase) {
				panic(killed{})
			}
		},
		After: func(e journal.Event) {
			if e.Type == history.TypeReply {
				o.recorded++
			}
			if !at("after", e.Type, e.Phase) {
				return
			}
			if k.torn {
				tear(dir, e, k.made)
			}
			panic(killed{})
		},
	}
}

// untilKilled reports whether a process came to its end.
func untilKilled(f func()) (over bool) {
	defer func() {
		if p := recover(); p != nil && p != (killed{}) {
			panic(p)
		}
	}()
	f()
	return true
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
	dir      string // which no two runs have in common
	replies  []model.Reply
	calls    int
	requests map[int]string
}

func (s *script) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	if err := ctx.Err(); err != nil {
		return model.Reply{}, err
	}
	s.calls++
	s.requests[req.Seq] = strings.ReplaceAll(string(must(json.Marshal(req))), s.dir, "WORKSPACE")
	if req.Seq >= len(s.replies) {
		return model.Reply{}, &model.Error{Kind: model.Invalid, Message: fmt.Sprintf("there is no reply %d", req.Seq+1)}
	}
	return s.replies[req.Seq], nil
}
