package kernel

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Cage is a control group that bounds how many processes there can be in it.
// It is for the machine's root, whom the other limits do not bind.
type Cage struct {
	dir  string
	home string // the group that this process came from
}

// spareTasksOfHelpers is how many tasks the helpers themselves may have.
const spareTasksOfHelpers = 64

// EnterCage moves this process, and so all that it starts, into a new cage. It
// returns nil where that cannot be done: for other users, where the control
// groups are not to be written, or have no controller of processes here. The
// number is then only watched.
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
	if tell(c.dir, "pids.max", most+spareTasksOfHelpers) != nil || tell(c.dir, "cgroup.procs", os.Getpid()) != nil {
		_ = os.Remove(c.dir)
		return nil
	}
	return c
}

// Leave takes this process out of the cage and removes it. All the others must
// have ended.
func (c *Cage) Leave() {
	if c == nil {
		return
	}
	_ = tell(c.home, "cgroup.procs", os.Getpid())
	_ = os.Remove(c.dir)
}

const cagePrefix = "hone-"

// sweepCages removes the cages of helpers that were killed.
func sweepCages(at string) {
	left, _ := filepath.Glob(filepath.Join(at, cagePrefix+"*"))
	for _, dir := range left {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), cagePrefix))
		if err == nil && unix.Kill(pid, 0) == unix.ESRCH {
			_ = os.Remove(dir) // it cannot be while a process is in it
		}
	}
}

func tell(dir, file string, n int) error {
	return os.WriteFile(filepath.Join(dir, file), []byte(strconv.Itoa(n)), 0o644)
}

// pidsGroup is where a cage can be made, and this process's own group in the
// same hierarchy; empty where there is none.
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
		case fields[1] == "pids": // version 1, where groups can have both processes and groups
			home = filepath.Join(mounted, "pids", fields[2])
			return home, home
		case fields[0] == "0":
			home = filepath.Join(mounted, fields[2])
			at = home
			if fields[2] != "/" { // one that has processes can give its groups no controllers
				at = filepath.Dir(home)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(mounted, "cgroup.controllers")); err != nil {
		return "", ""
	}
	return at, home
}
