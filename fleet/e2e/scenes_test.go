//go:build linux

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hone/fleet/flow"
)

// finished checks that a batch has ended with all jobs done, each once, and that its bank
// is exact.
func (f *fleet) finished(s flow.Status, repos []string) {
	f.t.Helper()
	for _, j := range s.Jobs {
		if j.State != flow.Done || j.Outcome.Exit != 0 || j.Outcome.Rounds != 3 {
			f.t.Errorf("%s: %s after %d rounds, status %d: %s %s", j.Name, j.State, j.Outcome.Rounds, j.Outcome.Exit, j.Why, j.Outcome.Why)
		}
	}
	f.exact(s)
	f.run("results", s.ID, "--push")
	for _, repo := range repos {
		name := filepath.Base(repo)
		branches := strings.Fields(f.git(repo, "for-each-ref", "--format=%(refname:short)", "refs/heads/hone"))
		if len(branches) != 1 {
			f.t.Errorf("%s has the branches %v, want one", name, branches)
			continue
		}
		if got := f.git(repo, "show", branches[0]+":part3.txt"); got != name {
			f.t.Errorf("%s: part3.txt of the result is %q", name, got)
		}
		if n := f.git(repo, "diff", "--name-only", "main", branches[0]); len(strings.Fields(n)) != 3 {
			f.t.Errorf("%s: the result changes %q, want three files", name, n)
		}
		f.fetched(s.ID, repo, branches[0])
	}
}

// fetched checks that results --branch fetches the pushed branch into a clone.
func (f *fleet) fetched(id, repo, branch string) {
	f.t.Helper()
	clone := filepath.Join(f.dir, "clones", filepath.Base(repo))
	f.git(repo, "clone", "--quiet", repo, clone)
	f.run("results", id, "--branch", "-C", clone)
	if got, want := f.git(clone, "rev-parse", branch), f.git(repo, "rev-parse", branch); got != want {
		f.t.Errorf("%s: the clone has commit %s, want %s", branch, got, want)
	}
}

// exact checks that the bank of a batch that has ended has what its jobs have spent.
func (f *fleet) exact(s flow.Status) {
	f.t.Helper()
	sum := int64(0)
	for _, j := range s.Jobs {
		sum += j.Outcome.Spent.Tokens
	}
	b := s.Bank
	if b.Spent.Tokens != sum || b.Lent.Tokens != 0 || b.Free.Tokens+b.Spent.Tokens != b.Cap.Tokens || b.Spent.Tokens > b.Cap.Tokens {
		f.t.Errorf("the jobs have spent %d tokens, and the bank has %+v", sum, b)
	}
}

// bought checks the model server's own log: each call was made, and none twice but at
// most lost ones. Without a lost one the bank has exactly what the server has sold.
func (f *fleet) bought(jobs, lost int, banks ...flow.Status) {
	f.t.Helper()
	different, repeated := f.provider.log()
	spent := int64(0)
	for _, s := range banks {
		spent += s.Bank.Spent.Tokens
	}
	sold := int64(different+repeated) * tokens
	f.t.Logf("%d jobs, %d calls, %d of them again, %d kills; sold %d tokens, charged %d", jobs, different, repeated, f.kills, sold, spent)
	if different != jobs*callsOfJob {
		f.t.Errorf("%d different calls, want %d", different, jobs*callsOfJob)
	}
	if repeated > lost {
		f.t.Errorf("%d calls were bought again, and at most %d were lost", repeated, lost)
	}
	if spent < sold || lost == 0 && spent != sold {
		f.t.Errorf("the server has sold %d tokens, and the bank has charged %d", sold, spent)
	}
}

const plenty = "--max-tokens=90000000"

func TestQuiet(t *testing.T) {
	f := newFleet(t, 10*time.Millisecond)
	f.startWorkers(2)
	began := time.Now()
	repos := f.submit("quiet", 10, 0, plenty)
	s := f.awaitEnd("quiet")
	t.Logf("10 jobs with 2 workers in %s", time.Since(began).Round(time.Second))
	f.finished(s, repos)
	f.bought(len(repos), 0, s)
}

