package prove

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"sync"

	"golang.org/x/sys/unix"
)

// ears hear who was reached outside.
type ears struct {
	mu    sync.Mutex
	calls map[string]int
}

func (e *ears) hear(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.calls == nil {
		e.calls = map[string]int{}
	}
	e.calls[name]++
}

func (e *ears) heard(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.calls[name] > 0
}

// answer hears a connection, and ends it.
func (e *ears) answer(name string) func(net.Conn) {
	return func(conn net.Conn) {
		e.hear(name)
		conn.Close()
	}
}

// victim is a process of the prover's, outside of the walls.
type victim struct {
	cmd    *exec.Cmd
	exited chan struct{}
}

// victimName is what the victim's signals are heard as: no attempt's name.
const victimName = "(victim)"

// watch hears the victim's signals, until it ends.
func (v *victim) watch(lines *bufio.Scanner, heard *ears) {
	for lines.Scan() {
		heard.hear(victimName)
	}
	_ = v.cmd.Wait() // how it ended does not matter
	close(v.exited)
}

// dead reports whether a process was the victim of an attempt.
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

// locked reports whether somebody holds the lock on a file.
func locked(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == unix.EWOULDBLOCK
}
