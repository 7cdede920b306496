package process

import (
	"io"
	"os"
	"os/exec"
	"time"
)

// input is the standard input of a command. The zero input is empty.
type input struct {
	from         io.Reader // what is copied; nil if nothing is
	theirs, ours *os.File  // the ends of the pipe to the command
	done         chan struct{}
}

// The caller must call started and end after the start, even if the start failed.
func (in *input) open(cmd *exec.Cmd, from io.Reader) (err error) {
	file, ok := from.(*os.File)
	switch {
	case from == nil:
		return nil
	case ok:
		cmd.Stdin = file
		return nil
	}
	if in.theirs, in.ours, err = os.Pipe(); err != nil {
		return err
	}
	cmd.Stdin, in.from = in.theirs, from
	return nil
}

// It closes this process's copy of the command's end, and copies the input to the command if the start had no error.
func (in *input) started(err error) {
	if in.from == nil {
		return
	}
	_ = in.theirs.Close()
	in.done = make(chan struct{})
	if err != nil {
		close(in.done)
		return
	}
	go func() {
		defer close(in.done)
		_, _ = io.Copy(in.ours, in.from) // a command need not read all of it
		_ = in.ours.Close()
	}()
}

// It waits at most that long for a Read to return.
func (in *input) end(most time.Duration) {
	if in.from == nil {
		return
	}
	_ = in.ours.Close()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-in.done:
	case <-timer.C:
	}
}
