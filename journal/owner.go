package journal

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	stdhash "hash"
)

// Owner is whose runs a [Home] continues: those that were recorded with its key,
// and those that it accepted.
type Owner struct {
	// Key is the owner's secret. Each event contains a MAC with a key that is
	// derived from it and from the run's id. Without a key events have no MAC, and
	// no MAC is valid.
	Key []byte
	// Accepted returns the [Event.Hash] of the last event of a run that was accepted: up
	// to this one, events need no MAC. It is empty if all need one.
	Accepted func(run string) string
	// Imported returns the [Event.Hash] of the last event of a run that was imported: up
	// to this one, events must be accepted even if they have a MAC. It is empty if the run
	// was not imported. Nil means that none was.
	Imported func(run string) string
}

// ForeignError says that another user, another machine or another program
// recorded a part of a run.
type ForeignError struct {
	Run    string
	Event  int64 // the first event without a valid MAC, from 1
	Events int   // how many events the run has
	Damage error // what is wrong with its file; nil if it can be read
	// Imported means that the event was imported, and not accepted since.
	Imported bool
}

// Unwrap returns the damage.
func (e *ForeignError) Unwrap() error { return e.Damage }

func (e *ForeignError) Error() string {
	if e.Damage != nil {
		return e.Damage.Error()
	}
	if e.Imported {
		return fmt.Sprintf("event %d of %d of run %s was imported, and you have not accepted it", e.Event, e.Events, e.Run)
	}
	return fmt.Sprintf("event %d of %d of run %s was not recorded by you on this machine", e.Event, e.Events, e.Run)
}

// Check returns a [*ForeignError] if a run has events that the owner neither
// recorded nor accepted. A nil owner owns all.
func (o *Owner) Check(run string, events []Event) error {
	if o == nil {
		return nil
	}
	last := countTo(events, o.Accepted(run))
	if o.Imported != nil && countTo(events, o.Imported(run)) > last {
		return &ForeignError{Run: run, Event: events[last].Seq, Events: len(events), Imported: true}
	}
	m := o.mac(run)
	for _, e := range events[last:] {
		if text, sum := cutMAC(e.line); m == nil || !hmac.Equal(sum, m.sum(text)) {
			return &ForeignError{Run: run, Event: e.Seq, Events: len(events)}
		}
	}
	return nil
}

func countTo(events []Event, hash string) (n int) {
	for i := 0; hash != "" && i < len(events); i++ {
		if events[i].Hash() == hash {
			n = i + 1
		}
	}
	return n
}

func (o *Owner) mac(run string) *mac {
	if o == nil || len(o.Key) == 0 {
		return nil
	}
	key, err := hkdf.Key(sha256.New, o.Key, nil, run, sha256.Size)
	if err != nil {
		return nil // only in FIPS mode, with a short key
	}
	return &mac{hmac.New(sha256.New, key)}
}

// mac computes the MACs of one run. A MAC covers everything before it in its
// line: the event and, because that contains the hash of the line before it, all
// events before it.
type mac struct{ hash stdhash.Hash }

const (
	macField = `,"mac":"`
	macSize  = 2 * sha256.Size // in hex
)

func (m *mac) sum(text []byte) []byte {
	m.hash.Reset()
	m.hash.Write(text)
	return hex.AppendEncode(nil, m.hash.Sum(nil))
}

func (m *mac) sign(line []byte) []byte {
	if m == nil {
		return line
	}
	text := line[:len(line)-1]
	sum := m.sum(text)
	return append(append(append(text, macField...), sum...), `"}`...)
}

// cutMAC returns what the MAC of a line covers, and the MAC. Without a MAC it
// returns the line without its last brace, and nil.
func cutMAC(line []byte) (text, sum []byte) {
	text = bytes.TrimSuffix(line, []byte("}"))
	rest, quoted := bytes.CutSuffix(text, []byte(`"`))
	at := len(rest) - macSize
	if !quoted || at < 0 {
		return text, nil
	}
	before, ok := bytes.CutSuffix(rest[:at], []byte(macField))
	if !ok {
		return text, nil
	}
	return before, rest[at:]
}
