package kernel

import (
	"cmp"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"hone/sandbox"
)

// spareTasks is the difference between the hard and the soft limit of tasks: the process that started
// the command needs it when the command has reached its limit.
const spareTasks = 64

// limit sets the limits of this process and of all that it starts from now on. Limits are for
// the whole process and not for a thread: a process that continues after it started the
// command calls [TakeSpare].
//
//   - No core dumps, which the kernel would write outside the walls.
//   - RLIMIT_NPROC counts all tasks of a user, so the limit is the number that exist now and the
//     command's; since Linux 5.14 it counts those of each user namespace. It does not bind the
//     machine's root, not even in a user namespace, who has a [Cage] where there can be one. For every
//     user, the supervisor counts the processes of the command, and their memory.
func limit(p sandbox.Policy) error {
	if err := lowerLimit(unix.RLIMIT_CORE, 0, 0); err != nil {
		return fmt.Errorf("limit core dumps: %w", err)
	}
	most, apart := uint64(p.Limits.MaxProcesses()), p.Wall.Mounts() // in a user namespace
	if most > 0 && (!apart || since(5, 14)) {
		if !apart {
			most += tasksOf(uint32(cmp.Or(p.As.UID, os.Getuid())))
		}
		if err := lowerLimit(unix.RLIMIT_NPROC, most, spareTasks); err != nil {
			return fmt.Errorf("limit processes: %w", err)
		}
	}
	return nil
}

// The hard limit becomes most+spare. A limit is never raised.
func lowerLimit(resource int, most, spare uint64) error {
	var old unix.Rlimit
	if err := unix.Getrlimit(resource, &old); err != nil {
		return err
	}
	return unix.Setrlimit(resource, &unix.Rlimit{Cur: min(most, old.Cur), Max: min(most+spare, old.Max)})
}

// TakeSpare raises this process's own limit of tasks to the hard one, so that it can
// continue when the command has reached its limit, and lowers the hard limit
// of the command, a process that was just started. Processes that the command
// started before can still use the spare. Call it from an unrestrained thread.
func TakeSpare(command int) {
	var own unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &own) == nil && own.Cur != own.Max {
		_ = unix.Prlimit(command, unix.RLIMIT_NPROC, &unix.Rlimit{Cur: own.Cur, Max: own.Cur}, nil)
		_ = unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: own.Max, Max: own.Max})
	}
}

// RLIMIT_NPROC counts processes and threads.
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
		// The directory has a link for each thread, and belongs to the user.
		var info unix.Stat_t
		if unix.Stat("/proc/"+name+"/task", &info) == nil && info.Uid == uid {
			tasks += uint64(info.Nlink) - 2
		}
	}
	return tasks
}

func since(major, minor int) bool {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return false
	}
	var is, point int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &is, &point); err != nil {
		return false
	}
	return is > major || is == major && point >= minor
}
