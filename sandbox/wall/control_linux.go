package wall

import (
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

// message is what this process and its helpers tell each other. One field is
// set.
type message struct {
	// From the helper.
	Doors int             `json:"doors,omitempty"` // so many listening sockets come with it
	Ready *kernel.Reached `json:"ready,omitempty"` // the walls stand; the command starts next
	Fail  *failure        `json:"fail,omitempty"`  // it could not be started
	Runs  bool            `json:"runs,omitempty"`  // it runs
	Given *given          `json:"given,omitempty"` // sockets that were asked for come with it
	Exit  *ended          `json:"exit,omitempty"`  // it has ended

	// From one helper to another.
	Streams bool `json:"streams,omitempty"` // the command's standard input, output and error come with it

	// From this process, once the command runs.
	Ask  bool `json:"ask,omitempty"`  // ask the command to end
	Give int  `json:"give,omitempty"` // give sockets of the command's network; the number returns with them
}

// given answers a request for sockets.
type given struct {
	To   int      `json:"to"` // the request's number
	Fail *failure `json:"fail,omitempty"`
}

// failure is an error on its way out of a helper.
type failure struct {
	Program string `json:"program,omitempty"` // set where the command itself is at fault
	Reason  string `json:"reason"`
	Errno   int    `json:"errno,omitempty"`
}

// ended is how a command ended.
type ended struct {
	Exit   int    `json:"exit"`
	Signal string `json:"signal,omitempty"`
	Over   string `json:"over,omitempty"`
}

// failureOf makes an error ready for its way.
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

// err is the error that arrived.
func (f *failure) err() error {
	var cause error = syscall.Errno(f.Errno)
	if f.Errno == 0 {
		cause = errors.New(f.Reason)
	}
	if f.Program != "" {
		return &sandbox.StartError{Program: f.Program, Reason: f.Reason, Err: cause}
	}
	return errors.New(f.Reason)
}

// longest is what one message holds at most, in bytes.
const longest = 64 << 10

// control is one end of the socket between this process and a helper. Each
// message is a packet.
type control struct{ fd int }

// newControl makes both ends. Neither is inherited by accident.
func newControl() (ours control, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return control{}, nil, os.NewSyscallError("socketpair", err)
	}
	return control{pair[0]}, os.NewFile(uintptr(pair[1]), "control"), nil
}

// send sends a message, and descriptors with it.
func (c control) send(m message, fds ...int) error { return c.sendWith(0, m, fds...) }

// sendNow sends a message, unless the other end leaves so many unread that it
// would have to wait.
func (c control) sendNow(m message) error { return c.sendWith(unix.MSG_DONTWAIT, m) }

func (c control) sendWith(flags int, m message, fds ...int) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(text) > longest {
		return fmt.Errorf("a message of %d bytes is too long", len(text))
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	return process.IgnoreEINTR(func() error { return unix.Sendmsg(c.fd, text, rights, nil, flags|unix.MSG_NOSIGNAL) })
}

// receive waits for a message; io.EOF says that the other end is gone.
func (c control) receive() (m message, fds []int, err error) {
	text, rights := make([]byte, longest), make([]byte, unix.CmsgSpace(4*maxDoors))
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

// hangUp makes both ends see the end, while a receive is under way too.
func (c control) hangUp() { _ = unix.Shutdown(c.fd, unix.SHUT_RDWR) }

func (c control) close() { _ = unix.Close(c.fd) }

func descriptors(rights []byte) ([]int, error) {
	list, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return unix.ParseUnixRights(&list[0])
}
