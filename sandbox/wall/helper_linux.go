package wall

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// helperName marks a command line as a helper's: it is the program's name, or
// its first argument if another program starts the helper.
const helperName = "hone-wall"

// selfPath is this program's path inside walls that do not show its file.
const selfPath = "/proc/self/fd/5"

// The descriptors of a helper.
const (
	specFD    = 3 // a file in memory that contains the spec
	controlFD = 4
	selfFD    = 5 // this program's file
)

// dispatches is set by [Helper]. A program that does not call it would run all of its
// main in the helper.
var dispatches atomic.Bool

// Helper does a helper's work and exits if this process
// was started as one; otherwise it returns at once. Every program that runs commands must call it
// first in main, before it parses flags, because each command has a supervisor, which is the program itself
// again. Only this package starts helpers. A user who starts one by hand gains
// nothing: a helper may do what its caller may do.
func Helper() {
	dispatches.Store(true)
	args := os.Args
	if len(args) >= 2 && args[0] == selfPath {
		args = args[1:]
	}
	if len(args) != 2 || args[0] != helperName {
		return
	}
	work := runHelper
	if args[1] == "wrapped" {
		work = runSupervisor
	}
	c := control{controlFD}
	err := keepDescriptors()
	if err == nil {
		err = work(c)
	}
	if err != nil {
		_ = c.send(message{Fail: failureOf(err)})
		syscall.Exit(1)
	}
	syscall.Exit(0) // at once: under the race detector os.Exit waits a second
}

// Neither the descriptors of a helper nor what this process inherited by accident go further.
// CLOSE_RANGE_CLOEXEC needs Linux 5.11.
func keepDescriptors() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("close the descriptors of the walls to the command: %w", err)
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > unix.Stderr {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// runHelper does the work of the process that [Walls] start. That process is the supervisor, or it becomes
// the program that builds the wall and starts the supervisor. The next message is for the supervisor.
func runHelper(c control) error {
	if err := c.receiveAs(specFD); err != nil {
		return err
	}
	s, err := readSpec()
	if err != nil {
		return err
	}
	if len(s.Wrapper) == 0 {
		return runSupervisor(c)
	}
	for fd := uintptr(specFD); fd <= selfFD; fd++ {
		if _, err := unix.FcntlInt(fd, unix.F_SETFD, 0); err != nil {
			return os.NewSyscallError("fcntl", err)
		}
	}
	return fmt.Errorf("start %s: %w", s.Wrapper[0], unix.Exec(s.Wrapper[0], s.Wrapper, os.Environ()))
}

// The file's position, which the helpers share, is not moved.
func readSpec() (s spec, err error) {
	var info unix.Stat_t
	if err := unix.Fstat(specFD, &info); err != nil {
		return s, os.NewSyscallError("fstat", err)
	}
	text := make([]byte, info.Size)
	if _, err := unix.Pread(specFD, text, 0); err != nil {
		return s, os.NewSyscallError("pread", err)
	}
	return s, gob.NewDecoder(bytes.NewReader(text)).Decode(&s)
}
