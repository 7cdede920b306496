package kernel

import (
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

	"hone/sandbox"
)

// machine is what a filter of system calls needs to know about a processor. There
// is no filter for the zero machine.
type machine struct {
	arch   uint32 // AUDIT_ARCH_…
	number func(rule) int
}

func thisMachine() machine {
	return map[string]machine{"amd64": amd64(), "arm64": arm64()}[runtime.GOARCH]
}

func amd64() machine {
	return machine{unix.AUDIT_ARCH_X86_64, func(r rule) int { return r.amd64 }}
}

func arm64() machine {
	return machine{unix.AUDIT_ARCH_AARCH64, func(r rule) int { return r.arm64 }}
}

// noCall is the number of a call that a processor does not have.
const noCall = -1

// rule is the verdict for one system call. Calls without a rule are allowed.
type rule struct {
	name         string
	amd64, arm64 int
	do           block
}

// The flags that make namespaces, in which a process has rights that it would
// not have otherwise. clone has no CLONE_NEWTIME: that bit is part of a signal's
// number there.
const (
	namespacesOfClone   = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	namespacesOfUnshare = namespacesOfClone | unix.CLONE_NEWTIME
)

// filter returns the program with which the kernel checks each system call; ok is
// false if there is none for the machine.
//
// Calls by the conventions of another processor (32-bit programs, x32) fail with
// ENOSYS: they are a second kernel interface that would need its own rules. So do
// clone3 and io_uring, whose arguments a filter cannot read; older kernels do not
// have them either, so programs can do without. Other denied calls fail with
// EPERM, and denied sockets with EAFNOSUPPORT or EACCES.
func filter(p sandbox.Policy, m machine, abi int) (program block, ok bool) {
	if m.arch == 0 {
		return nil, false
	}
	const x32 = 1 << 30 // on amd64; no machine has higher numbers
	// One comparison after the other: since Linux 5.11 the kernel remembers which calls are always allowed.
	verdict := letPass()
	for _, r := range rulesFor(p, abi) {
		if n := m.number(r); n != noCall {
			verdict = whenIs(uint32(n), r.do, verdict)
		}
	}
	verdict = loading(atCall, jump(unix.BPF_JGE, x32, failWith(unix.ENOSYS), verdict))
	return loading(atArch, whenIs(m.arch, verdict, failWith(unix.ENOSYS))), true
}

// rulesFor returns the rules that are needed in addition to an ABI of Landlock.
func rulesFor(p sandbox.Policy, abi int) []rule {
	rules := slices.Concat(kernelRules(), []rule{
		{"socket", 41, 198, socketVerdict(p, abi)},
		{"socketpair", 53, 199, pairVerdict(p, abi)},
	})
	if p.Wall.Mounts() {
		return rules
	}
	rules = append(rules, strangerRules()...)
	rules = append(rules, starterRules(abi)...)
	if abi < 3 {
		rules = append(rules, rule{"truncate", 76, 45, failWith(unix.EPERM)})
	}
	if closesNet(p) {
		rules = append(rules, connectingRules()...)
	}
	return rules
}

// everyProcess is the -1 of kill.
const everyProcess = 1<<32 - 1

