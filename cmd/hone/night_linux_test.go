package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hone/history"
	"hone/journal"
)

// TestNight lets every loop work through a night of outages, rate limits, kills,
// closed lids, full disks and a user who edits and commits meanwhile. What comes
// out is compared with a quiet run.
//
// HONE_NIGHT is how long the eight hours take; without it a few events must do.
// NIGHT_SEED draws the same events again. They need not find hone at the same point.
func TestNight(t *testing.T) {
	skipRace(t)
	needsPhase(t)
	t.Parallel()
	n := newNight(t)
	n.print("seed %d, eight hours in %s", n.seed, n.length)
	t.Run("loops", func(t *testing.T) {
		for _, loop := range nightLoops {
			t.Run(loop, func(t *testing.T) {
				t.Parallel()
				n.sleep(t, loop)
			})
		}
	})
	n.print("%s", n.table())
}

// night is what the loops of a night have in common.
type night struct {
	length time.Duration
	short  bool
	seed   uint64

	mu      sync.Mutex
	out     io.Writer
	began   time.Time
	reports []nightReport
}

// shortNight is how long a night is if HONE_NIGHT does not say.
const shortNight = 8 * time.Second

func newNight(t *testing.T) *night {
	t.Helper()
	n := &night{length: shortNight, short: true, seed: uint64(time.Now().UnixNano()), out: t.Output(), began: time.Now()}
	var err, seedErr error
	if s := os.Getenv("HONE_NIGHT"); s != "" {
		n.short, n.out = false, os.Stdout
		n.length, err = time.ParseDuration(s)
	}
	if s := os.Getenv("NIGHT_SEED"); s != "" {
		n.seed, seedErr = strconv.ParseUint(s, 10, 64)
	}
	if err := errors.Join(err, seedErr); err != nil {
		t.Fatal(err)
	}
	return n
}

// steps returns how much work a loop has.
func (n *night) steps(loop string) int {
	switch {
	case n.short && loop == "phase":
		return 2
	case n.short:
		return 4
	case loop == "phase":
		return 20
	}
	return 40
}

// scale returns how long something takes that takes d in a night of 30 minutes.
func (n *night) scale(d time.Duration) time.Duration {
	if n.short {
		return d / 40
	}
	return time.Duration(float64(d) * min(1, float64(n.length)/float64(30*time.Minute)*4))
}

// virtual returns a duration as it is in a night of eight hours.
func (n *night) virtual(d time.Duration) time.Duration {
	return time.Duration(float64(d) * float64(8*time.Hour) / float64(n.length)).Round(time.Second)
}

func (n *night) print(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	fmt.Fprintf(n.out, format+"\n", args...)
}

// clock returns the time of the night: it begins at ten.
func (n *night) clock() string {
	return time.Date(2000, 1, 1, 22, 0, 0, 0, time.UTC).Add(n.virtual(time.Since(n.began))).Format("15:04:05")
}

// sleeper is one loop, whose user sleeps most of the time.
type sleeper struct {
	night    *night
	work     nightWork
	provider *nightProvider
	user     *nightUser
	disk     string // its own file system; empty if it has none
	process  *nightProcess
	nightReport

	// The next event:
	drawn int           // its number
	rng   *rand.Rand    // draws all of it
	gap   time.Duration // the time before it
}

// nightProcess is hone at work.
type nightProcess struct {
	cmd      *exec.Cmd
	out      bytes.Buffer
	done     chan struct{}
	signaled string // the last signal
	diskFull bool
}

// sleep runs a loop quietly, then through the night, and compares.
func (n *night) sleep(t *testing.T, loop string) {
	disk := ownDisk(t)
	quiet := newNightWork(t, loop, n.steps(loop))
	p := newNightProvider(t, quiet.answer)
	if out, err := quiet.command(p.address, quiet.args...).CombinedOutput(); err != nil {
		t.Fatalf("the quiet run: %v\n%s", err, out)
	}
	w := newNightWork(t, loop, n.steps(loop))
	s := &sleeper{night: n, work: w, user: newNightUser(w), disk: disk, nightReport: nightReport{loop: loop, stops: map[string]int{}}}
	s.provider = newNightProvider(t, w.answer)
	s.provider.spread(len(p.received()), time.Now().Add(n.length))
	first := w.files(t)
	began := time.Now()
	s.sleepThrough(t)
	s.took = time.Since(began)
	s.compare(t, quiet, p, first)
	n.mu.Lock()
	n.reports = append(n.reports, s.nightReport)
	n.mu.Unlock()
}

