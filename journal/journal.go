// Package journal records a run in one append-only file of JSON lines.
//
// Open the directory .hone of a workspace with [OpenHome] and take its lock
// with [Home.Lock]. [Home.Create] starts the journal of a new run, [Home.Open]
// opens an existing one to continue it, and [Home.Read] and [Home.Follow] only
// read. [Journal.Append] adds an [Event]. Each event has a sequence number and
// the SHA-256 of the line before it. Store data that is too large for a line as
// an object of the journal's [objects.Pack] before appending the event that
// names it. Append makes all objects durable before it writes the event, so that no
// event names an object that a power failure can destroy. The event itself is durable if its
// [Entry.Sync] is set, or once a later one with it is appended.
//
// [Home.Import] stores a journal that was recorded elsewhere.
//
// A step appends two events with the same [Identity]: its begin before it does
// anything, and its record afterwards, so that a resumed run knows which steps not to
// repeat.
//
// Guarantees: every line is complete or absent. Opening a journal removes an
// incomplete last line. After a failed append the file ends with the last
// complete line, or the journal accepts no more events. Reading detects edited,
// missing and reordered lines. It cannot detect that complete lines were
// removed at the end; to detect that, keep the last hash elsewhere
// ([Journal.Head]). [Home.Open] opens only runs of the home's [Owner], so that it
// also detects that someone else computed all hashes again. Readers do not.
package journal

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"hone/journal/objects"
)

// Version is the format that this package writes, and the only one that it
// reads.
const Version = 1

// Event is one line of a journal. Its payload is in the same JSON object as
// these fields; [Event.Decode] reads it.
type Event struct {
	Version int       `json:"v"`
	Seq     int64     `json:"seq"` // starts at 1
	Time    time.Time `json:"time"`
	Run     string    `json:"run"`
	Type    Type      `json:"type"`
	Phase   Phase     `json:"phase,omitempty"` // empty if the event is not of a step
	Step    *Identity `json:"step,omitempty"`  // nil if the event is not of a step
	Input   string    `json:"input,omitempty"` // digest of the step's input
	// Active is how long processes have worked on the run, in milliseconds of
	// their monotonic clocks. Time between processes does not count.
	Active int64 `json:"active_ms"`
	// Prev is the SHA-256 of the previous line without its newline, empty in
	// the first event.
	Prev string `json:"prev"`

	line []byte
}

// Type names what an event records, such as "apply". The journal gives it no
// meaning; package history has the types of a run's events.
type Type string

// Phase distinguishes the two events of a step.
type Phase string

// A step appends Begin before it has any effect and Record afterwards.
const (
	Begin  Phase = "begin"
	Record Phase = "record"
)

// Identity identifies a step within its run. No two steps share one.
type Identity struct {
	Round   int    `json:"round"`
	Part    int    `json:"part,omitempty"`    // of the round: how often it was decided, or its tree restored, before
	Session int    `json:"session,omitempty"` // within the round; 0 outside sessions
	Turn    int    `json:"turn,omitempty"`    // within the session
	Call    int    `json:"call,omitempty"`    // tool call within the turn; 0 outside calls
	Index   int    `json:"index,omitempty"`   // among steps of the same name in the same place
	Name    string `json:"name"`
}

func (i Identity) String() string {
	return fmt.Sprintf("%s (round %d, part %d, session %d, turn %d, call %d, index %d)", i.Name, i.Round, i.Part, i.Session, i.Turn, i.Call, i.Index)
}

// Decode decodes the event's payload into v, a pointer to a struct. It ignores
// the fields of the envelope and unknown fields.
func (e Event) Decode(v any) error {
	if err := json.Unmarshal(e.line, v); err != nil {
		return fmt.Errorf("event %d (%s): %w", e.Seq, e.Type, err)
	}
	return nil
}

// Line returns the event's line in the file, without its newline. The caller
// must not change it.
func (e Event) Line() []byte { return e.line }

// Hash returns the SHA-256 of the event's line, which the next event contains
// as Prev.
func (e Event) Hash() string { return hash(e.line) }

// Entry is the input of [Journal.Append]. The journal sets all other fields of
// the event.
type Entry struct {
	Type  Type
	Phase Phase
	Step  *Identity
	Input string
	// Payload is a struct or map that encodes as a JSON object; nil adds
	// nothing. Its keys must differ from those of the envelope.
	Payload any
	// Sync makes the event durable before Append returns: it then survives a
	// power failure, not only the end of the process.
	Sync bool
}

