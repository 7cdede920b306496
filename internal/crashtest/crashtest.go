// Package crashtest tests that a loop survives a kill at any point. It kills a
// run before and after every journal event, resumes it, and compares the result
// with that of an undisturbed run.
//
// Describe a run with a [Scene] and call [Scene.Run]. [RunProcess] is a helper for its
// Play. Tests of the engine and of history also use [Process] and the helpers
// next to it.
package crashtest

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
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
	// Setup fills an empty workspace.
	Setup func(t testing.TB, dir string)
	// Play starts the run or resumes the existing one, like a new process: it
	// shares only the workspace and the model with earlier calls. The observer
	// is the journal's.
	Play func(t testing.TB, dir string, m model.Model, o journal.Observer) hone.End
	// Replies are the model's replies, in order.
	Replies []model.Reply
	// CompareRequests says that the requests to the model are compared too. Set
	// it if no request depends on the number of kills, that is, if the run
	// executes no command of a model, which a kill could interrupt.
	CompareRequests bool
	// MaxPoints is approximately how many points are tried unless HONE_TEST_ALL
	// is set; 0 means 10.
	MaxPoints int
}

// killSignal is the value that a killed run panics with.
type killSignal struct{}

// defaultPoints is approximately how many points of a scene are tried, evenly
// spread, unless HONE_TEST_ALL is set. Set it after a change to how steps are
// recorded.
const defaultPoints = 10

// IsSampled reports whether a point is tried, if there are that many points.
func IsSampled(point, points int) bool { return isSampled(point, points, scaledPoints(defaultPoints)) }

func isSampled(point, points, most int) bool {
	// An odd distance alternates between points before and after an event.
	return All() || point%(points/most|1) == 0
}

// All reports whether HONE_TEST_ALL is set: then tests try every case, and not a sample.
func All() bool { return os.Getenv("HONE_TEST_ALL") != "" }

// sampleStart returns how far the first sampled point of a scene is from its first point. It
// differs between scenes. The scenes of one loop record the same events, so each scene kills
// around other events.
func sampleStart(t testing.TB) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(t.Name()))
	return int(h.Sum32() % 1000)
}

// Run plays the scene once undisturbed, then once for each sampled point with a
// kill there. It compares the tree, the end and the number of model calls,
// which may be greater by exactly one if the kill came between a reply and its
// record. Some resumed processes are killed too. At the announcement of a
// change of several files, Run also kills after none, some and all of them are
// in place.
func (s Scene) Run(t *testing.T) {
	want := s.play(t)
	if len(want.points) == 0 {
		t.Fatal("the run appended nothing")
	}
	t.Logf("undisturbed, %d points and %d model calls to %q in round %d: %s", len(want.points), want.calls, want.end.Kind, want.end.Rounds, want.end.Why)
	tries := s.MaxPoints
	if tries == 0 {
		tries = defaultPoints
	}
	tries = scaledPoints(tries)
	start := sampleStart(t)
	for point, edits := range want.points {
		name := fmt.Sprintf("kill at point %d of %d", point, len(want.points))
		if isSampled(point+start, len(want.points), tries) {
			s.compare(t, name, want, kill{point: point})
		}
		if again := point * 7 % 23; isSampled(point+start, len(want.points), max(1, tries/3)) {
			s.compare(t, fmt.Sprintf("%s and again after %d", name, again), want, kill{point: point}, kill{point: again})
		}
		for applied := range edits + 1 {
			if raceEnabled() && !All() && applied != 1 { // see scaledPoints
				continue
			}
			if edits > 1 || edits > 0 && All() {
				s.compare(t, fmt.Sprintf("%s with %d of %d files", name, applied, edits), want, kill{point: point, partial: true, applied: applied})
			}
		}
	}
}

// compare plays the scene with kills, and compares the outcome with that of the
// undisturbed run.
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
			{"changes attributed to other programs", want.outside, got.outside},
			{"requests", want.requests, got.requests},
		} {
			if diff := cmp.Diff(one.want, one.got); diff != "" {
				t.Errorf("the %s after a kill %s (-undisturbed +resumed):\n%s", one.what, strings.Join(got.where, ", then "), diff)
			}
		}
	})
}

// kill is the point at which a process dies.
type kill struct {
	point   int  // number of points before the kill
	partial bool // in the middle of the change announced there
	applied int  // if partial: how many files are in place
}

// outcome is the result of playing a scene.
type outcome struct {
	tree     map[string]string
	end      hone.End
	calls    int
	lost     int // replies received but not recorded, which were requested again
	outside  []string
	requests map[int]string // to the model, by the number of replies so far; the last of each

	points   []int    // number of edits that each point of an undisturbed process announces
	where    []string // where it was killed
	recorded int      // number of recorded replies
}

// play plays the scene with one kill in each of the first processes.
func (s Scene) play(t *testing.T, kills ...kill) outcome {
	dir := t.TempDir()
	s.Setup(t, dir)
	m := &script{dir: dir, replies: s.Replies, requests: map[int]string{}}
	var o outcome
	over := false
	for _, k := range kills {
		if over = runUntilKilled(func() { o.end = s.Play(t, dir, m, o.killObserver(k, dir)) }); over {
			break
		}
		o.lost = m.calls - o.recorded
	}
	if !over {
		o.end = s.Play(t, dir, m, journal.Observer{
			Before: func(journal.Entry) { o.points = append(o.points, 0) },
			After:  func(e journal.Event) { o.points = append(o.points, len(announcedEdits(e))) },
		})
	}
	o.tree, o.calls, o.outside = Tree(t, dir), m.calls, outsidePaths(dir)
	if s.CompareRequests {
		o.requests = m.requests
	}
	return o
}

// killObserver returns an observer that kills the process.
func (o *outcome) killObserver(k kill, dir string) journal.Observer {
	left := k.point
	at := func(what string, typ journal.Type, phase journal.Phase) bool {
		if left == 0 {
			o.where = append(o.where, fmt.Sprintf("%s %s %s", what, typ, phase))
		}
		left--
		return left < 0 // stays true: nothing of a killed process may continue
	}
	return journal.Observer{
		Before: func(n journal.Entry) {
			if at("before", n.Type, n.Phase) {
				panic(killSignal{})
			}
		},
		After: func(e journal.Event) {
			if e.Type == history.TypeReply {
				o.recorded++
			}
			if !at("after", e.Type, e.Phase) {
				return
			}
			if k.partial {
				applyPartly(dir, e, k.applied)
			}
			panic(killSignal{})
		},
	}
}

// runUntilKilled reports whether f returned without being killed.
func runUntilKilled(f func()) (finished bool) {
	defer func() {
		if p := recover(); p != nil && p != (killSignal{}) {
			panic(p)
		}
	}()
	f()
	return true
}

// Tree returns the contents of all files below a directory, except hone's own.
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

// script is a model that sends the first reply that the run has not recorded
// yet.
type script struct {
	dir      string // differs between runs
	replies  []model.Reply
	calls    int
	requests map[int]string
}

func (s *script) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	if err := ctx.Err(); err != nil {
		return model.Reply{}, err
	}
	s.calls++
	s.requests[req.Seq] = strings.ReplaceAll(string(Must(json.Marshal(req))), s.dir, "WORKSPACE")
	if req.Seq >= len(s.replies) {
		return model.Reply{}, &model.Error{Kind: model.Invalid, Message: fmt.Sprintf("there is no reply %d", req.Seq+1)}
	}
	return s.replies[req.Seq], nil
}