func (s *sleeper) say(format string, args ...any) {
	s.night.print("%s  %-9s  %s", s.night.clock(), s.work.loop, fmt.Sprintf(format, args...))
}

// mostProcesses is how many processes a run may need.
const mostProcesses = 300

// sleepThrough runs hone, and resumes it until it is done.
func (s *sleeper) sleepThrough(t *testing.T) {
	until := time.Now().Add(s.night.length)
	s.draw()
	for range mostProcesses {
		s.start(t)
		for running := true; running; {
			select {
			case <-s.process.done:
				running = false
			case <-time.After(s.gap):
				if time.Now().Before(until) {
					s.strike(t)
				}
				s.draw()
			}
		}
		if s.stopped(t) {
			return
		}
		s.checkProcesses(t)
		s.actBetween(t)
	}
	s.violate(t, "stop", "it was not done after %d processes:\n%s", mostProcesses, s.process.out.String())
}

// start starts or resumes the run.
func (s *sleeper) start(t *testing.T) {
	t.Helper()
	args := s.work.args
	if hasStarted(t, s.work.dir) {
		args = []string{"resume", "last"}
		s.resumes++
	}
	p := &nightProcess{cmd: s.work.command(s.provider.address, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.WaitDelay = time.Second // if a process that is left holds its output
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { defer close(p.done); _ = p.cmd.Wait() }()
	s.process = p
}

// stopped notes why the process ended, and reports whether the run is done.
func (s *sleeper) stopped(t *testing.T) (done bool) {
	exit, why := s.process.cmd.ProcessState.ExitCode(), s.process.why()
	kind := fmt.Sprintf("status %d", exit)
	switch {
	case exit == 0:
		s.say("%s", why)
		return true
	case exit == -1 && s.process.signaled != "": // other signals kill it as well at its start
		kind = "killed"
	case exit == 130 && s.process.signaled != "":
		kind = "interrupted"
	case exit == 5 && s.process.diskFull:
		kind = "disk full"
	case strings.Contains(why, "did not answer"):
		kind = "outage"
		if s.isAnswered(t) { // before the first answer, six attempts are the limit (ruling G17)
			s.violate(t, "outage", "an outage ended it: %s", why)
		}
	default:
		s.violate(t, "stop", "%s: %s\n%s", kind, why, last(s.process.out.Bytes(), 1500))
	}
	s.stops[kind]++
	s.say("%s, %s", kind, why)
	return false
}

// why returns what the program said at its end.
func (p *nightProcess) why() (why string) {
	for line := range strings.Lines(p.out.String()) {
		for _, word := range []string{"done:", "failed:", "stopped:", "interrupted", "budget", "usage", "limit", "blocked", "stuck", "hone: error:"} {
			if strings.HasPrefix(line, word) {
				why = strings.TrimSpace(line)
			}
		}
	}
	if why == "" {
		lines := strings.Split(strings.TrimSpace(p.out.String()), "\n")
		why = strings.TrimSpace(lines[len(lines)-1])
	}
	return why[:min(len(why), 160)]
}

// actBetween waits like a user who sees that hone has stopped, who may act as well:
// not while it is unknown what a command did.
func (s *sleeper) actBetween(t *testing.T) {
	event := s.rng
	defer func() { s.rng = event }()
	s.rng = s.generator(1<<20 + s.resumes)
	time.Sleep(s.scaled(5 * time.Second))
	if s.rng.IntN(3) == 0 && s.isAsking(t) {
		s.say("user %s while it is stopped", s.user.act(t, s.rng))
	}
}

// isAsking reports whether the last step of the run is a call of the model.
func (s *sleeper) isAsking(t *testing.T) bool {
	if !hasStarted(t, s.work.dir) {
		return false
	}
	events := lastEvents(t, s.work.dir)
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].Phase != "" {
			return events[i].Type == history.TypeAsk && events[i].Phase == journal.Begin
		}
	}
	return false
}

// isAnswered reports whether the provider has answered in this run.
func (s *sleeper) isAnswered(t *testing.T) bool {
	return slices.ContainsFunc(lastEvents(t, s.work.dir), func(e journal.Event) bool { return e.Type == history.TypeReply })
}