// Observer is notified of events: Before is called before an event is written,
// After once it is in the file. Either may be nil. Contract: both run in order
// on the goroutine that appends, and must not append.
type Observer struct {
	Before func(Entry)
	After  func(Event)
}

// Journal is the file of one run, open for appending. Several goroutines may
// use it at once.
type Journal struct {
	// Pack stores the objects of the run. That of OpenReplay stores none, and only names them.
	*objects.Pack

	home *Home
	run  string

	mu        sync.Mutex
	file      *os.File
	size      int64 // end of the last complete line
	events    []Event
	head      string // hash of the last line
	mac       *mac   // nil if events get no MAC
	brokenBy  error  // why the journal accepts no more events; nil if it does
	observers []Observer
	opened    time.Time // includes a monotonic reading
	active    int64     // of earlier processes, in milliseconds

	clock   sync.Mutex
	waiting time.Time     // since when the process waits for a user; zero if it does not
	waited  time.Duration // how long it has done so before

	remaining []Event // events still to be replayed; see OpenReplay
}

// ErrBroken is wrapped by the error of every append that follows a failed one
// whose partial line could not be removed.
var ErrBroken = errors.New("the journal accepts no more events")

// Create creates the journal of a new run.
func (h *Home) Create(run string) (*Journal, error) {
	f, err := h.in.Root.OpenFile(runFile(run), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create the run's journal: %w", err)
	}
	j := newJournal(h, run, f)
	j.Pack = h.Pack(run)
	if err := cmp.Or(j.Pack.Create(), h.in.Sync(runsDir)); err != nil {
		return nil, errors.Join(err, j.Discard())
	}
	j.mac = h.Owner.mac(run)
	return j, nil
}

// Discard closes and deletes the journal of a run for which nothing was
// recorded.
func (j *Journal) Discard() error {
	if len(j.Events()) > 0 {
		return fmt.Errorf("run %s has events: its journal is not deleted", j.run)
	}
	if err := errors.Join(j.Pack.Discard(), j.Close(), j.home.in.Root.Remove(runFile(j.run))); err != nil {
		return fmt.Errorf("delete the run's journal: %w", err)
	}
	return nil
}

// Open opens the journal of an existing run to continue it. It removes an
// incomplete last line. If the run is not the [Owner]'s, the error is a
// [*ForeignError], and the file stays as it is.
func (h *Home) Open(run string) (*Journal, error) {
	err := h.in.CheckRegular(runFile(run))
	var f *os.File
	if err == nil {
		f, err = h.in.Root.OpenFile(runFile(run), os.O_RDWR, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("open the run's journal: %w", err)
	}
	j := newJournal(h, run, f)
	j.Pack = h.Pack(run)
	if err := j.load(); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", h.in.At(runFile(run)), err)
	}
	return j, nil
}

func newJournal(h *Home, run string, f *os.File) *Journal {
	return &Journal{home: h, run: run, file: f, opened: time.Now()}
}

func (j *Journal) load() error {
	events, size, damage := parse(j.run, j.file)
	if damage != nil && !errors.As(damage, new(*DamageError)) {
		return damage
	}
	o := j.home.Owner
	switch {
	case damage == nil || o == nil:
		if err := cmp.Or(damage, o.Check(j.run, events)); err != nil {
			return err
		}
	case len(events) > 0 && o.Check(j.run, events[:1]) == nil:
		return damage
	default: // a damaged run is foreign if its first event is
		return &ForeignError{Run: j.run, Event: 1, Events: len(events) + 1, Damage: damage}
	}
	info, err := j.file.Stat()
	if err == nil && size < info.Size() {
		err = j.file.Truncate(size)
	}
	if err != nil {
		return fmt.Errorf("remove an incomplete line: %w", err)
	}
	for _, e := range events {
		j.add(e)
	}
	j.size, j.mac = size, j.home.Owner.mac(j.run)
	if n := len(events); n > 0 {
		j.active = events[n-1].Active
	}
	_, err = j.file.Seek(size, io.SeekStart)
	return err
}

func (j *Journal) add(e Event) { j.events, j.head = append(j.events, e), hash(e.line) }

// Run returns the run's id.
func (j *Journal) Run() string { return j.run }

// Home returns the directory of the journal and its objects.
func (j *Journal) Home() *Home { return j.home }

// Observe adds an observer of future events.
func (j *Journal) Observe(o Observer) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.observers = append(j.observers, o)
}

// Events returns the events so far, in order.
func (j *Journal) Events() []Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.events[:len(j.events):len(j.events)]
}