// kernelRules deny what changes or endangers the machine. Most of these calls
// need capabilities that the command does not have; denying them also guards
// against faults of the kernel and user namespaces that give them back.
func kernelRules() []rule {
	no, unknown := failWith(unix.EPERM), failWith(unix.ENOSYS)
	unshare := argument(0, whenAny(namespacesOfUnshare, no, letPass()))
	clone := argument(0, whenAny(namespacesOfClone, no, letPass()))
	ioctl := argument(1, whenIs(unix.TIOCSTI, no, whenIs(tiocLinux, no, letPass())))
	mode := func(i uint32) block { return argument(i, whenAny(unix.S_ISUID, no, letPass())) }
	return []rule{
		// the tree of mounts
		{"mount", 165, 40, no},
		{"umount2", 166, 39, no},
		{"pivot_root", 155, 41, no},
		{"chroot", 161, 51, no},
		{"open_tree", 428, 428, no},
		{"open_tree_attr", 467, 467, no},
		{"move_mount", 429, 429, no},
		{"fsopen", 430, 430, no},
		{"fsconfig", 431, 431, no},
		{"fsmount", 432, 432, no},
		{"fspick", 433, 433, no},
		{"mount_setattr", 442, 442, no},
		{"quotactl", 179, 60, no},
		{"quotactl_fd", 443, 443, no},
		{"open_by_handle_at", 304, 265, no},
		{"fanotify_init", 300, 262, no},

		// namespaces
		{"setns", 308, 268, no},
		{"unshare", 272, 97, unshare},
		{"clone", 56, 220, clone},
		{"clone3", 435, 435, unknown},

		// the machine
		{"reboot", 169, 142, no},
		{"kexec_load", 246, 104, no},
		{"kexec_file_load", 320, 294, no},
		{"init_module", 175, 105, no},
		{"finit_module", 313, 273, no},
		{"delete_module", 176, 106, no},
		{"create_module", 174, noCall, no},
		{"swapon", 167, 224, no},
		{"swapoff", 168, 225, no},
		{"acct", 163, 89, no},
		{"settimeofday", 164, 170, no},
		{"clock_settime", 227, 112, no},
		{"clock_adjtime", 305, 266, no},
		{"adjtimex", 159, 171, no},
		{"sethostname", 170, 161, no},
		{"setdomainname", 171, 162, no},
		{"syslog", 103, 116, no},
		{"iopl", 172, noCall, no},
		{"ioperm", 173, noCall, no},
		{"vhangup", 153, 58, no},

		// where faults of the kernel were found
		{"bpf", 321, 280, no},
		{"perf_event_open", 298, 241, no},
		{"userfaultfd", 323, 282, no},
		{"keyctl", 250, 219, no},
		{"add_key", 248, 217, no},
		{"request_key", 249, 218, no},
		{"io_uring_setup", 425, 425, unknown},
		{"io_uring_enter", 426, 426, unknown},
		{"io_uring_register", 427, 427, unknown},

		// a program that others run as this user; of a file that is created as one, the kernel clears the bit when it is written
		{"chmod", 90, noCall, mode(1)},
		{"fchmod", 91, 52, mode(1)},
		{"fchmodat", 268, 53, mode(2)},
		{"fchmodat2", 452, 452, mode(2)},

		// typing into a terminal for its user
		{"ioctl", 16, 29, ioctl},
	}
}

// tiocLinux is TIOCLINUX, which x/sys does not define on every system.
const tiocLinux = 0x541c

// strangerRules deny what reaches processes of others if the command has no
// namespaces of its own: shared memory, semaphores and queues (as on a kernel
// without them), and the limits and priorities of other processes.
func strangerRules() []rule {
	no, unknown := failWith(unix.EPERM), failWith(unix.ENOSYS)
	// Reading limits is allowed: the new limits are a null pointer (both halves).
	reading := argument(2, whenIs(0, loading(atArgs+8*2+4, whenIs(0, letPass(), no)), no))
	priority := argument(0, whenIs(unix.PRIO_USER, no, argument(1, whenIs(0, letPass(), no))))
	return []rule{
		{"prlimit64", 302, 261, argument(0, whenIs(0, letPass(), reading))},
		{"setpriority", 141, 140, priority},
		{"shmget", 29, 194, unknown},
		{"shmat", 30, 196, unknown},
		{"shmctl", 31, 195, unknown},
		{"semget", 64, 190, unknown},
		{"semop", 65, 193, unknown},
		{"semctl", 66, 191, unknown},
		{"semtimedop", 220, 192, unknown},
		{"msgget", 68, 186, unknown},
		{"msgsnd", 69, 189, unknown},
		{"msgrcv", 70, 188, unknown},
		{"msgctl", 71, 187, unknown},
		{"mq_open", 240, 180, unknown},
		{"mq_unlink", 241, 181, unknown},
	}
}

