package wall

import (
	"bytes"
	"cmp"
	"encoding/gob"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hone/sandbox/internal/process"
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

// runHelper does the work of the process that [Walls] start. It is the supervisor, or it
// starts the program that builds the wall, and ends what is left after it.
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
	// The next message, with the command's streams, is for the supervisor behind the walls.
	runtime.LockOSThread() // the program dies with the thread that started it
	said, text, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd := &exec.Cmd{Path: s.Wrapper[0], Args: s.Wrapper, Dir: "/", Env: []string{}, Stderr: text}
	cmd.ExtraFiles = []*os.File{os.NewFile(specFD, "spec"), os.NewFile(controlFD, "control"), os.NewFile(selfFD, "self")}
	t, err := process.Start(cmd)
	_ = text.Close()
	if err != nil {
		return fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	go func() {
		hangUp := []unix.PollFd{{Fd: controlFD, Events: unix.POLLRDHUP}}
		_ = process.IgnoreEINTR(func() error { _, err := unix.Poll(hangUp, -1); return err })
		time.Sleep(2 * time.Second) // the supervisor ends by itself soon after the caller
		t.Kill()
	}()
	first, _ := io.ReadAll(io.LimitReader(said, 4<<10))
	go func() { _, _ = io.Copy(io.Discard, said) }()
	<-t.Exited()
	t.End()
	if t.Exit().Status != 0 { // a supervisor has sent its own failure before
		return fmt.Errorf("%s says: %s", filepath.Base(cmd.Path), cmp.Or(strings.Join(strings.Fields(string(first)), " "), "(no message)"))
	}
	return nil
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
