package kernel

import (
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"hone/sandbox"
)

// verdict is the decision of a filter about a call, and how it was reached.
type verdict struct {
	err      unix.Errno // 0 means that the call is allowed
	argument bool       // the filter inspected an argument
}

// judge runs a filter as the kernel does.
func judge(t *testing.T, program block, arch, call uint32, args ...uint64) verdict {
	t.Helper()
	data := map[uint32]uint32{atCall: call, atArch: arch}
	for i := range uint32(6) {
		data[atArgs+8*i], data[atArgs+8*i+4] = 0, 0
		if int(i) < len(args) {
			data[atArgs+8*i], data[atArgs+8*i+4] = uint32(args[i]), uint32(args[i]>>32)
		}
	}
	var v verdict
	var a uint32
	jumpIf := func(at *int, in unix.SockFilter, yes bool) {
		if yes {
			*at += int(in.Jt)
		} else {
			*at += int(in.Jf)
		}
	}
	for at := 0; at < len(program); at++ {
		in := program[at]
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			word, ok := data[in.K]
			if !ok {
				t.Fatalf("loads from %d", in.K)
			}
			a, v.argument = word, v.argument || in.K >= atArgs
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			a &= in.K
		case unix.BPF_JMP | unix.BPF_JA:
			at += int(in.K)
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jumpIf(&at, in, a == in.K)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			jumpIf(&at, in, a >= in.K)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			jumpIf(&at, in, a&in.K != 0)
		case unix.BPF_RET | unix.BPF_K:
			if in.K != unix.SECCOMP_RET_ALLOW {
				if in.K&^0xffff != unix.SECCOMP_RET_ERRNO {
					t.Fatalf("returns %#x", in.K)
				}
				v.err = unix.Errno(in.K & 0xffff)
			}
			return v
		default:
			t.Fatalf("instruction %#x", in.Code)
		}
	}
	t.Fatal("ran out of the program")
	return v
}

// testMachines returns the machines for which filters exist.
func testMachines() map[string]machine {
	return map[string]machine{"amd64": amd64(), "arm64": arm64()}
}

// numberOf returns the number of a call. The map has those of calls without rules.
func numberOf(t *testing.T, m machine, p sandbox.Policy, abi int, name string) (number uint32, ok bool) {
	t.Helper()
	free := map[string]rule{
		"read": {amd64: 0, arm64: 63}, "write": {amd64: 1, arm64: 64}, "openat": {amd64: 257, arm64: 56},
		"futex": {amd64: 202, arm64: 98}, "execve": {amd64: 59, arm64: 221}, "mmap": {amd64: 9, arm64: 222},
		"connect": {amd64: 42, arm64: 203}, "ptrace": {amd64: 101, arm64: 117}, "seccomp": {amd64: 317, arm64: 277},
		"landlock_restrict_self": {amd64: 446, arm64: 446}, "bind": {amd64: 49, arm64: 200},
	}
	one, ok := free[name]
	for _, other := range slices.Concat(rulesFor(p, abi), rulesFor(sandbox.Policy{Wall: sandbox.Landlock}, 1)) {
		if !ok && other.name == name {
			one, ok = other, true
		}
	}
	if !ok {
		t.Fatalf("no call %s", name)
	}
	return uint32(m.number(one)), m.number(one) != noCall
}

// high is a value in the upper half of an argument.
const high = 7 << 32

// decision is a call and the expected error on every machine; 0 means that the call is
// allowed.
type decision struct {
	p    sandbox.Policy
	abi  int
	call string
	args []uint64
	want unix.Errno
}

func TestFilterDecides(t *testing.T) {
	mounts, strict, strictNet := sandbox.Policy{Wall: sandbox.Hidden}, sandbox.Policy{Wall: sandbox.Landlock}, sandbox.Policy{Wall: sandbox.Landlock, Net: true}
	all := slices.Concat(kernelDecisions(mounts, strict), socketDecisions(mounts, strict, strictNet), strangerDecisions(mounts, strict, strictNet))
	for _, test := range all {
		for name, m := range testMachines() {
			t.Run(fmt.Sprintf("%s/%s/%x", name, test.call, test.args), func(t *testing.T) {
				program, _ := filter(test.p, m, test.abi)
				number, ok := numberOf(t, m, test.p, test.abi, test.call)
				if !ok {
					return
				}
				if got := judge(t, program, m.arch, number, test.args...); got.err != test.want {
					t.Errorf("%d (%v), want %d (%v)", got.err, got.err, test.want, test.want)
				}
			})
		}
	}
}

