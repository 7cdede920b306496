package wall

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hone/sandbox"
	"hone/sandbox/internal/process"
)

// helperName marks a command line as a helper's: it is the program's name, or
// its first argument if another program starts the helper.
const helperName = "hone-wall"

// selfPath is this program's path inside walls that do not show its file.
const selfPath = "/proc/self/fd/5"

// Helper does a helper's work, or that of a [sandbox.Keeper], and exits if this process
// was started as one; otherwise it returns at once. Every program that builds walls must call it
// first in main, before it parses flags, because walls start the program itself
// again. Only this package starts helpers. A user who starts one by hand gains
// nothing: a helper may do what its caller may do.
func Helper() {
	sandbox.Helper()
	work, ok := helperWork(os.Args)
	if !ok {
		return
	}
	// Descriptors that this process inherited by accident go no further.
	_ = unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	c := control{controlFD}
	if err := work(c); err != nil {
		_ = c.send(message{Fail: failureOf(err)})
		syscall.Exit(1)
	}
	syscall.Exit(0) // at once: under the race detector os.Exit waits a second
}

func helperWork(args []string) (work func(control) error, ok bool) {
	if len(args) >= 2 && args[0] == selfPath {
		args = args[1:]
	}
	if len(args) != 2 || args[0] != helperName {
		return nil, false
	}
	switch args[1] {
	case "helper":
		return runHelper, true
	case "wrapped":
		return runWrapped, true
	}
	return nil, false
}

// runHelper does the work of the process that [Walls] start. It is the keeper, or it
// starts the program that builds the wall, and ends what is left after it.
func runHelper(c control) error {
	if err := receiveSpec(c); err != nil {
		return err
	}
	s, err := readSpec()
	if err != nil {
		return err
	}
	if len(s.Wrapper) > 0 {
		return runWrapper(s, c)
	}
	return runKeeper(s, c)
}

// runWrapped does the work of the process that another program starts behind the walls
// that it built.
func runWrapped(c control) error {
	s, err := readSpec()
	if err == nil {
		err = receiveStreams()
	}
	if err != nil {
		return err
	}
	return runKeeper(s, c)
}

func asHelper(cmd *exec.Cmd) *exec.Cmd {
	cmd.Dir, cmd.Env = "/", []string{}
	cmd.ExtraFiles = []*os.File{os.NewFile(specFD, "spec"), os.NewFile(controlFD, "control"), os.NewFile(selfFD, "self")}
	return cmd
}

func waitFor(t *process.Tree) {
	t.ClaimChildren()
	releaseStreams()
	go killOrphan(t)
	<-t.Exited()
	t.End()
}

// The program that builds the walls keeps the streams that it starts with, so the command's streams reach the keeper
// separately: otherwise they would not end before the program does.
func runWrapper(s spec, c control) error {
	ours, theirs, err := newControl()
	if err != nil {
		return err
	}
	runtime.LockOSThread() // the program dies with the thread that started it
	cmd := asHelper(&exec.Cmd{Path: s.Wrapper[0], Args: s.Wrapper})
	cmd.ExtraFiles = append(cmd.ExtraFiles, theirs)
	stderr, err := captureStderr(cmd)
	if err != nil {
		return err
	}
	t, err := process.Start(cmd, nil)
	_ = theirs.Close()
	_ = cmd.Stderr.(*os.File).Close()
	if err != nil {
		return fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	unsent := ours.send(message{Streams: true}, streamNumbers[:]...)
	if unsent != nil { // it has already ended, or started no keeper
		t.Kill()
	}
	waitFor(t)
	text := <-stderr
	if t.Exit().Status != 0 || unsent != nil { // a keeper has sent its own failure before
		return fmt.Errorf("%s says: %s", filepath.Base(cmd.Path), cmp.Or(strings.Join(strings.Fields(text), " "), "(no message)"))
	}
	return nil
}

// The keeper did not end by itself soon after the caller ended. Messages are not read: they are for the keeper.
func killOrphan(t *process.Tree) {
	hangUp := []unix.PollFd{{Fd: controlFD, Events: unix.POLLRDHUP}}
	_ = process.IgnoreEINTR(func() error { _, err := unix.Poll(hangUp, -1); return err })
	time.Sleep(2 * time.Second)
	t.Kill()
}
