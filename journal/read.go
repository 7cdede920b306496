package journal

import (
	"bytes"
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

// DamageError says that a line is not what was written.
type DamageError struct {
	Line int // 1 is the first
	Why  string
}

func (e *DamageError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Why) }

// Read returns a run's events without opening it for appending. A torn last
// line is passed over; a run that is going on can be read meanwhile.
func (h *Home) Read(run string) ([]Event, error) {
	f, err := h.openRegular(runFile(run))
	if err != nil {
		return nil, fmt.Errorf("read the run's journal: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("read the run's journal: %w", err)
	}
	events, _, err := parse(run, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.path(runFile(run)), err)
	}
	return events, nil
}

// Follow yields a run's events, those that stand first and then each as it is
// appended, until the context is done or the caller breaks. A file that is
// damaged ends it with an error.
func (h *Home) Follow(ctx context.Context, run string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		f, err := h.openRegular(runFile(run))
		if err != nil {
			yield(Event{}, fmt.Errorf("follow the run's journal: %w", err))
			return
		}
		defer f.Close()
		follow(ctx, run, f, yield)
	}
}

// followEvery is how often a followed file is looked at.
const followEvery = 50 * time.Millisecond

func follow(ctx context.Context, run string, f *os.File, yield func(Event, error) bool) {
	c := chain{run: run}
	var rest []byte
	for {
		more, err := io.ReadAll(f)
		if err != nil {
			yield(Event{}, err)
			return
		}
		rest = append(rest, more...)
		for {
			line, after, whole := bytes.Cut(rest, []byte{'\n'})
			if !whole {
				break
			}
			rest = after
			e, err := c.next(bytes.Clone(line))
			if !yield(e, err) || err != nil {
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(followEvery):
		}
	}
}

// parse reads whole lines and checks their chain. size is where the last whole
// line ends; what stands behind it is torn. A last line that ends in a newline
// and is no event is taken for torn as well: after a power cut a file may have
// its length before its contents.
func parse(run string, data []byte) (events []Event, size int64, err error) {
	c := chain{run: run}
	for size < int64(len(data)) {
		n := bytes.IndexByte(data[size:], '\n')
		if n < 0 {
			break
		}
		e, err := c.next(data[size : size+int64(n)])
		last := size+int64(n)+1 == int64(len(data))
		if errors.As(err, new(*json.SyntaxError)) && last {
			break
		}
		if err != nil {
			return nil, 0, err
		}
		events = append(events, e)
		size += int64(n) + 1
	}
	return events, size, nil
}

// chain checks each line against the one before.
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
	e := Event{line: line}
	if err := json.Unmarshal(line, &e); err != nil {
		return Event{}, fmt.Errorf("%w: %w", damage("not an event"), err)
	}
	switch {
	case e.Version != Version:
		return Event{}, damage("format %d, and this hone reads format %d", e.Version, Version)
	case e.Run != c.run:
		return Event{}, damage("it is of run %s, and the file of run %s", e.Run, c.run)
	case e.Seq != int64(c.n):
		return Event{}, damage("event %d stands where event %d belongs", e.Seq, c.n)
	case e.Prev != c.head:
		return Event{}, damage("the line before it was changed, or this one does not belong here")
	}
	c.head = hash(line)
	return e, nil
}

// NotFoundError says that no run, or more than one, goes by a name.
type NotFoundError struct {
	Ref     string
	Matches []string // empty: none
}

func (e *NotFoundError) Error() string {
	if len(e.Matches) == 0 {
		return fmt.Sprintf("no run is called %q here", e.Ref)
	}
	return fmt.Sprintf("%q could be %d runs, %s and %s among them", e.Ref, len(e.Matches), e.Matches[0], e.Matches[1])
}

func (e *NotFoundError) Unwrap() error { return fs.ErrNotExist }
