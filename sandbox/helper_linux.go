package sandbox

import (
	"bytes"
	"cmp"
	"encoding/gob"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// helperName is how this program knows that it was started as a helper: as its
// own name, or as its first argument where another program starts it.
const helperName = "hone-wall"

// The descriptors that a helper is started with.
const (
	specFD    = 3 // a file in memory that holds the spec
	controlFD = 4
	selfFD    = 5 // this program's file
	streamsFD = 6 // in the walls of other programs: where the command's streams come from
)

// selfPath is this program, for those who start it inside of walls where its
// file is not shown.
const selfPath = "/proc/self/fd/5"

// spec is what a helper is to do.
type spec struct {
	Wall    Wall
	Policy  Policy // without what Doors serve
	Entries []entry
	Doors   []string // addresses
	// Wrapper is the command line of the program that builds the wall, which
	// runs the keeper.
	Wrapper []string
	// Outside are the namespaces of the process that asked, by kind.
	Outside map[string]string

	Argv  []string // empty: build the walls, say what was reached, and end
	Dir   string
	Env   []string
	Stdin bool // the helpers' standard input is the command's; otherwise it has none
}

// Helper does a helper's work and exits, where this process was started as
// one; else it returns at once. Every program that builds walls calls it first
// thing in main, before flags are read: walls are built by starting the
// program itself again. Nobody but this package starts helpers; whoever does so
// by hand gains nothing, as a helper does what its caller may do.
func Helper() {
	stage, ok := helperStage(os.Args)
	if !ok {
		return
	}
	// Nothing that this process was left with by accident goes any further.
	_ = unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	c := control{controlFD}
	s, err := readSpec()
	if err == nil {
		err = stage(s, c)
	}
	if err != nil {
		_ = c.send(message{Fail: failureOf(err)})
		syscall.Exit(1)
	}
	syscall.Exit(0) // at once: the race detector would have os.Exit wait a second
}

// helperStage is the work that a command line asks for.
func helperStage(args []string) (func(spec, control) error, bool) {
	if len(args) >= 2 && args[0] == selfPath {
		args = args[1:]
	}
	if len(args) != 2 || args[0] != helperName {
		return nil, false
	}
	switch args[1] {
	case "outer":
		return outer, true
	case "keeper":
		return keep, true
	}
	return nil, false
}

// readSpec reads the spec without moving the position, which helpers share.
func readSpec() (s spec, err error) {
	var info unix.Stat_t
	if err := unix.Fstat(specFD, &info); err != nil {
		return s, os.NewSyscallError("fstat", err)
	}
	text := make([]byte, info.Size)
	if _, err := unix.Pread(specFD, text, 0); err != nil {
		return s, os.NewSyscallError("pread", err)
	}
	return s, gob.NewDecoder(bytes.NewReader(text)).Decode(&s)
}

// specFile is a file in memory that holds a spec. Paths and arguments need not
// be UTF-8.
func specFile(s spec) (*os.File, error) {
	fd, err := unix.MemfdCreate("spec", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "spec")
	if err := gob.NewEncoder(f).Encode(s); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// outer starts the keeper, in namespaces of its own or in the walls of another
// program, and ends all that is left when it is gone. Where the walls are not
// made of namespaces it is the keeper itself.
func outer(s spec, c control) error {
	defer enterCage(s.Policy.Limits.processes()).leave()
	switch {
	case len(s.Wrapper) > 0:
		return wrapped(s, c)
	case s.Wall != Hidden:
		return keep(s, c)
	}
	runtime.LockOSThread() // the keeper dies with the thread that started it
	cmd := inherit(&exec.Cmd{Path: selfPath, Args: []string{helperName, "keeper"}, SysProcAttr: namespaces(s.Policy.Net)})
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	t, err := start(cmd)
	if err != nil {
		return fmt.Errorf("make namespaces: %w", err)
	}
	t.only = true
	letGo()
	go endWithCaller(t)
	<-t.exited
	t.end()
	return nil
}

// inherit makes a command a helper of this one.
func inherit(cmd *exec.Cmd) *exec.Cmd {
	cmd.Dir, cmd.Env = "/", []string{}
	cmd.ExtraFiles = []*os.File{os.NewFile(specFD, "spec"), os.NewFile(controlFD, "control"), os.NewFile(selfFD, "self")}
	return cmd
}

// wrapped is outer where another program builds the walls. It holds on to what
// it is started with, so that the command's streams reach the keeper on another
// way: else they would not end before it does.
func wrapped(s spec, c control) error {
	ours, theirs, err := newControl()
	if err != nil {
		return err
	}
	runtime.LockOSThread() // it dies with the thread that started it
	cmd := inherit(&exec.Cmd{Path: s.Wrapper[0], Args: s.Wrapper})
	cmd.ExtraFiles = append(cmd.ExtraFiles, theirs)
	said := &capture{max: 4 << 10}
	complaints, err := readInto(said, cmd)
	if err != nil {
		return err
	}
	t, err := start(cmd)
	_ = theirs.Close()
	_ = cmd.Stderr.(*os.File).Close()
	if err != nil {
		return fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	t.only = true
	unsent := ours.send(message{Streams: true}, streamNumbers[:]...)
	if unsent != nil { // it has ended already, or has no keeper that could wait
		t.kill()
	}
	letGo()
	go endWithCaller(t)
	<-t.exited
	t.end()
	<-complaints
	if t.status.Exit != 0 || unsent != nil { // the keeper's own word has come before, if it had one
		return fmt.Errorf("%s says: %s", filepath.Base(cmd.Path), cmp.Or(strings.Join(strings.Fields(string(said.kept)), " "), "nothing"))
	}
	return nil
}

// readInto reads what a command writes to its standard error; done is closed
// when that has ended.
func readInto(said *capture, cmd *exec.Cmd) (done chan struct{}, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr, done = w, make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 4<<10)
		for {
			n, err := r.Read(buf)
			said.take(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	return done, nil
}

// streamNumbers are the descriptors of a command's streams.
var streamNumbers = [...]int{unix.Stdin, unix.Stdout, unix.Stderr}

// takeStreams makes the streams that come from outer this process's own.
func takeStreams() error {
	_, fds, err := control{streamsFD}.receive()
	if err != nil || len(fds) != len(streamNumbers) {
		return fmt.Errorf("the command's streams did not come: %w", err)
	}
	for i, fd := range streamNumbers {
		if err := unix.Dup3(fds[i], fd, 0); err != nil {
			return os.NewSyscallError("dup3", err)
		}
		_ = unix.Close(fds[i])
	}
	return nil
}

// namespaces is how the keeper of the hidden walls is started: with all of its
// own, in which it is the same user, and may do what it needs to build walls.
func namespaces(net bool) *syscall.SysProcAttr {
	flags := unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	if !net {
		flags |= unix.CLONE_NEWNET
	}
	uid, gid := os.Getuid(), os.Getgid()
	return &syscall.SysProcAttr{
		Cloneflags:  uintptr(flags),
		UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SETPCAP, unix.CAP_SYS_RESOURCE, unix.CAP_DAC_OVERRIDE},
	}
}

// letGo gives up this process's hold of the command's streams, so that they
// end when the command's processes do, and who feeds a command that reads no
// more is told so.
func letGo() {
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	for _, fd := range streamNumbers {
		if err != nil || unix.Dup3(null, fd, 0) != nil {
			_ = unix.Close(fd)
		}
	}
}

// endWithCaller ends a tree whose keeper has not done so by itself some time
// after the caller is gone. It does not read what is meant for the keeper.
func endWithCaller(t *tree) {
	gone := []unix.PollFd{{Fd: controlFD, Events: unix.POLLRDHUP}}
	_ = again(func() error { _, err := unix.Poll(gone, -1); return err })
	time.Sleep(2 * time.Second)
	t.kill()
}

// namespaceIDs are this process's namespaces, by kind.
func namespaceIDs() map[string]string {
	ids := map[string]string{}
	for _, kind := range []string{"mnt", "pid", "net", "ipc", "user"} {
		if id, err := os.Readlink("/proc/self/ns/" + kind); err == nil {
			ids[kind] = id
		}
	}
	return ids
}

// shared are the namespaces that this process has in common with the one that
// asked for walls, and should not have.
func (s spec) shared() []string {
	if !s.apart() {
		return nil
	}
	kinds := []string{"mnt", "pid", "ipc"}
	if s.ownNet() {
		kinds = append(kinds, "net")
	}
	inside := namespaceIDs()
	return slices.DeleteFunc(kinds, func(kind string) bool { return inside[kind] != s.Outside[kind] && inside[kind] != "" })
}
