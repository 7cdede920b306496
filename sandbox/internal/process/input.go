package process

import (
	"io"
	"os"
	"os/exec"
	"time"
)

// input is what a command reads. The zero input is none.
type input struct {
	from         io.Reader // what is copied; nil where nothing is
	theirs, ours *os.File  // the ends of the pipe that it is copied through
	done         chan struct{}
}

// open gives a command its standard input. After the start, whether or not it
// worked, come started and end.
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

// started gives up this process's hold of the command's end, and begins to
// feed a command that was started without an error.
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

// end stops feeding. It waits for a read that is under way, at most so long.
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