// starterRules deny signals to the process that starts the command, by the numbers of that process
// and of this thread. Landlock allows them to this thread, because it has the command's rules, and
// such a signal ends the process, which could then not end what the command has left. Where
// Landlock does not restrict signals they also deny one to every process.
func starterRules(abi int) []rule {
	no := failWith(unix.EPERM)
	starter := func(otherwise block) block {
		return argument(0, whenIs(uint32(unix.Getpid()), no, whenIs(uint32(unix.Gettid()), no, otherwise)))
	}
	kill := starter(letPass())
	if abi < 6 {
		kill = starter(whenIs(everyProcess, no, letPass()))
	}
	return []rule{
		{"kill", 62, 129, kill},
		{"tkill", 200, 130, starter(letPass())},
		{"tgkill", 234, 131, starter(letPass())},
		{"rt_sigqueueinfo", 129, 138, starter(letPass())},
		{"rt_tgsigqueueinfo", 297, 240, starter(letPass())},
		{"pidfd_send_signal", 424, 424, no},                                  // whose number a filter does not see
		{"fcntl", 72, 25, argument(1, whenIs(unix.F_SETSIG, no, letPass()))}, // a signal when a file is ready
	}
}

// connectingRules deny TCP Fast Open, which connects without the connect call and
// so bypasses Landlock.
func connectingRules() []rule {
	fast := func(flags uint32) block {
		return argument(flags, whenAny(unix.MSG_FASTOPEN, failWith(unix.EACCES), letPass()))
	}
	return []rule{
		{"sendto", 44, 206, fast(3)},
		{"sendmsg", 46, 211, fast(2)},
		{"sendmmsg", 307, 269, fast(3)},
	}
}

// kindOfSocket are the bits of a socket's type that are not flags.
const kindOfSocket = 0xf

// socketVerdict allows Unix, Internet and routing sockets. If Landlock is the only wall,
// it allows Internet sockets only for TCP and only from ABI 4, which can restrict
// their ports, and Unix sockets only from ABI 9, which can restrict those with a
// path, such as a container daemon's.
func socketVerdict(p sandbox.Policy, abi int) block {
	local := letPass()
	if !p.Wall.Mounts() && abi < 9 {
		local = failWith(unix.EACCES)
	}
	internet := internetVerdict(p, abi)
	routing := argument(2, whenIs(unix.NETLINK_ROUTE, letPass(), failWith(unix.EAFNOSUPPORT)))
	other := whenIs(unix.AF_NETLINK, routing, failWith(unix.EAFNOSUPPORT))
	return argument(0, whenIs(unix.AF_UNIX, local, whenIs(unix.AF_INET, internet, whenIs(unix.AF_INET6, internet, other))))
}

func internetVerdict(p sandbox.Policy, abi int) block {
	closed := failWith(unix.EACCES)
	switch {
	case !closesNet(p):
		// The kernel reads this type as AF_PACKET, whatever the family is.
		return argument(1, masked(kindOfSocket, whenIs(unix.SOCK_PACKET, failWith(unix.EAFNOSUPPORT), letPass())))
	case abi < 4:
		return closed
	}
	tcp := argument(2, whenIs(0, letPass(), whenIs(unix.IPPROTO_TCP, letPass(), closed)))
	return argument(1, masked(kindOfSocket, whenIs(unix.SOCK_STREAM, tcp, closed)))
}

// pairVerdict allows Unix sockets. If Landlock cannot restrict them it denies
// datagram sockets: a connected one can still send to any path.
func pairVerdict(p sandbox.Policy, abi int) block {
	kinds := letPass()
	if !p.Wall.Mounts() && abi < 9 {
		kinds = argument(1, masked(kindOfSocket, whenIs(unix.SOCK_STREAM, letPass(), whenIs(unix.SOCK_SEQPACKET, letPass(), failWith(unix.EACCES)))))
	}
	return argument(0, whenIs(unix.AF_UNIX, kinds, failWith(unix.EAFNOSUPPORT)))
}

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
