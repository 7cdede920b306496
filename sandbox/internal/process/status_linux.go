package process

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
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
