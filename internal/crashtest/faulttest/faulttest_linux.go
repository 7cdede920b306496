// Package faulttest makes single system calls of a program fail, as a disk or a machine
// does for a moment. It needs nothing of the program: the kernel asks the test about each
// look at a file (seccomp's user notifications).
package faulttest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Call is one look of the program at a file.
type Call struct {
	Name string // such as "open" or "read"
	Path string // absolute
}

// looks are the system calls that Run passes on: how to find the path of each.
var looks = map[uint32]struct {
	name string
	at   bool // the first argument is a directory, the second a name in it
}{
	unix.SYS_OPENAT: {"open", true}, unix.SYS_OPENAT2: {"open", true}, unix.SYS_NEWFSTATAT: {"stat", true}, unix.SYS_STATX: {"stat", true},
	unix.SYS_READLINKAT: {"readlink", true}, unix.SYS_FSTAT: {"fstat", false}, unix.SYS_READ: {"read", false},
	unix.SYS_PREAD64: {"read", false}, unix.SYS_GETDENTS64: {"readdir", false},
}

// Main is the program that [Run] starts first: it asks the kernel to pass on the looks of
// this process and of those that it starts, and becomes the program of its arguments.
// It returns only with an error.
func Main() error {
	runtime.LockOSThread() // a filter is one thread's, and so is what it becomes
	program, err := exec.LookPath(os.Args[1])
	if err == nil {
		err = filter()
	}
	if err == nil {
		err = syscall.Exec(program, os.Args[1:], os.Environ())
	}
	return fmt.Errorf("pass system calls on: %w", err)
}

// socket is where Main sends the descriptor of its filter.
const socket = 3

func filter() error {
	program := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}}
	left := uint8(len(looks))
	for nr := range looks {
		program = append(program, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: nr, Jt: left})
		left--
	}
	program = append(program, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF})
	p := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if os.Geteuid() != 0 {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
	}
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&p)))
	if errno != 0 {
		return errno
	}
	unix.CloseOnExec(socket)
	return unix.Sendmsg(socket, []byte{0}, unix.UnixRights(int(fd)), nil, 0)
}

// Run runs a program, which the tests' binary has a [Main] for under the name "faulty",
// and returns what exec.Cmd.CombinedOutput does. It asks fail about each look of the
// program itself at the given paths and below; those of its children succeed. Calls of
// fail do not overlap. An error from it is what the program gets instead of an answer, and
// all later looks succeed unasked.
func Run(t testing.TB, c *exec.Cmd, below []string, fail func(Call) unix.Errno) ([]byte, error) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	mine, its := os.NewFile(uintptr(pair[0]), "socket"), os.NewFile(uintptr(pair[1]), "socket")
	defer mine.Close()
	faulty := exec.Command("faulty", c.Args...)
	faulty.Dir, faulty.Env, faulty.ExtraFiles = c.Dir, c.Env, []*os.File{its}
	var out bytes.Buffer
	faulty.Stdout, faulty.Stderr = &out, &out
	err = faulty.Start()
	its.Close()
	if err != nil {
		t.Fatal(err)
	}
	w := watch{pid: faulty.Process.Pid, below: below, fail: fail}
	if w.listener, err = receive(mine); err != nil {
		_ = faulty.Process.Kill()
		_ = faulty.Wait()
		t.Skipf("SKIPPED, the kernel passes no system calls on: %v %s", err, out.Bytes())
	}
	var wait sync.WaitGroup
	wait.Go(func() { err = faulty.Wait() })
	w.serve()
	wait.Wait()
	return out.Bytes(), err
}

// receive returns the descriptor that Main sends.
func receive(from *os.File) (int, error) {
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(int(from.Fd()), make([]byte, 1), control, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return 0, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		return 0, errors.Join(err, errors.New("no descriptor came"))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return 0, err
	}
	return fds[0], nil
}

type watch struct {
	listener int
	pid      int
	below    []string
	fail     func(Call) unix.Errno
}

// notice and verdict are the kernel's seccomp_notif and seccomp_notif_resp.
type notice struct {
	id         uint64
	pid, flags uint32
	nr         int32
	arch       uint32
	at         uint64
	args       [6]uint64
}

type verdict struct {
	id    uint64
	val   int64
	error int32
	flags uint32
}

// serve answers the kernel until no process of the program is left.
func (w *watch) serve() {
	defer unix.Close(w.listener)
	failed := false
	for {
		ready := []unix.PollFd{{Fd: int32(w.listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, -1); err == unix.EINTR {
			continue
		} else if err != nil || ready[0].Revents&unix.POLLIN == 0 {
			return
		}
		var n notice
		if err := w.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); err != 0 {
			continue // the process died meanwhile
		}
		v := verdict{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		if !failed {
			if call, ok := w.look(n); ok {
				if errno := w.fail(call); errno != 0 {
					v.error, v.flags, failed = -int32(errno), 0, true
				}
			}
		}
		_ = w.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&v))
	}
}

func (w *watch) ioctl(request uint, arg unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(w.listener), uintptr(request), uintptr(arg))
	return errno
}

// look returns the look that the kernel asks about, unless it is none of the program
// itself at the watched paths.
func (w *watch) look(n notice) (Call, bool) {
	proc := "/proc/" + strconv.Itoa(w.pid)
	if _, err := os.Lstat(proc + "/task/" + strconv.Itoa(int(n.pid))); err != nil {
		return Call{}, false
	}
	kind := looks[uint32(n.nr)]
	name := ""
	if kind.at {
		name = w.text(uintptr(n.args[1]))
	}
	if !filepath.IsAbs(name) {
		dir := proc + "/cwd"
		if fd := int32(n.args[0]); fd != unix.AT_FDCWD {
			dir = proc + "/fd/" + strconv.Itoa(int(fd))
		}
		in, err := os.Readlink(dir)
		if err != nil {
			return Call{}, false
		}
		name = filepath.Join(in, name)
	}
	for _, dir := range w.below {
		if name == dir || strings.HasPrefix(name, dir+"/") {
			return Call{kind.name, name}, true
		}
	}
	return Call{}, false
}

// text returns a text in the memory of the program, up to its NUL.
func (w *watch) text(at uintptr) string {
	var text []byte
	for {
		b := make([]byte, 256)
		size := min(256, 4096-int(at%4096)) // the next page may be missing
		n, err := unix.ProcessVMReadv(w.pid, []unix.Iovec{{Base: &b[0], Len: uint64(size)}}, []unix.RemoteIovec{{Base: at, Len: size}}, 0)
		if err != nil || n <= 0 {
			return string(text)
		}
		if end := bytes.IndexByte(b[:n], 0); end >= 0 {
			return string(append(text, b[:end]...))
		}
		text, at = append(text, b[:n]...), at+uintptr(n)
	}
}
