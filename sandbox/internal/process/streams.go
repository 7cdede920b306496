package process

import (
	"cmp"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"hone/sandbox"
)

// Streams are a command's standard input, output and error, while it runs.
type Streams struct {
	stdout, stderr capture
	live           sync.Mutex
	theirs         []*os.File    // the command's ends
	ours           []*os.File    // those of output and error
	done           chan struct{} // closed when output and error have ended
	readers        sync.WaitGroup

	from io.Reader     // what is copied to the command; nil if nothing is
	feed *os.File      // the end of the pipe for it
	fed  chan struct{} // closed when nothing is copied any more
}

// NewStreams makes a command's streams and starts to read its output. The caller
// must call Started and Finish after the start, even if the start failed.
func NewStreams(cmd *exec.Cmd, c sandbox.Command) (*Streams, error) {
	s := &Streams{done: make(chan struct{}), fed: make(chan struct{})}
	var err error
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	for range 2 {
		r, w := pipe()
		s.ours, s.theirs = append(s.ours, r), append(s.theirs, w)
	}
	cmd.Stdout, cmd.Stderr = s.theirs[0], s.theirs[1]
	switch from := c.Stdin.(type) {
	case nil:
	case *os.File:
		cmd.Stdin = from
	default:
		r, w := pipe()
		cmd.Stdin, s.theirs, s.from, s.feed = r, append(s.theirs, r), from, w
	}
	if err != nil {
		closeAll(s.ours)
		closeAll(s.theirs)
		return nil, err
	}
	most := cmp.Or(c.MaxOutput, 64<<20)
	s.stdout = capture{max: most, live: []io.Writer{c.Live, c.LiveOut}}
	s.stderr = capture{max: most, live: []io.Writer{c.Live, c.LiveErr}}
	s.readers.Go(func() { s.read(s.ours[0], &s.stdout) })
	s.readers.Go(func() { s.read(s.ours[1], &s.stderr) })
	go func() {
		s.readers.Wait()
		close(s.done)
	}()
	return s, nil
}

// After [Streams.Finish] it takes what the command left in the pipe, and no more.
func (s *Streams) read(r *os.File, into *capture) {
	const (
		pipe = 1 << 20                // the most that one holds
		rest = 100 * time.Millisecond // for reading that on a busy machine
	)
	buf, left := make([]byte, 64<<10), pipe
	for left > 0 {
		n, err := r.Read(buf)
		if n > 0 {
			into.add(buf[:n])
			s.forward(buf[:n], into.live)
		}
		switch {
		case left < pipe:
			left -= n
		case errors.Is(err, os.ErrDeadlineExceeded):
			left--
			err = r.SetReadDeadline(time.Now().Add(rest))
		}
		if err != nil {
			return
		}
	}
}

func (s *Streams) forward(piece []byte, live []io.Writer) {
	s.live.Lock()
	defer s.live.Unlock()
	for _, w := range live {
		if w != nil {
			_, _ = w.Write(piece)
		}
	}
}

// Started closes this process's copies of the command's ends. If the start had no
// error it copies the input to the command.
func (s *Streams) Started(err error) {
	closeAll(s.theirs)
	if err != nil || s.from == nil {
		close(s.fed)
		return
	}
	go func() {
		defer close(s.fed)
		_, _ = io.Copy(s.feed, s.from) // a command need not read all of it
		_ = s.feed.Close()
	}()
}

// Stderr returns what was kept of the standard error. It may be called after
// Finish.
func (s *Streams) Stderr() []byte { return s.stderr.kept }

func wait(done <-chan struct{}, most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// Finish waits at most that long until the streams have ended, and closes them. What the command
// has written by then is kept, however slow its readers are.
func (s *Streams) Finish(most time.Duration) {
	wait(s.done, most)
	if s.feed != nil {
		_ = s.feed.Close()
		wait(s.fed, most) // for a Read to return
	}
	for _, f := range s.ours {
		if f.SetReadDeadline(time.Now()) != nil { // Windows has none for pipes
			_ = f.Close()
		}
	}
	<-s.done
	closeAll(s.ours)
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

type capture struct {
	kept []byte
	max  int64
	lost int64
	live []io.Writer
}

func (c *capture) add(p []byte) {
	room := max(0, c.max-int64(len(c.kept)))
	if int64(len(p)) > room {
		c.lost += int64(len(p)) - room
		p = p[:room]
	}
	if need := len(c.kept) + len(p); need > cap(c.kept) { // unlike append it never exceeds the number of bytes that will be kept
		bigger := make([]byte, len(c.kept), min(int64(max(need, 2*cap(c.kept), 4<<10)), c.max))
		copy(bigger, c.kept)
		c.kept = bigger
	}
	c.kept = append(c.kept, p...)
}