// TestKills is the scene of the issue: 50 jobs on 4 workers, of which one is killed every 5 seconds.
func TestKills(t *testing.T) {
	f := newFleet(t, 300*time.Millisecond)
	f.startWorkers(4)
	began := time.Now()
	repos := f.submit("kills", 50, 0, plenty)
	ended := make(chan flow.Status)
	go func() { ended <- f.awaitEnd("kills") }()
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	var s flow.Status
	for running := true; running; {
		select {
		case s = <-ended:
			running = false
		case <-tick.C:
			f.kill(rand.IntN(len(f.workers)))
		}
	}
	t.Logf("50 jobs with 4 workers and %d kills in %s", f.kills, time.Since(began).Round(time.Second))
	f.finished(s, repos)
	f.bought(len(repos), f.kills, s)
}

func TestServerRestarts(t *testing.T) {
	f := newFleet(t, 300*time.Millisecond)
	f.startWorkers(2)
	repos := f.submit("restart", 8, 0, plenty)
	for _, done := range []int{1, 4} {
		f.awaitDone("restart", done)
		_ = f.server.Process.Kill()
		_ = f.server.Wait()
		f.kills++
		time.Sleep(3 * time.Second)
		f.startServer()
	}
	s := f.awaitEnd("restart")
	f.finished(s, repos)
	// Each of the two workers may be interrupted in a call when the server is away for long.
	f.bought(len(repos), 2*f.kills, s)
}

// TestPartition stops a worker with all that it has started until others have its job,
// and lets it go on.
func TestPartition(t *testing.T) {
	f := newFleet(t, 300*time.Millisecond)
	f.startWorkers(2)
	repos := f.submit("partition", 6, 0, plenty)
	f.awaitDone("partition", 1)
	for range 2 {
		f.kills++
		stopped := family(f.workers[0].Process.Pid)
		signal(stopped, syscall.SIGSTOP)
		time.Sleep(8 * time.Second) // twice its heartbeat
		signal(stopped, syscall.SIGCONT)
		time.Sleep(2 * time.Second)
	}
	s := f.awaitEnd("partition")
	f.finished(s, repos)
	f.bought(len(repos), f.kills, s)
}

// family returns a process and all its descendants.
func family(pid int) []int {
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		all = append(all, children(all[i])...)
	}
	return all
}

// children returns the processes that a process has started.
func children(pid int) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list) // a thread may have ended
		for word := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

func signal(pids []int, s syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, s) // it may have ended
	}
}

