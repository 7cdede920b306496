package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
)

// MaxTokens limits a reported number of tokens. A larger one is not a count,
// and a sum of counts does not overflow.
const MaxTokens = 1 << 40

// MaxTokenBytes is more bytes than a token of a long text has on average: it is 3 to 5 in
// code, and up to 20 or so in long runs of spaces. A count of tokens that is too small for
// its text by this measure is not believed, because it would make a budget endless.
const MaxTokenBytes = 64

// Of a reply of so many bytes any count of tokens but 0 is believed: little is lost.
const shortReply = 4 << 10

// Counts reads the JSON object in which a provider reports its usage. It is
// strict, because a caller that takes an unreadable number for a small one
// gives tokens away: a count is a JSON number that is whole, not negative and
// at most [MaxTokens]. The zero Counts reports nothing.
type Counts struct {
	fields map[string]json.RawMessage
	wrong  bool
}

// ReadCounts returns the counts in raw. Nil and null report nothing.
func ReadCounts(raw json.RawMessage) Counts {
	var c Counts
	c.Merge(raw)
	return c
}

// LaterUsage returns the usage that counts after an event of a stream: what the event reports,
// else the one before. If the event has size bytes of content and no usage, the one before was
// only that of the tokens until then, and the result is nil.
func LaterUsage(before, reported json.RawMessage, size int64) json.RawMessage {
	switch {
	case !isNull(reported):
		return reported
	case size > 0:
		return nil
	}
	return before
}

// Merge adds the fields in raw; they replace earlier ones unless they are
// null, or smaller counts: a count that a response has reported stays used. Nil
// and null add nothing.
func (c *Counts) Merge(raw json.RawMessage) {
	fields, ok := jsonFields(raw)
	c.wrong = c.wrong || !ok
	for name, value := range fields {
		if c.fields == nil {
			c.fields = map[string]json.RawMessage{}
		}
		earlier, exists := c.fields[name]
		if !exists || !isNull(value) && !isLess(value, earlier) {
			c.fields[name] = value
		}
	}
}

// Values that are not counts are never less.
func isLess(a, b json.RawMessage) bool {
	n, isCount := ParseCount(string(bytes.TrimSpace(a)))
	m, wasCount := ParseCount(string(bytes.TrimSpace(b)))
	return isCount && wasCount && n < m
}

// Remove removes a field.
func (c *Counts) Remove(name string) { delete(c.fields, name) }

// Required returns a count that the provider must report.
func (c *Counts) Required(name string) int64 {
	if isNull(c.fields[name]) {
		c.wrong = true
	}
	return c.count(c.fields[name])
}

// Optional returns the count at a path of names; 0 if it is missing or null, or
// if an object on the path is.
func (c *Counts) Optional(path ...string) int64 {
	fields := c.fields
	for _, name := range path[:len(path)-1] {
		inner, ok := jsonFields(fields[name])
		c.wrong = c.wrong || !ok
		fields = inner
	}
	return c.count(fields[path[len(path)-1]])
}

// Usage returns u, which was read from c, so that it never has less than the
// provider says in total: reasoning that does not fit into the output was counted
// beside it, and what the total has beyond its parts is output too. It is nil if
// something in it is not a count, or if its output is too small for a reply of size
// bytes ([Reply.Size]).
func (c *Counts) Usage(u Usage, size int64) *Usage {
	total := max(c.Optional("total_tokens"), c.Optional("totalTokenCount"))
	if c.wrong || size > 0 && u.Output < max(1, (size-shortReply)/MaxTokenBytes) {
		return nil
	}
	if u.Reasoning > u.Output {
		u.Output += u.Reasoning
	}
	if beside := total - u.Total(); beside > 0 {
		u.Output += beside
		u.Reasoning = max(u.Reasoning, beside)
	}
	return &u
}

// maxCost is more USD than any call costs. A larger number has another unit.
const maxCost = 10_000

// Cost returns the cost in USD at a path of names, which does not count tokens and so is
// never required; nil if it is missing or cannot be a cost.
func (c *Counts) Cost(path ...string) *float64 {
	fields := c.fields
	for _, name := range path[:len(path)-1] {
		fields, _ = jsonFields(fields[name])
	}
	var usd *float64
	if json.Unmarshal(fields[path[len(path)-1]], &usd) != nil || usd == nil || *usd < 0 || *usd > maxCost {
		return nil
	}
	return usd
}

// Is reports whether the value of a name is true.
func (c *Counts) Is(name string) bool { return string(bytes.TrimSpace(c.fields[name])) == "true" }

func (c *Counts) count(raw json.RawMessage) int64 {
	if isNull(raw) {
		return 0
	}
	n, ok := ParseCount(string(bytes.TrimSpace(raw)))
	c.wrong = c.wrong || !ok
	return n
}

// ParseCount returns a JSON number as a number of tokens, and whether it is
// one. A whole number may be written with a fraction or an exponent, such as
// 12.0.
func ParseCount(number string) (int64, bool) {
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		return max(0, n), 0 <= n && n <= MaxTokens
	}
	// ParseFloat fails for any other JSON value: the words that it knows, such as
	// Inf, are not JSON.
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || !(0 <= f && f <= MaxTokens) || f != float64(int64(f)) {
		return 0, false
	}
	return int64(f), true
}

// They are nil if raw is missing or null; ok is false for any other value than an object.
func jsonFields(raw json.RawMessage) (map[string]json.RawMessage, bool) {
	if isNull(raw) {
		return nil, true
	}
	var fields map[string]json.RawMessage
	return fields, json.Unmarshal(raw, &fields) == nil
}

func isNull(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || string(raw) == "null"
}

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
