package wall

import (
	"bytes"
	"cmp"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"hone/sandbox"
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

// message is a message between this process and a supervisor. One field is set.
type message struct {
	// From this process, before the command runs; see [walled.instruct].
	Spec    bool `json:"spec,omitempty"`    // it carries the spec
	Streams bool `json:"streams,omitempty"` // it carries the command's standard input, output and error

	// From this process, while the command runs.
	Ask  bool `json:"ask,omitempty"`  // asks the command to end
	Dial int  `json:"dial,omitempty"` // a port of the command's network; it carries the socket for the answer, which has Fail or carries the connection

	// From a supervisor.
	Doors int             `json:"doors,omitempty"` // the number of listening sockets that it carries
	Ready *sandbox.Grade  `json:"ready,omitempty"` // the walls were built and tried; what they hold back on this kernel
	Fail  *failure        `json:"fail,omitempty"`  // the command could not be started
	Start bool            `json:"start,omitempty"` // the command is started next
	Runs  bool            `json:"runs,omitempty"`  // the command runs
	Exit  *sandbox.Result `json:"exit,omitempty"`  // the command has ended
}

// failure is an error that a helper sends.
type failure struct {
	Program string `json:"program,omitempty"` // set if the command itself is at fault
	Reason  string `json:"reason"`
	Errno   int    `json:"errno,omitempty"`
}

func failureOf(err error) *failure {
	f := &failure{Reason: err.Error()}
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
	case errors.Is(err, fs.ErrNotExist):
		errno = syscall.ENOENT
	case errors.Is(err, fs.ErrPermission):
		errno = syscall.EACCES
	}
	f.Errno = int(errno)
	if start, ok := errors.AsType[*sandbox.StartError](err); ok {
		f.Program, f.Reason = start.Program, cmp.Or(start.Reason, start.Err.Error())
	}
	return f
}

func (f *failure) err() error {
	if f.Program == "" {
		return f
	}
	return &sandbox.StartError{Program: f.Program, Reason: f.Reason, Err: cmp.Or(f.Unwrap(), errors.New(f.Reason))}
}

func (f *failure) Error() string { return f.Reason }

// Unwrap returns the error of the operating system, or nil.
func (f *failure) Unwrap() error {
	if f.Errno == 0 {
		return nil
	}
	return syscall.Errno(f.Errno)
}

const (
	// maxMessage is the maximum size of a message, in bytes.
	maxMessage = 64 << 10
	// maxDoors is how many doors walls may have: one message carries them all.
	maxDoors = 32
)

// control is one end of the socket between this process and a helper. Each
// message is one packet.
type control struct{ fd int }

// Child processes do not inherit them by accident.
func newControl() (ours control, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return control{}, nil, os.NewSyscallError("socketpair", err)
	}
	return control{pair[0]}, os.NewFile(uintptr(pair[1]), "control"), nil
}

func (c control) send(m message, fds ...int) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(text) > maxMessage {
		return fmt.Errorf("a message of %d bytes is too long", len(text))
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	return process.IgnoreEINTR(func() error { return unix.Sendmsg(c.fd, text, rights, nil, unix.MSG_NOSIGNAL) })
}

// The error is io.EOF if the other end is closed.
func (c control) receive() (m message, fds []int, err error) {
	text, rights := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(4*maxDoors))
	n, rn := 0, 0
	for err = unix.EINTR; errors.Is(err, unix.EINTR) || errors.Is(err, unix.ECONNRESET); { // the latter comes once, before what the other end has sent last
		n, rn, _, _, err = unix.Recvmsg(c.fd, text, rights, unix.MSG_CMSG_CLOEXEC)
	}
	if err != nil {
		return m, nil, os.NewSyscallError("recvmsg", err)
	}
	if n == 0 {
		return m, nil, io.EOF
	}
	list, err := unix.ParseSocketControlMessage(rights[:rn])
	if err == nil && len(list) > 0 {
		fds, err = unix.ParseUnixRights(&list[0])
	}
	if err != nil {
		return m, nil, err
	}
	return m, fds, json.Unmarshal(text[:n], &m)
}

// receiveAs gives the descriptors of the next message these numbers. The command does not inherit
// those above its streams.
func (c control) receiveAs(numbers ...int) error {
	_, fds, err := c.receive()
	if err != nil || len(fds) != len(numbers) {
		return fmt.Errorf("what the command needs did not arrive: %w", err)
	}
	for i, fd := range numbers {
		if fds[i] == fd { // a process that cannot poll has no other descriptors yet
			continue
		}
		flags := 0
		if fd > unix.Stderr {
			flags = unix.O_CLOEXEC
		}
		if err := unix.Dup3(fds[i], fd, flags); err != nil {
			return os.NewSyscallError("dup3", err)
		}
		_ = unix.Close(fds[i])
	}
	return nil
}

// receive then returns io.EOF at both ends, also if it is waiting.
func (c control) hangUp() { _ = unix.Shutdown(c.fd, unix.SHUT_RDWR) }

func (c control) close() { _ = unix.Close(c.fd) }