// Head returns the SHA-256 of the last line. A caller that keeps it can later
// tell whether events were removed at the end.
func (j *Journal) Head() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.head
}

// Active returns how long processes have worked on the run so far, without the time in
// which they waited for a user ([Journal.Wait]).
func (j *Journal) Active() time.Duration {
	j.clock.Lock()
	defer j.clock.Unlock()
	now := time.Now()
	if !j.waiting.IsZero() {
		now = j.waiting
	}
	return time.Duration(j.active)*time.Millisecond + now.Sub(j.opened) - j.waited
}

// Wait says that the process waits for a user until done is called. It must not be called
// again before that.
func (j *Journal) Wait() (done func()) {
	j.clock.Lock()
	defer j.clock.Unlock()
	j.waiting = time.Now()
	return func() {
		j.clock.Lock()
		defer j.clock.Unlock()
		j.waited += time.Since(j.waiting)
		j.waiting = time.Time{}
	}
}

// Append appends one event and returns it.
func (j *Journal) Append(n Entry) (Event, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, o := range j.observers {
		if o.Before != nil {
			o.Before(n)
		}
	}
	e, err := j.newEvent(n)
	if err != nil {
		return Event{}, err
	}
	if len(e.line) > maxLine {
		return Event{}, fmt.Errorf("event %s: its %d bytes are too many for a line of the journal", n.Type, len(e.line))
	}
	if err := j.Pack.Sync(); err != nil {
		return Event{}, err
	}
	if err := j.write(e.line, n.Sync); err != nil {
		return Event{}, err
	}
	j.add(e)
	for _, o := range j.observers {
		if o.After != nil {
			o.After(e)
		}
	}
	return e, nil
}

// newEvent returns the event with its line: the envelope, followed by the
// fields of the payload in the same object, and the MAC.
func (j *Journal) newEvent(n Entry) (Event, error) {
	e := Event{
		Version: Version, Seq: int64(len(j.events)) + 1, Time: time.Now().UTC(), Run: j.run,
		Type: n.Type, Phase: n.Phase, Step: n.Step, Input: n.Input,
		Active: j.Active().Milliseconds(), Prev: j.head,
	}
	line, err := Encode(e)
	if err != nil {
		return Event{}, err
	}
	if n.Payload != nil {
		payload, err := Encode(n.Payload)
		if err != nil {
			return Event{}, fmt.Errorf("event %s: %w", n.Type, err)
		}
		if len(payload) < 2 || payload[0] != '{' {
			return Event{}, fmt.Errorf("event %s: its payload is not a JSON object", n.Type)
		}
		if len(payload) > 2 {
			line = append(append(line[:len(line)-1], ','), payload[1:]...)
		}
	}
	e.line = j.mac.sign(line)
	return e, nil
}

// After an error the file is unchanged.
func (j *Journal) write(line []byte, sync bool) error {
	if j.brokenBy != nil {
		return fmt.Errorf("%w since: %w", ErrBroken, j.brokenBy)
	}
	err := j.checkSize()
	if err == nil {
		_, err = j.file.Write(append(line, '\n'))
	}
	if err == nil && sync {
		err = j.home.in.SyncFile(runFile(j.run), j.file)
	}
	if err == nil {
		j.size += int64(len(line)) + 1
		return nil
	}
	j.truncate(err)
	return fmt.Errorf("append to the journal: %w", err)
}

func (j *Journal) checkSize() error {
	info, err := j.file.Stat()
	if err == nil {
		_, err = j.home.in.Root.Lstat(runFile(j.run)) // a file that was removed can still be written
	}
	if err == nil && info.Size() != j.size {
		err = fmt.Errorf("another program changed %s: it has %d bytes instead of %d", j.home.in.At(runFile(j.run)), info.Size(), j.size)
	}
	return err
}

// If truncating fails, the state of the file is unknown and the journal accepts no more events.
func (j *Journal) truncate(cause error) {
	info, err := j.file.Stat()
	if err == nil && info.Size() < j.size {
		err = cause
	}
	if err == nil {
		err = j.file.Truncate(j.size)
	}
	if err == nil {
		_, err = j.file.Seek(j.size, io.SeekStart)
	}
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		j.brokenBy = cause
	}
}

// Close closes the files.
func (j *Journal) Close() error {
	if j.file == nil { // of OpenReplay
		return nil
	}
	return errors.Join(j.Pack.Close(), j.file.Close())
}

// Encode returns the JSON of a value as Append writes it.
func Encode(v any) ([]byte, error) {
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
