package kernel

import (
	"slices"

	"golang.org/x/sys/unix"
)

// block is a part of a filter of system calls: it is entered at its first
// instruction, and every way through it ends in a verdict.
type block []unix.SockFilter

// Where a filter finds what it is to judge (struct seccomp_data).
const (
	atCall = 0
	atArch = 4
	atArgs = 16
)

// letPass lets a call pass.
func letPass() block { return block{{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}} }

// failWith ends a call with an error before the kernel looks at it.
func failWith(err unix.Errno) block {
	return block{{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(err)}}
}

// argument loads the lower half of an argument, counted from 0, for what
// follows. The kernel itself reads numbers such as a socket's family or an
// ioctl's from that half alone: were the upper one looked at, a call that has
// something there would pass.
func argument(i uint32, then block) block { return loading(atArgs+8*i, then) }

// upperHalf loads the upper half of an argument.
func upperHalf(i uint32, then block) block { return loading(atArgs+8*i+4, then) }

func loading(at uint32, then block) block {
	return append(block{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}}, then...)
}

// masked keeps some bits of what was loaded.
func masked(bits uint32, then block) block {
	return append(block{{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: bits}}, then...)
}

// whenIs goes one way where what was loaded is k, and the other where it is not.
func whenIs(k uint32, then, otherwise block) block { return jump(unix.BPF_JEQ, k, then, otherwise) }

// whenAny goes one way where any of some bits are set.
func whenAny(bits uint32, then, otherwise block) block {
	return jump(unix.BPF_JSET, bits, then, otherwise)
}

// whenFrom goes one way where what was loaded is k or more.
func whenFrom(k uint32, then, otherwise block) block { return jump(unix.BPF_JGE, k, then, otherwise) }

func jump(condition uint16, k uint32, then, otherwise block) block {
	const farthest = 255 // of a conditional jump
	b := block{{Code: unix.BPF_JMP | condition | unix.BPF_K, K: k, Jt: uint8(min(len(otherwise), farthest))}}
	if len(otherwise) > farthest {
		b[0].Jt, b[0].Jf = 0, 1
		b = append(b, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(len(otherwise))})
	}
	return slices.Concat(b, otherwise, then)
}

// span is what happens to the calls from a number on, up to the next span's.
type span struct {
	from uint32
	do   block
}

// search finds the span of the loaded call by halving, so that no call is
// compared with more than a few numbers.
func search(spans []span) block {
	if len(spans) == 1 {
		return spans[0].do
	}
	half := len(spans) / 2
	return whenFrom(spans[half].from, search(spans[half:]), search(spans[:half]))
}
