// Package journal keeps what a run did, in one append-only file of JSON lines.
//
// The file is the trajectory, the audit log, the feed of every screen and the
// state to resume from. Each line is an [Event] with a sequence number and
// the SHA-256 of the line before it; what is too large for a line is an
// object, named by its digest and stored before the line that names it. All
// of it lives in the folder .hone at the workspace's root ([Home]), which
// ignores itself.
//
// A step leaves two events under one [Identity]: its begin, before anything
// is done, and its record, when it is done. [Journal.Lookup] finds them again,
// which is how a resumed run knows what not to do twice.
//
// What it guarantees: a line is there whole or not at all, a torn last line is
// cut off before anything is appended, and after an append that failed the
// file ends with its last whole line, or the journal takes no more. The chain
// finds edits, gaps and swaps. It does not find a tail that was cut at a line,
// nor a rewrite by someone who computes the chain anew; keep the last hash
// elsewhere if that matters ([Journal.Head]).
package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Version is the format that this package writes and the only one it reads.
const Version = 1

// Event is one line. Its payload stands beside these fields in the same JSON
// object; [Event.Decode] reads it.
type Event struct {
	Version int       `json:"v"`
	Seq     int64     `json:"seq"` // 1 is the first
	Time    time.Time `json:"time"`
	Run     string    `json:"run"`
	Type    Type      `json:"type"`
	Phase   Phase     `json:"phase,omitempty"` // empty: not of a step
	Step    *Identity `json:"step,omitempty"`  // nil: not of a step
	Input   string    `json:"input,omitempty"` // digest of what the step was given
	// Active is how long processes have worked on the run, in milliseconds
	// by their monotonic clocks, the time between processes left out.
	Active int64 `json:"active_ms"`
	// Prev is the SHA-256 of the line before, without its newline; empty in
	// the first.
	Prev string `json:"prev"`

	line []byte
}

// Type names what an event tells, such as "apply". The journal gives it no
// meaning; package history has the types of a run's events.
type Type string

// Phase says which of a step's two events it is.
type Phase string

// Begin stands before the effect and Record after it.
const (
	Begin  Phase = "begin"
	Record Phase = "record"
)

// Identity names a step within its run. Two steps never share one.
type Identity struct {
	Round   int    `json:"round"`
	Session int    `json:"session,omitempty"` // within the round; 0: outside of any
	Turn    int    `json:"turn,omitempty"`    // within the session
	Call    int    `json:"call,omitempty"`    // of a tool, within the turn; 0: outside of any
	Index   int    `json:"index,omitempty"`   // among steps of one name in the same place
	Name    string `json:"name"`
}

func (i Identity) String() string {
	return fmt.Sprintf("%s (round %d, session %d, turn %d, call %d, index %d)", i.Name, i.Round, i.Session, i.Turn, i.Call, i.Index)
}

// Decode reads the event's payload into v, which points to a struct. Fields
// of the envelope and unknown ones are passed over.
func (e Event) Decode(v any) error {
	if err := json.Unmarshal(e.line, v); err != nil {
		return fmt.Errorf("event %d (%s): %w", e.Seq, e.Type, err)
	}
	return nil
}

// Line is the event as it stands in the file, without its newline. It must
// not be changed.
func (e Event) Line() []byte { return e.line }

// Hash is the SHA-256 of the event's line, as the next one names it.
func (e Event) Hash() string { return hash(e.line) }

// Entry is what a caller gives [Journal.Append]; the rest of the event is the
// journal's to fill in.
type Entry struct {
	Type  Type
	Phase Phase
	Step  *Identity
	Input string
	// Payload is a struct or map that encodes as a JSON object; nil adds
	// nothing. Its keys must not be those of the envelope.
	Payload any
	// Sync makes the event durable before Append returns: it survives a
	// power cut, not only the end of the process.
	Sync bool
}

// Observer is told of events. Before is called ahead of the write and After
// when the line stands; either may be nil. Contract: both are called on the
// goroutine that appends, in order, and must not append.
type Observer struct {
	Before func(Entry)
	After  func(Event)
}

// Journal is one run's file, open for appending. Its methods may be called
// from several goroutines.
type Journal struct {
	home *Home
	run  string

	mu        sync.Mutex
	file      *os.File
	size      int64 // where the last whole line ends
	events    []Event
	begins    map[Identity]Event
	records   map[Identity]Event
	head      string // hash of the last line
	broken    error  // why nothing more can be appended
	observers []Observer
	opened    time.Time // with its monotonic reading
	active    int64     // of earlier processes, ms

	playing bool    // it is played back
	ahead   []Event // what is still to be played
}

// ErrBroken is wrapped by every append after one that failed and could not be
// taken back.
var ErrBroken = errors.New("the journal takes no more events")

// Create starts the file of a new run.
func (h *Home) Create(run string) (*Journal, error) {
	f, err := h.root.OpenFile(runFile(run), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create the run's journal: %w", err)
	}
	if err := h.syncDir(runsDir); err != nil {
		f.Close()
		return nil, err
	}
	return newJournal(h, run, f), nil
}

