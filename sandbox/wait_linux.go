package sandbox

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// exitInfo is what the kernel says of a child that has ended, and that stays
// there to be asked again.
type exitInfo struct {
	_      [2]int32
	code   int32
	_      [(unsafe.Sizeof(uintptr(0)) - 4) / 4]int32 // the union that follows is aligned as a pointer
	pid    int32
	_      uint32
	status int32
	_      [104]byte
}

// waitid waits for a child without taking it away.
func waitid(kind, id int) (info exitInfo, err error) {
	err = again(func() error {
		return unix.Waitid(kind, id, (*unix.Siginfo)(unsafe.Pointer(&info)), unix.WEXITED|unix.WNOWAIT, nil)
	})
	return info, err
}

// waitAny waits for whichever child ends first, and leaves it there.
func waitAny() (pid int, err error) {
	info, err := waitid(unix.P_ALL, 0)
	return int(info.pid), err
}

// result says how the child ended.
func (i exitInfo) result() Result {
	const exited = 1 // CLD_EXITED
	if i.code == exited {
		return Result{Exit: int(i.status)}
	}
	return Result{Exit: -1, Signal: syscall.Signal(i.status).String()}
}
