package wall

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hone/sandbox"
	"hone/sandbox/internal/kernel"
	"hone/sandbox/internal/process"
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

// outer starts the keeper, in namespaces of its own or in the walls of another
// program, and ends all that is left when it is gone. Where the walls are not
// made of namespaces it is the keeper itself.
func outer(s spec, c control) error {
	defer kernel.EnterCage(s.Policy.Limits.MaxProcesses()).Leave()
	switch {
	case len(s.Wrapper) > 0:
		return wrapped(s, c)
	case s.Wall != sandbox.Hidden:
		return keep(s, c)
	}
	runtime.LockOSThread() // the keeper dies with the thread that started it
	cmd := inherit(&exec.Cmd{Path: selfPath, Args: []string{helperName, "keeper"}, SysProcAttr: kernel.Namespaces(s.Policy.Net)})
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	t, err := process.Start(cmd)
	if err != nil {
		return fmt.Errorf("make namespaces: %w", err)
	}
	t.ClaimChildren()
	letGo()
	go endWithCaller(t)
	<-t.Exited()
	t.End()
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
	complaints, err := readComplaints(cmd)
	if err != nil {
		return err
	}
	t, err := process.Start(cmd)
	_ = theirs.Close()
	_ = cmd.Stderr.(*os.File).Close()
	if err != nil {
		return fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	t.ClaimChildren()
	unsent := ours.send(message{Streams: true}, streamNumbers[:]...)
	if unsent != nil { // it has ended already, or has no keeper that could wait
		t.Kill()
	}
	letGo()
	go endWithCaller(t)
	<-t.Exited()
	t.End()
	said := <-complaints
	if t.Exit().Status != 0 || unsent != nil { // the keeper's own word has come before, if it had one
		return fmt.Errorf("%s says: %s", filepath.Base(cmd.Path), cmp.Or(strings.Join(strings.Fields(said), " "), "nothing"))
	}
	return nil
}

// readComplaints reads what a command writes to its standard error, and sends
// the beginning when that has ended.
func readComplaints(cmd *exec.Cmd) (<-chan string, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = w
	said := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(io.LimitReader(r, 4<<10))
		_, _ = io.Copy(io.Discard, r)
		said <- string(text)
	}()
	return said, nil
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
func endWithCaller(t *process.Tree) {
	gone := []unix.PollFd{{Fd: controlFD, Events: unix.POLLRDHUP}}
	_ = process.IgnoreEINTR(func() error { _, err := unix.Poll(gone, -1); return err })
	time.Sleep(2 * time.Second)
	t.Kill()
}
