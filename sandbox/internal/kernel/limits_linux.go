package kernel

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"hone/sandbox"
)

// What a process has left for itself when the command that it started is at its
// limits: its hard limits are higher by that.
const (
	spareTasks  = 64
	spareMemory = 128 << 20
)

// limit sets the limits of this process and of all that it starts from now on,
// and returns the one on processes, 0 where none was set. It is the process and
// not the thread that has limits: who goes on after it started the command
// calls [TakeSpare].
//
//   - No core dumps, which would be written outside of the walls.
//   - RLIMIT_NPROC counts the tasks of a user, so that it allows those that are
//     there now and the command's. It does not bind uid 0 of the machine, not
//     even in a user namespace, so that it is not set where that is known:
//     root's commands have to be counted.
//   - RLIMIT_DATA, for each process, because limits on address space break
//     programs that reserve much of it (Go, Node, Java).
func (r Restraint) limit() (processes uint64, err error) {
	if err := lowerLimit(unix.RLIMIT_CORE, 0, 0); err != nil {
		return 0, fmt.Errorf("limit core dumps: %w", err)
	}
	if most := r.Limits.MaxProcesses(); most > 0 {
		if processes, err = r.limitTasks(uint64(most)); err != nil {
			return 0, fmt.Errorf("limit processes: %w", err)
		}
	}
	if most := uint64(r.Limits.Memory); r.Limits.Memory > 0 {
		// This process has to go on until the command has started.
		if err := lowerLimit(unix.RLIMIT_DATA, max(most, ownData()+spareMemory), spareMemory); err != nil {
			return 0, fmt.Errorf("limit memory: %w", err)
		}
	}
	return processes, nil
}

// ownData is what RLIMIT_DATA counts of this process, in bytes; its stacks too.
func ownData() uint64 {
	var size, resident, shared, text, lib, data uint64
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	if _, err := fmt.Sscan(string(statm), &size, &resident, &shared, &text, &lib, &data); err != nil {
		return 0
	}
	return data * uint64(os.Getpagesize())
}

func (r Restraint) limitTasks(most uint64) (uint64, error) {
	if r.Apart && !countsApart() || rootOfMachine() {
		return 0, nil
	}
	if !r.Apart {
		most += tasksOf(uint32(os.Getuid()))
	}
	return most, lowerLimit(unix.RLIMIT_NPROC, most, spareTasks)
}

// lowerLimit lowers a limit of this process, the hard one to somewhat more than
// the soft one. It raises none.
func lowerLimit(resource int, most, spare uint64) error {
	var old unix.Rlimit
	if err := unix.Getrlimit(resource, &old); err != nil {
		return err
	}
	return unix.Setrlimit(resource, &unix.Rlimit{Cur: min(most, old.Cur), Max: min(most+spare, old.Max)})
}

// TakeSpare lets this process itself go a little beyond the limits, so that it
// can go on when the command has taken all of its own, and takes that spare
// away from the command, which is a process that it started just now. What the
// command started before can still get at it. It is called from a thread that
// is not restrained.
func TakeSpare(l sandbox.Limits, command int) {
	for resource, most := range map[int]int64{unix.RLIMIT_NPROC: 0, unix.RLIMIT_DATA: l.Memory} {
		var own unix.Rlimit
		if unix.Getrlimit(resource, &own) != nil || own.Cur == own.Max {
			continue
		}
		of := own.Cur
		if most > 0 {
			of = min(of, uint64(most))
		}
		_ = unix.Prlimit(command, resource, &unix.Rlimit{Cur: of, Max: of}, nil)
		_ = unix.Setrlimit(resource, &unix.Rlimit{Cur: own.Max, Max: own.Max})
	}
}

// tasksOf is how many processes and threads of a user there are: RLIMIT_NPROC
// counts both.
func tasksOf(uid uint32) (tasks uint64) {
	dir, err := os.Open("/proc")
	if err != nil {
		return 0
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		if _, err := strconv.Atoi(name); err != nil {
			continue
		}
		// The folder has a link for each thread, and the user for its owner.
		var info unix.Stat_t
		if unix.Stat("/proc/"+name+"/task", &info) == nil && info.Uid == uid {
			tasks += uint64(info.Nlink) - 2
		}
	}
	return tasks
}

// rootOfMachine reports whether this process's user is the machine's root,
// where no namespace says otherwise.
func rootOfMachine() bool {
	mapping, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && os.Getuid() == 0 && strings.Join(strings.Fields(string(mapping)), " ") == "0 0 4294967295"
}

// countsApart reports whether the kernel counts a user's processes in a user
// namespace by themselves, as Linux does from 5.14 on.
func countsApart() bool {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return false
	}
	var major, minor int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 5 || major == 5 && minor >= 14
}
