package process

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// Watch looks whether the tree has more than maxTasks processes and threads, or more than
// maxMemory bytes of memory that no file backs; 0 means no limit. It then kills the command
// and its group. The kernel cannot set these limits for a whole tree, but held means that it
// stops the tree from having many more tasks, so that there is time to see it.
func (t *Tree) Watch(maxTasks int, maxMemory int64, held bool) {
	if maxTasks == 0 && maxMemory == 0 {
		return
	}
	t.watched = make(chan struct{})
	go func() {
		defer close(t.watched)
		if t.excess = t.awaitExcess(maxTasks, maxMemory, held); t.excess != "" {
			t.Kill()
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

// It is empty if the command has exited.
func (t *Tree) awaitExcess(maxTasks int, maxMemory int64, held bool) (limit string) {
	const memoryInterval = 100 * time.Millisecond
	interval := 10 * time.Millisecond
	if held || maxTasks == 0 {
		interval = memoryInterval
	}
	others, counted := machineTasks(), time.Now()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-t.Exited():
			return ""
		}
		// The number of the machine's tasks is cheap to read, and shows when to
		// count the tree's.
		now := machineTasks()
		crowded, due := maxTasks > 0 && now > others+maxTasks/2, maxMemory > 0 && time.Since(counted) >= memoryInterval
		if !crowded && !due {
			continue
		}
		tasks, memory := t.usage()
		others, counted = now-tasks, time.Now()
		switch {
		case maxTasks > 0 && tasks > maxTasks:
			return "processes"
		case maxMemory > 0 && memory > maxMemory:
			return "memory"
		}
	}
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

// memory is in bytes that no file backs.
func (t *Tree) usage() (tasks int, memory int64) {
	for _, s := range t.members() {
		if !s.Zombie {
			tasks += s.Threads
			memory += anonymousMemory(s.PID)
		}
	}
	return tasks, memory
}

func anonymousMemory(pid int) int64 {
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
