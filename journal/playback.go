package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Playback opens a run's journal to go through the run once more: it begins
// without events, and takes only what stands next on record. Nothing is
// written. The whole file is read and its chain checked before.
func (h *Home) Playback(run string) (*Journal, error) {
	f, err := h.openRegular(runFile(run))
	if err != nil {
		return nil, fmt.Errorf("play the run's journal back: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("play the run's journal back: %w", err)
	}
	events, _, err := parse(run, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.path(runFile(run)), err)
	}
	j := newJournal(h, run, nil)
	j.playing, j.ahead = true, events
	return j, nil
}

// Ahead are the events that are still to come, in order; nil unless the journal
// is played back.
func (j *Journal) Ahead() []Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ahead
}

// Pass takes the next event as it stands. It must be there; see [Journal.Ahead].
func (j *Journal) Pass() Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.ahead[0]
	j.take(e)
	return e
}

// take moves the next event to those that have been.
func (j *Journal) take(e Event) {
	j.ahead = j.ahead[1:]
	j.active = e.Active
	j.admit(e)
	for _, o := range j.observers {
		if o.After != nil {
			o.After(e)
		}
	}
}

// DivergedError says that a run which is played back came to another event than
// the one on record.
type DivergedError struct {
	Recorded []byte // the line that stands next; nil: the record is at its end
	Made     []byte // what came instead
}

func (e *DivergedError) Error() string {
	if e.Recorded == nil {
		return fmt.Sprintf("the record is at its end, and the run goes on with %.300s", e.Made)
	}
	same := 0
	for same < min(len(e.Recorded), len(e.Made)) && e.Recorded[same] == e.Made[same] {
		same++
	}
	var head Event
	_ = json.Unmarshal(e.Recorded, &head) // it was read before
	return fmt.Sprintf("event %d (%s) is another: on record is …%s, and it came to …%s", head.Seq, head.Type, around(e.Recorded, same), around(e.Made, same))
}

// around is a line where it begins to differ.
func around(line []byte, at int) string {
	from := max(0, at-60)
	if at == 0 {
		from = 0
	}
	return strings.ToValidUTF8(string(line[from:min(len(line), at+160)]), "")
}

// replay is Append of a journal that is played back: what is appended has to be
// the next line, byte for byte, but for the time, which nobody can repeat.
func (j *Journal) replay(n Entry) (Event, error) {
	e, err := j.compose(n)
	if err != nil {
		return Event{}, err
	}
	if len(j.ahead) == 0 || !bytes.Equal(e.line, j.ahead[0].line) {
		diverged := &DivergedError{Made: e.line}
		if len(j.ahead) > 0 {
			diverged.Recorded = j.ahead[0].line
		}
		return Event{}, diverged
	}
	e = j.ahead[0]
	j.take(e)
	return e, nil
}
