package wall

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hone/internal/crashtest/waittest"
	"hone/sandbox"
	"hone/sandbox/internal/runtest"
)

// The first argument makes the test binary a server at the addresses that follow, a
// client of the URLs that follow, or a hone that keeps a server open and is killed.
const (
	webServer = "hone-web-server"
	webClient = "hone-web-client"
	webHolder = "hone-web-holder"
)

// webChild does the work of those and exits.
func webChild() {
	if len(os.Args) < 2 {
		return
	}
	switch args := os.Args[2:]; os.Args[1] {
	case webServer:
		for _, addr := range args {
			l := must(net.Listen("tcp", addr))
			fmt.Println("listening at", addr)
			go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "served at %s", addr) }))
		}
		select {}
	case webClient:
		for _, url := range args {
			fmt.Println(fetch(http.DefaultClient, url))
		}
	case webHolder:
		holdServer(sandbox.Wall(args[0]), args[1])
	default:
		return
	}
	os.Exit(0)
}

// fetch returns the contents of a URL, or the error.
func fetch(client *http.Client, url string) string {
	response, err := client.Get(url)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

// binary returns the path of this test binary.
func binary() string { return must(filepath.EvalSymlinks(must(os.Executable()))) }

// showBinary adds the test binary to a policy.
func showBinary(p *sandbox.Policy) { p.Read = append(p.Read, binary()) }

// held is a shell that runs the lines that it receives, and its servers.
type held struct {
	*sandbox.Running
	orders *os.File
	out    *io.PipeWriter
	lines  chan string // what it prints
}

// holdShell starts a shell that ends with the test.
func holdShell(t *testing.T, ctx context.Context, w *Walls, dir string) *held {
	t.Helper()
	r, orders := must2(os.Pipe())
	defer r.Close()
	out, in := io.Pipe()
	c := sandbox.Command{Argv: []string{"bash", "-c", `while read -r line; do eval "$line"; done; echo done; exit 7`}, Dir: dir, Env: []string{"PATH=/usr/bin:/bin"}, Stdin: r, LiveOut: in}
	running, err := w.Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	h := &held{Running: running, orders: orders, out: in, lines: make(chan string, 100)}
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			h.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		orders.Close()
		_, _ = h.Wait()
		in.Close()
	})
	return h
}

// serve starts a server in the background and waits until it listens.
func (h *held) serve(addrs ...string) {
	must(fmt.Fprintf(h.orders, "'%s' %s %s &\n", binary(), webServer, strings.Join(addrs, " ")))
	for range addrs {
		<-h.lines
	}
}

// client returns a client that connects to ports of the command.
func (h *held) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
		_, port, _ := net.SplitHostPort(addr)
		return h.Dial(ctx, must(strconv.Atoi(port)))
	}}}
}

// freePort returns a port that is free at all of the hosts. It is below those that
// the kernel gives to clients, so that no connection of another test takes it, and below
// those of other packages' servers.
func freePort(t *testing.T, hosts ...string) string {
	t.Helper()
	for _, host := range hosts {
		l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			t.Skip("SKIPPED: ", err)
		}
		l.Close()
	}
	for range 100 {
		port := strconv.Itoa(2_000 + rand.IntN(8_000))
		if !slices.ContainsFunc(hosts, func(host string) bool { return !isFree(host, port) }) {
			return port
		}
	}
	t.Fatal("there is no free port")
	return ""
}

func isFree(host, port string) bool {
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err == nil {
		l.Close()
	}
	return err == nil
}

// Only the process that started a server behind walls can reach its ports from
// outside.
func TestDial(t *testing.T) {
	four, six, none := freePort(t, "127.0.0.1"), freePort(t, "::1"), freePort(t, "127.0.0.1")
	everyWall(t, showBinary, func(t *testing.T, w *Walls, dir string) {
		h := holdShell(t, context.Background(), w, dir)
		h.serve("127.0.0.1:"+four, "[::1]:"+six)
		for port, addr := range map[string]string{four: "127.0.0.1:" + four, six: "[::1]:" + six} {
			if got := fetch(h.client(), "http://any:"+port); got != "served at "+addr {
				t.Errorf("port %s: %s", port, got)
			}
			conn, err := net.Dial("tcp", addr)
			if err == nil {
				conn.Close()
			}
			if w.spec.ownNet() != errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("from this machine %s: %v", addr, err)
			}
		}
		if _, err := h.Dial(context.Background(), must(strconv.Atoi(none))); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("without a listener: %v", err)
		}
		for _, port := range []int{-1, 0, 65536} {
			if _, err := h.Dial(context.Background(), port); err == nil || !strings.HasSuffix(err.Error(), "ports have numbers from 1 to 65535") {
				t.Errorf("port %d: %v", port, err)
			}
		}
		checkConn(t, must(h.Dial(context.Background(), must(strconv.Atoi(four)))), "served at 127.0.0.1:"+four)
		h.end(t, must(strconv.Atoi(four)))
	})
}

