package journal

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"time"
)

// DamageError says that a line differs from what was written.
type DamageError struct {
	Line int // starts at 1
	Why  string
	// Format is the line's format, if another version of hone wrote it; 0 if not.
	Format int
}

func (e *DamageError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Why) }

// Read returns a run's events without opening the journal for appending. It
// ignores an incomplete last line, so it can read a run in progress.
func (h *Home) Read(run string) ([]Event, error) {
	f, err := h.in.Open(runFile(run))
	if err != nil {
		return nil, fmt.Errorf("read the run's journal: %w", err)
	}
	defer f.Close()
	events, _, err := parse(run, f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.in.At(runFile(run)), err)
	}
	return events, nil
}

// Size returns the size of a run's journal in bytes. It grows with each event.
func (h *Home) Size(run string) (int64, error) {
	info, err := h.in.Root.Stat(runFile(run))
	if err != nil {
		return 0, fmt.Errorf("read the run's journal: %w", err)
	}
	return info.Size(), nil
}

// Follow yields a run's events: first the existing ones, then each new one as
// it is appended, until the context is done or the caller stops. It ends with
// an error if the file is damaged.
func (h *Home) Follow(ctx context.Context, run string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		f, err := h.in.Open(runFile(run))
		if err != nil {
			yield(Event{}, fmt.Errorf("follow the run's journal: %w", err))
			return
		}
		defer f.Close()
		follow(ctx, run, f, yield)
	}
}

// followEvery is the interval between two reads of a followed file.
const followEvery = 50 * time.Millisecond

func follow(ctx context.Context, run string, f *os.File, yield func(Event, error) bool) {
	c, in := chain{run: run}, newLines(f)
	for {
		line, err := in.next()
		var e Event
		if err == nil {
			e, err = c.next(line)
		}
		if !errors.Is(err, io.EOF) {
			if !yield(e, err) || err != nil {
				return
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(followEvery):
		}
	}
}

// parse decodes complete lines and checks their chain. size is the end of the
// last complete line; anything after it is incomplete. A last line that ends in
// a newline but is not JSON counts as incomplete too: after a power failure a
// file may have its length before its contents. With an error, the events are those
// before the damaged line. parse reads no further than that.
func parse(run string, from io.Reader) (events []Event, size int64, err error) {
	c, in := chain{run: run}, newLines(from)
	for {
		line, err := in.next()
		if errors.Is(err, io.EOF) {
			return events, size, nil
		}
		var e Event
		if err == nil {
			e, err = c.next(line)
		} else if errors.Is(err, errLongLine) {
			err = &DamageError{Line: c.n + 1, Why: err.Error()}
		}
		if errors.As(err, new(*json.SyntaxError)) && in.atEnd() {
			return events, size, nil
		}
		if err != nil {
			return events, 0, err
		}
		events = append(events, e)
		size += int64(len(line)) + 1
	}
}

// maxLine is the maximum length of a line in bytes. What could be longer is stored as an object.
const maxLine = 64 << 20

var errLongLine = fmt.Errorf("it is longer than the %d MB that hone writes: another program changed the journal", maxLine>>20)

// lines reads complete lines, also while more are appended.
type lines struct {
	in    *bufio.Reader
	begun []byte // of the next line
}

func newLines(from io.Reader) *lines { return &lines{in: bufio.NewReaderSize(from, 64<<10)} }

// The caller may keep the line. The error is io.EOF until it is complete.
func (l *lines) next() ([]byte, error) {
	for {
		part, err := l.in.ReadSlice('\n')
		l.begun = append(l.begun, part...)
		switch {
		case len(l.begun) > maxLine:
			return nil, errLongLine
		case err == nil:
			line := l.begun[:len(l.begun)-1]
			l.begun = nil
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

func (l *lines) atEnd() bool {
	_, err := l.in.Peek(1)
	return errors.Is(err, io.EOF)
}

type chain struct {
	run  string
	n    int
	head string
}

func (c *chain) next(line []byte) (Event, error) {
	c.n++
	damage := func(format string, args ...any) error {
		return &DamageError{Line: c.n, Why: fmt.Sprintf(format, args...)}
	}
	e, err := ParseLine(line)
	if err != nil {
		return Event{}, fmt.Errorf("%w: %w", damage("not an event"), err)
	}
	switch {
	case e.Version != Version:
		return Event{}, &DamageError{Line: c.n, Why: fmt.Sprintf("format %d, but this hone reads format %d", e.Version, Version), Format: e.Version}
	case e.Run != c.run:
		return Event{}, damage("it belongs to run %s, but the file to run %s", e.Run, c.run)
	case e.Seq != int64(c.n):
		return Event{}, damage("found event %d in place of event %d", e.Seq, c.n)
	case e.Prev != c.head:
		return Event{}, damage("the line before it was changed, or this line does not belong here")
	}
	c.head = hash(line)
	return e, nil
}

// ParseLine decodes one line, which the event keeps. It does not check the chain: the
// line may come from anywhere, such as what "hone --json" prints.
func ParseLine(line []byte) (Event, error) {
	e := Event{line: line}
	err := json.Unmarshal(line, &e)
	return e, err
}

// NotFoundError says that a name matches no run, or more than one.
type NotFoundError struct {
	Ref     string
	Matches []string // empty if no run matches
}

func (e *NotFoundError) Error() string {
	if len(e.Matches) == 0 {
		return fmt.Sprintf("no run here is called %q", e.Ref)
	}
	return fmt.Sprintf("%q matches %d runs, including %s and %s", e.Ref, len(e.Matches), e.Matches[0], e.Matches[1])
}

func (e *NotFoundError) Unwrap() error { return fs.ErrNotExist }

// OpenReplay opens a run's journal to replay the run. The returned journal
// starts without events, and Skip adds the next recorded one. It
// writes nothing, and Append fails. OpenReplay reads the complete file and checks its chain
// first.
func (h *Home) OpenReplay(run string) (*Journal, error) {
	events, err := h.Read(run)
	if err != nil {
		return nil, err
	}
	j := newJournal(h, run, nil)
	j.Pack, j.remaining = h.Idle(run), events
	return j, nil
}

// Remaining returns the recorded events that are still to be replayed, in
// order; nil unless the journal was opened by OpenReplay.
func (j *Journal) Remaining() []Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.remaining
}

// Skip returns the next recorded event and moves past it.
// There must be one; see [Journal.Remaining].
func (j *Journal) Skip() Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.remaining[0]
	j.remaining = j.remaining[1:]
	j.add(e)
	for _, o := range j.observers {
		if o.After != nil {
			o.After(e)
		}
	}
	return e
}