// Open opens a run's file to go on with it. A torn last line is cut off.
func (h *Home) Open(run string) (*Journal, error) {
	err := h.regular(runFile(run))
	var f *os.File
	if err == nil {
		f, err = h.root.OpenFile(runFile(run), os.O_RDWR, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("open the run's journal: %w", err)
	}
	j := newJournal(h, run, f)
	if err := j.load(); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", h.path(runFile(run)), err)
	}
	return j, nil
}

func newJournal(h *Home, run string, f *os.File) *Journal {
	return &Journal{home: h, run: run, file: f, opened: time.Now(),
		begins: map[Identity]Event{}, records: map[Identity]Event{}}
}

// load reads the file and leaves it ending with its last whole line.
func (j *Journal) load() error {
	data, err := io.ReadAll(j.file)
	if err != nil {
		return err
	}
	events, size, err := parse(j.run, data)
	if err != nil {
		return err
	}
	if size < int64(len(data)) {
		if err := j.file.Truncate(size); err != nil {
			return fmt.Errorf("cut off a torn line: %w", err)
		}
	}
	for _, e := range events {
		j.admit(e)
	}
	j.size = size
	if n := len(events); n > 0 {
		j.active = events[n-1].Active
	}
	_, err = j.file.Seek(size, io.SeekStart)
	return err
}

// admit takes an event that stands in the file into the index.
func (j *Journal) admit(e Event) {
	j.events = append(j.events, e)
	j.head = hash(e.line)
	if e.Step == nil {
		return
	}
	switch e.Phase {
	case Begin:
		j.begins[*e.Step] = e
	case Record:
		j.records[*e.Step] = e
	}
}

// Run is the run's id.
func (j *Journal) Run() string { return j.run }

// Home is where the journal and its objects live.
func (j *Journal) Home() *Home { return j.home }

// Observe adds an observer of the events to come.
func (j *Journal) Observe(o Observer) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.observers = append(j.observers, o)
}

// Events are those so far, in order.
func (j *Journal) Events() []Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.events[:len(j.events):len(j.events)]
}

// Lookup finds a step's begin and record; nil where there is none. Of a step
// that was begun more than once, it is the last begin.
func (j *Journal) Lookup(id Identity) (begin, record *Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e, ok := j.begins[id]; ok {
		begin = &e
	}
	if e, ok := j.records[id]; ok {
		record = &e
	}
	return begin, record
}

// Head is the SHA-256 of the last line: whoever keeps it can tell later that
// nothing was cut off.
func (j *Journal) Head() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.head
}

// Active is how long processes have worked on the run so far.
func (j *Journal) Active() time.Duration {
	return time.Duration(j.active)*time.Millisecond + time.Since(j.opened)
}

// Append writes one event.
func (j *Journal) Append(n Entry) (Event, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, o := range j.observers {
		if o.Before != nil {
			o.Before(n)
		}
	}
	if j.playing {
		return j.replay(n)
	}
	e, err := j.compose(n)
	if err != nil {
		return Event{}, err
	}
	if err := j.write(e.line, n.Sync); err != nil {
		return Event{}, err
	}
	j.admit(e)
	for _, o := range j.observers {
		if o.After != nil {
			o.After(e)
		}
	}
	return e, nil
}

// compose makes the event's line: the envelope, and the payload's fields
// behind it in the same object.
func (j *Journal) compose(n Entry) (Event, error) {
	e := Event{
		Version: Version, Seq: int64(len(j.events)) + 1, Time: time.Now().UTC(), Run: j.run,
		Type: n.Type, Phase: n.Phase, Step: n.Step, Input: n.Input,
		Active: j.Active().Milliseconds(), Prev: j.head,
	}
	if len(j.ahead) > 0 {
		e.Time, e.Active = j.ahead[0].Time, j.ahead[0].Active
	}
	line, err := encode(e)
	if err != nil {
		return Event{}, err
	}
	if n.Payload != nil {
		payload, err := encode(n.Payload)
		if err != nil {
			return Event{}, fmt.Errorf("event %s: %w", n.Type, err)
		}
		if len(payload) < 2 || payload[0] != '{' {
			return Event{}, fmt.Errorf("event %s: its payload is no object", n.Type)
		}
		if len(payload) > 2 {
			line = append(append(line[:len(line)-1], ','), payload[1:]...)
		}
	}
	e.line = line
	return e, nil
}

// write appends one line, or leaves the file as it was.
func (j *Journal) write(line []byte, sync bool) error {
	if j.broken != nil {
		return fmt.Errorf("%w since: %w", ErrBroken, j.broken)
	}
	_, err := j.file.Write(append(line, '\n'))
	if err == nil && sync {
		err = j.file.Sync()
	}
	if err == nil {
		j.size += int64(len(line)) + 1
		return nil
	}
	j.cutBack(err)
	return fmt.Errorf("append to the journal: %w", err)
}

// cutBack removes what a failed write may have left. A file whose fsync
// failed is in no known state, so that too ends the journal.
func (j *Journal) cutBack(cause error) {
	err := j.file.Truncate(j.size)
	if err == nil {
		_, err = j.file.Seek(j.size, io.SeekStart)
	}
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		j.broken = cause
	}
}

// Close closes the file. What was appended stays.
func (j *Journal) Close() error {
	if j.playing {
		return nil
	}
	return j.file.Close()
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
