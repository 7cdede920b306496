package wall

import (
	"fmt"
	"io"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

var streamNumbers = [...]int{unix.Stdin, unix.Stdout, unix.Stderr}

func receiveStreams() error { return receiveFiles(control{streamsFD}, streamNumbers[:]...) }

// receiveSpec makes the spec that [sendSpec] sends this process's specFD, and the
// command's streams its own.
func receiveSpec(c control) error { return receiveFiles(c, append(streamNumbers[:], specFD)...) }

func receiveFiles(c control, numbers ...int) error {
	_, fds, err := c.receive()
	if err != nil || len(fds) != len(numbers) {
		return fmt.Errorf("the command's streams did not arrive: %w", err)
	}
	for i, fd := range numbers {
		flags := 0
		if fd > unix.Stderr {
			flags = unix.O_CLOEXEC // the command does not inherit it
		}
		if err := unix.Dup3(fds[i], fd, flags); err != nil {
			return os.NewSyscallError("dup3", err)
		}
		_ = unix.Close(fds[i])
	}
	return nil
}

func sendSpec(c control, s spec, streams *exec.Cmd) error {
	spec, err := specFile(s)
	if err != nil {
		return err
	}
	defer spec.Close()
	stdin, ok := streams.Stdin.(*os.File)
	if !ok {
		stdin = spec // any file: the keeper does not read it
	}
	var fds []int
	for _, f := range []*os.File{stdin, streams.Stdout.(*os.File), streams.Stderr.(*os.File), spec} {
		fds = append(fds, int(f.Fd()))
	}
	return c.send(message{Streams: true}, fds...)
}

// The streams then end when the command's processes do, and a process that writes to the command learns that it stopped
// reading.
func releaseStreams() {
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	for _, fd := range streamNumbers {
		if err != nil || unix.Dup3(null, fd, 0) != nil {
			_ = unix.Close(fd)
		}
	}
}

// The beginning is sent when the stream has ended.
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