func kernelDecisions(mounts, strict sandbox.Policy) []decision {
	return []decision{
		{strict, 7, "read", nil, 0},
		{strict, 7, "openat", nil, 0},
		{strict, 7, "connect", nil, 0},
		{strict, 7, "bind", nil, 0},
		{strict, 7, "ptrace", nil, 0},
		{strict, 7, "seccomp", nil, 0},
		{strict, 7, "landlock_restrict_self", nil, 0},
		{mounts, 7, "mount", nil, unix.EPERM},
		{mounts, 7, "umount2", nil, unix.EPERM},
		{mounts, 7, "move_mount", nil, unix.EPERM},
		{mounts, 7, "open_tree_attr", nil, unix.EPERM},
		{mounts, 7, "chroot", nil, unix.EPERM},
		{mounts, 7, "setns", nil, unix.EPERM},
		{mounts, 7, "bpf", nil, unix.EPERM},
		{mounts, 7, "keyctl", nil, unix.EPERM},
		{mounts, 7, "clone3", nil, unix.ENOSYS},
		{mounts, 7, "io_uring_setup", nil, unix.ENOSYS},
		{mounts, 7, "io_uring_enter", nil, unix.ENOSYS},
		{mounts, 7, "iopl", nil, unix.EPERM},
		{mounts, 7, "clone", []uint64{unix.CLONE_VM | unix.CLONE_VFORK | uint64(unix.SIGCHLD)}, 0},
		{mounts, 7, "clone", []uint64{unix.CLONE_VM | unix.CLONE_THREAD | unix.CLONE_SIGHAND | unix.CLONE_FILES | unix.CLONE_PARENT_SETTID}, 0},
		{mounts, 7, "clone", []uint64{unix.CLONE_NEWUSER | uint64(unix.SIGCHLD)}, unix.EPERM},
		{mounts, 7, "clone", []uint64{high | unix.CLONE_NEWNET}, unix.EPERM},
		{mounts, 7, "clone", []uint64{unix.CLONE_NEWNS}, unix.EPERM},
		{mounts, 7, "clone", []uint64{unix.CLONE_NEWCGROUP}, unix.EPERM},
		{mounts, 7, "unshare", []uint64{unix.CLONE_FILES | unix.CLONE_FS | unix.CLONE_SYSVSEM}, 0},
		{mounts, 7, "unshare", []uint64{unix.CLONE_NEWTIME}, unix.EPERM},
		{mounts, 7, "unshare", []uint64{unix.CLONE_NEWUSER | unix.CLONE_FILES}, unix.EPERM},
		{mounts, 7, "unshare", []uint64{unix.CLONE_NEWPID}, unix.EPERM},
		{mounts, 7, "chmod", []uint64{1, 0o2777}, 0},
		{mounts, 7, "chmod", []uint64{1, 0o4755}, unix.EPERM},
		{strict, 7, "fchmod", []uint64{unix.S_ISUID, 0o755}, 0},
		{strict, 7, "fchmod", []uint64{3, high | 0o4000}, unix.EPERM},
		{mounts, 7, "fchmodat", []uint64{3, 1, 0o6755}, unix.EPERM},
		{strict, 7, "fchmodat2", []uint64{3, 1, 0o4711}, unix.EPERM},
		{mounts, 7, "ioctl", []uint64{1, unix.TCGETS}, 0},
		{mounts, 7, "ioctl", []uint64{1, unix.TIOCSTI}, unix.EPERM},
		{mounts, 7, "ioctl", []uint64{1, high | unix.TIOCSTI}, unix.EPERM},
		{mounts, 7, "ioctl", []uint64{1, tiocLinux}, unix.EPERM},
		{mounts, 7, "ioctl", []uint64{unix.TIOCSTI, unix.TIOCGWINSZ}, 0},
	}
}

