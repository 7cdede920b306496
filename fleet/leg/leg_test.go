package leg

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"hone/fleet/job"
	"hone/fleet/store"
)

// A run goes from start to end as an activity, and its result is a commit.
func TestLeg(t *testing.T) {
	f := newFleet(t, map[string]string{".env": "TOKEN=Zx7Qp2Lm9Rt4Vb8N\n"})
	w := f.worker()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(w.Leg)
	value, err := env.ExecuteActivity(w.Leg, f.leg(3))
	if err != nil {
		t.Fatal(err)
	}
	var o job.Outcome
	if err := value.Get(&o); err != nil {
		t.Fatal(err)
	}
	f.clean(w)
	if o.Exit != 0 || o.Kind != "done" || o.Rounds != 3 || o.Spent.Tokens != 660 || o.Run == "" {
		t.Errorf("%+v", o)
	}
	if got := f.result(o, "a.txt"); got != "value: 3" {
		t.Errorf("the result has %q", got)
	}
	size, entries := 0, 0
	for name, content := range f.stored() {
		if bytes.Contains(content, []byte(provider)) || bytes.Contains(content, []byte("Zx7Qp2Lm9Rt4Vb8N")) || bytes.Contains(content, []byte("not touched")) {
			t.Errorf("%s has a secret, or a file of the commit", name)
		}
		size, entries = size+len(f.object(name)), entries+1
	}
	t.Logf("%d objects for 6 replies, %d bytes", entries, size)
	if all, again := f.models.requests(); all != 6 || again != 0 {
		t.Errorf("%d requests, %d again", all, again)
	}
}

// A worker is killed with its hone in round 3. Another one continues, and buys only the
// call again that was under way.
func TestKilled(t *testing.T) {
	f := newFleet(t, nil)
	f.models.holds(5)
	place := t.TempDir()
	text, err := json.Marshal(order{Hone: hone, Dir: place, Store: f.where, Key: key, Env: f.env(), Leg: f.leg(4)})
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	worker := exec.Command(self)
	worker.Env = append(f.env(), "LEG_TEST_ORDER="+string(text))
	var said bytes.Buffer
	worker.Stdout, worker.Stderr = &said, &said
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- worker.Wait() }()
	select {
	case <-f.models.held:
		_ = worker.Process.Kill()
		<-ended
	case err := <-ended:
		t.Fatalf("the worker ended: %v\n%s", err, &said)
	}
	f.git(f.repo, "commit", "-q", "--allow-empty", "-m", "two") // the job keeps its commit
	o := f.done(f.worker(), f.leg(4), 0)
	if all, again := f.models.requests(); all != 9 || again != 1 {
		t.Errorf("%d requests, %d again", all, again)
	}
	if o.Rounds != 4 || o.Spent.Tokens < 9*110 || f.result(o, "a.txt") != "value: 4" {
		t.Errorf("%+v", o) // the lost call is charged in full
	}
	next := f.worker()
	if next.Dir = place; f.done(next, f.leg(4), 0).Run != o.Run { // what the killed worker left is gone
		t.Error("another run")
	}
}

// Legs end for budget, and the next one continues with more, elsewhere.
func TestBudget(t *testing.T) {
	f := newFleet(t, nil)
	l := f.leg(2)
	f.models.input = 5_000
	l.Limit.Tokens = 28_000 // enough for one call: what it may use is reserved
	o := f.done(f.worker(), l, 3)
	if o.Kind != "budget" || o.Spent.Tokens == 0 || o.Spent.Tokens > l.Limit.Tokens {
		t.Errorf("%+v", o)
	}
	run := o.Run
	l.Limit.Tokens = 100_000
	if o = f.done(f.worker(), l, 0); o.Run != run || f.result(o, "a.txt") != "value: 2" {
		t.Errorf("%+v", o)
	}
	if all, again := f.models.requests(); all != 4 || again != 0 {
		t.Errorf("%d requests, %d again", all, again)
	}
	if again := f.done(f.worker(), l, 0); again.Run != run || again.Kind != "done" || again.Spent != o.Spent {
		t.Errorf("a leg of a run that is over: %+v", again)
	}
}

