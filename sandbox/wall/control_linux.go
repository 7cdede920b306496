package wall

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"hone/sandbox"
	"hone/sandbox/internal/process"
)

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