func socketDecisions(mounts, strict, strictNet sandbox.Policy) []decision {
	const udp = unix.SOCK_DGRAM | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK
	const tcp = unix.SOCK_STREAM | unix.SOCK_CLOEXEC
	return []decision{
		{mounts, 7, "socket", []uint64{unix.AF_UNIX, udp}, 0},
		{mounts, 7, "socket", []uint64{unix.AF_INET, udp, unix.IPPROTO_UDP}, 0},
		{mounts, 7, "socket", []uint64{unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6}, 0},
		{mounts, 7, "socket", []uint64{unix.AF_INET, unix.SOCK_PACKET | unix.SOCK_CLOEXEC, 3}, unix.EAFNOSUPPORT},
		{mounts, 7, "socket", []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, 0},
		{mounts, 7, "socket", []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT}, unix.EAFNOSUPPORT},
		{mounts, 7, "socket", []uint64{unix.AF_NETLINK, unix.SOCK_RAW, high | unix.NETLINK_NETFILTER}, unix.EAFNOSUPPORT},
		{mounts, 7, "socket", []uint64{unix.AF_VSOCK, tcp}, unix.EAFNOSUPPORT},
		{mounts, 7, "socket", []uint64{high | unix.AF_VSOCK, tcp}, unix.EAFNOSUPPORT},
		{mounts, 7, "socket", []uint64{unix.AF_PACKET, unix.SOCK_RAW}, unix.EAFNOSUPPORT},
		{mounts, 7, "socket", []uint64{unix.AF_ALG, unix.SOCK_SEQPACKET}, unix.EAFNOSUPPORT},
		{mounts, 7, "socket", []uint64{unix.AF_BLUETOOTH, unix.SOCK_RAW}, unix.EAFNOSUPPORT},
		{mounts, 7, "socket", []uint64{unix.AF_UNSPEC, tcp}, unix.EAFNOSUPPORT},
		{mounts, 7, "socketpair", []uint64{unix.AF_UNIX, unix.SOCK_DGRAM}, 0},
		{mounts, 7, "socketpair", []uint64{unix.AF_TIPC, unix.SOCK_DGRAM}, unix.EAFNOSUPPORT},
		{mounts, 7, "sendto", []uint64{3, 0, 0, unix.MSG_FASTOPEN}, 0},
		{strict, 7, "socket", []uint64{unix.AF_INET, tcp, 0}, 0},
		{strict, 7, "socket", []uint64{unix.AF_INET6, tcp | unix.SOCK_NONBLOCK, unix.IPPROTO_TCP}, 0},
		{strict, 7, "socket", []uint64{unix.AF_INET, tcp, unix.IPPROTO_MPTCP}, unix.EACCES},
		{strict, 7, "socket", []uint64{unix.AF_INET, tcp, unix.IPPROTO_SCTP}, unix.EACCES},
		{strict, 7, "socket", []uint64{unix.AF_INET, tcp, high}, 0},
		{strict, 7, "socket", []uint64{unix.AF_INET, high | udp, 0}, unix.EACCES},
		{strict, 7, "socket", []uint64{unix.AF_INET6, udp, 0}, unix.EACCES},
		{strict, 7, "socket", []uint64{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_TCP}, unix.EACCES},
		{strict, 7, "socket", []uint64{unix.AF_INET, unix.SOCK_PACKET, 0}, unix.EACCES},
		{strict, 3, "socket", []uint64{unix.AF_INET, tcp, 0}, unix.EACCES},
		{strict, 4, "socket", []uint64{unix.AF_INET, tcp, 0}, 0},
		{strict, 8, "socket", []uint64{unix.AF_UNIX, tcp}, unix.EACCES},
		{strict, 9, "socket", []uint64{unix.AF_UNIX, tcp}, 0},
		{strict, 7, "socket", []uint64{unix.AF_NETLINK, unix.SOCK_DGRAM, 0}, 0},
		{strict, 7, "socketpair", []uint64{unix.AF_UNIX, tcp}, 0},
		{strict, 7, "socketpair", []uint64{unix.AF_UNIX, unix.SOCK_SEQPACKET | unix.SOCK_NONBLOCK}, 0},
		{strict, 7, "socketpair", []uint64{unix.AF_UNIX, udp}, unix.EACCES},
		{strict, 7, "socketpair", []uint64{unix.AF_UNIX, unix.SOCK_RAW}, unix.EACCES},
		{strict, 9, "socketpair", []uint64{unix.AF_UNIX, udp}, 0},
		{strict, 7, "sendto", []uint64{3, 0, 0, unix.MSG_NOSIGNAL}, 0},
		{strict, 7, "sendto", []uint64{3, 0, 0, high | unix.MSG_FASTOPEN | unix.MSG_NOSIGNAL}, unix.EACCES},
		{strict, 7, "sendmsg", []uint64{3, 0, unix.MSG_FASTOPEN}, unix.EACCES},
		{strict, 7, "sendmmsg", []uint64{3, 0, 1, unix.MSG_FASTOPEN}, unix.EACCES},
		{strictNet, 7, "socket", []uint64{unix.AF_INET, udp, 0}, 0},
		{strictNet, 7, "socket", []uint64{unix.AF_UNIX, tcp}, unix.EACCES},
		{strictNet, 3, "socket", []uint64{unix.AF_INET, tcp, 0}, 0},
		{strictNet, 7, "sendto", []uint64{3, 0, 0, unix.MSG_FASTOPEN}, 0},
	}
}

