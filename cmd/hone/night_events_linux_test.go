package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// nightEvent is something that happens to a loop while it works.
type nightEvent struct {
	weight int
	strike func(s *sleeper, t *testing.T) (what string)
}

// nightEvents returns what happens in a night. What a loop's work cannot stand is left out.
func nightEvents(w nightWork) []nightEvent {
	events := []nightEvent{
		{12, (*sleeper).outage},
		{6, (*sleeper).rateLimit},
		{6, signalEvent("SIGKILL", syscall.SIGKILL)},
		{4, (*sleeper).killGroup},
		{2, signalEvent("SIGTERM", syscall.SIGTERM)},
		{2, signalEvent("SIGINT", syscall.SIGINT)},
		{2, signalEvent("SIGHUP", syscall.SIGHUP)},
		{5, (*sleeper).closeLid},
		{4, (*sleeper).fillDisk},
		{14, (*sleeper).haveUser},
	}
	if w.project == nil { // a phase makes a commit for each round: with one more round, others
		events = append(events, nightEvent{4, (*sleeper).killDescendant})
	}
	return events
}

// draw draws the next event from a sequence of its own, whatever happened before.
func (s *sleeper) draw() {
	s.drawn++
	s.rng = s.generator(s.drawn)
	mean := s.night.length / 70
	if s.night.short {
		mean = s.night.length / 6
	}
	s.gap = mean/4 + time.Duration(s.rng.ExpFloat64()*float64(mean)*3/4)
}

// generator returns the n-th generator of this loop.
func (s *sleeper) generator(n int) *rand.Rand {
	return rand.New(rand.NewPCG(s.night.seed, uint64(n)<<8|uint64(slices.Index(nightLoops, s.work.loop))))
}

// strike lets the event happen that was drawn.
func (s *sleeper) strike(t *testing.T) {
	events, sum := nightEvents(s.work), 0
	for _, e := range events {
		sum += e.weight
	}
	n := s.rng.IntN(sum)
	for _, e := range events {
		if n -= e.weight; n < 0 {
			if what := e.strike(s, t); what != "" {
				s.say("%s", what)
			}
			return
		}
	}
}

// scaled returns a random duration up to d in a night of 30 minutes, and less in a shorter one.
func (s *sleeper) scaled(d time.Duration) time.Duration {
	whole := s.night.scale(d)
	return whole/8 + time.Duration(s.rng.Int64N(int64(whole)))*7/8
}

func (s *sleeper) outage(t *testing.T) string {
	fault := []string{"refused", "refused", "hangs", "503", "503", "503 with Retry-After", "cuts", "slow"}[s.rng.IntN(8)]
	if s.provider.wellFor() < 0 {
		return ""
	}
	d := s.scaled(75 * time.Second)
	s.provider.suffer(t, fault, d)
	return fmt.Sprintf("outage of %s: %s", s.night.virtual(d), fault)
}

func (s *sleeper) rateLimit(t *testing.T) string {
	if s.provider.wellFor() < 0 {
		return ""
	}
	d := s.scaled(15 * time.Second)
	s.provider.suffer(t, "429", d)
	return fmt.Sprintf("rate limit for %s", s.night.virtual(d))
}

// signalEvent returns an event that signals hone.
func signalEvent(name string, signal syscall.Signal) func(*sleeper, *testing.T) string {
	return func(s *sleeper, t *testing.T) string {
		if s.process.cmd.Process.Signal(signal) != nil {
			return ""
		}
		s.signals++
		s.process.signaled = name
		return name
	}
}

func (s *sleeper) killGroup(*testing.T) string {
	if syscall.Kill(-s.process.cmd.Process.Pid, syscall.SIGKILL) != nil {
		return ""
	}
	s.signals++
	s.process.signaled = "SIGKILL"
	return "SIGKILL to the process group"
}

func (s *sleeper) killDescendant(*testing.T) string {
	all := descendants(s.process.cmd.Process.Pid)
	if len(all) == 0 {
		return ""
	}
	pid := all[s.rng.IntN(len(all))]
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil || syscall.Kill(pid, syscall.SIGKILL) != nil {
		return ""
	}
	s.signals++
	return "SIGKILL to its " + strings.TrimSpace(string(name))
}

// closeLid stops everything for a while. Connections do not always survive.
func (s *sleeper) closeLid(t *testing.T) string {
	pid, d := s.process.cmd.Process.Pid, s.scaled(12*time.Second)
	all := append([]int{pid}, descendants(pid)...)
	for _, pid := range all {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	cut := ""
	if s.rng.IntN(2) == 0 && s.provider.wellFor() > 0 {
		s.provider.close()
		if err := s.provider.open(); err != nil {
			t.Error(err)
		}
		cut = ", its connections are cut"
	}
	time.Sleep(d)
	for _, pid := range append(all, descendants(pid)...) {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	return fmt.Sprintf("lid closed for %s%s", s.night.virtual(d), cut)
}

// fillDisk leaves a few KB of space until hone stops, or for a while.
func (s *sleeper) fillDisk(t *testing.T) string {
	if s.disk == "" {
		return ""
	}
	room, d := s.rng.Int64N(96<<10), s.scaled(20*time.Second)
	var used syscall.Statfs_t
	if err := syscall.Statfs(s.disk, &used); err != nil {
		t.Error(err)
	}
	full := int64(used.Blocks-used.Bfree)*used.Bsize + room
	if err := resizeDisk(s.disk, full); err != nil {
		return "" // something was written meanwhile
	}
	s.process.diskFull = true
	s.say("disk full, but for %d KB", room>>10)
	select {
	case <-s.process.done:
	case <-time.After(d):
	}
	if err := resizeDisk(s.disk, diskSize); err != nil {
		t.Error(err)
	}
	return "disk space freed"
}

// haveUser lets the user act while the model thinks: what changes while a command
// runs may be the command's doing.
func (s *sleeper) haveUser(t *testing.T) (what string) {
	s.provider.visit(func() { what = "user " + s.user.act(t, s.rng) }, 2*time.Second)
	return what
}

// diskSize is the nominal size of a loop's own file system.
const diskSize = 64 << 30

// ownDisk gives the test's temporary directories a small file system of their own. It
// returns where that is; empty if mounting would concern the whole machine.
func ownDisk(t *testing.T) string {
	t.Helper()
	base := filepath.Dir(t.TempDir())
	if os.Getenv("HONE_TEST_MOUNTS") == "" {
		t.Log("the disk does not fill up: that needs .ci/memory, and root")
		return ""
	}
	if err := syscall.Mount("tmpfs", base, "tmpfs", 0, fmt.Sprintf("size=%d", int64(diskSize))); err != nil {
		t.Logf("the disk does not fill up: %v", err)
		return ""
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(base, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return base
}

func resizeDisk(dir string, bytes int64) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, fmt.Sprintf("size=%d", bytes))
}

// descendants returns the children of a process, and theirs.
func descendants(pid int) (all []int) {
	entries, _ := os.ReadDir("/proc")
	children := map[int][]int{}
	for _, e := range entries {
		var child, parent int
		if _, err := fmt.Sscan(e.Name(), &child); err != nil {
			continue
		}
		stat, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		_, rest, ok := strings.Cut(string(stat), ") ")
		if _, err := fmt.Sscanf(rest, "%1s %d", new(string), &parent); err == nil && ok {
			children[parent] = append(children[parent], child)
		}
	}
	for next := []int{pid}; len(next) > 0; next = next[1:] {
		all = append(all, children[next[0]]...)
		next = append(next, children[next[0]]...)
	}
	return all
}
