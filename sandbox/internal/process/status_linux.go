package process

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"hone/sandbox"
)

// process identifies a process, also among later ones with the same number.
type process struct {
	PID  int
	Born uint64 // the time of its start, in the kernel's ticks
}

// Status is the kernel's record of a process.
type Status struct {
	process
	Parent, Group, Session int
	Threads                int
	Zombie                 bool
}

// All returns the status of every visible process.
func All() []Status {
	var all []Status
	for _, pid := range pids() {
		if s, ok := ReadStatus(pid); ok {
			all = append(all, s)
		}
	}
	return all
}

func pids() []int { return numbers("/proc") }

func numbers(path string) []int {
	dir, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var all []int
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// It is for many processes: os.ReadFile makes twice as many system calls, some of them to wait for a file that is always ready.
func readProc(pid int, name string) ([]byte, error) {
	var fd int
	err := IgnoreEINTR(func() (err error) {
		fd, err = unix.Open("/proc/"+strconv.Itoa(pid)+"/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	text := make([]byte, 0, 4096)
	for {
		n := 0
		err := IgnoreEINTR(func() (err error) { n, err = unix.Read(fd, text[len(text):cap(text)]); return err })
		if n <= 0 || err != nil {
			return text, err
		}
		text = slices.Grow(text[:len(text)+n], 1024)
	}
}

// ReadStatus reads /proc/PID/stat. It returns false if the process no longer
// exists.
func ReadStatus(pid int) (Status, bool) {
	text, err := readProc(pid, "stat")
	if err != nil {
		return Status{}, false
	}
	return parseStatus(pid, string(text))
}

// parseStatus reads the fields after the command's name, which is in parentheses
// and may contain anything: state, parent, group, session, the 18th the number
// of threads, and the 20th the time of the start.
func parseStatus(pid int, text string) (Status, bool) {
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return Status{}, false
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(fields[i])
		return n
	}
	born, err := strconv.ParseUint(fields[19], 10, 64)
	return Status{
		process: process{PID: pid, Born: born},
		Zombie:  fields[0] == "Z" || fields[0] == "X",
		Parent:  number(1), Group: number(2), Session: number(3), Threads: number(17),
	}, err == nil
}

// exitInfo is the kernel's record of a child that has ended and is not reaped.
type exitInfo struct {
	_      [2]int32
	code   int32
	_      [(unsafe.Sizeof(uintptr(0)) - 4) / 4]int32 // the union that follows is aligned as a pointer
	pid    int32
	_      uint32
	status int32
	_      [104]byte
}

// The child is not reaped.
func waitid(kind, id int) (info exitInfo, err error) {
	err = IgnoreEINTR(func() error {
		return unix.Waitid(kind, id, (*unix.Siginfo)(unsafe.Pointer(&info)), unix.WEXITED|unix.WNOWAIT, nil)
	})
	return info, err
}

func (i exitInfo) exit() sandbox.Result {
	const exited = 1 // CLD_EXITED
	if i.code == exited {
		return sandbox.Result{Exit: int(i.status)}
	}
	return sandbox.Result{Exit: -1, Signal: syscall.Signal(i.status).String()}
}

// IgnoreEINTR repeats a call while signals interrupt it.
func IgnoreEINTR(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

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