func strangerDecisions(mounts, strict, strictNet sandbox.Policy) []decision {
	return []decision{
		{mounts, 7, "prlimit64", []uint64{99, 7, 0x1000}, 0},
		{mounts, 7, "shmget", nil, 0},
		{mounts, 7, "kill", []uint64{1<<64 - 1, 9}, 0},
		{mounts, 2, "truncate", nil, 0},
		{strict, 7, "shmget", nil, unix.ENOSYS},
		{strict, 7, "mq_open", nil, unix.ENOSYS},
		{strict, 7, "prlimit64", []uint64{0, 7, 0x1000}, 0},
		{strict, 7, "prlimit64", []uint64{99, 7, 0}, 0},
		{strict, 7, "prlimit64", []uint64{99, 7, 0x1000}, unix.EPERM},
		{strict, 7, "prlimit64", []uint64{99, 7, high}, unix.EPERM},
		{strict, 7, "setpriority", []uint64{unix.PRIO_PROCESS, 0, 5}, 0},
		{strict, 7, "setpriority", []uint64{unix.PRIO_PROCESS, 99, 5}, unix.EPERM},
		{strict, 7, "setpriority", []uint64{unix.PRIO_USER, 0, 5}, unix.EPERM},
		{strict, 5, "kill", []uint64{1<<64 - 1, 15}, unix.EPERM},
		{strict, 5, "kill", []uint64{99, 15}, 0},
		{strict, 6, "kill", []uint64{1<<64 - 1, 15}, 0},
		{strict, 2, "truncate", nil, unix.EPERM},
		{strict, 3, "truncate", nil, 0},
		{strictNet, 7, "shmat", nil, unix.ENOSYS},
	}
}

func TestFilterRefusesOtherConventions(t *testing.T) {
	const i386, x32 = 0x40000003, 1 << 30
	for name, m := range testMachines() {
		program, _ := filter(sandbox.Policy{Wall: sandbox.Landlock}, m, 7)
		for call := range uint32(600) {
			if got := judge(t, program, i386, call); got.err != unix.ENOSYS {
				t.Fatalf("%s: call %d of another machine: %v", name, call, got.err)
			}
			if got := judge(t, program, m.arch, x32|call); got.err != unix.ENOSYS {
				t.Fatalf("%s: x32 call %d: %v", name, call, got.err)
			}
		}
		if got := judge(t, program, m.arch, 1<<32-1); got.err != unix.ENOSYS {
			t.Errorf("%s: call -1: %v", name, got.err)
		}
	}
}

// A call without a rule must be allowed by its number alone: the
// kernel then remembers it and does not run the filter for it.
func TestFilterIsShort(t *testing.T) {
	for name, m := range testMachines() {
		for _, p := range []sandbox.Policy{{Wall: sandbox.Hidden}, {Wall: sandbox.Landlock}, {Wall: sandbox.Firejail}} {
			program, _ := filter(p, m, 7)
			if len(program) > unix.BPF_MAXINSNS {
				t.Fatalf("%s: %d instructions", name, len(program))
			}
			ruled := map[uint32]bool{}
			for _, one := range rulesFor(p, 7) {
				ruled[uint32(m.number(one))] = true
			}
			for call := range uint32(600) {
				got := judge(t, program, m.arch, call, 1<<64-1, 1<<64-1, 1<<64-1, 1<<64-1, 1<<64-1, 1<<64-1)
				if !ruled[call] && (got.err != 0 || got.argument) {
					t.Errorf("%s: call %d without a rule: %+v", name, call, got)
				}
			}
		}
	}
}

