package forward

import (
	"errors"
	"io"
	"net/http"

	"hone/model"
)

// relay is the body of a response on its way to the agent: without keys, and of
// an error only the beginning. It settles the call when the usage is final or
// the response ends, before the agent has the last piece, so that the agent's
// next call does not find the usage still reserved.
type relay struct {
	c      *call
	status int
	header http.Header
	from   io.ReadCloser
	gate   gate
	meter  *meter
	size   int    // of what was read
	start  []byte // of an error's body
	out    []byte // can be read
	err    error  // after out; nil until the response ends
}

// maxFailure limits the part of an error's body that is stored, in bytes.
const maxFailure = 64 << 10

// Read implements io.Reader.
func (b *relay) Read(p []byte) (int, error) {
	for len(b.out) == 0 && b.err == nil {
		b.fill(p)
	}
	n := copy(p, b.out)
	if b.out = b.out[n:]; len(b.out) > 0 {
		return n, nil
	}
	return n, b.err
}

// fill reads the next piece. It uses p as its buffer.
func (b *relay) fill(p []byte) {
	failed := b.status >= 400
	if failed {
		p = p[:min(len(p), model.MaxErrorBody-b.size)]
	}
	var n int
	err := io.EOF
	if len(p) > 0 {
		n, err = b.from.Read(p)
	}
	if b.size += n; b.size > model.MaxBody {
		b.end(&model.Error{Kind: model.Garbage, Message: "the response is too large"})
		return
	}
	if stop := b.c.restartIdle(); stop != nil {
		b.end(b.c.fault(stop))
		return
	}
	b.meter.feed(p[:n])
	b.out = b.gate.filter(p[:n])
	if err == io.EOF {
		b.out = append(b.out, b.gate.flush()...)
	}
	if failed {
		b.start = append(b.start, b.out[:min(len(b.out), maxFailure-len(b.start))]...)
	}
	switch {
	case err == io.EOF:
		b.meter.end()
		b.end(err)
	case err != nil:
		b.end(b.c.fault(err))
	case b.meter.result(false) != nil:
		b.commitUsage(nil)
	}
}

// end ends the response and settles the call.
func (b *relay) end(err error) {
	b.err = err
	if err == io.EOF {
		err = nil
	}
	if b.status < 400 {
		b.commitUsage(err)
		return
	}
	message, code := model.ErrorBody(b.start)
	b.c.commitUsage(nil, model.StatusError(b.status, b.header, message, code))
}

// commitUsage settles with what the response has said. The fault is why it ended
// early; nil if it did not.
func (b *relay) commitUsage(fault error) {
	used, said := b.meter.result(fault == nil), b.meter.known.Fault
	switch {
	case fault != nil:
	case said != "":
		fault = &model.Error{Kind: model.Overloaded, Message: b.c.f.redactor.text(said), Usage: used}
	case used == nil:
		fault = &model.Error{Kind: model.Cut, Message: b.meter.missingUsage()}
	}
	b.c.commitUsage(used, fault)
}

// Close implements io.Closer. If the response has not ended, the agent has left
// or does not read it.
func (b *relay) Close() error {
	if b.err == nil {
		b.end(b.c.fault(errors.New("the agent does not read it")))
	}
	return b.from.Close()
}
