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
	"hone/sandbox/internal/kernel"
	"hone/sandbox/internal/process"
)

// message is a message between this process and its helpers. One field is set.
type message struct {
	// From a helper to this process.
	Doors int             `json:"doors,omitempty"` // the number of listening sockets that it carries
	Ready *kernel.Reached `json:"ready,omitempty"` // the walls were built and tried
	Fail  *failure        `json:"fail,omitempty"`  // the command could not be started
	Start bool            `json:"start,omitempty"` // the command starts next; before this message it cannot have done anything
	Runs  bool            `json:"runs,omitempty"`  // the command runs
	Given *given          `json:"given,omitempty"` // the answer to Give; it carries the sockets
	Exit  *ended          `json:"exit,omitempty"`  // the command has ended

	// From this process to its helper, and from a helper to a wrapped keeper.
	Streams bool `json:"streams,omitempty"` // it carries the command's standard input, output and error; see sendSpec

	// From this process, while the command runs.
	Ask  bool `json:"ask,omitempty"`  // asks the command to end
	Give int  `json:"give,omitempty"` // requests sockets of the command's network; the number of the request
}

// given is the answer to a request for sockets.
type given struct {
	To   int      `json:"to"` // the request's number
	Fail *failure `json:"fail,omitempty"`
}

// failure is an error that a helper sends.
type failure struct {
	Program string `json:"program,omitempty"` // set if the command itself is at fault
	Reason  string `json:"reason"`
	Errno   int    `json:"errno,omitempty"`
}

type ended struct {
	Exit   int    `json:"exit"`
	Signal string `json:"signal,omitempty"`
	Over   string `json:"over,omitempty"` // the limit that ended it; empty if none did
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
		f.Program, f.Reason = start.Program, start.Reason
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

func (c control) send(m message, fds ...int) error { return c.sendWith(0, m, fds...) }

// It fails if it would have to wait because the other end has not read earlier messages.
func (c control) sendNow(m message) error { return c.sendWith(unix.MSG_DONTWAIT, m) }

func (c control) sendWith(flags int, m message, fds ...int) error {
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
	return process.IgnoreEINTR(func() error { return unix.Sendmsg(c.fd, text, rights, nil, flags|unix.MSG_NOSIGNAL) })
}

// The error is io.EOF if the other end is closed.
func (c control) receive() (m message, fds []int, err error) {
	text, rights := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(4*maxDoors))
	var n, rn int
	err = process.IgnoreEINTR(func() (err error) {
		n, rn, _, _, err = unix.Recvmsg(c.fd, text, rights, unix.MSG_CMSG_CLOEXEC)
		return err
	})
	switch {
	case err != nil && !errors.Is(err, unix.ECONNRESET):
		return m, nil, os.NewSyscallError("recvmsg", err)
	case n <= 0:
		return m, nil, io.EOF
	}
	if fds, err = descriptors(rights[:rn]); err != nil {
		return m, nil, err
	}
	return m, fds, json.Unmarshal(text[:n], &m)
}

// receive then returns io.EOF at both ends, also if it is waiting.
func (c control) hangUp() { _ = unix.Shutdown(c.fd, unix.SHUT_RDWR) }

func (c control) close() { _ = unix.Close(c.fd) }

func descriptors(rights []byte) ([]int, error) {
	list, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return unix.ParseUnixRights(&list[0])
}