// The numbers for the machine of the tests are those of x/sys.
func TestRulesHaveTheRightNumbers(t *testing.T) {
	numbers := map[string]int{
		"mount": unix.SYS_MOUNT, "umount2": unix.SYS_UMOUNT2, "pivot_root": unix.SYS_PIVOT_ROOT, "chroot": unix.SYS_CHROOT,
		"open_tree": unix.SYS_OPEN_TREE, "open_tree_attr": unix.SYS_OPEN_TREE_ATTR, "move_mount": unix.SYS_MOVE_MOUNT,
		"fsopen": unix.SYS_FSOPEN, "fsconfig": unix.SYS_FSCONFIG, "fsmount": unix.SYS_FSMOUNT, "fspick": unix.SYS_FSPICK,
		"mount_setattr": unix.SYS_MOUNT_SETATTR, "quotactl": unix.SYS_QUOTACTL, "quotactl_fd": unix.SYS_QUOTACTL_FD,
		"open_by_handle_at": unix.SYS_OPEN_BY_HANDLE_AT, "fanotify_init": unix.SYS_FANOTIFY_INIT,
		"setns": unix.SYS_SETNS, "unshare": unix.SYS_UNSHARE, "clone": unix.SYS_CLONE, "clone3": unix.SYS_CLONE3,
		"reboot": unix.SYS_REBOOT, "kexec_load": unix.SYS_KEXEC_LOAD, "kexec_file_load": unix.SYS_KEXEC_FILE_LOAD,
		"init_module": unix.SYS_INIT_MODULE, "finit_module": unix.SYS_FINIT_MODULE, "delete_module": unix.SYS_DELETE_MODULE,
		"swapon": unix.SYS_SWAPON, "swapoff": unix.SYS_SWAPOFF, "acct": unix.SYS_ACCT,
		"settimeofday": unix.SYS_SETTIMEOFDAY, "clock_settime": unix.SYS_CLOCK_SETTIME,
		"clock_adjtime": unix.SYS_CLOCK_ADJTIME, "adjtimex": unix.SYS_ADJTIMEX,
		"sethostname": unix.SYS_SETHOSTNAME, "setdomainname": unix.SYS_SETDOMAINNAME, "syslog": unix.SYS_SYSLOG,
		"vhangup": unix.SYS_VHANGUP, "bpf": unix.SYS_BPF, "perf_event_open": unix.SYS_PERF_EVENT_OPEN,
		"userfaultfd": unix.SYS_USERFAULTFD, "keyctl": unix.SYS_KEYCTL, "add_key": unix.SYS_ADD_KEY,
		"request_key": unix.SYS_REQUEST_KEY, "io_uring_setup": unix.SYS_IO_URING_SETUP,
		"io_uring_enter": unix.SYS_IO_URING_ENTER, "io_uring_register": unix.SYS_IO_URING_REGISTER,
		"fchmod": unix.SYS_FCHMOD, "fchmodat": unix.SYS_FCHMODAT, "fchmodat2": unix.SYS_FCHMODAT2,
		"ioctl": unix.SYS_IOCTL, "socket": unix.SYS_SOCKET, "socketpair": unix.SYS_SOCKETPAIR,
		"tkill": unix.SYS_TKILL, "tgkill": unix.SYS_TGKILL, "rt_sigqueueinfo": unix.SYS_RT_SIGQUEUEINFO,
		"rt_tgsigqueueinfo": unix.SYS_RT_TGSIGQUEUEINFO, "pidfd_send_signal": unix.SYS_PIDFD_SEND_SIGNAL, "fcntl": unix.SYS_FCNTL,
		"truncate": unix.SYS_TRUNCATE, "kill": unix.SYS_KILL, "prlimit64": unix.SYS_PRLIMIT64,
		"setpriority": unix.SYS_SETPRIORITY, "shmget": unix.SYS_SHMGET, "shmat": unix.SYS_SHMAT,
		"shmctl": unix.SYS_SHMCTL, "semget": unix.SYS_SEMGET, "semop": unix.SYS_SEMOP, "semctl": unix.SYS_SEMCTL,
		"semtimedop": unix.SYS_SEMTIMEDOP, "msgget": unix.SYS_MSGGET, "msgsnd": unix.SYS_MSGSND,
		"msgrcv": unix.SYS_MSGRCV, "msgctl": unix.SYS_MSGCTL, "mq_open": unix.SYS_MQ_OPEN, "mq_unlink": unix.SYS_MQ_UNLINK,
		"sendto": unix.SYS_SENDTO, "sendmsg": unix.SYS_SENDMSG, "sendmmsg": unix.SYS_SENDMMSG,
	}
	if thisMachine().arch == 0 {
		t.Skip("no filter for this machine")
	}
	seen := map[string]bool{}
	for _, r := range rulesFor(sandbox.Policy{Wall: sandbox.Landlock}, 1) {
		want, ok := numbers[r.name]
		switch {
		case seen[r.name]:
			t.Errorf("%s has two rules", r.name)
		case !ok && r.arm64 != noCall:
			t.Errorf("%s is not in the test's list", r.name)
		case ok && thisMachine().number(r) != want:
			t.Errorf("%s is %d, not %d", r.name, want, thisMachine().number(r))
		}
		seen[r.name] = true
	}
	for name := range numbers {
		if !seen[name] {
			t.Errorf("%s has no rule", name)
		}
	}
}