// TestFullStore fills the disk of the store until legs fail, and empties it.
func TestFullStore(t *testing.T) {
	f := newFleet(t, 100*time.Millisecond)
	if err := os.MkdirAll(f.store, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", f.store, "tmpfs", 0, "size=16m"); err != nil {
		t.Skip("needs the right to mount a small disk:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(f.store, syscall.MNT_DETACH) })
	f.startWorkers(2)
	repos := f.submit("full", 6, 0, plenty)
	f.awaitDone("full", 1)
	filler := filepath.Join(f.store, "filler")
	fill(t, filler)
	time.Sleep(6 * time.Second)
	if s, ok := f.read("full"); ok && s.Ended {
		t.Fatal("the batch has ended although its store was full")
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	s := f.awaitEnd("full")
	f.finished(s, repos)
	// A reply that cannot be stored is lost. Each of the two workers may have one.
	f.bought(len(repos), 12, s)
}

// fill writes a file until the disk is full.
func fill(t *testing.T, name string) {
	t.Helper()
	out, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	for piece := make([]byte, 4096); err == nil; {
		_, err = out.Write(piece)
	}
}

// TestLostObject takes from the store what a run needs, while no worker is there.
func TestLostObject(t *testing.T) {
	f := newFleet(t, 300*time.Millisecond)
	f.startWorkers(1)
	f.submit("lost", 3, 0, plenty, "--parallel=1")
	log := filepath.Join(f.store, "lost", "job-00", "log")
	f.await("a run has parts", time.Minute, func() bool {
		list, _ := os.ReadDir(log)
		return len(list) > 4
	})
	_ = f.workers[0].Process.Kill()
	_ = f.workers[0].Wait()
	if err := os.Remove(filepath.Join(log, "000002")); err != nil {
		t.Fatal(err)
	}
	f.workers[0] = f.startWorker(0)
	s := f.awaitEnd("lost")
	if j := s.Jobs[0]; j.State != flow.Failed || !strings.Contains(j.Why+j.Outcome.Why, "the store has lost") {
		t.Errorf("the job is %s: %s %s", j.State, j.Why, j.Outcome.Why)
	}
	if s.Counts[flow.Done] != 2 {
		t.Errorf("%v, want the two other jobs done", s.Counts)
	}
	f.exact(s)
}

// TestCancel cancels a job that works, and then the rest of the batch.
func TestCancel(t *testing.T) {
	f := newFleet(t, 2*time.Second)
	f.startWorkers(2)
	f.submit("cancel", 6, 0, plenty)
	f.await("the first job works, and says so", time.Minute, func() bool {
		s, ok := f.read("cancel")
		return ok && s.Jobs[0].State == flow.Running && s.Jobs[0].Outcome.Rounds > 0 && s.Jobs[0].Outcome.Spent.Tokens > 0
	})
	f.run("cancel", "cancel", "job-00")
	f.await("the first job ends", time.Minute, func() bool {
		s, ok := f.read("cancel")
		return ok && s.Jobs[0].State.Ended()
	})
	f.awaitDone("cancel", 1)
	f.run("cancel", "cancel")
	s := f.awaitEnd("cancel")
	if s.Jobs[0].State != flow.Cancelled || s.Counts[flow.Cancelled] < 2 || s.Counts[flow.Done]+s.Counts[flow.Cancelled] != 6 {
		t.Errorf("the first job is %s, and the batch has %v", s.Jobs[0].State, s.Counts)
	}
	if said, err := f.command("cancel", "cancel").CombinedOutput(); err == nil || !strings.Contains(string(said), "batch cancel has ended") {
		t.Errorf("%v: %s", err, said)
	}
	f.exact(s)
	different, repeated := f.provider.log()
	if sold := int64(different+repeated) * tokens; repeated > 0 || s.Bank.Spent.Tokens < sold {
		t.Errorf("%d calls were bought again; sold %d tokens, charged %d", repeated, sold, s.Bank.Spent.Tokens)
	}
}

// TestNoWorker shows and cancels batches while no worker runs.
func TestNoWorker(t *testing.T) {
	f := newFleet(t, 10*time.Millisecond)
	f.submit("waits", 3, 0, plenty, "--parallel=1")
	f.submit("ends", 3, 10, plenty)
	if said, err := f.command("show", "waits").CombinedOutput(); err == nil || !strings.Contains(string(said), "batch waits does not answer: no worker is running") {
		t.Errorf("%v: %s", err, said)
	}
	if said := f.run("list"); strings.Count(said, "no worker is running") != 2 {
		t.Errorf("the list is %s", said)
	}
	f.run("cancel", "ends")
	f.startWorkers(1)
	s, none := f.awaitEnd("waits"), f.awaitEnd("ends")
	if s.Counts[flow.Done] != 3 || none.Counts[flow.Cancelled] != 3 {
		t.Errorf("%v and %v", s.Counts, none.Counts)
	}
	f.bought(3, 0, s, none)
}

// TestTwoBatches runs two batches at the same time, of which neither has enough for all
// its jobs. Each spends its own budget only, and no more than that.
func TestTwoBatches(t *testing.T) {
	f := newFleet(t, 10*time.Millisecond)
	f.startWorkers(2)
	ids := []string{"first", "second"}
	for i, id := range ids {
		f.submit(id, 4, 10*i, "--max-tokens=8000", "--parallel=2")
	}
	sold := int64(0)
	for _, id := range ids {
		s := f.awaitEnd(id)
		f.exact(s)
		sold += s.Bank.Spent.Tokens
		if s.Counts[flow.NoBudget] == 0 {
			t.Errorf("%s has jobs %v, want some without budget", id, s.Counts)
		}
	}
	different, repeated := f.provider.log()
	if got := int64(different+repeated) * tokens; got != sold || repeated > 0 {
		t.Errorf("the server has sold %d tokens, %d calls again, and the banks have charged %d", got, repeated, sold)
	}
}
