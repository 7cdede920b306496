package table

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"hone/sandbox/prove/table/stage"
)

// serve is a Prepare that starts a server for an attempt.
func serve(network string, addr func(scene) string) func(*stage.Stage, scene) (string, error) {
	return func(st *stage.Stage, s scene) (string, error) { return st.Serve(s.Name, network, addr(s)) }
}

func loopback(scene) string     { return "127.0.0.1:0" }
func socketPath(s scene) string { return s.Outside("socket") }

// networkAttempts returns attempts to reach servers outside.
func networkAttempts() []attempt {
	tcp := stage.Stream(unix.IPPROTO_TCP)
	return []attempt{
		{Name: "tcp-address", Try: tcp, Prepare: func(st *stage.Stage, s scene) (string, error) {
			ip := ownAddress()
			if ip == "" {
				return "", stage.Unknown("this machine has no other address")
			}
			return st.Serve(s.Name, "tcp", net.JoinHostPort(ip, ownPort(st)))
		}},
		{Name: "tcp-ipv6", Try: tcp, Prepare: func(st *stage.Stage, s scene) (string, error) {
			return st.Serve(s.Name, "tcp", net.JoinHostPort("::1", ownPort(st)))
		}},
		{Name: "tcp-other-port", Try: tcp, Prepare: serve("tcp", loopback)},
		{Name: "tcp-fast-open", Try: tryFastOpen, Prepare: serve("tcp", loopback)},
		{Name: "mptcp", Try: stage.Stream(unix.IPPROTO_MPTCP), Prepare: func(st *stage.Stage, s scene) (string, error) {
			if err := stage.Socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP); err != nil {
				return "", stage.Unknown("this machine has no MPTCP")
			}
			return st.Serve(s.Name, "tcp", "127.0.0.1:0")
		}},
		{Name: "udp", Try: stage.UDP, Prepare: serve("udp", loopback)},
		{Name: "udp-resolver", Prepare: findResolver, Try: func(s scene) error {
			domain, to, err := stage.Inet(s.Given) // to which nothing is sent
			if err != nil {
				return err
			}
			return stage.Close(stage.Dial(domain, unix.SOCK_DGRAM, 0, to))
		}},
		{Name: "unix-path-datagram", Try: stage.Unix(unix.SOCK_DGRAM), Prepare: serve("unixgram", socketPath)},
		{Name: "unix-pair-datagram", Try: tryPair, Prepare: serve("unixgram", socketPath)},
		{
			Name: "unix-abstract-datagram", Try: stage.Unix(unix.SOCK_DGRAM),
			Prepare: serve("unixgram", func(s scene) string { return "@" + filepath.Base(s.Dir) + s.Name }),
		},
		// For these, having a socket is enough; they connect to nothing.
		{Name: "raw", Try: func(scene) error { return stage.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) }},
		{Name: "packet", Try: func(scene) error { return stage.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0) }},
		{Name: "netlink-audit", Try: func(scene) error { return stage.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT) }},
		{Name: "crypto-socket", Try: func(scene) error { return stage.Socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) }},
	}
}

// ownPort returns a port that no other server here gets on 127.0.0.1. Landlock lets
// commands connect to the port of a door at any address, so that a server with the
// door's port would look like a hole.
func ownPort(st *stage.Stage) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "0"
	}
	st.AtEnd(func() { l.Close() })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
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

// findResolver finds the machine's name server.
func findResolver(*stage.Stage, scene) (string, error) {
	text, _ := os.ReadFile("/etc/resolv.conf") // without it there is none
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == "nameserver" {
			return net.JoinHostPort(fields[1], "53"), nil
		}
	}
	return "", stage.Unknown("no name server")
}

// tryFastOpen connects by sending, without the connect call.
func tryFastOpen(s scene) error {
	domain, to, err := stage.Inet(s.Given)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN|unix.MSG_NOSIGNAL, to)
}

// tryPair sends to a path through one of a pair of sockets.
func tryPair(s scene) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	return unix.Sendto(pair[0], []byte("x"), 0, &unix.SockaddrUnix{Name: s.Given})
}

// sharedAttempts returns attempts on what processes share by name, and those through
// programs of the machine, if they exist.
func sharedAttempts() []attempt {
	return []attempt{
		{
			Name: "message-queue",
			Prepare: func(st *stage.Stage, s scene) (string, error) {
				name := filepath.Base(s.Dir)
				if openQueue(name, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR) != nil {
					return "", stage.Unknown("no message queue")
				}
				st.AtEnd(func() { removeQueue(name) })
				return name, nil
			},
			Try: func(s scene) error { return openQueue(s.Given, unix.O_RDONLY) },
		},
		{Name: "git-outside", Prepare: repository, Try: func(s scene) error {
			return askGit(s, "", "-C", s.Outside(), "config", "--local", "hone.secret")
		}},
		{Name: "git-dir-outside", Prepare: repository, Try: func(s scene) error {
			return askGit(s, "GIT_DIR="+s.Outside(".git"), "config", "--local", "hone.secret")
		}},
		{Name: "sudo", Prepare: installed("sudo"), Try: func(s scene) error { return heldError(exec.Command(s.Given, "-n", "true").Run()) }},
		{Name: "claims", Alone: true, Env: claims(), Try: func(s scene) error { return s.ReadSecret(s.Outside("secret")) }},
	}
}

// claims returns variables that claim that a process already runs behind walls.
// They prove nothing and must change nothing.
func claims() []string {
	return []string{"HONE_SANDBOX=1", "HONE_WALL=none", "container=bwrap", "CODEX_SANDBOX=seatbelt", "IN_NIX_SHELL=pure", "FLATPAK_ID=x", "SNAP=/snap/x", "GEMINI_SANDBOX=1", "SANDBOX_RUNTIME=1"}
}

// installed is a Prepare that looks for a program.
func installed(name string) func(*stage.Stage, scene) (string, error) {
	return func(*stage.Stage, scene) (string, error) {
		path, err := exec.LookPath(name)
		if err != nil {
			return "", stage.Unknown("no " + name)
		}
		return path, nil
	}
}

// repository is a Prepare that makes a repository outside with the secret in its
// configuration.
func repository(st *stage.Stage, s scene) (string, error) {
	for name, text := range map[string]string{
		"config":       "[core]\n\trepositoryformatversion = 0\n[hone]\n\tsecret = " + st.Value + "\n",
		"HEAD":         "ref: refs/heads/main\n",
		"objects/none": "",
		"refs/none":    "",
	} {
		if err := s.Write(s.Outside(".git", name), text); err != nil {
			return "", err
		}
	}
	return installed("git")(st, s)
}

// askGit asks git for the secret in a repository's configuration.
func askGit(s scene, variable string, args ...string) error {
	cmd := exec.Command(s.Given, args...)
	cmd.Dir = s.Work()
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME="+s.Work(), variable)
	text, err := cmd.Output()
	if err != nil {
		return heldError(err)
	}
	return s.Secret(text[:max(len(text)-1, 0)])
}
