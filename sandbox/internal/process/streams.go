package process

import (
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// IO is what a command reads, and where what it writes goes. The zero IO is no
// input, and output that is kept.
type IO struct {
	Stdin     io.Reader // see the sandbox's Command
	MaxOutput int64     // bytes of each stream that are kept; 0 means DefaultMaxOutput
	// Live is given both streams as they come, LiveOut and LiveErr one of them.
	Live, LiveOut, LiveErr io.Writer
}

// DefaultMaxOutput is what a MaxOutput of 0 means.
const DefaultMaxOutput = 64 << 20

// Streams are a command's standard input, output and error, while it runs.
type Streams struct {
	in             input
	stdout, stderr capture
	live           sync.Mutex
	theirs         []*os.File // the ends that the command writes to
	ours           []*os.File
	done           chan struct{} // closed when output and error have ended
	readers        sync.WaitGroup
}

// NewStreams gives the command its streams and begins to read the two that it
// writes. After the start, whether or not it worked, come started and finish.
func NewStreams(cmd *exec.Cmd, c IO) (*Streams, error) {
	s := &Streams{done: make(chan struct{})}
	if err := s.in.open(cmd, c.Stdin); err != nil {
		return nil, err
	}
	for range 2 {
		r, w, err := os.Pipe()
		if err != nil {
			s.in.started(err)
			s.in.end(0)
			closeAll(s.ours)
			closeAll(s.theirs)
			return nil, err
		}
		s.ours, s.theirs = append(s.ours, r), append(s.theirs, w)
	}
	cmd.Stdout, cmd.Stderr = s.theirs[0], s.theirs[1]
	s.stdout = capture{max: c.MaxOutput, live: []io.Writer{c.Live, c.LiveOut}}
	s.stderr = capture{max: c.MaxOutput, live: []io.Writer{c.Live, c.LiveErr}}
	s.readers.Go(func() { s.read(s.ours[0], &s.stdout) })
	s.readers.Go(func() { s.read(s.ours[1], &s.stderr) })
	go func() {
		s.readers.Wait()
		close(s.done)
	}()
	return s, nil
}

// read takes a stream until it ends or is closed.
func (s *Streams) read(r io.Reader, into *capture) {
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			into.take(buf[:n])
			s.show(buf[:n], into.live)
		}
		if err != nil {
			return
		}
	}
}

// show gives a piece to those who watch, one piece at a time.
func (s *Streams) show(piece []byte, live []io.Writer) {
	s.live.Lock()
	defer s.live.Unlock()
	for _, w := range live {
		if w != nil {
			_, _ = w.Write(piece)
		}
	}
}

// Started gives up this process's hold of the command's ends, and begins to
// feed a command that was started without an error.
func (s *Streams) Started(err error) {
	closeAll(s.theirs)
	s.in.started(err)
}

// StderrKept is what is kept of the standard error. It may be called after
// finish.
func (s *Streams) StderrKept() []byte { return s.stderr.kept }

// wait waits until output and error have ended, at most so long.
func (s *Streams) wait(most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-s.done:
	case <-timer.C:
	}
}

// Finish waits like wait, and then stops reading and feeding.
func (s *Streams) Finish(most time.Duration) {
	s.wait(most)
	s.in.end(most)
	closeAll(s.ours)
	<-s.done
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