// An interrupt is an outcome, and what was recorded is stored.
func TestCancel(t *testing.T) {
	f := newFleet(t, nil)
	f.models.holds(3)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-f.models.held; cancel() }()
	w := f.worker()
	o, err := w.Leg(ctx, f.leg(2))
	f.clean(w)
	if err != nil || o.Exit != 130 || o.Kind != "interrupted" || o.Spent.Tokens < 220 || f.result(o, "a.txt") != "value: 1" {
		t.Errorf("%+v, %v", o, err)
	}
	f.done(f.worker(), f.leg(2), 0)
	if all, again := f.models.requests(); all != 5 || again != 1 {
		t.Errorf("%d requests, %d again", all, again)
	}
}

// A leg whose end could not be reported has the same outcome in the next try. An earlier
// try that comes late stops.
func TestTries(t *testing.T) {
	f := newFleet(t, nil)
	try := func(attempt int32) (job.Outcome, error) {
		g := &leg{Worker: f.worker(), Leg: f.leg(1), term: Term{Scheduled: 7, Attempt: attempt}}
		return g.work(t.Context())
	}
	first, err := try(2)
	if err != nil || first.Exit != 0 {
		t.Fatalf("%+v, %v", first, err)
	}
	second, err := try(3)
	if err != nil || second.Run != first.Run || second.Result != first.Result || second.Spent != first.Spent {
		t.Errorf("%+v, %v", second, err)
	}
	if _, err := try(2); !errors.Is(err, errSuperseded) {
		t.Errorf("an earlier try: %v", err)
	}
	if all, _ := f.models.requests(); all != 2 {
		t.Errorf("%d requests", all)
	}
}