// checkConn checks that a connection to a web server works like any other.
func checkConn(t *testing.T, c net.Conn, want string) {
	t.Helper()
	defer c.Close()
	if _, err := runtest.ReadSoon(c); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("past the deadline: %v", err)
	}
	must(io.WriteString(c, "GET / HTTP/1.0\r\n\r\n"))
	must(0, c.(interface{ CloseWrite() error }).CloseWrite())
	if text, err := io.ReadAll(c); err != nil || !bytes.HasSuffix(text, []byte(want)) {
		t.Errorf("%q, %v", text, err)
	}
	if c.RemoteAddr() == nil || c.LocalAddr() == nil {
		t.Errorf("from %v to %v", c.LocalAddr(), c.RemoteAddr())
	}
}

// end stops the shell and checks its result.
func (h *held) end(t *testing.T, port int) {
	t.Helper()
	h.orders.Close()
	r, err := h.Wait()
	if err != nil || r.Exit != 7 || !bytes.HasSuffix(r.Stdout, []byte("done\n")) {
		t.Errorf("%v, exit %d %s, stdout %q, stderr %q", err, r.Exit, r.Signal, r.Stdout, r.Stderr)
	}
	h.out.Close()
	<-h.Done()
	if _, err := h.Dial(context.Background(), port); !errors.Is(err, sandbox.ErrEnded) {
		t.Errorf("after the end: %v", err)
	}
}

// A command behind walls reaches a server behind other walls through a door, and
// nothing else. The forwarding reports each request.
func TestForwardByDial(t *testing.T) {
	port := freePort(t, "::1", "127.0.0.1")
	// Dial tries 127.0.0.1 first, where a server of another test could have the port.
	bound := must(unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))
	defer unix.Close(bound)
	must(0, unix.Bind(bound, &unix.SockaddrInet4{Port: must(strconv.Atoi(port)), Addr: [4]byte{127, 0, 0, 1}}))
	everyWall(t, showBinary, func(t *testing.T, w *Walls, dir string) {
		h := holdShell(t, context.Background(), w, dir)
		h.serve("[::1]:" + port)
		var reached atomic.Int64
		f := sandbox.ForwardBy("127.0.0.1:0", func(ctx context.Context) (net.Conn, error) { return h.Dial(ctx, must(strconv.Atoi(port))) }, func() { reached.Add(1) })
		defer f.Close()
		p := system(w.Grade().Wall)
		p.Doors = []sandbox.Door{f.Door()}
		showBinary(&p)
		other, err := Build(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		url := "http://" + other.DoorAddr(0)
		for range 2 {
			r := must(other.Run(context.Background(), sandbox.Command{Argv: []string{binary(), webClient, url, url, "http://[::1]:" + port}, Dir: "/", Timeout: waittest.Limit}))
			lines := strings.SplitN(string(r.Stdout), "\n", 3)
			if want := "served at [::1]:" + port; len(lines) != 3 || lines[0] != want || lines[1] != want {
				t.Fatalf("%q, %s", r.Stdout, r.Stderr)
			}
			if w.spec.Policy.Wall != sandbox.NoWall && strings.Contains(lines[2], "served") {
				t.Errorf("past the door: %s", lines[2])
			}
		}
		if n := reached.Load(); n != 4 {
			t.Errorf("reached was called %d times", n)
		}
	})
}

func TestStartErrorsBehindWalls(t *testing.T) {
	everyWall(t, nil, func(t *testing.T, w *Walls, dir string) {
		if _, err := w.Start(context.Background(), sandbox.Command{Argv: []string{"./gone"}, Dir: dir}); err == nil || err.Error() != "start ./gone: there is no such file" {
			t.Errorf("a missing program: %v", err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := w.Start(ctx, inside(dir, "true")); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		running, err := w.Start(context.Background(), inside(dir, "exit 3"))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if r, err := running.Wait(); err != nil || r.Exit != 3 || r.Duration <= 0 {
				t.Errorf("%v, %+v", err, r)
			}
		}
	})
}

// The context stops a command that stays open, its servers, and the connections to
// them.
func TestCancelStopsRunning(t *testing.T) {
	port := freePort(t, "127.0.0.1")
	everyWall(t, showBinary, func(t *testing.T, w *Walls, dir string) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		h := holdShell(t, ctx, w, dir)
		h.serve("127.0.0.1:" + port)
		n := must(strconv.Atoi(port))
		conn := must(h.Dial(context.Background(), n))
		defer conn.Close()
		var dialling sync.WaitGroup
		for range 8 {
			dialling.Go(func() {
				for {
					select {
					case <-h.Done():
						return
					default:
					}
					if c, err := h.Dial(context.Background(), n); err == nil {
						c.Close()
					}
				}
			})
		}
		cancel()
		if r, err := h.Wait(); err != nil || r.Exit != -1 || r.TimedOut {
			t.Errorf("%v, %+v", err, r)
		}
		dialling.Wait()
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Error("the connection is still open")
		}
		if pids := left(t, "127.0.0.1:"+port); len(pids) > 0 {
			t.Errorf("left behind: %v", pids)
		}
	})
}

