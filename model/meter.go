package model

import (
	"bytes"
	"errors"
	"io"
)

// Meter reads the usage of a response that a program passes on to another one. It is given
// the data of each event, in order, or of a response that is not a stream. Events that it
// cannot read leave the usage unknown.
type Meter struct {
	reader  Reader
	size    int
	settled bool
	final   bool
	err     error // of the first event that is an error or cannot be read
}

// NewMeter returns the meter of one response on the wire of the reader.
func NewMeter(r Reader) *Meter { return &Meter{reader: r} }

// Add reads the next event.
func (m *Meter) Add(data []byte) {
	m.size += len(data)
	if m.final || m.err != nil {
		return
	}
	fault := EventFault(data)
	switch {
	case bytes.HasPrefix(data, []byte("[DONE]")):
		m.final = true
	case fault != nil:
		m.err = fault
	case m.size > MaxBody:
		m.err = errTooLarge
	default:
		settled, err := m.reader.Add(data)
		m.final = err == io.EOF
		if err != nil && !m.final && !m.settled {
			m.err = err
		}
		m.settled = m.settled || settled
	}
}

// Final reports whether nothing can follow that changes the usage.
func (m *Meter) Final() bool { return m.final }

// Usage returns what the response has used; nil if it is not complete, or if it does not say so
// plausibly. Done means that the response is complete by itself. The error is the provider's
// inside the response, as an [*Error], or why the usage is unknown.
func (m *Meter) Usage(done bool) (*Usage, error) {
	reply, err := m.reader.Reply(m.final || done)
	var fault *Error
	switch {
	case errors.As(m.err, &fault), err == nil && m.err == nil:
		return reply.Usage, m.err
	case m.err != nil:
		return nil, &Error{Kind: Garbage, Message: OneLine("cannot parse the response: " + m.err.Error())}
	case errors.As(err, &fault) && fault.Kind != Cut:
		return fault.Usage, fault
	}
	return nil, err
}
