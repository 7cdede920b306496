package prove

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// listen starts the servers that attempts try to reach.
func (st *stage) listen() error {
	st.identifyNetwork()
	for _, a := range st.all {
		s := st.at(a)
		switch a.Name {
		case "tcp", "tcp-other-port", "tcp-fast-open":
			st.accept(a.Name, "tcp", "127.0.0.1:0")
		case "tcp-ipv6":
			st.accept(a.Name, "tcp", net.JoinHostPort("::1", st.ownPort()))
		case "tcp-address":
			if ip := ownAddress(); ip != "" {
				st.accept(a.Name, "tcp", net.JoinHostPort(ip, st.ownPort()))
			}
		case "mptcp":
			if socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP) == nil {
				st.accept(a.Name, "tcp", "127.0.0.1:0")
			}
		case "udp":
			st.receive(a.Name, "udp", "127.0.0.1:0")
		case "unix-path":
			st.accept(a.Name, "unix", s.outside("socket"))
		case "workspace-socket":
			st.accept(a.Name, "unix", s.endpoint())
		case "workspace-fifo":
			st.openFIFO(s.endpoint())
		case "unix-path-datagram", "unix-pair-datagram":
			st.receive(a.Name, "unixgram", s.outside("socket"))
		case "unix-abstract":
			st.accept(a.Name, "unix", "@"+filepath.Base(st.Dir)+a.Name)
		case "unix-abstract-datagram":
			st.receive(a.Name, "unixgram", "@"+filepath.Base(st.Dir)+a.Name)
		}
	}
	return nil
}

// openFIFO makes a FIFO and opens both its ends, so that an attempt to open it never
// waits.
func (st *stage) openFIFO(path string) {
	if unix.Mkfifo(path, 0o600) != nil {
		return
	}
	if f, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
		st.atEnd(func() { f.Close() })
	}
}

// ownPort returns a port that no other server here gets on 127.0.0.1. Landlock lets
// commands connect to the port of a door at any address, so that a server with the
// door's port would look like a hole.
func (st *stage) ownPort() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "0"
	}
	st.atEnd(func() { l.Close() })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// accept starts a server for connections. If that fails the attempt has no
// address, and its result is unknown.
func (st *stage) accept(name, network, addr string) {
	var config net.ListenConfig
	config.SetMultipathTCP(name == "mptcp")
	l, err := config.Listen(context.Background(), network, addr)
	if err != nil {
		return
	}
	st.Addr[name] = l.Addr().String()
	st.atEnd(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			st.contacts.answer(name)(conn)
		}
	}()
}

// receive starts a server for packets, and answers those of UDP.
func (st *stage) receive(name, network, addr string) {
	conn, err := net.ListenPacket(network, addr)
	if err != nil {
		return
	}
	st.Addr[name] = conn.LocalAddr().String()
	st.atEnd(func() { conn.Close() })
	go func() {
		for {
			_, from, err := conn.ReadFrom(make([]byte, 16))
			if err != nil {
				return
			}
			st.contacts.add(name)
			if network == "udp" {
				_, _ = conn.WriteTo([]byte("x"), from) // the attempt waits for it only for a short time
			}
		}
	}()
}

// ownAddress returns an address of this machine that others can reach; empty if
// there is none.
func ownAddress() string {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	return ""
}

// identifyNetwork finds the machine's name server.
func (st *stage) identifyNetwork() {
	text, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == "nameserver" {
			st.Resolver = net.JoinHostPort(fields[1], "53")
			return
		}
	}
}

// identify records the prover's process, and which of the machine's files and
// devices exist.
func (st *stage) identify() error {
	st.Prover.PID, st.Group = os.Getpid(), unix.Getpgrp()
	var err error
	if st.Prover.Born, err = bornAt(st.Prover.PID); err != nil {
		return err
	}
	if st.PIDSpace, err = os.Readlink("/proc/self/ns/pid"); err != nil {
		return err
	}
	if home, err := os.UserHomeDir(); err == nil && list(home) == nil {
		st.Home = home
	}
	st.There = map[string]bool{}
	for _, path := range append(machineFiles(), filepath.Join(st.Home, ".ssh")) {
		st.There[path] = stat(path) == nil
	}
	devices, _ := os.ReadDir("/dev") // without it there is no such attempt
	for _, d := range devices {
		if d.Type()&os.ModeDevice != 0 && d.Type()&os.ModeCharDevice == 0 {
			st.BlockDevice = "/dev/" + d.Name()
			break
		}
	}
	return nil
}

