package kernel

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"hone/sandbox"
)

// Cage is a control group that limits the number of its processes. It is for the
// machine's root, to whom other limits do not apply.
type Cage struct{ dir string }

// spareTasksOfHelpers is how many tasks the helpers may have in a cage.
const spareTasksOfHelpers = 64

var cages atomic.Uint64

// NewCage moves a process, and all that it starts from then on, into a new cage. It
// returns nil for users other than root, and if the control groups cannot be
// written, have no pids controller, or limit this process in a group in which there can be no cage. The supervisor then only counts processes, and a bomb whose
// processes all leave their session grows faster than it can end them. A
// most of 0 means no limit.
//
// The kernel needs some ten milliseconds to move a process, unless it has just moved
// another one. Meanwhile the process runs.
func NewCage(most, pid int) *Cage {
	if most == 0 || os.Getuid() != 0 {
		return nil
	}
	at := pidsGroup()
	if at == "" {
		return nil
	}
	left, _ := filepath.Glob(filepath.Join(at, cagePrefix+"*")) // by killed processes
	for _, dir := range left {
		owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), cagePrefix), "-")
		pid, err := strconv.Atoi(owner)
		if err == nil && unix.Kill(pid, 0) == unix.ESRCH {
			_ = os.Remove(dir) // fails while a process is in it
		}
	}
	c := &Cage{dir: filepath.Join(at, fmt.Sprintf("%s%d-%d", cagePrefix, os.Getpid(), cages.Add(1)))}
	if os.Mkdir(c.dir, 0o755) != nil {
		return nil
	}
	if writeNumber(c.dir, "pids.max", most+spareTasksOfHelpers) != nil || writeNumber(c.dir, "cgroup.procs", pid) != nil {
		_ = os.Remove(c.dir)
		return nil
	}
	return c
}

// Remove removes the cage, whose processes must have ended. A nil cage stays nil.
func (c *Cage) Remove() {
	if c != nil {
		_ = os.Remove(c.dir)
	}
}

const cagePrefix = "hone-"

func writeNumber(dir, file string, n int) error {
	return os.WriteFile(filepath.Join(dir, file), []byte(strconv.Itoa(n)), 0o644)
}

// unlimited reports whether a group of version 2 sets no limits of its own.
func unlimited(dir string) bool {
	var files []string
	for _, pattern := range []string{"*.max", "*.high", "cpuset.cpus", "cpuset.mems"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern))
		files = append(files, found...)
	}
	return !slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err != nil || slices.ContainsFunc(strings.Split(string(text), "\n"), func(line string) bool {
			return line != "" && (!strings.Contains(line, "max") || filepath.Base(file) == "io.max") // which lists only devices with limits
		})
	})
}

// It is empty if there is no pids controller, or no place for a cage.
func pidsGroup() (at string) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	const mounted = "/sys/fs/cgroup"
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(fields) < 3:
		case fields[1] == "pids": // version 1: a group may contain processes and groups
			return filepath.Join(mounted, "pids", fields[2])
		case fields[0] == "0":
			at = filepath.Join(mounted, fields[2])
			switch {
			case fields[2] == "/":
			case !unlimited(at): // a cage beside it would be outside of its limits
				return ""
			default: // version 2: a group with processes gives its groups no controllers
				at = filepath.Dir(at)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(mounted, "cgroup.controllers")); err != nil {
		return ""
	}
	return at
}

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
