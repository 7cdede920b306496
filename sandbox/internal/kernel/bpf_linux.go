package kernel

import (
	"slices"

	"golang.org/x/sys/unix"
)

// block is a part of a filter of system calls: it starts at its first
// instruction, and every path through it ends with a verdict.
type block []unix.SockFilter

// The offsets in the data that a filter reads (struct seccomp_data).
const (
	atCall = 0
	atArch = 4
	atArgs = 16
)

func letPass() block { return block{{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}} }

func failWith(err unix.Errno) block {
	return block{{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(err)}}
}

// argument loads the lower half of an argument, counted from 0. The kernel reads
// numbers such as a socket's family or an ioctl's from that half alone: a filter
// that compared the upper half as well would allow a call that sets bits there.
func argument(i uint32, then block) block { return loading(atArgs+8*i, then) }

func loading(at uint32, then block) block {
	return append(block{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}}, then...)
}

func masked(bits uint32, then block) block {
	return append(block{{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: bits}}, then...)
}

func whenIs(k uint32, then, otherwise block) block { return jump(unix.BPF_JEQ, k, then, otherwise) }

func whenAny(bits uint32, then, otherwise block) block {
	return jump(unix.BPF_JSET, bits, then, otherwise)
}

func jump(condition uint16, k uint32, then, otherwise block) block {
	const farthest = 255 // the longest conditional jump
	b := block{{Code: unix.BPF_JMP | condition | unix.BPF_K, K: k, Jt: uint8(min(len(otherwise), farthest))}}
	if len(otherwise) > farthest {
		b[0].Jt, b[0].Jf = 0, 1
		b = append(b, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(len(otherwise))})
	}
	return slices.Concat(b, otherwise, then)
}
