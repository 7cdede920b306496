//go:build unix && !linux

package process

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// Keeper is a process that waits for the end of this one, and then kills what its
// commands left running. The first command starts it, and another one takes its place if
// it is killed. A nil Keeper keeps nothing.
type Keeper struct {
	mu      sync.Mutex   // guards what follows
	groups  map[int]bool // the process groups of the commands that run
	closed  bool
	started int      // how many processes
	pipe    *os.File // to the process; nil if none runs
}

// mostKeepers is how many processes a keeper starts at most, if something kills each of them.
const mostKeepers = 100

const keeperName = "hone-keeper"

// closed is the line that tells the keeper that this process needs it no longer.
const closed = "closed"

// dispatches is set by [Helper]. A program that does not call it would run all of its
// main in the keeper, so it gets none.
var dispatches atomic.Bool

// Helper does the keeper's work and exits if this process was started as one;
// otherwise it returns at once.
func Helper() {
	dispatches.Store(true)
	if len(os.Args) == 0 || os.Args[0] != keeperName {
		return
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP)
	if groups, died := awaitDeath(os.Stdin); died {
		for group := range groups {
			_ = syscall.Kill(-group, syscall.SIGKILL)
		}
	}
	syscall.Exit(0) // at once: under the race detector os.Exit waits a second
}

// died is false if the writer's process only closed its keeper. groups are the process groups that are still there.
func awaitDeath(r io.Reader) (groups map[int]bool, died bool) {
	groups = map[int]bool{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		var pid int
		switch line := lines.Text(); {
		case line == closed:
			return nil, false
		case strings.HasPrefix(line, "+"):
			_, _ = fmt.Sscanf(line, "+%d", &pid)
			groups[pid] = true
		default:
			_, _ = fmt.Sscanf(line, "-%d", &pid)
			delete(groups, pid)
		}
	}
	return groups, true
}

func (k *Keeper) start() {
	if k == nil || !dispatches.Load() {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || k.pipe != nil || k.started >= mostKeepers {
		return
	}
	program, err := os.Executable()
	if err != nil {
		return
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return
	}
	defer theirs.Close()
	cmd := &exec.Cmd{Path: program, Args: []string{keeperName}, Dir: "/", Env: []string{},
		Stdin: theirs, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	if err := cmd.Start(); err != nil {
		_ = ours.Close()
		return
	}
	k.started++
	k.pipe = ours
	for group := range k.groups {
		k.send("+", group)
	}
	go k.await(cmd)
}

// Before [Keeper.Close], only a signal of another process ends the keeper. Then the next keeper must run before this process
// ends, too.
func (k *Keeper) await(cmd *exec.Cmd) {
	_ = cmd.Wait()
	k.mu.Lock()
	_ = k.pipe.Close()
	k.pipe = nil
	k.mu.Unlock()
	if !cmd.ProcessState.Exited() {
		k.start()
	}
}

// Close ends the keeper. No command may run. Commands that start later have none.
func (k *Keeper) Close() {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed = true; k.pipe != nil {
		_, _ = fmt.Fprintln(k.pipe, closed)
	}
}

// NewKeeper returns a keeper of commands that run for a directory.
func NewKeeper(string) *Keeper { return &Keeper{} }

// EndEarlier does nothing: nothing tells which processes they are.
func (k *Keeper) EndEarlier() (programs []string) { return nil }

func (k *Keeper) add(group int) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.groups == nil {
		k.groups = map[int]bool{}
	}
	k.groups[group] = true
	k.send("+", group)
}

func (k *Keeper) remove(group int) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.groups, group)
	k.send("-", group)
}

func (k *Keeper) send(what string, group int) {
	if k.pipe != nil {
		_, _ = fmt.Fprintf(k.pipe, "%s%d\n", what, group)
	}
}
