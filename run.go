package hone

import (
	"bytes"
	"encoding/json"
	"sync"

	"hone/check"
	"hone/history"
	"hone/journal"
	"hone/workspace"
)

// Run is one run of a loop over one tree. Its exported fields are set before
// the first call and not changed afterwards.
type Run struct {
	Tree    *workspace.Tree
	Journal *journal.Journal
	// Check has the last word; nil means that there is none, and the loop's
	// own end counts.
	Check check.Func
	// Human can be asked; nil denies what would have to be asked.
	Human Human
	// Rules are what Apply reviews changes by. Their Seen is given to Apply.
	Rules  workspace.Rules
	Limits Limits
	Retry  Retry
	Trust  Trust
	// Largest is the size in bytes of the largest file whose contents are kept
	// to be had back; 0: there is no limit.
	Largest int64
	// Own tells the files that the loop itself writes for people, such as
	// logs: nobody else's change. Nil: there are none.
	Own func(path string) bool
	// Before gives a manifest of the tree from an earlier run (see
	// [history.LastManifest]), so that files which are what they were need not be read
	// again; nil has all read. Contract: it is called where the run has no
	// manifest of its own yet; its result may be nil.
	Before func() workspace.Manifest
	// Redact takes provider keys out of a text; nil takes nothing out. All
	// that is journaled goes through it. Contract: it keeps JSON valid JSON,
	// and redacting twice is redacting once.
	Redact func(string) string
	// Stream, if not nil, is given a model's visible text as it arrives.
	Stream func(text string)
	// OnStart is called once by each process, before it records the run's first
	// event; nil does nothing. It records the settings of a new run with
	// [Run.Start]. If it fails, nothing is recorded, and Do returns its error.
	OnStart func() error

	starting  sync.Once        // calls OnStart
	startErr  error            // of OnStart
	at        journal.Identity // where the run is; its name and index are empty
	count     map[journal.Identity]int
	sessions  int // begun in the round
	money     sync.Mutex
	relayed   map[string]bool // roles whose agent's calls this process passed on; by money's holder alone
	once      sync.Once       // sets past
	past      *history.Past
	last      workspace.Manifest         // the newest manifest, for its stat cache
	stored    workspace.Stored           // the manifest that was kept last
	guard     map[string]workspace.Entry // protected files as the run found them; nil: not looked for yet
	stale     bool                       // something may have changed the tree since
	resumed   bool                       // by this process, if an earlier one began the run
	replaying world                      // nil: the live one
}

// Round is the number of the round that the run is in; 0 before the first.
func (r *Run) Round() int { return r.at.Round }

// Past is what the run's journal tells, up to its last event. A loop reads there
// whatever it has to remember.
func (r *Run) Past() *history.Past {
	r.once.Do(func() { r.past = history.Follow(r.Journal) })
	return r.past
}

// Start records the run's settings. They must be the first event of its journal;
// see OnStart.
func (r *Run) Start(s Start) error {
	_, err := r.write(journal.Entry{Type: history.TypeStart, Payload: s, Sync: true})
	return err
}

// Walled records what this process runs commands behind. It is called once a
// process, before the first round.
func (r *Run) Walled(w history.Walls) error {
	_, err := r.append(journal.Entry{Type: history.TypeWalls, Payload: w})
	return err
}

// Served records what happened to a server that a loop holds open. It may be
// called from any goroutine.
func (r *Run) Served(s history.Served) error {
	_, err := r.append(journal.Entry{Type: history.TypeServer, Payload: s})
	return err
}

// enter puts the run at the beginning of a round.
func (r *Run) startRound(round int) {
	r.at = journal.Identity{Round: round}
	r.count, r.sessions = nil, 0
}

// Notice tells the user something that is not a finding, once a run.
func (r *Run) Notice(text string) error {
	if r.Past().Noticed(text) {
		return nil
	}
	_, err := r.append(journal.Entry{Type: history.TypeNotice, Payload: history.Notice{Text: text}})
	return err
}

// append writes an event, after those of OnStart.
func (r *Run) append(n journal.Entry) (journal.Event, error) {
	r.starting.Do(func() {
		if r.OnStart != nil {
			r.startErr = r.OnStart()
		}
	})
	if r.startErr != nil {
		return journal.Event{}, r.startErr
	}
	return r.write(n)
}

// write writes an event, without keys.
func (r *Run) write(n journal.Entry) (journal.Event, error) {
	if n.Payload != nil && r.Redact != nil {
		b, err := marshal(n.Payload)
		if err != nil {
			return journal.Event{}, err
		}
		n.Payload = json.RawMessage(r.redact(b))
	}
	return r.world().append(n)
}

func (r *Run) redact(b []byte) []byte {
	if r.Redact == nil {
		return b
	}
	return []byte(r.Redact(string(b)))
}

// clean makes a provider's words fit to show: one line without keys.
func (r *Run) cleanText(s string) string { return string(r.redact([]byte(s))) }

// marshal encodes a value as the journal keeps it.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}
