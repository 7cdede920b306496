package process

import (
	"fmt"
	"os"
	"strings"
)

// MachineTasks is how many processes and threads there are; 0 where that cannot
// be told.
func MachineTasks() (n int) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	_, total, _ := strings.Cut(string(text), "/")
	_, _ = fmt.Sscan(total, &n)
	return n
}

// Usage is how many processes and threads the tree has, and how much memory
// that no file backs, in bytes. To process 1 all others are the tree's.
func (t *Tree) Usage() (tasks int, memory int64) {
	all := All()
	if os.Getpid() != 1 {
		all = t.members(all)
	}
	for _, s := range all {
		if s.PID != 1 && !s.Zombie {
			tasks += s.Threads
			memory += anonymous(s.PID)
		}
	}
	return tasks, memory
}

// anonymous is the memory of a process that no file backs, in bytes; 0 where
// it is gone.
func anonymous(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	var size, resident, shared int64
	if _, err := fmt.Sscan(string(text), &size, &resident, &shared); err != nil {
		return 0
	}
	return (resident - shared) * int64(os.Getpagesize())
}