// holdServer keeps a server open and prints a line when it was reached.
func holdServer(wall sandbox.Wall, port string) {
	p := system(wall)
	showBinary(&p)
	w := must(Build(context.Background(), p))
	c := sandbox.Command{Argv: []string{binary(), webServer, "127.0.0.1:" + port}, Dir: "/", LiveOut: runtest.OnWrite(func() {})}
	h := must(w.Start(context.Background(), c))
	for {
		conn, err := h.Dial(context.Background(), must(strconv.Atoi(port)))
		if err == nil {
			defer conn.Close()
			break
		}
		time.Sleep(time.Millisecond)
	}
	fmt.Println("reached")
	_, _ = h.Wait()
}

// A command that stays open dies with a hone that is killed, even while hone is
// connected to it.
func TestRunningDiesWithHone(t *testing.T) {
	port := freePort(t, "127.0.0.1")
	everyWall(t, showBinary, func(t *testing.T, w *Walls, dir string) {
		hone := exec.Command(binary(), webHolder, string(w.Grade().Wall), port)
		out := must(hone.StdoutPipe())
		must(0, hone.Start())
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "reached\n" {
			t.Fatalf("%q, %v", line, err)
		}
		if !waittest.Until(func() bool { return len(left(t, "127.0.0.1:"+port)) > 0 }) {
			t.Error("there is no server")
		}
		must(0, hone.Process.Kill())
		_ = hone.Wait()
		if !waittest.Until(func() bool { return len(left(t, "127.0.0.1:"+port)) == 0 }) {
			t.Errorf("they outlived hone: %v", left(t, "127.0.0.1:"+port))
		}
	})
}

func TestDialLeavesNothingInThisProcess(t *testing.T) {
	port, none := freePort(t, "127.0.0.1"), freePort(t, "127.0.0.1")
	everyWall(t, showBinary, func(t *testing.T, w *Walls, dir string) {
		once := func() {
			h := holdShell(t, context.Background(), w, dir)
			h.serve("127.0.0.1:" + port)
			var all sync.WaitGroup
			for i := range 40 {
				all.Go(func() {
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					if i%2 == 1 {
						go cancel()
					}
					if c, err := h.Dial(ctx, must(strconv.Atoi([]string{port, none}[i/2%2]))); err == nil {
						c.Close()
					}
				})
			}
			all.Wait()
			h.end(t, 1)
		}
		once()
		goroutines, files := runtime.NumGoroutine(), runtest.OpenFiles(t)
		once()
		if !waittest.Until(func() bool { return runtime.NumGoroutine() <= goroutines && runtest.OpenFiles(t) <= files }) {
			t.Errorf("%d goroutines, before %d; %d open files, before %d", runtime.NumGoroutine(), goroutines, runtest.OpenFiles(t), files)
		}
	})
}

func TestDialAsAnOrdinaryUser(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: it is TestDial for another user")
	}
	asOrdinaryUser(t, "^Test(Dial|ForwardByDial|CancelStopsRunning|RunningDiesWithHone)$")
}

// A connection that comes too late is closed, and so is what was not asked for.
func TestLateAnswers(t *testing.T) {
	ours, file := must2(newControl())
	files := runtest.OpenFiles(t)
	l := &walled{control: ours, over: make(chan struct{})}
	theirs := control{int(file.Fd())}
	go l.listen(nil, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := l.dial(ctx, 80); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without an answer: %v", err)
	}
	asked, fds, err := theirs.receive()
	if err != nil || asked.Dial != 80 || len(fds) != 1 {
		t.Fatalf("%+v, %v, %v", asked, fds, err)
	}
	answer := control{fds[0]}
	if err := answer.send(message{}, theirs.fd); !errors.Is(err, unix.EPIPE) {
		t.Errorf("sending after the dial was canceled: error %v, want EPIPE", err)
	}
	answer.close()
	go func() {
		_, fds, _ := theirs.receive()
		pair := must(unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))
		_ = control{fds[0]}.send(message{}, pair[0], pair[1])
		for _, fd := range append(fds, pair[:]...) {
			_ = unix.Close(fd)
		}
		_ = file.Close()
	}()
	conn := must(l.dial(t.Context(), 80))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the second socket is still open: %v", err)
	}
	conn.Close()
	<-l.over
	if _, err := l.dial(t.Context(), 80); !errors.Is(err, sandbox.ErrEnded) {
		t.Errorf("after the end: %v", err)
	}
	if n := runtest.OpenFiles(t); n >= files {
		t.Errorf("%d open files, before %d with the other end", n, files)
	}
	ours.close()
}
