package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// OpenReplay opens a run's journal to replay the run. The returned journal
// starts without events, and Append accepts only the next recorded event. It
// writes nothing. OpenReplay reads the complete file and checks its chain
// first.
func (h *Home) OpenReplay(run string) (*Journal, error) {
	events, err := h.Read(run)
	if err != nil {
		return nil, err
	}
	j := newJournal(h, run, nil)
	j.Pack, j.replaying, j.remaining = h.Idle(run), true, events
	return j, nil
}

// Remaining returns the recorded events that are still to be replayed, in
// order; nil unless the journal was opened by OpenReplay.
func (j *Journal) Remaining() []Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.remaining
}

// Skip returns the next recorded event and moves past it, without comparing it.
// There must be one; see [Journal.Remaining].
func (j *Journal) Skip() Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.remaining[0]
	j.advance(e)
	return e
}

func (j *Journal) advance(e Event) {
	j.remaining = j.remaining[1:]
	j.clock.Lock()
	j.active = e.Active
	j.clock.Unlock()
	j.add(e)
	for _, o := range j.observers {
		if o.After != nil {
			o.After(e)
		}
	}
}

// DivergedError says that a replayed run produced another event than the
// recorded one.
type DivergedError struct {
	Recorded []byte // the recorded line; nil if the recording has ended
	Replayed []byte // the line produced by the replay
}

func (e *DivergedError) Error() string {
	if e.Recorded == nil {
		return fmt.Sprintf("the recording ends here, but the replayed run continues with %.300s", e.Replayed)
	}
	same := 0
	for same < min(len(e.Recorded), len(e.Replayed)) && e.Recorded[same] == e.Replayed[same] {
		same++
	}
	var head Event
	_ = json.Unmarshal(e.Recorded, &head) // it was decoded before
	return fmt.Sprintf("event %d (%s) differs: recorded …%s, replayed …%s", head.Seq, head.Type, excerpt(e.Recorded, same), excerpt(e.Replayed, same))
}

func excerpt(line []byte, at int) string {
	from := max(0, at-60)
	return strings.ToValidUTF8(string(line[from:min(len(line), at+160)]), "")
}

// compare returns the next recorded event, which the replayed one must equal byte for byte, except
// for its time, which cannot be repeated, and its MAC.
func (j *Journal) compare(e Event) (Event, error) {
	if len(j.remaining) == 0 {
		return Event{}, &DivergedError{Replayed: e.line}
	}
	replayed, _ := cutMAC(e.line)
	if recorded, _ := cutMAC(j.remaining[0].line); !bytes.Equal(replayed, recorded) {
		return Event{}, &DivergedError{Replayed: e.line, Recorded: j.remaining[0].line}
	}
	e = j.remaining[0]
	j.advance(e)
	return e, nil
}
