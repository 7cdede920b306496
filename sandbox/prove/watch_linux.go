package prove

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"sync"

	"golang.org/x/sys/unix"
)

// contacts record which servers outside were reached.
type contacts struct {
	mu    sync.Mutex
	calls map[string]int
}

// add records that a server was reached.
func (e *contacts) add(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.calls == nil {
		e.calls = map[string]int{}
	}
	e.calls[name]++
}

// has reports whether a server was reached.
func (e *contacts) has(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.calls[name] > 0
}

// answer returns a function that records a connection and closes it.
func (e *contacts) answer(name string) func(net.Conn) {
	return func(conn net.Conn) {
		e.add(name)
		conn.Close()
	}
}

// victim is a process that the prover started outside the walls.
type victim struct {
	cmd    *exec.Cmd
	exited chan struct{}
}

// victimName is the name under which the victim's signals are recorded. No attempt
// has it.
const victimName = "(victim)"

// watch records the victim's signals until it ends.
func (v *victim) watch(lines *bufio.Scanner, reached *contacts) {
	for lines.Scan() {
		reached.add(victimName)
	}
	_ = v.cmd.Wait() // how it ended does not matter
	close(v.exited)
}

// dead reports whether an attempt ended the victim. v may be nil.
func (v *victim) dead() bool {
	if v == nil {
		return false
	}
	select {
	case <-v.exited:
		return true
	default:
		return false
	}
}

// locked reports whether a process holds the lock on a file.
func locked(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == unix.EWOULDBLOCK
}
