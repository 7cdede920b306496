package kernel

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Cage is a control group that limits the number of its processes. It is for the
// machine's root, to whom other limits do not apply.
type Cage struct {
	dir  string
	home string // the group that this process was in before
}

// spareTasksOfHelpers is how many tasks the helpers may have in a cage.
const spareTasksOfHelpers = 64

// EnterCage moves this process, and all that it starts, into a new cage. It
// returns nil for users other than root, and if the control groups cannot be
// written or have no pids controller. The keeper then only counts processes. A
// most of 0 means no limit.
func EnterCage(most int) *Cage {
	if most == 0 || os.Getuid() != 0 {
		return nil
	}
	at, home := pidsGroup()
	if at == "" {
		return nil
	}
	sweepCages(at)
	c := &Cage{dir: filepath.Join(at, cagePrefix+strconv.Itoa(os.Getpid())), home: home}
	if os.Mkdir(c.dir, 0o755) != nil {
		return nil
	}
	if writeNumber(c.dir, "pids.max", most+spareTasksOfHelpers) != nil || writeNumber(c.dir, "cgroup.procs", os.Getpid()) != nil {
		_ = os.Remove(c.dir)
		return nil
	}
	return c
}

// Leave moves this process out of the cage and removes the cage. All other
// processes in it must have ended.
func (c *Cage) Leave() {
	if c == nil {
		return
	}
	_ = writeNumber(c.home, "cgroup.procs", os.Getpid())
	_ = os.Remove(c.dir)
}

const cagePrefix = "hone-"

// sweepCages removes the cages of helpers that were killed.
func sweepCages(at string) {
	left, _ := filepath.Glob(filepath.Join(at, cagePrefix+"*"))
	for _, dir := range left {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), cagePrefix))
		if err == nil && unix.Kill(pid, 0) == unix.ESRCH {
			_ = os.Remove(dir) // fails while a process is in it
		}
	}
}

// writeNumber writes a number to a file of a control group.
func writeNumber(dir, file string, n int) error {
	return os.WriteFile(filepath.Join(dir, file), []byte(strconv.Itoa(n)), 0o644)
}

// pidsGroup returns the directory in which a cage can be made, and this process's
// own group in the same hierarchy; empty if there is no pids controller.
func pidsGroup() (at, home string) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", ""
	}
	const mounted = "/sys/fs/cgroup"
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(fields) < 3:
		case fields[1] == "pids": // version 1: a group may contain processes and groups
			home = filepath.Join(mounted, "pids", fields[2])
			return home, home
		case fields[0] == "0":
			home = filepath.Join(mounted, fields[2])
			at = home
			if fields[2] != "/" { // version 2: a group with processes gives its groups no controllers
				at = filepath.Dir(home)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(mounted, "cgroup.controllers")); err != nil {
		return "", ""
	}
	return at, home
}
