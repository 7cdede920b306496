package wall

import (
	"fmt"
	"io"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// streamNumbers are the descriptors of a command's streams.
var streamNumbers = [...]int{unix.Stdin, unix.Stdout, unix.Stderr}

// receiveStreams replaces this process's streams with those that the outer
// helper sends.
func receiveStreams() error {
	_, fds, err := control{streamsFD}.receive()
	if err != nil || len(fds) != len(streamNumbers) {
		return fmt.Errorf("the command's streams did not arrive: %w", err)
	}
	for i, fd := range streamNumbers {
		if err := unix.Dup3(fds[i], fd, 0); err != nil {
			return os.NewSyscallError("dup3", err)
		}
		_ = unix.Close(fds[i])
	}
	return nil
}

// releaseStreams closes this process's copies of the command's streams. The
// streams then end when the command's processes do, and a process that writes to
// the command learns that it stopped reading.
func releaseStreams() {
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	for _, fd := range streamNumbers {
		if err != nil || unix.Dup3(null, fd, 0) != nil {
			_ = unix.Close(fd)
		}
	}
}

// captureStderr reads what a command writes to its standard error. It sends the
// beginning when that stream has ended.
func captureStderr(cmd *exec.Cmd) (<-chan string, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = w
	captured := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(io.LimitReader(r, 4<<10))
		_, _ = io.Copy(io.Discard, r)
		captured <- string(text)
	}()
	return captured, nil
}