// A leg can be cancelled before it has a run.
func TestCancelEarly(t *testing.T) {
	f := newFleet(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	w := f.worker()
	w.Store = &fault{Store: w.Store, create: func(int) error { cancel(); return nil }}
	o, err := w.Leg(ctx, f.leg(1))
	f.clean(w)
	if err != nil || o.Exit != 130 || o.Kind != "interrupted" || o.Run != "" {
		t.Errorf("%+v, %v", o, err)
	}
	last := f.done(f.worker(), f.leg(1), 0)
	if o, err = f.worker().Leg(ctx, f.leg(1)); err != nil || o.Exit != 130 || o.Spent != last.Spent || o.Run != last.Run {
		t.Errorf("cancelled before it began: %+v, %v", o, err)
	}
}

// The directory of a worker may be relative.
func TestRelativeDir(t *testing.T) {
	f := newFleet(t, nil)
	w := f.worker()
	t.Chdir(t.TempDir())
	w.Dir = "work"
	f.done(w, f.leg(1), 0)
}

// Several workers of a machine may have one directory.
func TestPlaces(t *testing.T) {
	f := newFleet(t, nil)
	one, two := f.worker(), f.worker()
	two.Dir = one.Dir
	left := filepath.Join(two.Dir, "worker-2", legPrefix+"1")
	if err := os.MkdirAll(left, 0o755); err != nil {
		t.Fatal(err)
	}
	a, err := one.takePlace()
	b, err2 := two.takePlace()
	if err != nil || err2 != nil || filepath.Base(a) != "worker-1" || filepath.Base(b) != "worker-2" {
		t.Errorf("%s, %v; %s, %v", a, err, b, err2)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Error("what a killed worker left is there")
	}
}

// A try that cannot read the store does not know what an earlier one has spent.
func TestUnknown(t *testing.T) {
	f := newFleet(t, nil)
	f.done(f.worker(), f.leg(1), 0)
	for attempt, known := range map[int32]bool{1: true, 2: false} {
		w := f.worker()
		w.Key = []byte("another key that is long enough, too")
		_, err := (&leg{Worker: w, Leg: f.leg(1), term: Term{Scheduled: 7, Attempt: attempt}}).try(t.Context())
		if failed, ok := errors.AsType[*temporal.ApplicationError](err); !ok || failed.HasDetails() != known {
			t.Errorf("try %d: %v", attempt, err)
		}
	}
}

// fault is a store that fails.
type fault struct {
	store.Store
	create func(n int) error // is called before the n-th Create
	n      int
}

func (s *fault) Create(ctx context.Context, name string, content io.ReadSeeker) error {
	s.n++
	if err := s.create(s.n); err != nil {
		return err
	}
	return s.Store.Create(ctx, name, content)
}

// No call is made that cannot be stored. When the store has room again, nothing is bought
// twice.
func TestFullStore(t *testing.T) {
	f := newFleet(t, nil)
	w := f.worker()
	full := errors.New("no space left on device")
	w.Store = &fault{Store: w.Store, create: func(n int) error {
		if n > 4 {
			return full
		}
		return nil
	}}
	_, err := w.Leg(t.Context(), f.leg(2))
	f.clean(w)
	var failed *temporal.ApplicationError
	if !errors.As(err, &failed) || failed.NonRetryable() || !strings.Contains(err.Error(), "no space left on device") {
		t.Fatal(err)
	}
	var o job.Outcome
	if err := failed.Details(&o); err != nil || o.Run == "" || o.Spent.Tokens == 0 {
		t.Errorf("details %+v, %v", o, err)
	}
	before, _ := f.models.requests()
	f.done(f.worker(), f.leg(2), 0)
	if all, again := f.models.requests(); before >= 4 || again > 1 || all > 5 {
		t.Errorf("%d requests before, %d after, %d again", before, all, again)
	}
}

// A worker that was cut off makes no further call when another one has taken over.
func TestPartition(t *testing.T) {
	f := newFleet(t, nil)
	cut, back := make(chan struct{}), make(chan struct{})
	old := f.worker()
	old.Store = &fault{Store: old.Store, create: func(n int) error {
		if n == 5 { // in the middle of the run
			close(cut)
			<-back
		}
		return nil
	}}
	type end struct {
		job.Outcome
		error
	}
	ended := make(chan end, 1)
	go func() {
		o, err := old.Leg(t.Context(), f.leg(3))
		ended <- end{o, err}
	}()
	<-cut
	before, _ := f.models.requests()
	o := f.done(f.worker(), f.leg(3), 0)
	after, again := f.models.requests()
	close(back)
	if e := <-ended; !errors.Is(e.error, errSuperseded) && (e.error == nil || !strings.Contains(e.error.Error(), errSuperseded.Error())) {
		t.Errorf("the old worker: %+v", e)
	}
	f.clean(old)
	if last, _ := f.models.requests(); last != after || again > 1 || before == 0 || before == after {
		t.Errorf("%d requests before, %d after, %d in the end, %d again", before, after, last, again)
	}
	if f.result(o, "a.txt") != "value: 3" {
		t.Errorf("%+v", o)
	}
}

// What the store has lost, or somebody has changed in it, is refused.
func TestDamagedStore(t *testing.T) {
	f := newFleet(t, nil)
	l := f.leg(9)
	l.Job.Args[1] = "1"
	f.done(f.worker(), l, 1)
	refused := func(what, want string, w *Worker, l job.Leg) {
		t.Helper()
		_, err := w.Leg(t.Context(), l)
		f.clean(w)
		var failed *temporal.ApplicationError
		retried := strings.Contains(want, "key") // by a worker that may have the right one
		if !errors.As(err, &failed) || failed.NonRetryable() == retried || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	before, _ := f.models.requests()
	other := f.worker()
	other.Key = []byte("another key that is long enough, too")
	refused("another key", "give all workers the same key", other, l)

	s := f.worker().Store
	entries, err := s.List(t.Context(), "b/count/log/")
	if err != nil || len(entries) < 5 {
		t.Fatal(entries, err)
	}
	first, last := entries[1], entries[len(entries)-1]
	moved := l
	moved.Job.Name = "moved"
	f.replaces("b/moved/log/000001", f.object(last))
	refused("an entry of another job", "belongs to job count", f.worker(), moved)
	sealed := f.object(last)
	f.replaces(last, bytes.Replace(sealed, []byte(`"events":`), []byte(`"events":1`), 1))
	refused("a changed entry", "was not signed with this worker's key", f.worker(), l)
	f.replaces(last, sealed)
	part := f.object(first)
	f.replaces(first, part[:len(part)-1])
	refused("a changed part", "is not what the worker wrote", f.worker(), l)
	f.remove(first)
	refused("a lost entry", "submit the job again", f.worker(), l)
	if after, _ := f.models.requests(); after != before {
		t.Error("a model was asked")
	}
}

// The operator decides what a repository may run.
func TestTrust(t *testing.T) {
	f := newFleet(t, map[string]string{".config/hone.toml": "[check]\ncommand = \"cat a.txt; grep -q 'value: 1' a.txt\"\n"})
	l := f.leg(1)
	l.Job.Args = nil
	w := f.worker()
	if o := f.done(w, l, 2); o.Run != "" || o.Kind != "usage" || !strings.Contains(o.Why, "is not trusted") || !strings.Contains(o.Why, "start workers with --trust") {
		t.Errorf("%+v", o)
	}
	if all, _ := f.models.requests(); all != 0 {
		t.Error("a model was asked")
	}
	w.Trust = "1"
	f.done(w, l, 0)
}

// A question of the run is answered in the next leg.
func TestQuestion(t *testing.T) {
	f := newFleet(t, map[string]string{".config/hone.toml": "[check]\nprotect = [\"a.txt\"]\n"})
	w := f.worker()
	o := f.done(w, f.leg(1), 4)
	if len(o.Questions) != 1 || o.Questions[0].Path != "a.txt" || o.Kind != "blocked" {
		t.Fatalf("%+v", o)
	}
	l := f.leg(1)
	l.Answers = []job.Answer{{Question: o.Questions[0].Digest, Approved: true}}
	if o = f.done(f.worker(), l, 0); f.result(o, "a.txt") != "value: 1" {
		t.Errorf("%+v", o)
	}
}

// What no try can change is not tried again.
func TestRefused(t *testing.T) {
	f := newFleet(t, nil)
	for what, change := range map[string]func(*Worker, *job.Leg){
		"no branch, tag or commit": func(_ *Worker, l *job.Leg) { l.Job.Ref = "gone" },
		"does not exist":           func(_ *Worker, l *job.Leg) { l.Job.Repo = "/nowhere/at/all" },
		"has no hone":              func(w *Worker, _ *job.Leg) { w.Hone = "/nowhere/hone" },
	} {
		w, l := f.worker(), f.leg(1)
		change(w, &l)
		_, err := w.Leg(t.Context(), l)
		var failed *temporal.ApplicationError
		if !errors.As(err, &failed) || !failed.NonRetryable() || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
		f.clean(w)
	}
	for _, args := range [][]string{{"--base-url=http://elsewhere"}, {"--sandbox", "none"}, {"--trust"}, {"-C", "/"}} {
		l := f.leg(1)
		l.Job.Args = append(l.Job.Args, args...)
		if o, err := f.worker().Leg(t.Context(), l); err != nil || o.Exit != 2 || !strings.Contains(o.Why, "cannot ") {
			t.Errorf("%q: %+v, %v", args, o, err)
		}
	}
	if all, _ := f.models.requests(); all != 0 {
		t.Error("a model was asked")
	}
}

// A ref may be a branch, a tag, or a commit that no branch has any more.
func TestRefs(t *testing.T) {
	f := newFleet(t, nil)
	f.git(f.repo, "config", "uploadpack.allowAnySHA1InWant", "true")
	f.git(f.repo, "tag", "-a", "-m", "x", "v1")
	f.git(f.repo, "branch", "topic/one")
	f.git(f.repo, "commit", "-q", "--amend", "--allow-empty", "-m", "lost")
	lost := f.git(f.repo, "rev-parse", "HEAD")
	f.git(f.repo, "reset", "-q", "--hard", "v1")
	w := f.worker()
	for ref, want := range map[string]string{"": f.commit, "v1": f.commit, "topic/one": f.commit, f.commit: f.commit, lost: lost} {
		got, err := w.checkOut(t.Context(), f.repo, ref, "", filepath.Join(t.TempDir(), "clone"))
		if err != nil || got != want {
			t.Errorf("%q: %s, %v", ref, got, err)
		}
	}
}

func TestKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	for _, c := range []struct {
		text, want string
		mode       os.FileMode
	}{{"", "no such file", 0}, {"short\n", "fewer than 32 bytes", 0o600}, {key + "\n", "other users can read", 0o644}, {key + "\n", "", 0o600}} {
		if c.mode != 0 {
			_ = os.Remove(file)
			if err := os.WriteFile(file, []byte(c.text), c.mode); err != nil {
				t.Fatal(err)
			}
		}
		got, err := ReadKey(file)
		if c.want == "" && (err != nil || string(got) != key) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q, mode %o: %q, %v", c.text, c.mode, got, err)
		}
	}
}
