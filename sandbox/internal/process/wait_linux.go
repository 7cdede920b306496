package process

import (
	"errors"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"hone/sandbox"
)

// exitInfo is the kernel's record of a child that has ended and is not reaped.
type exitInfo struct {
	_      [2]int32
	code   int32
	_      [(unsafe.Sizeof(uintptr(0)) - 4) / 4]int32 // the union that follows is aligned as a pointer
	pid    int32
	_      uint32
	status int32
	_      [104]byte
}

// The child is not reaped.
func waitid(kind, id int) (info exitInfo, err error) {
	err = IgnoreEINTR(func() error {
		return unix.Waitid(kind, id, (*unix.Siginfo)(unsafe.Pointer(&info)), unix.WEXITED|unix.WNOWAIT, nil)
	})
	return info, err
}

func (i exitInfo) exit() sandbox.Result {
	const exited = 1 // CLD_EXITED
	if i.code == exited {
		return sandbox.Result{Exit: int(i.status)}
	}
	return sandbox.Result{Exit: -1, Signal: syscall.Signal(i.status).String()}
}

// IgnoreEINTR repeats a call while signals interrupt it.
func IgnoreEINTR(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