// share makes shared memory, a queue and other things that processes share by
// number or name. What cannot be made here stays empty.
func (st *stage) share() error {
	if !slices.ContainsFunc(st.all, func(a Attempt) bool { return !a.Short }) {
		return nil
	}
	if id, err := unix.SysvShmGet(unix.IPC_PRIVATE, os.Getpagesize(), unix.IPC_CREAT|unix.IPC_EXCL|0o600); err == nil {
		st.Shm = strconv.Itoa(id)
		st.atEnd(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	}
	name := filepath.Base(st.Dir)
	if openQueue(name, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR) == nil {
		st.Queue = name
		st.atEnd(func() { removeQueue(name) })
	}
	if path := "/dev/shm/" + name; os.WriteFile(path, []byte(st.value), 0o600) == nil {
		st.ShmFile = path
		st.atEnd(func() { os.Remove(path) })
	}
	secret := Scene{Dir: st.Dir, Name: "file-handle"}.outside("secret")
	if handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, secret, 0); err == nil {
		st.Handle, st.HandleType = handle.Bytes(), handle.Type()
	}
	return st.leaveOpen()
}

// leaveOpen opens a descriptor that every program inherits which this one starts.
func (st *stage) leaveOpen() error {
	fd, err := unix.Open(filepath.Join(st.Dir, "outside"), unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	st.FD = fd
	st.atEnd(func() { unix.Close(fd) })
	return nil
}

// startVictim starts the victim and watches it.
func (st *stage) startVictim() error {
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{helperName, "victim"}, Env: []string{keyName + "=" + st.value}, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	v := &victim{cmd: cmd, exited: make(chan struct{})}
	st.atEnd(func() {
		in.Close()
		<-v.exited
	})
	lines := bufio.NewScanner(out)
	if lines.Scan() {
		address, _ := strconv.ParseUint(lines.Text(), 10, 64) // 0 if there is none, which the attempt reports
		st.Address = uintptr(address)
	}
	go v.watch(lines, &st.contacts)
	st.victim, st.Victim.PID = v, cmd.Process.Pid
	st.Victim.Born, err = bornAt(cmd.Process.Pid)
	return err
}

// leftProcesses returns the processes that attempts left behind. Their command lines
// contain the scene's directory, whose name no other program knows.
func (st *stage) leftProcesses() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err == nil && bytes.Contains(line, []byte(st.Dir)) && bytes.HasPrefix(program(line), []byte(helperName)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// program returns a command line whose program is without its directory.
func program(line []byte) []byte {
	path, rest, _ := bytes.Cut(line, []byte{0})
	return slices.Concat(path[bytes.LastIndexByte(path, '/')+1:], []byte{0}, rest)
}

// trace describes what an attempt changed or reached outside; empty if nothing.
func (st *stage) trace(a Attempt) string {
	switch {
	case st.contacts.has(a.Name):
		return "it reached a server outside"
	case st.look(a) != st.before[a.Name]:
		return "it changed something outside"
	case (a.Alone || a.Name == "signal-process") && st.victim.dead():
		return "it ended a process outside"
	case a.Name == "signal-process" && st.contacts.has(victimName):
		return "it signalled a process outside"
	case a.Alone && len(st.leftProcesses()) > 0:
		return fmt.Sprintf("it left %d processes behind", len(st.leftProcesses()))
	case a.Name == "daemon" && locked(st.at(a).work("lock")):
		return "it still runs"
	}
	return ""
}

// killLeft kills the processes that attempts left behind.
func (st *stage) killLeft() {
	for _, pid := range st.leftProcesses() {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}
