package process

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Watch looks whether the tree has more than maxTasks processes and threads, or more than
// maxMemory bytes of memory that no file backs; 0 means no limit. It then kills the command
// and its group. The kernel cannot set these limits for a whole tree.
func (t *Tree) Watch(maxTasks int, maxMemory int64) {
	if maxTasks == 0 && maxMemory == 0 {
		return
	}
	const memoryInterval = 100 * time.Millisecond
	interval := 10 * time.Millisecond
	if maxTasks == 0 {
		interval = memoryInterval
	}
	t.watched = make(chan struct{})
	go func() {
		defer close(t.watched)
		others, counted := machineTasks(), time.Now()
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-t.Exited():
				return
			}
			// The number of the machine's tasks is cheap to read, and shows when to
			// count the tree's.
			now := machineTasks()
			crowded, due := maxTasks > 0 && now > others+maxTasks/2, maxMemory > 0 && time.Since(counted) >= memoryInterval
			if !crowded && !due {
				continue
			}
			tasks, memory := t.usage(maxMemory)
			others, counted = now-tasks, time.Now()
			switch {
			case maxTasks > 0 && tasks > maxTasks:
				t.excess = "processes"
			case maxMemory > 0 && memory > maxMemory:
				t.excess = "memory"
			default:
				continue
			}
			t.Kill()
			return
		}
	}()
}

// Excess returns the limit that the tree exceeded, "processes" or "memory"; empty if it
// exceeded none, or was not watched. The command must have exited.
func (t *Tree) Excess() string {
	if t.watched == nil {
		return ""
	}
	<-t.watched
	return t.excess
}

func machineTasks() (n int) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	_, total, _ := strings.Cut(string(text), "/")
	_, _ = fmt.Sscan(total, &n)
	return n
}

// counted are the fields of a process's status, and measured those of its smaps_rollup, of memory that no file on a disk
// backs. What was swapped out counts too.
var counted, measured = []string{"RssAnon:", "RssShmem:", "VmSwap:"}, []string{"Pss_Anon:", "Pss_Shmem:", "SwapPss:"}

// memory is in bytes that no file on a disk backs, also if processes share them.
func (t *Tree) usage(maxMemory int64) (tasks int, memory int64) {
	members := slices.DeleteFunc(t.members(), func(s Status) bool { return s.Zombie })
	for _, s := range members {
		tasks += s.Threads
		memory += fields(s.PID, "status", counted...)
	}
	if maxMemory == 0 || memory <= maxMemory {
		return tasks, memory
	}
	// What processes share was counted for each of them. The exact number takes longer.
	exact := int64(0)
	for _, s := range members {
		exact += cmp.Or(fields(s.PID, "smaps_rollup", measured...), fields(s.PID, "status", counted...))
	}
	return tasks, exact
}

// fields returns the sum of fields of a file of a process in bytes; 0 if it cannot be read.
func fields(pid int, file string, names ...string) (sum int64) {
	text, err := readProc(pid, file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) == 3 && slices.Contains(names, words[0]) {
			kilobytes, _ := strconv.ParseInt(words[1], 10, 64)
			sum += kilobytes << 10
		}
	}
	return sum
}
