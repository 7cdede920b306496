package sandbox

import (
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// DefaultMaxOutput is what Command.MaxOutput of 0 means.
const DefaultMaxOutput = 64 << 20

// output reads both streams of a command while it runs.
type output struct {
	stdout, stderr capture
	live           sync.Mutex
	theirs         []*os.File // the ends that the command writes to
	ours           []*os.File
	done           chan struct{} // closed when both streams have ended
	readers        sync.WaitGroup
}

// newOutput gives the command its two streams and begins to read them. After
// the start, whether or not it worked, come started and finish.
func newOutput(cmd *exec.Cmd, c Command) (*output, error) {
	o := &output{done: make(chan struct{})}
	for range 2 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(o.ours)
			closeAll(o.theirs)
			return nil, err
		}
		o.ours, o.theirs = append(o.ours, r), append(o.theirs, w)
	}
	cmd.Stdout, cmd.Stderr = o.theirs[0], o.theirs[1]
	o.stdout = capture{max: c.MaxOutput, live: []io.Writer{c.Live, c.LiveOut}}
	o.stderr = capture{max: c.MaxOutput, live: []io.Writer{c.Live, c.LiveErr}}
	o.readers.Go(func() { o.read(o.ours[0], &o.stdout) })
	o.readers.Go(func() { o.read(o.ours[1], &o.stderr) })
	go func() {
		o.readers.Wait()
		close(o.done)
	}()
	return o, nil
}

// read takes a stream until it ends or is closed.
func (o *output) read(r io.Reader, into *capture) {
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			into.take(buf[:n])
			o.show(buf[:n], into.live)
		}
		if err != nil {
			return
		}
	}
}

// show gives a piece to those who watch, one piece at a time.
func (o *output) show(piece []byte, live []io.Writer) {
	o.live.Lock()
	defer o.live.Unlock()
	for _, w := range live {
		if w != nil {
			_, _ = w.Write(piece)
		}
	}
}

// started gives up this process's hold of the ends that the command writes to.
func (o *output) started() { closeAll(o.theirs) }

// wait waits until both streams have ended, at most so long.
func (o *output) wait(most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-o.done:
	case <-timer.C:
	}
}

// finish waits like wait, and then stops reading.
func (o *output) finish(most time.Duration) {
	o.wait(most)
	closeAll(o.ours)
	<-o.done
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// capture keeps the beginning of a stream.
type capture struct {
	kept []byte
	max  int64 // 0 means DefaultMaxOutput
	lost int64
	live []io.Writer
}

// take keeps what there is room for and counts the rest.
func (c *capture) take(p []byte) {
	most := c.max
	if most == 0 {
		most = DefaultMaxOutput
	}
	room := max(0, most-int64(len(c.kept)))
	if int64(len(p)) > room {
		c.lost += int64(len(p)) - room
		p = p[:room]
	}
	c.grow(len(p), most)
	c.kept = append(c.kept, p...)
}

// grow makes room by doubling, and never past the most that will be kept, as
// append would.
func (c *capture) grow(n int, most int64) {
	need := len(c.kept) + n
	if need <= cap(c.kept) {
		return
	}
	size := min(int64(max(need, 2*cap(c.kept), 4<<10)), most)
	bigger := make([]byte, len(c.kept), size)
	copy(bigger, c.kept)
	c.kept = bigger
}
